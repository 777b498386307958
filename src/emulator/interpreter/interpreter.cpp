// The loop; see interpreter.h.
#include "emulator/interpreter/interpreter.h"

#include <algorithm>

namespace klap::emulator::execution {
namespace {

// After so many instructions others of the warp get their turn even if they do not help to reconverge.
constexpr uint32_t kRotateAfter = 2000, kRotateAfterLongTurns = 100000;

std::string in_words(const Dim3& index) {
  return "(" + std::to_string(index[0]) + ", " + std::to_string(index[1]) + ", " + std::to_string(index[2]) +
         ")";
}

}  // namespace

Interpreter::Interpreter(Context& context)
    : context_(context), operands_(context), addresses_(context.memory, context.options.check_bounds) {}

std::string Interpreter::place(uint32_t lane) const {
  const Function& kernel = block_->kernel();
  std::string text = "kernel " + kernel.name + ", block " + in_words(block_->index) + ", thread " +
                     in_words(block_->thread_index(*warp_, lane)) + ", ";
  if (here_.function != &kernel) text += "function " + here_.function->name + ", ";
  return text + here_.function->unit + ":" + std::to_string(here_.instruction().line);
}

void Interpreter::run(const TurnPlan& turn) {
  block_ = turn.block;
  warp_ = block_->warps[turn.warp].get();
  left_ = turn.length;
  reconverge_ = turn.reconverge;
  is_waiting_ = waits_for_children_ = false;
  addresses_.enter(*warp_);
  here_.mask = 0;
  if (!reconverge_) {
    size_t first = context_.random.below(warp_->fragments.size()), i = first;
    while (warp_->fragments[i].state != Fragment::State::Ready) i = (i + 1) % warp_->fragments.size();
    resume(i);
    if (turn.break_apart) break_apart();
  }
  loop();
  if (here_.mask != 0) park(Fragment::State::Ready);
  warp_->run_since_rotation += turn.length - left_;
  block_->note_ready(*warp_);
}

void Interpreter::loop() {
  while (left_ != 0) {
    if (here_.mask == 0 && !(reconverge_ && resume_another())) return;
    if (here_.pc >= meeting_) {
      meet();
      continue;
    }
    --left_;
    const Instruction& instruction = here_.instruction();
    context_.steps += lane_count_;
    uint32_t mask = here_.mask;
    if (instruction.guarded) {
      uint32_t set = operands_.predicate(instruction.guard);
      mask &= instruction.guard_negated ? ~set : set;
      if (mask == 0) {
        ++here_.pc;
        continue;
      }
    }
    execute(instruction, mask);
  }
}

void Interpreter::run_alu(const Instruction& instruction, uint32_t mask) {
  for (size_t i = 0; i < instruction.destination_count; ++i)
    alu_.destinations[i] = operands_.destination(instruction.destinations[i]);
  for (size_t i = 0; i < instruction.source_count; ++i)
    alu_.sources[i] = operands_.source(instruction.sources[i], i);
  for (size_t i = instruction.source_count; i < alu_.sources.size(); ++i) alu_.sources[i] = nullptr;
  alu_.carry = warp_->carry.data();
  alu_.mask = mask;
  alu_.setting = instruction.setting;
  instruction.alu(alu_);
}

void Interpreter::execute(const Instruction& instruction, uint32_t mask) {
  switch (instruction.kind) {
    case Kind::Alu:
      run_alu(instruction, mask);
      ++here_.pc;
      return;
    case Kind::Load:
      load(instruction, mask);
      ++here_.pc;
      return;
    case Kind::Store:
      store(instruction, mask);
      ++here_.pc;
      return;
    case Kind::Branch:
      branch(instruction, mask);
      return;
    case Kind::Atomic:
    case Kind::Reduction:
      atomic(instruction, mask);
      ++here_.pc;
      return;
    case Kind::Barrier:
      barrier(instruction, mask);
      return;
    case Kind::WarpBarrier:
    case Kind::Shuffle:
    case Kind::Vote:
    case Kind::Match:
    case Kind::Redux:
    case Kind::Elect:
      warp_operation(instruction, mask);
      return;
    case Kind::IndexedBranch:
      branch_indexed(instruction, mask);
      return;
    case Kind::Call:
      call(instruction, mask);
      return;
    case Kind::IndirectCall:
      call_indirect(instruction, mask);
      return;
    case Kind::Return:
      return_from(mask);
      return;
    case Kind::Exit:
      exit(mask);
      return;
    case Kind::DependencyWait:
      wait_for_primary(mask);
      return;
    default:
      execute_rarely(instruction, mask);
      ++here_.pc;
  }
}

// Executes instructions that do not change the flow of control.
void Interpreter::execute_rarely(const Instruction& instruction, uint32_t mask) {
  switch (instruction.kind) {
    case Kind::Fence:
      fence(instruction, mask);
      return;
    case Kind::ToGeneric:
    case Kind::FromGeneric:
      convert_address(instruction, mask);
      return;
    case Kind::IsSpace:
      is_in_space(instruction, mask);
      return;
    case Kind::MapShared:
      map_shared(instruction, mask);
      return;
    case Kind::ActiveMask:
      active_mask(instruction, mask);
      return;
    case Kind::StackSave:
    case Kind::StackRestore:
    case Kind::Alloca:
      stack_allocate(instruction, mask);
      return;
    case Kind::NanoSleep:
      end_turn_waiting();
      return;
    case Kind::Trap:
      throw Fault(kLaunchFailure, lowest_lane(mask), "trap");
    case Kind::Texture:
      throw Fault(kNotSupported, lowest_lane(mask), "textures are not emulated");
    default:  // Prefetch, DependencyLaunch (which allows what need not be), Nothing
      return;
  }
}

// Looks again until the grid is finished whose dependent this one is, and then sees all that it did.
void Interpreter::wait_for_primary(uint32_t mask) {
  const std::shared_ptr<const Grid>& primary = block_->run->grid->primary;
  if (primary && !primary->finished) {
    end_turn_waiting();
    return;
  }
  if (primary && context_.ordered)
    for_lanes(mask, [&](uint32_t lane) { context_.order.join(warp_->agents[lane], primary->history); });
  ++here_.pc;
}

// ---- which fragment runs ----

void Interpreter::resume(size_t fragment) {
  here_ = warp_->take(fragment);
  entered_frame();
}

bool Interpreter::resume_another() {
  if (!warp_->has_ready()) return false;
  bool long_turns = context_.options.schedule == ScheduleKind::Fast;
  bool rotate =
      warp_->rotate || warp_->run_since_rotation > (long_turns ? kRotateAfterLongTurns : kRotateAfter);
  if (rotate) {
    warp_->rotate = false;
    warp_->stay = true;
    warp_->run_since_rotation = 0;
    resume(warp_->choose_longest_waiting());
  } else {
    resume(warp_->stay ? warp_->choose_last_run() : warp_->choose_to_reconverge());
  }
  return true;
}

void Interpreter::park(Fragment::State state) {
  here_.state = state;
  if (state != Fragment::State::Ready) warp_->stay = false;
  here_.last_run = context_.steps;
  warp_->fragments.push_back(here_);
  here_.mask = 0;
  meeting_ = ~0u;
}

// `here_` is another fragment, or in another function than before.
void Interpreter::entered_frame() {
  if (reconverge_ || context_.random.one_in(2)) warp_->absorb(here_);
  operands_.enter(*warp_, here_);
  set_mask(here_.mask);
  find_meeting();
}

void Interpreter::set_mask(uint32_t mask) {
  here_.mask = mask;
  lane_count_ = static_cast<uint32_t>(std::popcount(mask));
}

void Interpreter::find_meeting() {
  meeting_ = ~0u;
  if (!reconverge_) return;
  for (const Fragment& other : warp_->fragments)
    if (other.state == Fragment::State::Ready && other.pc >= here_.pc && other.same_frame(here_))
      meeting_ = std::min(meeting_, other.pc);
}

void Interpreter::meet() {
  warp_->stay = false;
  warp_->absorb(here_);
  set_mask(here_.mask);
  find_meeting();
}

// Lanes that stand at one place may go on at different times.
void Interpreter::break_apart() {
  uint32_t away = here_.mask & static_cast<uint32_t>(context_.random.next());
  if (away != 0 && away != here_.mask) split_off(away, here_.pc);
}

void Interpreter::end_turn_waiting() {
  left_ = 0;
  is_waiting_ = true;
  warp_->rotate = true;
}

}  // namespace klap::emulator::execution
