// Operations of a whole warp: shuffles, votes, matches, reductions, and the warp's own barrier.
//
// A `.sync` form happens once all the lanes of its member mask that have not exited stand at one: not
// necessarily at the same instruction, but with the same operation and the same mask.
#include <algorithm>

#include "emulator/interpreter/interpreter.h"

namespace klap::emulator::execution {
namespace {

// The undefined value that a lane gets from one that takes no part: a value that shows.
constexpr uint64_t kUndefined = 0xbaadf00dbaadf00d;

struct WarpOperation {
  const Instruction& instruction;
  uint32_t lanes;    // that take part
  uint32_t members;  // its mask
  std::array<std::array<uint64_t, kLanes>, 3> in{};
  std::array<uint64_t, kLanes> out{}, flag{};
};

bool is_same_operation(const Instruction& a, const Instruction& b) {
  return a.kind == b.kind && a.warp.op == b.warp.op && a.warp.type == b.warp.type &&
         a.warp.bits == b.warp.bits;
}

uint64_t cut(uint64_t value, uint8_t bits) { return bits >= 64 ? value : value & ((1ull << bits) - 1); }

// PTX ISA, shfl: the lane to read from, and whether it is in the segment.
struct ShuffleSource {
  uint32_t lane;
  bool in_range;
};
ShuffleSource shuffle_source(WarpDetail::Op op, uint32_t lane, uint32_t b, uint32_t c) {
  auto bval = static_cast<int>(b & 31), cval = static_cast<int>(c & 31);
  auto segment = static_cast<int>(c >> 8 & 31), self = static_cast<int>(lane);
  int highest = (self & segment) | (cval & ~segment), lowest = self & segment;
  int from;
  bool in_range;
  switch (op) {
    case WarpDetail::Op::ShuffleUp:
      from = self - bval;
      in_range = from >= highest;
      break;
    case WarpDetail::Op::ShuffleDown:
      from = self + bval;
      in_range = from <= highest;
      break;
    case WarpDetail::Op::ShuffleBfly:
      from = self ^ bval;
      in_range = from <= highest;
      break;
    default:
      from = lowest | (bval & ~segment);
      in_range = from <= highest;
  }
  return {static_cast<uint32_t>(in_range ? from : self), in_range};
}

void shuffle(WarpOperation& op) {
  for_lanes(op.lanes, [&](uint32_t lane) {
    auto b = static_cast<uint32_t>(op.in[1][lane]), c = static_cast<uint32_t>(op.in[2][lane]);
    ShuffleSource source = shuffle_source(op.instruction.warp.op, lane, b, c);
    bool takes_part = (op.lanes >> source.lane & 1) != 0;
    op.out[lane] = cut(takes_part ? op.in[0][source.lane] : kUndefined, op.instruction.warp.bits);
    op.flag[lane] = source.in_range;
  });
}

void vote(WarpOperation& op) {
  uint32_t set = 0;
  for_lanes(op.lanes, [&](uint32_t lane) { set |= static_cast<uint32_t>(op.in[0][lane] & 1) << lane; });
  if (op.instruction.warp.negated) set = ~set & op.lanes;
  uint64_t result = set;
  if (op.instruction.warp.op == WarpDetail::Op::VoteAll) result = set == op.lanes;
  if (op.instruction.warp.op == WarpDetail::Op::VoteAny) result = set != 0;
  if (op.instruction.warp.op == WarpDetail::Op::VoteUni) result = set == op.lanes || set == 0;
  op.out.fill(result);
}

void match(WarpOperation& op) {
  bool all = true;
  uint64_t first = cut(op.in[0][lowest_lane(op.lanes)], op.instruction.warp.bits);
  for_lanes(op.lanes, [&](uint32_t lane) {
    uint64_t value = cut(op.in[0][lane], op.instruction.warp.bits);
    uint32_t same = 0;
    for_lanes(op.lanes, [&](uint32_t other) {
      same |= cut(op.in[0][other], op.instruction.warp.bits) == value ? 1u << other : 0;
    });
    op.out[lane] = same;
    all = all && value == first;
  });
  if (op.instruction.warp.op != WarpDetail::Op::MatchAll) return;
  op.out.fill(all ? op.lanes : 0);
  op.flag.fill(all ? 1 : 0);
}

uint32_t reduced(const WarpDetail& detail, uint32_t a, uint32_t b) {
  auto as_signed = [](uint32_t x) { return static_cast<int32_t>(x); };
  bool is_less = detail.type == NumberType::Signed ? as_signed(a) < as_signed(b) : a < b;
  switch (detail.op) {
    case WarpDetail::Op::Add:
      return a + b;
    case WarpDetail::Op::Min:
      return is_less ? a : b;
    case WarpDetail::Op::Max:
      return is_less ? b : a;
    case WarpDetail::Op::And:
      return a & b;
    case WarpDetail::Op::Or:
      return a | b;
    default:
      return a ^ b;
  }
}

void reduce(WarpOperation& op) {
  // There is a first lane; g++ 13 cannot know and takes the index of an empty mask for possible.
  auto result = static_cast<uint32_t>(op.in[0][lowest_lane(op.lanes) % kLanes]);
  for_lanes(op.lanes & (op.lanes - 1), [&](uint32_t lane) {
    result = reduced(op.instruction.warp, result, static_cast<uint32_t>(op.in[0][lane]));
  });
  op.out.fill(result);
}

void elect(WarpOperation& op) {
  uint32_t leader = lowest_lane(op.lanes);
  op.out.fill(leader);
  op.flag[leader] = 1;
}

void compute(WarpOperation& op) {
  switch (op.instruction.kind) {
    case Kind::Shuffle:
      return shuffle(op);
    case Kind::Vote:
      return vote(op);
    case Kind::Match:
      return match(op);
    case Kind::Redux:
      return reduce(op);
    case Kind::Elect:
      return elect(op);
    default:  // WarpBarrier
      return;
  }
}

size_t value_count(const Instruction& instruction) {  // without the member mask
  bool has_mask = instruction.kind == Kind::WarpBarrier || instruction.warp.is_sync;
  return std::min<size_t>(3, instruction.source_count - (has_mask ? 1u : 0u));
}

}  // namespace

void Interpreter::warp_operation(const Instruction& instruction, uint32_t mask) {
  keep_only(mask, here_.pc + 1);
  bool is_sync =
      instruction.kind == Kind::WarpBarrier || instruction.kind == Kind::Elect || instruction.warp.is_sync;
  Fragment* alone = &here_;
  if (!is_sync) {
    here_.members = mask;
    perform({&alone, 1});
    find_meeting();
    return;
  }
  size_t last = instruction.source_count - 1u;
  ConstColumn members = operands_.source(instruction.sources[last], last);
  uint64_t wanted = members[lowest_lane(mask)];
  uint32_t same = 0;
  for_lanes(mask, [&](uint32_t lane) { same |= members[lane] == wanted ? 1u << lane : 0; });
  keep_only(same, here_.pc);  // lanes with another mask come back to this instruction
  here_.members = static_cast<uint32_t>(wanted);
  if (uint32_t outside = same & ~here_.members)
    throw Fault(kLaunchFailure, lowest_lane(outside),
                "the thread is not in the member mask " + hexadecimal(here_.members) + " of its operation");
  if (same == (here_.members & warp_->live)) {
    perform({&alone, 1});
    find_meeting();
    return;
  }
  park(Fragment::State::AtWarpOperation);
  complete_warp_operations();
}

// Performs every operation whose lanes are all there.
void Interpreter::complete_warp_operations() {
  for (size_t i = 0; i < warp_->fragments.size(); ++i) {
    const Fragment& first = warp_->fragments[i];
    if (first.state != Fragment::State::AtWarpOperation) continue;
    together_.clear();
    uint32_t there = 0;
    for (Fragment& other : warp_->fragments) {
      if (other.state != Fragment::State::AtWarpOperation || other.members != first.members ||
          !is_same_operation(other.instruction(), first.instruction()))
        continue;
      together_.push_back(&other);
      there |= other.mask;
    }
    if (there == (first.members & warp_->live)) perform(together_);
  }
  refuse_disagreeing_masks();
}

// Two operations that each wait for a lane that stands at the other one: neither can ever happen.
void Interpreter::refuse_disagreeing_masks() const {
  for (const Fragment& a : warp_->fragments) {
    for (const Fragment& b : warp_->fragments) {
      if (a.state != Fragment::State::AtWarpOperation || b.state != Fragment::State::AtWarpOperation)
        continue;
      if (a.members == b.members && is_same_operation(a.instruction(), b.instruction())) continue;
      if ((a.members & b.mask) == 0 || (b.members & a.mask) == 0) continue;
      throw Fault(kLaunchFailure, lowest_lane(a.members & b.mask),
                  "lanes that name each other wait at different operations: lanes " + hexadecimal(a.mask) +
                      " with mask " + hexadecimal(a.members) + " at " + a.function->unit + ":" +
                      std::to_string(a.instruction().line) + ", lanes " + hexadecimal(b.mask) +
                      " with mask " + hexadecimal(b.members) + " at " + b.function->unit + ":" +
                      std::to_string(b.instruction().line));
    }
  }
}

void Interpreter::perform(std::span<Fragment*> fragments) {
  WarpOperation op{fragments[0]->instruction(), 0, fragments[0]->members};
  for (const Fragment* fragment : fragments) {
    op.lanes |= fragment->mask;
    operands_.enter(*warp_, *fragment);
    const Instruction& instruction = fragment->instruction();
    for (size_t i = 0; i < value_count(instruction); ++i) {
      ConstColumn from = operands_.source(instruction.sources[i], i);
      for_lanes(fragment->mask, [&](uint32_t lane) { op.in[i][lane] = from[lane]; });
    }
  }
  compute(op);
  for (Fragment* fragment : fragments) {
    operands_.enter(*warp_, *fragment);
    const Instruction& instruction = fragment->instruction();
    for (size_t i = 0; i < instruction.destination_count && i < 2; ++i) {
      Column to = operands_.destination(instruction.destinations[i]);
      const auto& from = i == 0 ? op.out : op.flag;
      for_lanes(fragment->mask, [&](uint32_t lane) { to[lane] = from[lane]; });
    }
    ++fragment->pc;
    fragment->state = Fragment::State::Ready;
  }
  if (here_.mask != 0) operands_.enter(*warp_, here_);
  if (!context_.ordered || op.instruction.kind != Kind::WarpBarrier) return;
  agents_.clear();
  for_lanes(op.lanes, [&](uint32_t lane) { agents_.push_back(warp_->agents[lane]); });
  context_.order.barrier(agents_);
}

void Interpreter::active_mask(const Instruction& instruction, uint32_t mask) {
  Column to = operands_.destination(instruction.destinations[0]);
  for_lanes(mask, [&](uint32_t lane) { to[lane] = mask; });
}

}  // namespace klap::emulator::execution
