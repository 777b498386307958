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
#include "analysis/facts/flow_facts.h"
#include "analysis/facts/private_streams.h"
#include "analysis/launches/copy_calls.h"
#include "analysis/launches/sites.h"

namespace klap::analysis {

struct Values;

struct FunctionFacts : FlowFacts {
  FunctionFacts(const ptx::Module& m, const ptx::Function& f)
      : FlowFacts(m, f),
        error_queries(find_error_queries(m, f, flow, data)),
        private_streams(find_private_streams(*this, sites)),
        copies(find_copy_calls(m, f, flow, data)) {}

  std::vector<ErrorQuery> error_queries;
  PrivateStreams private_streams;
  std::vector<CopyCall> copies;

  // The value analyses, made when they are first asked for.
  [[nodiscard]] const Values& values() const;
  // The function and the functions it calls, found when they are first asked for.
  [[nodiscard]] const CallGraph& calls() const;

 private:
  mutable std::shared_ptr<const Values> values_;
  mutable std::shared_ptr<const CallGraph> calls_;
};

// Returns the origins of a register of `facts`.
std::vector<Origin> origins_of(const FunctionFacts& facts, std::string_view operand);

}  // namespace klap::analysis
