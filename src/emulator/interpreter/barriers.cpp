// The block's barriers: bar.sync, bar.arrive, bar.red and their newer names.
//
// Warps arrive, as the PTX ISA has it. A warp has arrived when all its threads that have not exited are at
// the barrier, and counts 32 then. A barrier without a count is passed when all warps with living threads
// have arrived. So an exit may complete it.
#include <algorithm>

#include "emulator/interpreter/interpreter.h"

namespace klap::emulator::execution {

void Interpreter::barrier(const Instruction& instruction, uint32_t mask) {
  keep_only(mask, here_.pc + 1);
  ConstColumn numbers = operands_.source(instruction.sources[0], 0);
  uint32_t lane = lowest_lane(mask);
  uint64_t number = numbers[lane], count = 0;
  if (instruction.barrier.has_count) count = operands_.source(instruction.sources[1], 1)[lane];
  uint32_t same = 0;
  for_lanes(mask, [&](uint32_t other) { same |= numbers[other] == number ? 1u << other : 0; });
  keep_only(same, here_.pc);  // the others come back to this instruction
  if (number >= block_->barriers.size())
    throw Fault(kLaunchFailure, lane, "barrier " + std::to_string(number) + " of 16");
  bool counted = instruction.barrier.has_count;
  if (counted && (count == 0 || count % kLanes != 0 || count > 1024))
    throw Fault(kLaunchFailure, lane,
                "barrier for " + std::to_string(count) + " threads, not a multiple of 32");
  Barrier& barrier = block_->barriers[number];
  if (barrier.in_use) {
    check_count(barrier, static_cast<uint32_t>(count), lane);
  } else {
    barrier.in_use = true;
    barrier.expected = static_cast<uint32_t>(count);
  }
  arrive(barrier, instruction);
  here_.barrier = static_cast<uint32_t>(number);
  if (instruction.barrier.arrive_only) {
    ++here_.pc;
    settle(here_.barrier);
    find_meeting();
    return;
  }
  park(Fragment::State::AtBarrier);
  settle(static_cast<uint32_t>(number));
}

void Interpreter::check_count(const Barrier& barrier, uint32_t expected, uint32_t lane) const {
  auto threads_of = [this](uint32_t count) { return count == 0 ? block_->warp_count * kLanes : count; };
  if (threads_of(barrier.expected) == threads_of(expected)) return;
  auto words = [](uint32_t threads) { return threads == 0 ? std::string("all") : std::to_string(threads); };
  throw Fault(
      kLaunchFailure, lane,
      "barrier for " + words(expected) + " threads, where others wait at it for " + words(barrier.expected));
}

// `here_` is at the barrier.
void Interpreter::arrive(Barrier& barrier, const Instruction& instruction) {
  barrier.lanes[warp_->index] |= here_.mask;
  if (instruction.barrier.arrive_only) {
    if (context_.ordered)
      for_lanes(here_.mask,
                [&](uint32_t lane) { barrier.arrivals.push_back(context_.order.now(warp_->agents[lane])); });
    return;
  }
  if (instruction.barrier.reduce == BarrierDetail::Reduce::None) return;
  size_t last = instruction.source_count - 1u;
  ConstColumn predicate = operands_.source(instruction.sources[last], last);
  for_lanes(here_.mask, [&](uint32_t lane) {
    ++barrier.thread_count;
    barrier.true_count += (predicate[lane] & 1) != (instruction.barrier.negated ? 1u : 0u);
  });
}

// Counts warps that have arrived by now, and lets everybody go if it is enough.
void Interpreter::settle(uint32_t number) {
  Barrier& barrier = block_->barriers[number];
  if (!barrier.in_use) return;
  for (uint32_t w = 0; w < block_->warp_count; ++w) {
    uint32_t& lanes = barrier.lanes[w];
    if (lanes == 0 || (block_->warps[w]->live & ~lanes) != 0) continue;
    lanes = 0;
    barrier.warps |= 1u << w;
    barrier.arrived += kLanes;
  }
  bool complete = barrier.expected == 0 ? (block_->live_warps & ~barrier.warps) == 0
                                        : barrier.arrived >= barrier.expected;
  if (complete) release_barrier(number);
}

void Interpreter::release_barrier(uint32_t number) {
  Barrier& barrier = block_->barriers[number];
  agents_.clear();
  for (uint32_t w = 0; w < block_->warp_count; ++w) {
    Warp& warp = *block_->warps[w];
    for (Fragment& fragment : warp.fragments)
      if (fragment.state == Fragment::State::AtBarrier && fragment.barrier == number)
        release_fragment(fragment, warp, barrier);
    block_->note_ready(warp);
  }
  if (here_.mask != 0) operands_.enter(*warp_, here_);
  if (context_.ordered && !agents_.empty()) {
    context_.order.barrier(agents_);
    for (const HistoryRef& arrival : barrier.arrivals)
      for (Agent* agent : agents_) context_.order.join(agent, arrival);
  }
  barrier = Barrier{};
}

void Interpreter::release_fragment(Fragment& fragment, Warp& warp, const Barrier& barrier) {
  const Instruction& instruction = fragment.instruction();
  uint64_t result = barrier.true_count;
  if (instruction.barrier.reduce == BarrierDetail::Reduce::And)
    result = barrier.true_count == barrier.thread_count;
  if (instruction.barrier.reduce == BarrierDetail::Reduce::Or) result = barrier.true_count != 0;
  if (instruction.destination_count != 0) {
    operands_.enter(warp, fragment);
    Column to = operands_.destination(instruction.destinations[0]);
    for_lanes(fragment.mask, [&](uint32_t lane) { to[lane] = result; });
  }
  if (context_.ordered)
    for_lanes(fragment.mask, [&](uint32_t lane) { agents_.push_back(warp.agents[lane]); });
  ++fragment.pc;
  fragment.state = Fragment::State::Ready;
}

}  // namespace klap::emulator::execution
