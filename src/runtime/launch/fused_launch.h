// How a fused kernel is launched (templates/aggregate/fused.cu) for a launch of the program.
//
// Children need blocks of so many threads or more, and few blocks have few threads for them. So the block may
// get more rows, or layers where it has several, and so may the grid. The threads and blocks that the program
// asked for keep their indices. Where blocks may wait for each other, as many must be resident as natively,
// so blocks do not grow, and nor does their shared memory.
#pragma once

#include <optional>

#include "jit/data/variant.h"
#include "runtime/program_launch.h"

namespace klap::runtime {

// The device and the kernel: how many multiprocessors it has, and how many threads a block may have.
struct FusedLimits {
  unsigned multiprocessors = 0;
  unsigned threads = 1024;
};

// The launch to make. Nothing if the variant cannot be launched in blocks that are large enough.
std::optional<Launch> fused_launch(const jit::Variant& variant, const Launch& launch,
                                   const FusedLimits& limits);

// The extents that a variant is told, of the launch that the program asked for.
jit::ProgramExtents extents_of(const Launch& launch);

}  // namespace klap::runtime
