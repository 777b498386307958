// A launch as the program asked for it. The shim fills it in, whatever entry point the launch came through,
// and everything that decides about a launch reads it.
#pragma once

#include <cuda.h>

#include <optional>
#include <span>

namespace klap::runtime {

struct Launch {
  CUfunction function = nullptr;  // or a CUkernel, which launches accept in its place
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;  // CU_STREAM_PER_THREAD where a _ptsz entry point was given 0
  void** params = nullptr;
  void** extra = nullptr;
  std::span<const CUlaunchAttribute> attributes;
};

// The parameters in a launch's `extra`, where they are packed into one buffer: empty if none are passed.
// Nothing if `extra` has an option that CUDA has added since.
std::optional<std::span<const unsigned char>> packed_parameters(void** extra);

}  // namespace klap::runtime
