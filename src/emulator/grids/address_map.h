// Where a thread's addresses lie in this process, and whether it may use them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "emulator/grids/block.h"
#include "emulator/memory_model/memory.h"

namespace klap::emulator::execution {

// Addresses that are found in the same way. Byte `a` is at a + delta + lane * lane_step.
struct Window {
  uint64_t begin = 0, bytes = 0;
  uint64_t delta = 0;
  uint64_t lane_step = 0;
  bool ordered = false;  // other threads can see it: global or shared memory
};

class AddressMap {
 public:
  // `exact`: every access must lie in a living allocation, not only where it cannot hurt this process.
  AddressMap(const Memory& memory, bool exact) : memory_(memory), exact_(exact) {}

  // To be called before a warp runs, and whenever memory may have been freed.
  void enter(const Warp& warp) {
    warp_ = &warp;
    known_ = {};
  }
  // The window that holds these bytes. Throws a Fault if there is none or the address is not aligned.
  Window find(const Fragment& fragment, uint32_t lane, Space space, uint64_t address, uint32_t bytes,
              bool for_writing);

 private:
  Window find_global(uint32_t lane, uint64_t address, uint32_t bytes);

  const Memory& memory_;
  const bool exact_;
  const Warp* warp_ = nullptr;
  std::array<Window, 4> known_;  // global ones found before
  size_t next_known_ = 0;
};

// The begin of a space's generic addresses; 0 if they are addresses of this process.
uint64_t window_begin(Space space);
std::string hexadecimal(uint64_t value);

}  // namespace klap::emulator::execution
