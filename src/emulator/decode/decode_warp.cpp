// This file decodes barriers and the operations of a warp's lanes together.
#include <fmt/format.h>

#include "emulator/decode/decode_function.h"

namespace klap::emulator {

namespace {

using Modifier = std::string_view;
using Op = WarpDetail::Op;
using Reduce = BarrierDetail::Reduce;

constexpr OperandForm kWord{.bits = 32};

}  // namespace

// ---- barriers ----

// [d,] number [, count] [, predicate]
void FunctionDecoder::read_barrier() {
  static constexpr std::pair<Modifier, Reduce> kReduce[] = {
      {".and", Reduce::And}, {".or", Reduce::Or}, {".popc", Reduce::Popc}};
  Modifiers modifiers(m_, statement().modifiers);
  if (modifiers.take(".warp")) {
    if (!modifiers.take(".sync")) unsupported("no .sync");
    finish_modifiers(modifiers);
    expect_operands(1);
    Instruction i = begin(Kind::WarpBarrier);
    add_source(i, source(operand(0), kWord));
    return emit(i);
  }
  Instruction i = begin(Kind::Barrier);
  modifiers.take(".cta");
  i.barrier.aligned = modifiers.take(".aligned") || m_.is(statement().head, "bar");
  const bool reduces = modifiers.take(".red");
  i.barrier.arrive_only = modifiers.take(".arrive");
  if (!reduces && !i.barrier.arrive_only && !modifiers.take(".sync"))
    unsupported("no .sync, .arrive or .red");
  const size_t first = reduces ? 1 : 0, last = statement().operands.size() - (reduces ? 1 : 0);
  if (reduces) {
    const auto op = modifiers.take_one(kReduce);
    if (!op) unsupported("no operation");
    i.barrier.reduce = *op;
    modifiers.take(*op == Reduce::Popc ? ".u32" : ".pred");
  }
  finish_modifiers(modifiers);
  expect_operands(reduces ? 3 : i.barrier.arrive_only ? 2 : 1, reduces ? 4 : 2);
  if (reduces) add_destination(i, destination(operand(0)));
  i.barrier.has_count = last - first == 2;
  for (size_t n = first; n < last; ++n) add_source(i, source(operand(n), kWord));
  if (reduces) add_source(i, predicate(operand(last), i.barrier.negated));
  emit(i);
}

// ---- shuffles and votes ----

// d|p, a, b, c [, mask]
void FunctionDecoder::read_shuffle() {
  static constexpr std::pair<Modifier, Op> kModes[] = {{".up", Op::ShuffleUp},
                                                       {".down", Op::ShuffleDown},
                                                       {".bfly", Op::ShuffleBfly},
                                                       {".idx", Op::ShuffleIdx}};
  Instruction i = begin(Kind::Shuffle);
  Modifiers modifiers(m_, statement().modifiers);
  i.warp.is_sync = modifiers.take(".sync");
  const auto mode = modifiers.take_one(kModes);
  if (!mode || !modifiers.take(".b32")) unsupported("no mode or type");
  finish_modifiers(modifiers);
  i.warp.op = *mode;
  expect_operands(i.warp.is_sync ? 5 : 4);
  const std::vector<TokenRange> destinations = destinations_of(operand(0));
  if (destinations.size() > 2) unsupported("three destinations");
  for (const TokenRange d : destinations) add_destination(i, destination(d));
  while (i.destination_count < 2) add_destination(i, {});
  for (size_t n = 1; n < statement().operands.size(); ++n) add_source(i, source(operand(n), kWord));
  emit(i);
}

void FunctionDecoder::read_vote() {
  static constexpr std::pair<Modifier, Op> kModes[] = {
      {".all", Op::VoteAll}, {".any", Op::VoteAny}, {".uni", Op::VoteUni}, {".ballot", Op::VoteBallot}};
  Instruction i = begin(Kind::Vote);
  Modifiers modifiers(m_, statement().modifiers);
  i.warp.is_sync = modifiers.take(".sync");
  const auto mode = modifiers.take_one(kModes);
  if (!mode || !modifiers.take(*mode == Op::VoteBallot ? ".b32" : ".pred")) unsupported("no mode or type");
  finish_modifiers(modifiers);
  i.warp.op = *mode;
  expect_operands(i.warp.is_sync ? 3 : 2);
  add_destination(i, destination(operand(0)));
  add_source(i, predicate(operand(1), i.warp.negated));
  if (i.warp.is_sync) add_source(i, source(operand(2), kWord));
  emit(i);
}

void FunctionDecoder::read_match() {
  Instruction i = begin(Kind::Match);
  Modifiers modifiers(m_, statement().modifiers);
  const bool all = modifiers.take(".all");
  if (!all && !modifiers.take(".any")) unsupported("no mode");
  if (!modifiers.take(".sync")) unsupported("no .sync");
  i.warp.op = all ? Op::MatchAll : Op::MatchAny;
  i.warp.bits = modifiers.take(".b64") ? 64 : 32;
  if (i.warp.bits == 32 && !modifiers.take(".b32")) unsupported("no type");
  finish_modifiers(modifiers);
  expect_operands(3);
  const std::vector<TokenRange> destinations = destinations_of(operand(0));
  if (destinations.size() > (all ? 2 : 1)) unsupported("more destinations");
  for (const TokenRange d : destinations) add_destination(i, destination(d));
  while (i.destination_count < 2) add_destination(i, {});
  add_source(i, source(operand(1), {.bits = i.warp.bits}));
  add_source(i, source(operand(2), kWord));
  emit(i);
}

void FunctionDecoder::read_redux() {
  static constexpr std::pair<Modifier, Op> kOps[] = {{".add", Op::Add}, {".min", Op::Min}, {".max", Op::Max},
                                                     {".and", Op::And}, {".or", Op::Or},   {".xor", Op::Xor}};
  static constexpr std::pair<Modifier, NumberType> kTypes[] = {
      {".u32", NumberType::Unsigned}, {".s32", NumberType::Signed}, {".b32", NumberType::Bits}};
  Instruction i = begin(Kind::Redux);
  Modifiers modifiers(m_, statement().modifiers);
  if (!modifiers.take(".sync")) unsupported("no .sync");
  const auto op = modifiers.take_one(kOps);
  const auto type = modifiers.take_one(kTypes);
  if (!op || !type) unsupported("operation or type");
  finish_modifiers(modifiers);
  i.warp.op = *op;
  i.warp.type = *type;
  expect_operands(3);
  add_destination(i, destination(operand(0)));
  add_source(i, source(operand(1), kWord));
  add_source(i, source(operand(2), kWord));
  emit(i);
}

void FunctionDecoder::read_active_mask() {
  Instruction i = begin(Kind::ActiveMask);
  expect_operands(1);
  add_destination(i, destination(operand(0)));
  emit(i);
}

void FunctionDecoder::read_elect() {
  Instruction i = begin(Kind::Elect);
  expect_operands(2);
  const std::vector<TokenRange> destinations = destinations_of(operand(0));
  if (destinations.size() != 2) unsupported("not two destinations");
  for (const TokenRange d : destinations) add_destination(i, destination(d));
  add_source(i, source(operand(1), kWord));
  emit(i);
}

}  // namespace klap::emulator
