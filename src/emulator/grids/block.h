// A block that is resident: its warps, its shared memory and its barriers; and the grid that it is part of.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/grids/grid.h"
#include "emulator/grids/warp.h"
#include "emulator/memory_model/memory.h"

namespace klap::emulator::execution {

// A grid that has blocks to run.
struct GridRun {
  Grid* grid = nullptr;
  std::shared_ptr<const std::string> kernel_name;  // outlives the image in the names of agents
  uint64_t next = 0;                               // blocks from here on have not started
  std::vector<uint64_t> skipped;                   // before `next`, but not started: random order
  uint32_t depth = 0;                              // launches from the host's to this one
  uint32_t blocks_at_once = 0;                     // on one multiprocessor; what a block takes of it:
  uint32_t block_threads = 0, block_shared = 0;
  uint32_t resident = 0;
  uint64_t not_before = 0;  // steps, where blocks start late
  [[nodiscard]] uint64_t unstarted() const { return grid->block_count() - next + skipped.size(); }
};

// One of a block's 16 barriers, in one use of it. Warps arrive, not threads: a warp has arrived once all its
// threads that have not exited are here, and counts 32 then.
struct Barrier {
  bool in_use = false;
  uint32_t expected = 0;                      // threads; 0: all of the block
  uint32_t arrived = 0;                       // threads, 32 for each warp
  uint32_t warps = 0;                         // that have arrived
  std::array<uint32_t, 32> lanes{};           // of warps that have not arrived as a whole
  uint32_t true_count = 0, thread_count = 0;  // of predicates given to a reduction
  std::vector<HistoryRef> arrivals;           // the history before each bar.arrive
};

struct Block {
  GridRun* run = nullptr;
  uint64_t id = 0;  // unique over all grids
  Dim3 index{};
  uint32_t multiprocessor = 0;
  bool has_room = true;  // there; a block that waits for its children gives it up for good
  uint32_t threads = 0, warp_count = 0;
  uint64_t shared_address = 0;
  uint32_t shared_bytes = 0;
  uint32_t live_warps = 0;                   // as a mask
  uint32_t ready_warps = 0;                  // warps with a fragment that can run
  uint32_t next_warp = 0;                    // of fixed orders
  std::vector<std::unique_ptr<Warp>> warps;  // [warp_count] are in use
  std::array<Barrier, 16> barriers;

  [[nodiscard]] const Function& kernel() const { return *run->grid->launch.kernel; }
  [[nodiscard]] Dim3 thread_index(const Warp& warp, uint32_t lane) const {
    return {static_cast<uint32_t>(warp.thread[0][lane]), static_cast<uint32_t>(warp.thread[1][lane]),
            static_cast<uint32_t>(warp.thread[2][lane])};
  }
  void note_ready(const Warp& warp) {
    uint32_t bit = 1u << warp.index;
    ready_warps = warp.has_ready() ? ready_warps | bit : ready_warps & ~bit;
  }
};

}  // namespace klap::emulator::execution
