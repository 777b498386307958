#include "analysis/legality/consumer_block.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/legality/cooperation.h"

namespace klap::analysis {

using ptx::Module;

std::optional<std::pair<size_t, Rejection>> check_smaller_block(const Module& module,
                                                                const std::vector<RunKernel>& kernels,
                                                                bool counts_barriers) {
  const uint32_t threads = std::ranges::max(kernels, {}, &RunKernel::threads).threads;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (kernels[k].threads == threads) continue;
    const CallGraph graph(module, *kernels[k].function);
    const Effects& effects = graph.closure(*kernels[k].function);
    const Effect* barrier = effects.find(EffectKind::BlockBarrier);
    if (barrier == nullptr) barrier = effects.find(EffectKind::PartialBarrier);
    if (barrier == nullptr) continue;
    constexpr uint32_t kWarp = 32;
    const bool has_full_warps = kernels[k].threads % kWarp == 0;
    if (counts_barriers && !check_counted_barriers(module, *kernels[k].function, graph, has_full_warps))
      continue;
    return std::pair{
        k, Rejection{Reason::ChildBarrier,
                     fmt::format("{} ({}) in blocks of {} threads, which run in a consumer's of {}",
                                 barrier->what, module.place(barrier->token), kernels[k].threads, threads)}};
  }
  return std::nullopt;
}

MemoryOfAll memory_of_all(const Module& module, const std::vector<RunKernel>& kernels,
                          const SharedOverlay& overlay) {
  MemoryOfAll memory = {.fixed = overlay.bytes == 0 ? 0 : overlay.bytes + overlay.align};
  for (size_t i = 0; i < kernels.size(); ++i) {
    uint64_t own = most_static_shared_bytes(module, *kernels[i].function);
    if (overlay.bytes != 0) {
      for (const OverlaidVariable& variable : overlay.kernels[i])
        own -= std::min<uint64_t>(own, variable.bytes);
    }
    memory.fixed += own;
    memory.dynamic = std::max<uint64_t>(memory.dynamic, kernels[i].shared_bytes);
  }
  return memory;
}

std::optional<Rejection> check_memory_of_all(const Module& module, const std::vector<RunKernel>& kernels,
                                             bool overlays) {
  if (kernels.size() == 1) return std::nullopt;
  std::vector<const ptx::Function*> functions;
  for (const RunKernel& kernel : kernels) functions.push_back(kernel.function);
  const SharedOverlay overlay = overlays ? shared_overlay(module, functions) : SharedOverlay();
  const MemoryOfAll memory = memory_of_all(module, kernels, overlay);
  // The assembler refuses more variables than that. The rest may be asked for.
  const uint64_t limit = overlays ? kAskedSharedLimit : kSharedLimit;
  if (memory.fixed + MemoryOfAll::kOwn <= kSharedLimit && memory.of_consumer() <= limit) return std::nullopt;
  return Rejection{
      Reason::ChildSharedMemory,
      fmt::format("{} kernels that one consumer runs have up to {} bytes of their own, with {} of "
                  "their launches more than {}",
                  kernels.size(), memory.fixed, memory.dynamic, limit)};
}

}  // namespace klap::analysis
