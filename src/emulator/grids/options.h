// The options for running blocks: the schedule, the checks, and the device that they run on.
#pragma once

#include <cstdint>

#include "emulator/memory_model/model.h"

namespace klap::emulator {

enum class ScheduleKind : uint8_t {
  Fast,        // long turns in a fixed order: the quickest
  RoundRobin,  // short turns in a fixed order
  Random,      // turns of random length in random order
  OneBlock,    // one block runs as long as it can
  StarveOne,   // one block, at random, runs only when nothing else can
  ChildFirst,  // grids launched from the device go before others
  ChildLast,   // ... after others
};
const char* to_string(ScheduleKind kind);

struct DeviceShape {  // attributes that programs can query
  uint32_t compute_capability = 90;
  uint32_t multiprocessors = 4;
  uint32_t resident_blocks = 8;  // per multiprocessor at most; also limited by threads and shared memory
  uint32_t threads_per_multiprocessor = 2048;
  uint32_t shared_per_multiprocessor = 228 * 1024, shared_per_block = 48 * 1024;
  uint32_t shared_per_block_optin = 227 * 1024;
  uint64_t memory_bytes = 8ull << 30;
  bool shares_managed_memory = true;  // at any time, while kernels run as well
};

struct ExecutorOptions {
  ScheduleKind schedule = ScheduleKind::Fast;
  // At most so many thread-instructions of others pass before a grid's next block starts, as if other work
  // had the multiprocessors. While nothing can run, blocks start.
  uint64_t late_blocks = 0;
  uint64_t seed = 1;
  bool check_bounds = true;  // every access against Memory::find; otherwise only against the mapped range
  uint64_t max_steps = 0;    // thread-instructions before a run is given up, 0 for no limit
  MemoryModelOptions order;
  DeviceShape device;
};

}  // namespace klap::emulator
