#include "runtime/launch/fused_launch.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace klap::runtime {

namespace {

uint64_t product(std::span<const unsigned, 3> extents) {
  return uint64_t{extents[0]} * extents[1] * extents[2];
}

// Adds rows, or layers where there are several, so that there are so many in all. False, and nothing changes,
// where there would be more than `most`, or more layers than `most_layers`.
bool grow(std::span<unsigned, 3> extents, uint64_t wanted, uint64_t most, uint64_t most_layers) {
  if (product(extents) >= wanted) return true;
  const size_t axis = extents[2] == 1 ? 1 : 2;
  const uint64_t each = axis == 1 ? extents[0] : uint64_t{extents[0]} * extents[1];
  const uint64_t extent = (wanted + each - 1) / each;
  if (each * extent > most || extent > (axis == 1 ? most : most_layers)) return false;
  extents[axis] = static_cast<unsigned>(extent);
  return true;
}

bool grow_block(const jit::Variant& variant, std::span<unsigned, 3> block, unsigned most_threads) {
  constexpr uint64_t kUsualThreads = 256, kMostLayers = 64;
  if (!variant.more_threads || variant.parent_waits) return product(block) >= variant.fused_threads;
  const uint64_t wanted =
      std::max<uint64_t>(variant.fused_threads, std::min<uint64_t>(kUsualThreads, most_threads));
  return grow(block, wanted, most_threads, kMostLayers) ||
         grow(block, variant.fused_threads, most_threads, kMostLayers);
}

}  // namespace

std::optional<Launch> fused_launch(const jit::Variant& variant, const Launch& launch,
                                   const FusedLimits& limits) {
  constexpr uint64_t kMostRows = 65535;  // of any device's grids
  Launch made = launch;
  for (const jit::ChildQueue& queue : variant.queues)
    made.shared_bytes = std::max(made.shared_bytes, queue.child_shared_bytes);
  if (variant.parent_waits && made.shared_bytes != launch.shared_bytes) return std::nullopt;
  if (!grow_block(variant, made.block, limits.threads)) return std::nullopt;
  if (variant.more_blocks) grow(made.grid, limits.multiprocessors, kMostRows, kMostRows);
  return made;
}

jit::ProgramExtents extents_of(const Launch& launch) {
  return {launch.block[1], launch.block[2], launch.grid[1], launch.grid[2]};
}

}  // namespace klap::runtime
