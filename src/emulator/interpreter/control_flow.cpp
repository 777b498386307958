// Branches, exits, and the stack of a thread.
#include <algorithm>

#include "emulator/interpreter/interpreter.h"

namespace klap::emulator::execution {

// These lanes go on by themselves at `pc`.
void Interpreter::split_off(uint32_t mask, uint32_t pc) {
  Fragment other = here_;
  other.mask = mask;
  other.pc = pc;
  other.last_run = context_.steps;
  warp_->calls.retain(other.caller);
  warp_->fragments.push_back(other);
  set_mask(here_.mask & ~mask);
}

void Interpreter::keep_only(uint32_t mask, uint32_t others_pc) {
  if (mask != here_.mask) split_off(here_.mask & ~mask, others_pc);
}

void Interpreter::jump(uint32_t target) {
  uint32_t from = here_.pc;
  here_.pc = target;
  if (!reconverge_ || warp_->fragments.empty()) return;
  if (!warp_->stay) let_catch_up(from);
  find_meeting();
}

// Whom it jumped over goes first.
void Interpreter::let_catch_up(uint32_t from) {
  size_t behind = warp_->fragments.size();
  for (size_t i = 0; i < warp_->fragments.size(); ++i) {
    const Fragment& other = warp_->fragments[i];
    if (other.state != Fragment::State::Ready || other.pc <= from || other.pc >= here_.pc) continue;
    if (!other.same_frame(here_)) continue;
    if (behind == warp_->fragments.size() || other.pc < warp_->fragments[behind].pc) behind = i;
  }
  if (behind == warp_->fragments.size()) return;
  here_.last_run = context_.steps;
  std::swap(here_, warp_->fragments[behind]);
  set_mask(here_.mask);
}

void Interpreter::branch(const Instruction& instruction, uint32_t mask) {
  if (mask == here_.mask) {
    jump(instruction.target);
    return;
  }
  uint32_t next = here_.pc + 1;
  bool taken_goes_on = reconverge_ ? instruction.target < next : context_.random.one_in(2);
  if (taken_goes_on) {
    split_off(here_.mask & ~mask, next);
    here_.pc = instruction.target;
  } else {
    split_off(mask, instruction.target);
    here_.pc = next;
  }
  find_meeting();
}

void Interpreter::branch_indexed(const Instruction& instruction, uint32_t mask) {
  keep_only(mask, here_.pc + 1);
  ConstColumn index = operands_.source(instruction.sources[0], 0);
  const std::vector<uint32_t>& table = here_.function->tables[instruction.detail];
  for_lanes(mask, [&](uint32_t lane) {
    if (index[lane] >= table.size())
      throw Fault(kInvalidPc, lane,
                  "branch to target " + std::to_string(index[lane]) + " of " + std::to_string(table.size()));
  });
  uint64_t first = index[lowest_lane(mask)];
  uint32_t same = 0;
  for_lanes(mask, [&](uint32_t lane) { same |= index[lane] == first ? 1u << lane : 0; });
  keep_only(same, here_.pc);  // the others come back to this instruction
  jump(table[first]);
}

void Interpreter::exit(uint32_t mask) {
  keep_only(mask, here_.pc + 1);
  warp_->calls.release(here_.caller);
  here_.mask = 0;
  meeting_ = ~0u;
  warp_->stay = false;
  exited(mask);
}

// Fragments that wait for these lanes wait no longer.
void Interpreter::exited(uint32_t lanes) {
  warp_->live &= ~lanes;
  if (context_.ordered) {
    Grid& grid = *block_->run->grid;
    for_lanes(lanes, [&](uint32_t lane) {
      grid.history = MemoryModel::both(grid.history, context_.order.end(warp_->agents[lane]));
      warp_->agents[lane] = nullptr;
    });
  }
  if (warp_->live != 0) {
    complete_warp_operations();
  } else {
    block_->live_warps &= ~(1u << warp_->index);
  }
  for (uint32_t number = 0; number < block_->barriers.size(); ++number) settle(number);
}

// The lanes of a fragment share one frame, so the stack grows for all of them by the largest request.
void Interpreter::stack_allocate(const Instruction& instruction, uint32_t mask) {
  if (instruction.kind == Kind::StackSave) {
    Column destination = operands_.destination(instruction.destinations[0]);
    for_lanes(mask, [&](uint32_t lane) { destination[lane] = here_.local_top; });
    return;
  }
  ConstColumn source = operands_.source(instruction.sources[0], 0);
  uint64_t most = 0;
  for_lanes(mask, [&](uint32_t lane) { most = std::max(most, source[lane]); });
  if (instruction.kind == Kind::StackRestore) {
    if (most < here_.local_top) here_.local_top = static_cast<uint32_t>(most);
    return;
  }
  uint64_t align = instruction.source_count > 1
                       ? std::max<uint64_t>(operands_.source(instruction.sources[1], 1)[lowest_lane(mask)], 1)
                       : 8;
  uint64_t begin = (here_.local_top + align - 1) & ~(align - 1);
  if (most > LocalMemory::kMost ||
      !warp_->local.reserve(context_.memory, static_cast<uint32_t>(begin + most)))
    throw Fault(kStackError, lowest_lane(mask),
                "stack overflow: alloca of " + std::to_string(most) + " bytes");
  here_.local_top = static_cast<uint32_t>(begin + most);
  Column destination = operands_.destination(instruction.destinations[0]);
  for_lanes(mask, [&](uint32_t lane) { destination[lane] = begin; });
}

}  // namespace klap::emulator::execution
