// The schedules of ScheduleKind choose the next turn and its length.
//
// Every schedule is fair enough for programs that wait by spinning: a fragment that is held back goes on
// after a bounded number of instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/grids/block.h"
#include "emulator/grids/context.h"
#include "emulator/interpreter/interpreter.h"

namespace klap::emulator::execution {

class Schedule {
 public:
  explicit Schedule(Context& context) : context_(context) {}

  // Nothing if no block can go on.
  std::optional<TurnPlan> choose(const std::vector<Block*>& resident);
  // After the turn that was chosen: how many thread-instructions ran, and whether the fragment seems to wait.
  void ran(uint64_t steps, bool is_waiting);
  void finished(const Block& block);

 private:
  Block* choose_block(const std::vector<Block*>& resident);
  Block* next_in_order(const std::vector<Block*>& resident);
  Block* any(const std::vector<Block*>& resident, uint64_t except_block);
  Block* favoured(const std::vector<Block*>& resident);
  Block* spare_victim(const std::vector<Block*>& resident);
  Block* by_depth(const std::vector<Block*>& resident, bool deepest);
  uint32_t next_warp(Block& block) const;
  uint32_t any_warp(const Block& block);
  [[nodiscard]] bool is_out_of_patience() const;

  Context& context_;
  uint64_t favourite_ = 0;  // a block's id: the one that runs alone, or the one that is starved; 0: none
  uint64_t patience_used_ = 0;
  uint32_t open_turns_ = 0;  // turns that any block may take, after patience ran out
  size_t next_block_ = 0;
  std::vector<Block*> candidates_;
};

}  // namespace klap::emulator::execution
