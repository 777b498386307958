#include "runtime/launch/fused_block.h"

#include <cstdint>

namespace klap::runtime {

std::optional<std::array<unsigned, 3>> fused_block(const jit::Variant& variant, const Launch& launch) {
  constexpr uint64_t kMostThreads = 1024, kMostLayers = 64;  // of any device's blocks
  std::array<unsigned, 3> block = {launch.block[0], launch.block[1], launch.block[2]};
  const uint64_t needed = variant.fused_threads;
  if (uint64_t{block[0]} * block[1] * block[2] >= needed) return block;
  if (!variant.takes_program_block) return std::nullopt;
  const size_t grows = block[2] == 1 ? 1 : 2;
  const uint64_t each = grows == 1 ? block[0] : uint64_t{block[0]} * block[1];
  const uint64_t extent = (needed + each - 1) / each;
  if (each * extent > kMostThreads || (grows == 2 && extent > kMostLayers)) return std::nullopt;
  block.at(grows) = static_cast<unsigned>(extent);
  return block;
}

}  // namespace klap::runtime
