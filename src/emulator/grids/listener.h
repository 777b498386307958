// The executor reports to its owner by this interface: calls that the machine has to answer, and the ends of
// blocks and grids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/grids/grid.h"
#include "emulator/memory_model/model.h"

namespace klap::emulator {

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
  mutable bool waits = false;  // set if the call has done nothing, and is to be made again later
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

}  // namespace klap::emulator
