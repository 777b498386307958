// Launches that CUDA refuses. The numbers are the runtime's. The driver API says CUDA_ERROR_INVALID_VALUE (1)
// for all of them but the last.
#include "emulator/grids/grid.h"

#include <cstdint>

namespace klap::emulator {
namespace {

constexpr int kInvalidValue = 1, kInvalidConfiguration = 9;
constexpr uint32_t kThreads = 1024;
constexpr Dim3 kLargestBlock{1024, 1024, 64}, kLargestGrid{0x7fffffff, 65535, 65535};

bool fits(const Dim3& wanted, const Dim3& largest) {
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] == 0 || wanted[d] > largest[d]) return false;
  }
  return true;
}

uint64_t volume(const Dim3& dimensions) { return uint64_t{dimensions[0]} * dimensions[1] * dimensions[2]; }

// .maxntid bounds the product, .reqntid every dimension; a dimension that is not given counts as 1.
bool allowed_by(const KernelLimits& limits, const Dim3& block) {
  const auto whole = [](Dim3 given) {
    for (uint32_t& d : given) d = d == 0 ? 1 : d;
    return given;
  };
  if (limits.required[0] != 0 && whole(limits.required) != block) return false;
  return limits.maximum[0] == 0 || volume(block) <= volume(whole(limits.maximum));
}

}  // namespace

int launch_error(const Launch& launch, uint32_t shared_limit, bool by_device) {
  if (launch.kernel == nullptr || !launch.kernel->is_kernel) return kInvalidValue;
  if (launch.parameters.size() < launch.kernel->parameter_bytes) return kInvalidValue;
  if (!fits(launch.grid, kLargestGrid) || !fits(launch.block, kLargestBlock)) return kInvalidConfiguration;
  if (volume(launch.block) > kThreads) return kInvalidConfiguration;
  if (!allowed_by(launch.kernel->limits, launch.block)) return kInvalidValue;
  const uint64_t shared = uint64_t{launch.kernel->shared_bytes} + launch.dynamic_shared;
  if (shared <= shared_limit) return 0;
  return by_device ? kInvalidConfiguration : kInvalidValue;
}

}  // namespace klap::emulator
