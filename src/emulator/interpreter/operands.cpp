// See operands.h. Clocks count thread-instructions, so that they go on while a thread waits for them, and are
// the same in every run of a seed.
#include "emulator/interpreter/operands.h"

#include <algorithm>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace klap::emulator::execution {

uint32_t Operands::predicate(uint32_t column) const {
  const uint64_t* values = frame_ + size_t{column} * kLanes;
  uint32_t mask = 0;
#if defined(__SSE2__)
  for (uint32_t lane = 0; lane < kLanes; lane += 4) {
    const auto* pair = reinterpret_cast<const __m128i*>(values + lane);
    __m128 low = _mm_castsi128_ps(_mm_loadu_si128(pair)), high = _mm_castsi128_ps(_mm_loadu_si128(pair + 1));
    __m128i four = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));  // low halves
    mask |= static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(_mm_slli_epi32(four, 31)))) << lane;
  }
#else
  for (uint32_t lane = 0; lane < kLanes; ++lane) mask |= static_cast<uint32_t>(values[lane] & 1) << lane;
#endif
  return mask;
}

ConstColumn Operands::made(const Operand& operand, size_t position) {
  uint64_t* column = made_[position].data();
  const Block& block = *warp_->block;
  uint64_t value = 0;
  switch (operand.from) {
    case Operand::From::Special:
      make_special(static_cast<Special>(operand.index), column);
      return column;
    case Operand::From::SharedVariable:
      value = block.kernel().shared_offsets[operand.index] + static_cast<uint64_t>(operand.add);
      break;
    case Operand::From::LocalVariable:
      value = uint64_t{local_} + operand.index;
      break;
    default:
      return nullptr;  // absent
  }
  std::fill_n(column, kLanes, value);
  return column;
}

namespace {

// The value of a special register that is the same for all threads of a warp.
uint64_t uniform_special(Special special, const Block& block, const Warp& warp, const Context& context) {
  const Grid& grid = *block.run->grid;
  const Launch& launch = grid.launch;
  const DeviceShape& device = context.options.device;
  auto component = [special](Special first) {
    return static_cast<size_t>(special) - static_cast<size_t>(first);
  };
  switch (special) {
    case Special::NtidX:
    case Special::NtidY:
    case Special::NtidZ:
      return launch.block[component(Special::NtidX)];
    case Special::CtaidX:
    case Special::CtaidY:
    case Special::CtaidZ:
      return block.index[component(Special::CtaidX)];
    case Special::NctaidX:
    case Special::NctaidY:
    case Special::NctaidZ:
      return launch.grid[component(Special::NctaidX)];
    case Special::WarpId:
      return warp.index;
    case Special::NwarpId:
      return device.threads_per_multiprocessor / kLanes;
    case Special::SmId:
      return block.multiprocessor;
    case Special::NsmId:
      return device.multiprocessors;
    case Special::GridId:
      return grid.id;
    case Special::Clock:
    case Special::GlobalTimerLo:
      return context.steps & 0xffffffff;
    case Special::ClockHi:
    case Special::GlobalTimerHi:
      return context.steps >> 32;
    case Special::Clock64:
    case Special::GlobalTimer:
      return context.steps;
    case Special::DynamicSmemSize:
      return launch.dynamic_shared;
    case Special::TotalSmemSize:
    case Special::AggrSmemSize:
      return block.shared_bytes;
    // Every block is a cluster of its own.
    case Special::ClusterIdX:
    case Special::ClusterIdY:
    case Special::ClusterIdZ:
      return block.index[component(Special::ClusterIdX)];
    case Special::NclusterIdX:
    case Special::NclusterIdY:
    case Special::NclusterIdZ:
      return launch.grid[component(Special::NclusterIdX)];
    case Special::ClusterNctaidX:
    case Special::ClusterNctaidY:
    case Special::ClusterNctaidZ:
    case Special::ClusterNctarank:
      return 1;
    default:  // IsExplicitCluster, ClusterCtaid, ClusterCtarank, CurrentGraphExec
      return 0;
  }
}

}  // namespace

void Operands::make_special(Special special, uint64_t* column) const {
  switch (special) {
    case Special::TidX:
    case Special::TidY:
    case Special::TidZ:
      std::copy_n(warp_->thread[static_cast<size_t>(special)].data(), kLanes, column);
      return;
    case Special::LaneId:
      for (uint32_t lane = 0; lane < kLanes; ++lane) column[lane] = lane;
      return;
    case Special::LanemaskEq:
      for (uint32_t lane = 0; lane < kLanes; ++lane) column[lane] = 1u << lane;
      return;
    case Special::LanemaskLe:
      for (uint32_t lane = 0; lane < kLanes; ++lane) column[lane] = (2ull << lane) - 1;
      return;
    case Special::LanemaskLt:
      for (uint32_t lane = 0; lane < kLanes; ++lane) column[lane] = (1u << lane) - 1;
      return;
    case Special::LanemaskGe:
      for (uint32_t lane = 0; lane < kLanes; ++lane) column[lane] = ~0u << lane;
      return;
    case Special::LanemaskGt:
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        column[lane] = ~0u & static_cast<uint32_t>(~0ull << (lane + 1));
      return;
    default:
      std::fill_n(column, kLanes, uniform_special(special, *warp_->block, *warp_, context_));
  }
}

}  // namespace klap::emulator::execution
