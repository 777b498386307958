// The launch sites of a kernel whose children launch again. A child is recorded if the queue has room, and
// launched as the program does if not.
//
// The program's own two calls stay, each behind a branch. The first call settles which way a thread goes.
// Both ways go through the program's null test and argument stores. These write to the record or to the
// device runtime's buffer. A recorded launch cannot fail, and leaves the last error alone, as a launch that
// succeeds does.
//
// If the kernel's body stands in the consumer, one thread runs many threads of the program. A later one must
// not see the error that an earlier one left behind. So the last error is cleared before the first of the
// program's own launches. A thread that made no such launch has no error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/facts.h"
#include "ptx/tree.h"
#include "transform/text/generated.h"
#include "transform/text/lines.h"
#include "transform/text/splice.h"

namespace klap::transform {

class WorklistSites {
 public:
  // `targets` are the kernels that the sites launch, site by site; `record` is
  // templates/worklist/worklist_record.cu; `queue` a register with the queue's address. All generated names
  // begin with `prefix`.
  WorklistSites(const analysis::FunctionFacts& kernel, std::vector<LaunchTarget> targets,
                const ptx::Module& record, std::string prefix, std::string queue, LineTables& lines);

  // The surroundings in a body that keeps its names and is run by threads of its own, before any child runs.
  [[nodiscard]] Surroundings in_parent() const;
  // The surroundings in a body that is spliced into the consumer, where every name gets `body_prefix`.
  [[nodiscard]] Surroundings in_consumer(const std::string& body_prefix) const;

  // This text must stand before the body.
  [[nodiscard]] std::string registers() const;
  // `.extern` declarations of device-runtime functions that in_consumer() calls and the unit may not declare.
  [[nodiscard]] std::vector<std::string> declarations() const;

 private:
  // `before_asking` stands where only threads come that launch by themselves.
  [[nodiscard]] Around first_call(size_t site, const std::string& body_prefix,
                                  const std::string& before_asking) const;
  [[nodiscard]] Around launch_call(size_t site, const std::string& body_prefix, const char* publish) const;
  [[nodiscard]] Around query(const analysis::ErrorQuery& query, size_t number,
                             const std::string& body_prefix) const;
  [[nodiscard]] std::string clear_before_first(size_t site) const;
  // Names of the kernel as a whole, and of one of its sites.
  [[nodiscard]] std::string name(std::string_view what) const { return "%" + prefix_ + std::string(what); }
  [[nodiscard]] std::string of_site(size_t site, std::string_view what) const;
  [[nodiscard]] std::string label(std::string_view what) const;
  [[nodiscard]] std::string landing(std::string_view what) const;

  const analysis::FunctionFacts& kernel_;
  const std::vector<LaunchTarget> targets_;
  const ptx::Module& record_;
  const std::string prefix_, queue_;
  LineTables& lines_;
};

}  // namespace klap::transform
