// Moldable kernels: those whose threads are told apart by one number only.
//
// A kernel that uses its indices only through the global linear index (block index times block size plus
// thread index, and the like in two or three dimensions), without barrier, shared memory or warp operation,
// computes the same whichever block or warp a thread of it stands in. All children of such a kernel can run
// as one flat range of threads, balanced perfectly. Kernels that walk over their data with the number of all
// threads as their stride (grid-stride loops) need that number too.
//
// The test looks at every value in terms of that index (linear_index.h); whatever then still shows a position
// register depends on more than the index.
#pragma once

#include <optional>
#include <string>

#include "analysis/values/guard.h"
#include "analysis/values/symbolic.h"

namespace klap::analysis {

struct Moldable {
  // Why not, with the place; empty if it is moldable.
  std::string reason;
  // Of the linear index: it tells threads apart where the launch has size 1 in all dimensions beyond. 0: the
  // index is not used.
  uint32_t dimensions = 0;
  bool one_row = false;        // only where it is launched as one block of one row
  bool uses_count = false;     // the number of all threads of the launch
  bool grid_stride = false;    // ... as the step of a loop
  bool loops = false;          // a thread may run longer than its neighbour
  std::optional<Guard> guard;  // that every thread passes before it does anything; the others end at once

  [[nodiscard]] bool yes() const { return reason.empty(); }
};

Moldable moldable(const ControlFlow& flow, const VirtualRegisters& registers,
                  const ReachingDefinitions& reaching, const Symbolic& symbolic);
// The same of a kernel that is launched as one block of one row.
Moldable moldable_in_one_row(const ControlFlow& flow, const VirtualRegisters& registers,
                             const ReachingDefinitions& reaching, const Symbolic& symbolic);

// "yes: 1-D index, if i < p[12]", "no: line 31: setp.eq.s32 depends on tid.x".
std::string to_string(const Moldable& moldable);

}  // namespace klap::analysis
