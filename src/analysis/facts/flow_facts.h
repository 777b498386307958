// FlowFacts holds the first facts about one function's body: control flow, data flow and launch sites. All
// other facts are made from these, so they are there before FunctionFacts (facts.h) is.
#pragma once

#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "analysis/launches/sites.h"
#include "ptx/tree.h"

namespace klap::analysis {

struct FlowFacts {
  FlowFacts(const ptx::Module& m, const ptx::Function& f)
      : module(m), function(f), flow(m, f), data(m, f, flow), sites(find_sites(m, f, flow, data)) {}
  const ptx::Module& module;
  const ptx::Function& function;
  ControlFlow flow;
  DataFlow data;
  std::vector<Site> sites;
};

}  // namespace klap::analysis
