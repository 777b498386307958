// Calls and returns, and calls of functions that the machine provides.
#include <algorithm>
#include <cstring>

#include "emulator/interpreter/interpreter.h"

namespace klap::emulator::execution {
namespace {

constexpr uint32_t kFrameAlign = 16;

uint32_t result_bytes(const Function& function) {
  uint32_t bytes = 0;
  for (const FormalParameter& result : function.results)
    bytes = std::max(bytes, result.offset + result.bytes);
  return bytes;
}

uint32_t argument_bytes(const Function& function) {
  uint32_t bytes = 0;
  for (const FormalParameter& formal : function.parameters)
    bytes = std::max(bytes, formal.offset + formal.bytes);
  return bytes;
}

}  // namespace

void Interpreter::call(const Instruction& instruction, uint32_t mask) {
  const CallDetail& detail = here_.function->calls[instruction.detail];
  const Function& function = *block_->run->grid->launch.image->functions[detail.function];
  if (function.builtin >= 0) return call_builtin(function, detail, mask);
  keep_only(mask, here_.pc + 1);
  enter(function, detail);
}

void Interpreter::call_indirect(const Instruction& instruction, uint32_t mask) {
  const CallDetail& detail = here_.function->calls[instruction.detail];
  ConstColumn address = operands_.source(instruction.sources[0], 0);
  uint64_t target = address[lowest_lane(mask)];
  uint32_t same = 0;
  for_lanes(mask, [&](uint32_t lane) { same |= address[lane] == target ? 1u << lane : 0; });
  const auto& functions = block_->run->grid->launch.image->functions;
  uint64_t index = (target - kCodeWindow) / 16;
  if (target < kCodeWindow || target % 16 != 0 || index >= functions.size() || functions[index]->is_kernel)
    throw Fault(kInvalidPc, lowest_lane(mask), "call of " + hexadecimal(target) + ", which is no function");
  const Function& function = *functions[index];
  if (function.parameters.size() != detail.parameters.size() ||
      function.results.size() < detail.results.size())
    throw Fault(kInvalidPc, lowest_lane(mask), "call of " + function.name + " with another prototype");
  if (mask != same) split_off(mask & ~same, here_.pc);  // they come back to this call
  keep_only(same, here_.pc + 1);
  if (function.builtin >= 0) {
    call_builtin(function, detail, same);
  } else {
    enter(function, detail);
  }
}

void Interpreter::enter(const Function& function, const CallDetail& detail) {
  uint32_t lane = lowest_lane(here_.mask);
  if (!function.unsupported.empty()) throw Fault(kNotSupported, lane, function.unsupported);
  if (function.code.empty())
    throw Fault(kInvalidPc, lane, "call of " + function.name + ", which has no body");
  Fragment caller = here_;
  here_.function = &function;
  here_.pc = 0;
  here_.columns = caller.columns + caller.function->columns;
  here_.local = (caller.local_top + kFrameAlign - 1) & ~(kFrameAlign - 1);
  here_.local_top = here_.local + function.local_bytes;
  ++here_.depth;
  if (!warp_->open_frame(here_.columns, function.columns, here_.mask) ||
      !warp_->local.reserve(context_.memory, here_.local_top)) {
    std::swap(here_, caller);  // the place of the fault is the call
    throw Fault(kStackError, lane,
                "stack overflow: call of " + function.name + " at depth " + std::to_string(caller.depth));
  }
  for (size_t i = 0; i < function.parameters.size() && i < detail.parameters.size(); ++i)
    move_value({function.parameters[i].where, here_}, {detail.parameters[i].where, caller},
               std::min(function.parameters[i].bytes, detail.parameters[i].bytes), here_.mask);
  here_.caller = warp_->calls.enter(
      {caller.function, caller.pc, caller.columns, caller.local, caller.local_top, caller.caller});
  entered_frame();
}

void Interpreter::return_from(uint32_t mask) {
  if (here_.caller == 0) {
    exit(mask);
    return;
  }
  keep_only(mask, here_.pc + 1);
  Fragment callee = here_;
  PendingCall call = warp_->calls.leave(here_.caller);
  here_.function = call.function;
  here_.pc = call.pc;
  here_.columns = call.columns;
  here_.local = call.local;
  here_.local_top = call.local_top;
  here_.caller = call.caller;
  --here_.depth;
  const CallDetail& detail = here_.function->calls[here_.instruction().detail];
  for (size_t i = 0; i < detail.results.size() && i < callee.function->results.size(); ++i)
    move_value({detail.results[i].where, here_}, {callee.function->results[i].where, callee},
               std::min(detail.results[i].bytes, callee.function->results[i].bytes), here_.mask);
  ++here_.pc;
  if (!reconverge_ || warp_->stay) {
    entered_frame();
    return;
  }
  // Others may still be in the function, and are waited for.
  park(Fragment::State::Ready);
  resume(warp_->choose_to_reconverge());
}

// ---- values that are passed: in the local frame, or in registers ----

void Interpreter::move_value(FramePlace to, FramePlace from, uint32_t bytes, uint32_t mask) {
  moved_.resize(std::max<size_t>(bytes, 16));
  std::span<std::byte> value(moved_.data(), bytes);
  for_lanes(mask, [&](uint32_t lane) {
    get_value(from, lane, value);
    set_value(to, lane, value);
  });
}

void Interpreter::get_value(FramePlace from, uint32_t lane, std::span<std::byte> bytes) {
  if (from.operand.from == Operand::From::LocalVariable) {
    std::memcpy(bytes.data(), pointer_to(warp_->local.address(lane) + from.frame.local + from.operand.index),
                bytes.size());
    return;
  }
  operands_.enter(*warp_, from.frame);
  ConstColumn column = operands_.source(from.operand, 0);
  for (size_t at = 0; at < bytes.size() && column; at += 8, column += kLanes)
    std::memcpy(bytes.data() + at, column + lane, std::min<size_t>(8, bytes.size() - at));
}

void Interpreter::set_value(FramePlace to, uint32_t lane, std::span<const std::byte> bytes) {
  if (to.operand.from == Operand::From::LocalVariable) {
    std::memcpy(pointer_to(warp_->local.address(lane) + to.frame.local + to.operand.index), bytes.data(),
                bytes.size());
    return;
  }
  if (to.operand.from != Operand::From::Register) return;  // a result that is not wanted
  operands_.enter(*warp_, to.frame);
  Column column = operands_.destination(to.operand);
  for (size_t at = 0; at < bytes.size(); at += 8, column += kLanes) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
    column[lane] = value;
  }
}

