// The launch sites of a kernel whose children launch again: record a child where the queue has room, and
// launch it as the program does where not.
//
// The program's own two calls stay, each behind a branch. Which way a thread goes is settled at the first
// call; both ways go through the program's null test and argument stores, which write to the record or to the
// device runtime's buffer. A recorded launch cannot fail, and leaves the last error alone, as a launch that
// succeeds does.
//
// Where the kernel's body stands in the consumer, one thread runs many of the program's: an error that an
// earlier one left behind must not be seen by a later one. So the last error is cleared in front of the
// first of the program's own launches, and is none for a thread that made no such launch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/facts.h"
#include "ptx/tree.h"
#include "transform/text/lines.h"
#include "transform/text/splice.h"

namespace klap::transform {

class FeedingSites {
 public:
  // `targets` are the numbers of the kernels that the sites launch, site by site; `record` is
  // templates/worklist/feed_record.cu; `queue` a register with the queue's address. All names that are made
  // begin with `prefix`.
  FeedingSites(const analysis::FunctionFacts& kernel, std::vector<uint32_t> targets,
               const ptx::Module& record, std::string prefix, std::string queue, LineTables& lines);

  // In a body that keeps its names and is run by threads of its own, before any child runs.
  [[nodiscard]] Surroundings in_parent() const;
  // In a body that is spliced into the consumer, where every name gets `body_prefix`.
  [[nodiscard]] Surroundings in_consumer(const std::string& body_prefix) const;

  // Must stand in front of the body.
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
  [[nodiscard]] std::string clearing_function() const;
  [[nodiscard]] std::string clear_before_first(size_t site) const;
  // Names of the kernel as a whole, and of one of its sites.
  [[nodiscard]] std::string name(std::string_view what) const { return "%" + prefix_ + std::string(what); }
  [[nodiscard]] std::string of_site(size_t site, std::string_view what) const;
  [[nodiscard]] std::string label(std::string_view what) const;
  [[nodiscard]] std::string landing(std::string_view what) const;

  const analysis::FunctionFacts& kernel_;
  const std::vector<uint32_t> targets_;
  const ptx::Module& record_;
  const std::string prefix_, queue_;
  LineTables& lines_;
};

}  // namespace klap::transform
