// Decisive facts of a launch for its remark, beyond those that the plan itself needs.
#pragma once

#include <string>

#include "analysis/facts/facts.h"
#include "analysis/optimise/stride_loop.h"
#include "analysis/values/moldable.h"
#include "analysis/values/uniformity.h"
#include "ptx/tree.h"
#include "transform/text/record_layout.h"

namespace klap::jit {

// Facts about a child's threads: whether one number tells them apart (analysis/values/moldable.h), and their
// grid-stride loop (analysis/optimise/stride_loop.h).
struct ChildThreads {
  analysis::Moldable moldable;
  analysis::StrideLoop loop;
  uint32_t words =
      0;  // registers of 32 bits that a thread holds at a time, at most (analysis/graph/liveness.h)
  bool has_frame = false;  // it calls functions, or has variables in local memory
};
// `one_row`: of a child that is launched as one block of one row.
ChildThreads child_threads(const ptx::Module& module, const ptx::Function& child, bool one_row);

// "3 of 5 arguments grid-uniform, 2 passed once, 1 never read": those that are the same for all threads of
// the parent's grid, or of another `group`, and what the layout makes of them. Empty where the child has no
// parameters.
std::string uniform_arguments_text(const analysis::FunctionFacts& parent, const analysis::Site& site,
                                   const ptx::Function& child, const transform::RecordLayout& layout,
                                   analysis::Uniform group);

}  // namespace klap::jit
