// FunctionFacts holds what the checks and the rewriter need to know about one kernel's body.
//
// Control flow, data flow and launch sites are found once for each function. The value analyses and the call
// graph cost more and many kernels never need them, so they are made when they are first asked for.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/effects/effects.h"
#include "analysis/launches/sites.h"

namespace klap::analysis {

struct Values;

// The streams that a kernel creates and that stay its threads' own (own_streams.h).
struct OwnStreams {
  // All calls that create or destroy a stream, where every one of them can be done without; else none.
  std::vector<StreamCall> calls;
  // The reason why they are needed, if the kernel has such calls.
  std::string problem;
};

struct FunctionFacts {
  FunctionFacts(const ptx::Module& m, const ptx::Function& f)
      : module(m),
        function(f),
        flow(m, f),
        data(m, f, flow),
        sites(find_sites(m, f, flow, data)),
        error_queries(find_error_queries(m, f, flow, data)) {
    find_own_streams();
  }
  const ptx::Module& module;
  const ptx::Function& function;
  ControlFlow flow;
  DataFlow data;
  std::vector<Site> sites;
  std::vector<ErrorQuery> error_queries;
  OwnStreams own_streams;

  // The value analyses, made when they are first asked for.
  [[nodiscard]] const Values& values() const;
  // The function and the functions it calls, found when they are first asked for.
  [[nodiscard]] const CallGraph& calls() const;

 private:
  void find_own_streams();

  mutable std::shared_ptr<const Values> values_;
  mutable std::shared_ptr<const CallGraph> calls_;
};

// Returns the origins of a register of `facts`.
std::vector<Origin> origins_of(const FunctionFacts& facts, std::string_view operand);

}  // namespace klap::analysis
