// See schedule.h.
#include "emulator/executor/schedule.h"

#include <algorithm>

namespace klap::emulator::execution {
namespace {

constexpr uint32_t kLongTurn = 10000;
constexpr uint32_t kLongestShortTurn = 64;
// The thread-instructions that a favoured block may run, and those that a turn counts in which it only
// waited.
constexpr uint64_t kPatience = 1000000, kWaitingTurn = 10000;
constexpr uint32_t kOpenTurns = 64;

}  // namespace

std::optional<TurnPlan> Schedule::choose(const std::vector<Block*>& resident) {
  TurnPlan turn;
  turn.block = choose_block(resident);
  if (!turn.block) return std::nullopt;
  bool fast = context_.options.schedule == ScheduleKind::Fast;
  if (!context_.adversarial()) {
    turn.warp = next_warp(*turn.block);
    turn.length = fast ? kLongTurn : 1 + static_cast<uint32_t>(context_.options.seed % kLongestShortTurn);
    return turn;
  }
  turn.warp = any_warp(*turn.block);
  // Mostly short turns, and now and then a long one, so that a thread can also be far ahead of another.
  turn.length = 1 + static_cast<uint32_t>(context_.random.below(kLongestShortTurn));
  if (context_.random.one_in(16)) turn.length *= 64;
  turn.reconverge = !context_.random.one_in(4);
  turn.break_apart = !turn.reconverge && context_.random.one_in(8);
  return turn;
}

void Schedule::ran(uint64_t steps, bool is_waiting) {
  patience_used_ += is_waiting ? std::max(steps, kWaitingTurn) : steps;
  if (open_turns_ != 0) --open_turns_;
}

void Schedule::finished(const Block& block) {
  if (favourite_ == block.id) favourite_ = 0;
}

bool Schedule::is_out_of_patience() const { return patience_used_ >= kPatience; }

Block* Schedule::choose_block(const std::vector<Block*>& resident) {
  switch (context_.options.schedule) {
    case ScheduleKind::Fast:
    case ScheduleKind::RoundRobin:
      return next_in_order(resident);
    case ScheduleKind::Random:
      return any(resident, 0);
    case ScheduleKind::OneBlock:
      return favoured(resident);
    case ScheduleKind::StarveOne:
      return spare_victim(resident);
    case ScheduleKind::ChildFirst:
      return by_depth(resident, true);
    case ScheduleKind::ChildLast:
      return by_depth(resident, false);
  }
  return nullptr;
}

// All warps of a block, then the next block.
Block* Schedule::next_in_order(const std::vector<Block*>& resident) {
  for (size_t tried = 0; tried <= resident.size() && !resident.empty(); ++tried) {
    Block& block = *resident[next_block_ % resident.size()];
    if (block.next_warp < block.warp_count && block.ready_warps >> block.next_warp != 0) return &block;
    block.next_warp = 0;
    next_block_ = (next_block_ + 1) % resident.size();
  }
  return nullptr;
}

Block* Schedule::any(const std::vector<Block*>& resident, uint64_t except_block) {
  candidates_.clear();
  for (Block* block : resident)
    if (block->ready_warps != 0 && block->id != except_block) candidates_.push_back(block);
  return candidates_.empty() ? nullptr : candidates_[context_.random.below(candidates_.size())];
}

Block* Schedule::favoured(const std::vector<Block*>& resident) {
  if (!is_out_of_patience())
    for (Block* block : resident)
      if (block->id == favourite_ && block->ready_warps != 0) return block;
  Block* block = any(resident, favourite_);
  if (!block) block = any(resident, 0);
  if (block) favourite_ = block->id;
  patience_used_ = 0;
  return block;
}

Block* Schedule::spare_victim(const std::vector<Block*>& resident) {
  if (favourite_ == 0 || is_out_of_patience()) {
    // The old victim must get its chance now.
    Block* victim = any(resident, favourite_);
    favourite_ = victim ? victim->id : 0;
    patience_used_ = 0;
  }
  Block* block = any(resident, favourite_);
  return block ? block : any(resident, 0);
}

Block* Schedule::by_depth(const std::vector<Block*>& resident, bool deepest) {
  if (is_out_of_patience()) {
    open_turns_ = kOpenTurns;
    patience_used_ = 0;
  }
  if (open_turns_ != 0) return any(resident, 0);
  candidates_.clear();
  for (Block* block : resident) {
    if (block->ready_warps == 0) continue;
    uint32_t depth = block->run->depth;
    uint32_t best = candidates_.empty() ? depth : candidates_[0]->run->depth;
    if (deepest ? depth > best : depth < best) candidates_.clear();
    if (candidates_.empty() || depth == best) candidates_.push_back(block);
  }
  return candidates_.empty() ? nullptr : candidates_[context_.random.below(candidates_.size())];
}

uint32_t Schedule::next_warp(Block& block) const {
  uint32_t warp = lowest_lane(block.ready_warps & (~0u << block.next_warp));
  block.next_warp = warp + 1;
  return warp;
}

uint32_t Schedule::any_warp(const Block& block) {
  auto nth = context_.random.below(static_cast<uint64_t>(std::popcount(block.ready_warps)));
  uint32_t warps = block.ready_warps;
  while (nth-- != 0) warps &= warps - 1;
  return lowest_lane(warps);
}

}  // namespace klap::emulator::execution
