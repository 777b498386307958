// The launch sites of a kernel that launches in a loop: each thread records its children one behind the
// other.
//
// Where no launch has an order, the sites are feeding ones (feed.h) and only the consumer differs. Otherwise
// a register of the recording parent keeps the thread's last record from one launch to the next, at whichever
// site (templates/chain_record.cu). The program's own two calls stay here as well, each behind a branch. At
// the first call there is a third way: neither a record nor the program's call, but no buffer, which the
// program meets as it meets a launch that the device runtime refuses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/chaining.h"
#include "ptx/tree.h"
#include "transform/aggregate.h"
#include "transform/lines.h"
#include "transform/splice.h"

namespace klap::transform {

// For templates/chain.cu and kernels of that module.
ConsumerShape chain_shape(const ptx::Module& module, const analysis::Chained& chained, bool grid_is_1d);

class ChainedSites {
 public:
  // `targets` are the numbers of the kernels that the sites launch, site by site; `record` is
  // templates/chain_record.cu; `queue` a register with the queue's address.
  ChainedSites(const analysis::FunctionFacts& parent, std::vector<uint32_t> targets,
               const ptx::Module& record, std::string queue, LineTables& lines)
      : parent_(parent),
        targets_(std::move(targets)),
        record_(record),
        queue_(std::move(queue)),
        lines_(lines) {}

  [[nodiscard]] Surroundings in_parent() const;
  // Must stand at the parent's entry. A thread is at one of its sites at a time: they share what they need.
  [[nodiscard]] static std::string registers();
  // Of functions that in_parent() calls and the parent's module may not declare.
  [[nodiscard]] std::vector<std::string> declarations() const;

 private:
  [[nodiscard]] Around first_call(size_t number) const;
  [[nodiscard]] Around launch_call(size_t number) const;
  // What both of a site's template functions are told of it: its kernel's number, and whether it is alone.
  [[nodiscard]] std::vector<std::string> constants(size_t number) const;

  const analysis::FunctionFacts& parent_;
  const std::vector<uint32_t> targets_;
  const ptx::Module& record_;
  const std::string queue_;
  LineTables& lines_;
};

}  // namespace klap::transform
