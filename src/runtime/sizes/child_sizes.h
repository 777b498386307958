// Counts the sizes of children on the device, if the statistics are to have them (KLAP_SIZES).
//
// A kernel of one or two microseconds reads what a parent recorded, between the parent and its consumer
// (ptx-patterns/kernels/count_sizes.cu). It adds to words of host memory, which can be read at exit, when the
// driver may be gone. Whatever fails here costs the statistics, and never a launch.
#pragma once

#include <cuda.h>

#include <string>

#include "jit/data/variant.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// Loads the kernel into the launch's context, if sizes are asked for. The driver compiles it once for a
// device, which takes a tenth of a second. So this comes before the launch is timed.
void prepare_to_count_sizes(const LaunchContext& launch) noexcept;

// Enqueues the kernel for each queue of the variant whose records have sizes. The caller holds the context's
// mutex, and the parent is in the stream. Does nothing if sizes are not asked for.
void count_sizes(const jit::Variant& variant, const LaunchContext& launch) noexcept;

// The kernel, for every target.
std::string count_sizes_ptx();

// Called at exit.
void add_sizes_to_statistics();

}  // namespace klap::runtime
