// A kernel is moldable if one number alone tells its threads apart.
//
// Such a kernel uses its indices only through the global linear index: block index times block size plus
// thread index, and the like in two or three dimensions. It has no barrier, shared memory or warp operation.
// So it computes the same whichever block or warp a thread of it stands in. All children of such a kernel can
// run as one flat range of threads, balanced perfectly. Kernels that walk over their data with the number of
// all threads as their stride (grid-stride loops) need that number too.
//
// The test looks at every value in terms of that index (linear_index.h). A value that then still shows a
// position register depends on more than the index.
#pragma once

#include <optional>
#include <string>

#include "analysis/values/guard.h"
#include "analysis/values/symbolic.h"

namespace klap::analysis {

struct Moldable {
  // The reason why it is not moldable, with the place; empty if it is.
  std::string reason;
  // The dimensions of the linear index. It tells threads apart if the launch has size 1 in all dimensions
  // beyond. With 0 the index is not used.
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
// The answer for a kernel that is launched as one block of one row.
Moldable moldable_in_one_row(const ControlFlow& flow, const VirtualRegisters& registers,
                             const ReachingDefinitions& reaching, const Symbolic& symbolic);

// "yes: 1-D index, if i < p[12]", "no: line 31: setp.eq.s32 depends on tid.x".
std::string to_string(const Moldable& moldable);

}  // namespace klap::analysis
