// A launch site in a loop: each thread records its children one behind the other.
//
// Where the launch's stream has no order, the site is a feeding one (feed.h) and only the consumer differs.
// Otherwise a register of the recording parent keeps the thread's last record from one launch to the next
// (templates/chain_record.cu). The program's own two calls stay here as well, each behind a branch. At the
// first call there is a third way: neither a record nor the program's call, but no buffer, which the program
// meets as it meets a launch that the device runtime refuses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/legality.h"
#include "ptx/tree.h"
#include "transform/aggregate.h"
#include "transform/lines.h"
#include "transform/splice.h"

namespace klap::transform {

// For templates/chain.cu and a child with that block.
ConsumerShape chain_shape(const ptx::Module& module, const ptx::Function& child,
                          const std::array<uint32_t, 3>& block, bool grid_is_1d, bool in_order);

class ChainedSite {
 public:
  // `record` is templates/chain_record.cu; `queue` a register with the queue's address.
  ChainedSite(const analysis::Site& site, const ptx::Module& record, std::string queue, LineTables& lines)
      : site_(site), record_(record), queue_(std::move(queue)), lines_(lines) {}

  [[nodiscard]] Surroundings in_parent() const;
  // Must stand at the parent's entry.
  [[nodiscard]] static std::string registers();
  // Of functions that in_parent() calls and `module`, the parent's, may not declare.
  [[nodiscard]] std::vector<std::string> declarations(const ptx::Module& module) const;

 private:
  [[nodiscard]] Around first_call() const;
  [[nodiscard]] Around launch_call() const;

  const analysis::Site& site_;
  const ptx::Module& record_;
  const std::string queue_;
  LineTables& lines_;
};

}  // namespace klap::transform
