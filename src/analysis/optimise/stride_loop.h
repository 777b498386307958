// Children that walk over their data in one grid-stride loop, and whether its iterations may change threads.
//
//   for (i = index; i < n; i += threads of the grid) body(i);
//
// A child that is launched with fewer threads than there are iterations keeps only these busy, however many
// the GPU has. The recording thread may give it a grid of more blocks. Then each thread has fewer iterations,
// down to one. The child's code stays as it is. The only change is which iterations a thread runs one after
// the other. Iterations of different threads have no order natively either.
//
// So the order of the iterations must make no difference. That is so under three conditions. Iterations hand
// nothing on in registers. The number of threads is read only as the step. No iteration touches memory that
// another one changes (iteration_memory.h). The recording code checks that arrays of different pointers do
// not overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/optimise/iteration_memory.h"
#include "analysis/values/moldable.h"
#include "analysis/values/values.h"

namespace klap::analysis {

struct StrideLoop {
  // All loops step by multiples of the number of threads, and none stands in another. With as many threads as
  // the guard lets pass, each thread has one iteration. (Compilers unroll such a loop, and make two loops of
  // it.)
  bool only_strides = false;
  std::string why_not;               // why its iterations stay with their threads; empty if they need not
  std::vector<IterationSpan> spans;  // if they may: the spans that must be apart, by parameter

  [[nodiscard]] bool may_split() const { return only_strides && why_not.empty(); }
};

// Finds the loop, in grids and blocks of one dimension, with at most 2^26 iterations.
StrideLoop find_stride_loop(const Values& child, const Moldable& moldable);

// "yes: p[8]+i*4, 4 bytes written; p[0]+i*4, 4 bytes read", "no: line 31: ...".
std::string to_string(const StrideLoop& loop);

}  // namespace klap::analysis
