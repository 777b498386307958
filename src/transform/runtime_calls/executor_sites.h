// The launch sites of a kernel that the executor runs, or whose launches it runs
// (templates/executor/executor.cu).
//
// The program's own two calls stay, each behind a branch, as with a worklist (worklist.h). The first call has
// three results. Mostly the launch gets a record, which the program's argument stores then fill. If CUDA
// refuses a launch of those sizes, the program's own call runs and says so. If too many launches are pending,
// the program gets no buffer. It goes on as after a launch that the device runtime refuses.
//
// A call that copies or fills memory gives way to a function of the template. It records a grid whose kernel
// is the executor's own (templates/executor/copies.h).
//
// Unlike with a worklist, no launch runs but through the executor. So a grid is in its stream from the moment
// when the program launches it, and all orders that CUDA promises are kept. A launch whose order nothing can
// tell goes into no stream (executed/order.h). In the parent this may depend on its block.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/executed/calls.h"
#include "analysis/executed/streams.h"
#include "analysis/facts/facts.h"
#include "ptx/tree.h"
#include "transform/text/generated.h"
#include "transform/text/lines.h"
#include "transform/text/splice.h"

namespace klap::transform {

class ExecutorSites {
 public:
  // `targets` are the kernels that the sites launch, site by site. `record` is
  // templates/executor/executor_record.cu. `queue` is a register with the queue's address. All generated
  // names begin with `prefix`.
  ExecutorSites(const analysis::FunctionFacts& kernel, std::vector<LaunchTarget> targets,
                const ptx::Module& record, std::string prefix, std::string queue, LineTables& lines);

  // In the parent that the host launches. entry() must stand before its body.
  [[nodiscard]] Surroundings in_parent() const;
  [[nodiscard]] std::string entry() const;

  // In a body that is spliced into the executor, where every name gets `body_prefix`. `self` is a register
  // with the address of its arguments, and `block` one with the address of what its block shares. `threads`
  // is one with the number of its threads, if its barriers are to hold these; else empty.
  [[nodiscard]] Surroundings in_executor(const std::string& body_prefix, const std::string& self,
                                         const std::string& block, const std::string& threads) const;
  // Texts before and behind such a body.
  [[nodiscard]] std::string registers() const;
  [[nodiscard]] std::string behind(const std::string& self, const std::string& block) const;

  // `.extern` declarations of device-runtime functions that in_executor() calls and the unit may not declare.
  [[nodiscard]] std::vector<std::string> declarations() const;

 private:
  struct Place;
  [[nodiscard]] Around first_call(size_t number, const Place& place) const;
  [[nodiscard]] Around launch_call(size_t number, const Place& place) const;
  [[nodiscard]] Around buffer_call(const analysis::Site& site, const Place& place) const;
  [[nodiscard]] Around buffer_launch(size_t number, const Place& place) const;
  [[nodiscard]] std::string own_buffer_text(const analysis::Site& site, const Place& place) const;
  [[nodiscard]] std::string barrier(const Place& place) const;
  [[nodiscard]] Around own_call(const Place& place) const;
  [[nodiscard]] Around query(const analysis::ErrorQuery& query, const Place& place) const;
  [[nodiscard]] std::string note_error(const std::string& code) const;
  [[nodiscard]] Surroundings around(const Place& place) const;
  [[nodiscard]] Around stream_call(const analysis::StreamCall& stream, size_t number,
                                   const Place& place) const;
  [[nodiscard]] Around copy_call(const analysis::CopyCall& copy, size_t number, const Place& place) const;
  [[nodiscard]] Around event_call(const analysis::EventCall& event, size_t number, const Place& place) const;
  [[nodiscard]] std::string answered_call(const char* function, InlineCall call, const std::string& result,
                                          const Place& place) const;
  [[nodiscard]] Around queued_call(const char* function, const std::string& prefix,
                                   const std::vector<std::string>& arguments, const std::string& result,
                                   const Place& place) const;
  [[nodiscard]] std::array<std::string, 3> stream(size_t number, const Place& place) const;
  template <class Call>
  [[nodiscard]] std::array<std::string, 3> stream(const Call& call, const Place& place) const;
  [[nodiscard]] bool has_stream(analysis::ExecutedStream stream) const;
  [[nodiscard]] std::string unordered_streams() const;
  [[nodiscard]] std::string choice_of_stream(size_t number) const;
  [[nodiscard]] std::string choice_of_threads(size_t number, const Place& place) const;
  [[nodiscard]] std::string most_threads(size_t number) const;
  [[nodiscard]] std::string name(std::string_view what) const { return "%" + prefix_ + std::string(what); }
  [[nodiscard]] std::string label(std::string_view what, size_t number) const;
  [[nodiscard]] std::string landing(std::string_view what, size_t number) const;

  const analysis::FunctionFacts& kernel_;
  const std::vector<LaunchTarget> targets_;
  const std::vector<analysis::EventCall> events_;
  const ptx::Module& record_;
  const std::string prefix_, queue_;
  LineTables& lines_;
};

}  // namespace klap::transform
