// A warp: its registers, and its lanes in fragments.
//
// A fragment is a set of lanes at one place: one program counter, one call stack. Lanes in different frames
// share one array of registers. Each lane only touches its own slot of a column, and a callee's frame lies
// beyond its caller's.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "emulator/decode/code.h"
#include "emulator/grids/call_tree.h"
#include "emulator/memory_model/memory.h"
#include "emulator/memory_model/model.h"

namespace klap::emulator::execution {

struct Block;

struct Fragment {
  enum class State : uint8_t { Ready, AtBarrier, AtWarpOperation };
  uint32_t mask = 0;  // its lanes
  uint32_t pc = 0;
  const Function* function = nullptr;
  uint32_t columns = 0;               // where its frame begins in the warp's registers
  uint32_t local = 0, local_top = 0;  // its frame in each thread's local memory
  uint32_t caller = 0, depth = 0;     // node of the call tree, and how far from the kernel it is
  State state = State::Ready;
  uint32_t barrier = 0;  // AtBarrier: its number
  uint32_t members = 0;  // AtWarpOperation: its member mask
  uint64_t last_run = 0;

  [[nodiscard]] const Instruction& instruction() const { return function->code[pc]; }
  [[nodiscard]] bool same_frame(const Fragment& other) const {
    return function == other.function && columns == other.columns && local == other.local &&
           caller == other.caller;
  }
};

// The local memory of a warp's threads: one piece, a stripe for each lane, made when it is first needed.
class LocalMemory {
 public:
  static constexpr uint32_t kMost = 512 << 10;  // a thread, as CUDA has it
  // Makes room for `bytes` a thread; false if that is more than a thread can have, or than there is.
  bool reserve(Memory& memory, uint32_t bytes) { return bytes <= stride_ || grow(memory, bytes); }
  void release(Memory& memory);
  [[nodiscard]] uint64_t address(uint32_t lane) const { return address_ + uint64_t{lane} * stride_; }
  [[nodiscard]] uint32_t stride() const { return stride_; }

 private:
  bool grow(Memory& memory, uint32_t bytes);
  uint64_t address_ = 0;
  uint32_t stride_ = 0;
};

struct Warp {
  static constexpr uint32_t kMostColumns = 1 << 17;  // of all frames of a call stack
  Block* block = nullptr;
  uint32_t index = 0;
  uint32_t live = 0;                // lanes that have not exited
  std::vector<uint64_t> registers;  // [column][kLanes]
  std::array<uint64_t, kLanes> carry{};
  std::array<std::array<uint64_t, kLanes>, 3> thread{};  // %tid
  std::array<Agent*, kLanes> agents{};
  std::vector<Fragment> fragments;
  CallTree calls;
  LocalMemory local;
  // A fragment may wait for another of its warp by spinning. So now and then the one that has waited longest
  // goes next (`rotate`). It goes on (`stay`) until it waits, meets others, or it is time again.
  bool rotate = false, stay = false;
  uint32_t run_since_rotation = 0;  // instructions
  uint32_t strong_accesses = 0;     // since then, or since a turn ended for them

  void start(Block& in, uint32_t number, uint32_t lanes, const Function& kernel);
  // Makes room for a frame, zeroed for these lanes. So values that a program reads before it writes them do
  // not depend on earlier calls. False if the frame is too large.
  bool open_frame(uint32_t first_column, uint32_t columns, uint32_t lanes);
  [[nodiscard]] bool has_ready() const;
  // Indices into `fragments`; there must be a ready one. The one whose running brings lanes together soonest:
  // the deepest call, then the lowest place.
  [[nodiscard]] size_t choose_to_reconverge() const;
  [[nodiscard]] size_t choose_longest_waiting() const;
  [[nodiscard]] size_t choose_last_run() const;
  // Takes out the ready fragments at this one's place and puts their lanes into it.
  void absorb(Fragment& fragment);
  // Takes it out; its user of the call tree goes with it.
  Fragment take(size_t index_of_fragment);
};

inline uint32_t lowest_lane(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

// Calls `use` for each lane of the mask, the lowest first.
template <typename Use>
inline void for_lanes(uint32_t mask, Use&& use) {
  if (mask == ~0u) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) use(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1) use(lowest_lane(mask));
}

}  // namespace klap::emulator::execution