// ---- the machine's functions: one thread after another ----

void Interpreter::call_builtin(const Function& function, const CallDetail& detail, uint32_t mask) {
  uint32_t first = context_.adversarial() ? static_cast<uint32_t>(context_.random.below(kLanes)) : 0;
  uint32_t from_first = ~0u << first;
  for_lanes(mask & from_first, [&](uint32_t lane) { call_builtin_of(lane, function, detail); });
  for_lanes(mask & ~from_first, [&](uint32_t lane) { call_builtin_of(lane, function, detail); });
  addresses_.enter(*warp_);  // memory may have been freed
  operands_.enter(*warp_, here_);
  if (!waits_for_children_) {
    ++here_.pc;
  } else {
    end_turn_waiting();
  }
}

void Interpreter::call_builtin_of(uint32_t lane, const Function& function, const CallDetail& detail) {
  arguments_.assign(argument_bytes(function), std::byte{0});
  result_.assign(result_bytes(function), std::byte{0});
  for (size_t i = 0; i < function.parameters.size() && i < detail.parameters.size(); ++i) {
    const FormalParameter& formal = function.parameters[i];
    std::span<std::byte> value = std::span(arguments_).subspan(formal.offset, formal.bytes);
    get_value({detail.parameters[i].where, here_}, lane,
              value.first(std::min(formal.bytes, detail.parameters[i].bytes)));
  }
  ThreadCall thread_call{
      *block_->run->grid,  block_->id,       block_->index, block_->thread_index(*warp_, lane),
      warp_->agents[lane], function.builtin, arguments_,    result_,
      place_in_code()};
  thread_call_ = &thread_call;
  thread_call_lane_ = lane;
  context_.listener.call(thread_call);
  thread_call_ = nullptr;
  waits_for_children_ = thread_call.waits;
  if (waits_for_children_) return;
  for (size_t i = 0; i < detail.results.size() && i < function.results.size(); ++i) {
    const FormalParameter& formal = function.results[i];
    set_value({detail.results[i].where, here_}, lane,
              std::span(result_).subspan(formal.offset, std::min(formal.bytes, detail.results[i].bytes)));
  }
}

}  // namespace klap::emulator::execution
