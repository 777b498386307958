// Checks whether several kernels fit into the block of one consumer.
//
// The consumer's block is the largest of theirs, and their shared memory in it adds up.
#pragma once

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/facts/rejection.h"
#include "analysis/legality/shared_overlay.h"
#include "ptx/tree.h"

namespace klap::analysis {

// A kernel that a consumer runs beside others, all of which `module` defines.
struct RunKernel {
  const ptx::Function* function = nullptr;
  uint32_t threads = 0;  // of its own block
  uint32_t shared_bytes = 0;
};

// The first kernel with a barrier that some threads of the consumer's block do not come to, and the
// rejection. These are threads that the kernel's own block does not have. `counts_barriers`: the consumer
// makes barriers of fewer threads where it can (check_counted_barriers).
std::optional<std::pair<size_t, Rejection>> check_smaller_block(const ptx::Module& module,
                                                                const std::vector<RunKernel>& kernels,
                                                                bool counts_barriers = false);

// The shared memory of the kernels of a consumer: their own variables add up, but for those that lie over
// each other in `overlay`; the dynamic part is the largest of theirs.
struct MemoryOfAll {
  uint64_t fixed = 0, dynamic = 0;

  // The consumer has so many bytes of its own.
  static constexpr uint64_t kOwn = 256;
  [[nodiscard]] uint64_t of_consumer() const { return fixed + dynamic + kOwn; }
};
MemoryOfAll memory_of_all(const ptx::Module& module, const std::vector<RunKernel>& kernels,
                          const SharedOverlay& overlay);

// Checks the shared memory: the kernels' own adds up, and the dynamic part is as large as the largest. If the
// consumer lays variables over each other (shared_overlay.h), only the others add up.
std::optional<Rejection> check_memory_of_all(const ptx::Module& module, const std::vector<RunKernel>& kernels,
                                             bool overlays = false);

}  // namespace klap::analysis
