// Facts about the child of a launch that optimisations and remarks need.
#pragma once

#include <cstddef>
#include <cstdint>

#include "analysis/facts/facts.h"
#include "analysis/optimise/stride_loop.h"
#include "analysis/values/moldable.h"
#include "analysis/values/uniformity.h"
#include "ptx/tree.h"

namespace klap::jit {

// Facts about a child's threads: whether one number tells them apart (analysis/values/moldable.h), and their
// grid-stride loop (analysis/optimise/stride_loop.h).
struct ChildThreads {
  analysis::Moldable moldable;
  analysis::StrideLoop loop;
  // The most registers of 32 bits that a thread holds at a time (analysis/graph/liveness.h).
  uint32_t words = 0;
  bool has_frame = false;  // it calls functions, or has variables in local memory
};
// `one_row`: of a child that is launched as one block of one row.
ChildThreads child_threads(const ptx::Module& module, const ptx::Function& child, bool one_row);

// The number of the child's arguments that are the same for all threads of a `group` of the parent's.
size_t uniform_arguments(const analysis::FunctionFacts& parent, const analysis::Site& site,
                         const ptx::Function& child, analysis::Uniform group);

}  // namespace klap::jit
