// A launched kernel: its state before, while and after its blocks run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/decode/code.h"
#include "emulator/memory_model/model.h"

namespace klap::emulator {

using Dim3 = std::array<uint32_t, 3>;

struct Launch {
  std::shared_ptr<const Image> image;  // keeps the code alive while it runs
  const Function* kernel = nullptr;
  Dim3 grid{1, 1, 1}, block{1, 1, 1};
  uint32_t dynamic_shared = 0;  // bytes
  std::vector<std::byte> parameters;
};

// Shared memory that a block may have without asking the host for more (cuFuncSetAttribute).
inline constexpr uint32_t kDefaultSharedLimit = 48 * 1024;

// Why CUDA refuses a launch: a cudaError number, 0 if it does not. The device's limits (block of 1,024
// threads, grid dimensions, shared memory of `shared_limit` bytes, static and dynamic) and the kernel's
// (.maxntid, .reqntid). Too much shared memory has another number in a launch by the device.
int launch_error(const Launch& launch, uint32_t shared_limit = kDefaultSharedLimit, bool by_device = false);

struct Grid {
  uint64_t id = 0;
  Launch launch;
  // It may begin before this one is finished, and griddepcontrol.wait waits for that. Null: nothing to wait
  // for.
  std::shared_ptr<const Grid> primary;
  Grid* parent = nullptr;     // the grid that launched it from the device
  uint64_t parent_block = 0;  // the block that did, as numbered by BlockId
  HistoryRef after;           // its start waits for this history
  HistoryRef history;         // the history before its end; complete once it is finished
  uint64_t blocks_started = 0, blocks_finished = 0;
  uint32_t children = 0;  // launched by it and not finished: it is finished when they are
  bool finished = false;
  std::string error;   // the first thing that went wrong in it; empty if nothing did
  int error_code = 0;  // its CUDA number: 700 illegal address, 710 assertion, 719 launch failure, ...
  [[nodiscard]] uint64_t block_count() const {
    return uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  }
};

}  // namespace klap::emulator
