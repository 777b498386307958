// Children that walk over their data in one grid-stride loop, and whether its rounds may change threads.
//
//   for (i = index; i < n; i += threads of the grid) body(i);
//
// A child that is launched with fewer threads than there are rounds keeps only these busy, however many the
// GPU has. Whoever records it may give it a grid of more blocks: then each thread has fewer rounds, down to
// one. The child's code stays as it is. What changes is only which rounds a thread runs one after the other;
// those of different threads have no order natively either.
//
// So it must make no difference in which order the rounds run. That is so where they hand nothing on in
// registers, where the number of threads is read for nothing but the step, and where no round touches memory
// that another one changes (round_memory.h). That arrays of different pointers do not overlap is looked at
// when the child is recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/optimise/round_memory.h"
#include "analysis/values/moldable.h"
#include "analysis/values/values.h"

namespace klap::analysis {

struct StrideLoop {
  // All loops step by multiples of the number of threads, and none stands in another: with as many threads as
  // the guard lets pass, each has one round. (Compilers write several rounds out, and make two loops of one.)
  bool only_strides = false;
  std::string why_not;           // why its rounds stay with their threads; empty if they need not
  std::vector<RoundSpan> spans;  // then: those that must be apart, by parameter

  [[nodiscard]] bool may_split() const { return only_strides && why_not.empty(); }
};

// Grids and blocks of one dimension, at most 2^26 rounds.
StrideLoop find_stride_loop(const Values& child, const Moldable& moldable);

// "yes: p[8]+i*4, 4 bytes written; p[0]+i*4, 4 bytes read", "no: line 31: ...".
std::string to_string(const StrideLoop& loop);

}  // namespace klap::analysis
