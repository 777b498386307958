// Running blocks: warps, lanes, divergence, barriers, and the choice of the next to run.
//
// A warp's lanes run in fragments: sets of lanes with one program counter and one call stack. A branch that
// its lanes take differently splits a fragment, and two fragments that meet at one place merge. No fragment
// has to wait for another unless the program says so: this is independent thread scheduling. A `.sync`
// operation or a barrier makes a fragment wait for the lanes that it names and that have not exited.
//
// The schedule chooses which fragment of which warp of which block goes next, and for how many instructions.
// The choice is a pure function of its kind and seed, so one seed always gives the same run. Calls of
// functions without a body (the device runtime, printf, malloc) go to the listener.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/machine/grid.h"
#include "emulator/memory_model/memory.h"
#include "emulator/memory_model/order.h"

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
};

struct ExecutorOptions {
  ScheduleKind schedule = ScheduleKind::Fast;
  // At most so many thread-instructions of others pass before a grid's next block starts, as if other work
  // had the multiprocessors. While nothing can run, blocks start.
  uint64_t late_blocks = 0;
  uint64_t seed = 1;
  bool check_bounds = true;  // every access against Memory::find; otherwise only against the mapped range
  uint64_t max_steps = 0;    // thread-instructions before a run is given up, 0 for no limit
  OrderOptions order;
  DeviceShape device;
};

// A thread that stands at a call of a function that the machine provides.
struct ThreadCall {
  Grid& grid;
  uint64_t block;  // unique number of the block, over all grids
  Dim3 block_index, thread_index;
  Agent* agent;                          // null when nothing is checked
  int builtin;                           // Function::builtin
  std::span<const std::byte> arguments;  // one after another, each at a multiple of its size
  std::span<std::byte> result;
  Place place;
};

class ExecutorListener {
 public:
  virtual ~ExecutorListener() = default;
  // Throws Error(Unsupported) for a call that it does not support: the grid then ends with that error.
  virtual void call(const ThreadCall& call) = 0;
  // All blocks have exited (the grid's children may still run). `block_finished` comes for each block before.
  virtual void block_finished(Grid& grid, uint64_t block) = 0;
  virtual void blocks_finished(Grid& grid) = 0;
};

class Executor {
 public:
  Executor(const ExecutorOptions& options, Memory& memory, Order& order, ExecutorListener& listener);
  ~Executor();

  // The grid may run now. It stays the caller's, and must live until blocks_finished() was called for it.
  void start(Grid& grid);
  enum class Outcome { Idle, Ran, Deadlock };
  // Runs one turn. Deadlock: there are unfinished blocks and none of them can go on (the listener may still
  // be able to help by starting another grid; if not, deadlock_report() says where every warp stands).
  Outcome turn();
  [[nodiscard]] std::string deadlock_report() const;
  // Throws away all blocks of all grids (after an error).
  void clear();

  [[nodiscard]] uint64_t steps() const;  // thread-instructions run so far
  // Blocks of this launch that fit on one multiprocessor at a time.
  [[nodiscard]] static uint32_t occupancy(const DeviceShape& device, const Function& kernel, uint32_t threads,
                                          uint32_t dynamic_shared);
  // Reads or writes the memory of the thread that makes the call, at any generic address; checked like its
  // own accesses.
  void read(const ThreadCall& call, uint64_t address, std::span<std::byte> out);
  void write(const ThreadCall& call, uint64_t address, std::span<const std::byte> bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace klap::emulator
