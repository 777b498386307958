// Arithmetic: which operation it is, find_alu knows; here its operands are fetched.
#include <fmt/format.h>

#include <algorithm>

#include "emulator/decode/decode_function.h"

namespace klap::emulator {

namespace {

// The member of `op` that run() is called with.
void use(const AluOp& op, Instruction& i) {
  i.alu = op.run;
  i.setting = op.setting;
}

}  // namespace

void FunctionDecoder::read_alu() {
  Instruction i = begin(Kind::Alu);
  expect_operands(1, 8);
  const Modifiers modifiers(m_, statement().modifiers);
  const std::vector<TokenRange> destinations = destinations_of(operand(0));
  std::vector<uint8_t> bits;
  for (const TokenRange d : destinations) bits.push_back(register_bits(d));
  for (size_t n = 1; n < statement().operands.size(); ++n) bits.push_back(register_bits(operand(n)));
  const auto op = find_alu(m_.text(statement().head), modifiers.all(), bits);
  if (!op) unsupported("no such instruction");
  const size_t sources = statement().operands.size() - 1;
  const bool fits =
      sources == op->source_count || (op->optional_last_source && sources + 1 == op->source_count);
  if (!fits || destinations.size() > op->destination_count) {
    unsupported(fmt::format("{} operands", statement().operands.size()));
  }
  use(*op, i);
  for (const TokenRange d : destinations) add_destination(i, destination(d));
  while (i.destination_count < op->destination_count) add_destination(i, {});
  for (size_t n = 0; n < sources; ++n) {
    bool negated = false;
    const bool is_predicate = op->sources[n].bits == 1;
    add_source(i, is_predicate ? predicate(operand(n + 1), negated) : source(operand(n + 1), op->sources[n]));
    if (negated) i.setting |= kNegateSource << n;
  }
  emit(i);
}

// `mov d, {a, b}` and `mov {d, e}, a` pack and unpack; any other is arithmetic.
void FunctionDecoder::read_move() {
  expect_operands(2);
  const bool packs = m_.is(operand(1).first, "{"), unpacks = m_.is(operand(0).first, "{");
  const auto from = register_use(operand(1));
  if (from && from->lanes > 1) return read_vector_move();
  if (!packs && !unpacks) return read_alu();
  Instruction i = begin(Kind::Alu);
  const Modifiers modifiers(m_, statement().modifiers);
  const auto count = static_cast<uint32_t>(elements(operand(packs ? 1 : 0)).size());
  if (modifiers.all().size() != 1 || (packs && unpacks) || count > 4) unsupported("no such instruction");
  const std::string_view type = modifiers.all().front();
  const auto op = packs ? find_pack(type, count) : find_unpack(type, count);
  if (!op) unsupported("no such instruction");
  use(*op, i);
  uint8_t bits = 0;
  for (const Operand& d : vector_destination(operand(0), bits)) add_destination(i, d);
  for (const Operand& s : vector_source(operand(1), op->sources[0])) add_source(i, s);
  emit(i);
}

// `mov.v4.f32 v, w` with vector registers, lane by lane.
void FunctionDecoder::read_vector_move() {
  const Modifiers modifiers(m_, statement().modifiers);
  uint8_t bits = 0;
  const std::vector<Operand> to = vector_destination(operand(0), bits);
  const std::vector<Operand> from = vector_source(operand(1), {.bits = bits});
  if (modifiers.all().size() != 2 || to.size() != from.size()) unsupported("no such instruction");
  const uint8_t register_widths[] = {bits, bits};
  const auto op = find_alu("mov", std::span(modifiers.all()).subspan(1), register_widths);
  if (!op) unsupported("no such instruction");
  for (size_t lane = 0; lane < to.size(); ++lane) {
    Instruction i = begin(Kind::Alu);
    use(*op, i);
    add_destination(i, to[lane]);
    add_source(i, from[lane]);
    emit(i);
  }
}

// The emulator ignores cache policies, but the register that names one has a value.
void FunctionDecoder::read_create_policy() {
  expect_operands(1, 4);
  Instruction i = begin(Kind::Alu);
  const std::string_view modifiers[] = {".b64"};
  const uint8_t bits[] = {64, 0};
  const auto op = find_alu("mov", modifiers, bits);
  if (!op) unsupported("no mov.b64");
  use(*op, i);
  add_destination(i, destination(operand(0)));
  add_source(i, constant(0));
  emit(i);
}

}  // namespace klap::emulator
