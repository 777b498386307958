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
#include <memory>
#include <span>
#include <string>

#include "emulator/grids/grid.h"
#include "emulator/grids/listener.h"
#include "emulator/grids/options.h"
#include "emulator/memory_model/memory.h"
#include "emulator/memory_model/model.h"

namespace klap::emulator {

class Executor {
 public:
  Executor(const ExecutorOptions& options, Memory& memory, MemoryModel& order, ExecutorListener& listener);
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
