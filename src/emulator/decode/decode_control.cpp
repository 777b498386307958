// This file decodes branches, calls, ends, and all remaining instructions.
#include <fmt/format.h>

#include "emulator/decode/decode_function.h"

namespace klap::emulator {

using ptx::TokenKind;

// ---- branches ----

void FunctionDecoder::read_branch() {
  Instruction i = begin(Kind::Branch);
  expect_operands(1);
  i.target = scopes_.label(scope(), operand(0).first);  // of the flow, until finish()
  emit(i);
}

// The labels of a list are those that are visible where the list stands.
void FunctionDecoder::read_indexed_branch() {
  Instruction i = begin(Kind::IndexedBranch);
  expect_operands(2);
  const auto [list, list_scope] = scopes_.table(scope(), m_.text(operand(1).first));
  if (list == nullptr || !m_.is(list->head, ".branchtargets")) unsupported("no list of targets");
  std::vector<uint32_t> targets;
  for (uint32_t t = list->head + 1; t < list->tokens.last; ++t) {
    if (m_.tokens[t].kind == TokenKind::Identifier) targets.push_back(scopes_.label(list_scope, t));
  }
  add_source(i, source(operand(0), {.bits = 32}));
  i.detail = static_cast<uint32_t>(out_.tables.size());
  out_.tables.push_back(std::move(targets));
  emit(i);
}

void FunctionDecoder::read_return() { emit(begin(out_.is_kernel ? Kind::Exit : Kind::Return)); }

void FunctionDecoder::read_plain() {
  const std::string_view opcode = m_.text(statement().head);
  emit(begin(opcode == "exit" ? Kind::Exit : opcode == "trap" ? Kind::Trap : Kind::Nothing));
}

// ---- calls ----

// The sizes of a callee's parameters or results by its declaration. If it is called by its address, they come
// from the prototype that the call names.
std::vector<uint32_t> FunctionDecoder::formal_sizes(TokenRange callee, bool is_direct, bool results) const {
  std::vector<uint32_t> out;
  if (is_direct) {
    const ptx::Function* declared = m_.find_function(m_.text(callee.first));
    if (declared == nullptr) unsupported_at(callee.first, "function that is not declared");
    for (const ptx::Parameter& p : results ? declared->results : declared->parameters) out.push_back(p.bytes);
    return out;
  }
  const ptx::Statement* prototype = scopes_.table(scope(), m_.text(callee.first)).first;
  if (prototype == nullptr || !m_.is(prototype->head, ".callprototype")) return out;
  // `.callprototype (results) _ (parameters)`: the lists before and after the name.
  bool is_before_name = true;
  for (uint32_t t = prototype->head + 1; t < prototype->tokens.last; ++t) {
    if (m_.is(t, "_")) is_before_name = false;
    if (!m_.is(t, "(")) continue;
    uint32_t end = t;
    while (!m_.is(end, ")")) ++end;
    for (const TokenRange p : elements({t, end + 1})) {
      uint32_t bytes = 0;
      for (uint32_t at = p.first; at < p.last; ++at) {
        if (m_.tokens[at].kind == TokenKind::Dotted && bytes == 0) bytes = ptx::type_bytes(m_.text(at));
        if (m_.is(at, "[")) bytes *= static_cast<uint32_t>(ptx::integer_value(m_.text(at + 1)).value_or(0));
      }
      if (is_before_name == results) out.push_back(bytes);
    }
    t = end;
  }
  return out;
}

CallDetail::Place FunctionDecoder::actual(TokenRange range, uint32_t formal_bytes) {
  if (const auto use = register_use(range)) {
    const uint32_t bytes = use->bits / 8 * use->lanes;
    return {{Operand::From::Register, use->column}, bytes == 0 ? formal_bytes : bytes};
  }
  if (range.size() == 1) {
    const LocalName* local = scopes_.find(scope(), m_.text(range.first));
    if (local != nullptr && local->kind == LocalName::Kind::Frame) {
      return {{Operand::From::LocalVariable, local->offset}, local->bytes};
    }
    if (m_.is(range.first, "_")) return {{}, formal_bytes};
  }
  if (formal_bytes == 0) unsupported_at(range.first, "argument of unknown size");
  const auto bits = static_cast<uint8_t>(8 * std::min(formal_bytes, 8u));
  return {source(range, {.bits = bits}), formal_bytes};
}

// call [(results),] callee [, (parameters)] [, prototype or list of targets];
void FunctionDecoder::read_call() {
  expect_operands(1, 4);
  const auto is_list = [&](size_t n) {
    return n < statement().operands.size() && m_.is(operand(n).first, "(");
  };
  const size_t callee = is_list(0) ? 1 : 0, after = callee + (is_list(callee + 1) ? 2 : 1);
  if (callee >= statement().operands.size()) unsupported("no function");
  const bool is_direct = !register_use(operand(callee));
  if (is_direct ? after != statement().operands.size() : after + 1 != statement().operands.size()) {
    unsupported("operands");
  }
  Instruction i = begin(is_direct ? Kind::Call : Kind::IndirectCall);
  CallDetail call;
  if (is_direct) {
    const uint32_t token = operand(callee).first;
    const Symbol symbol = linker_.find(m_, m_.text(token), token);
    if (symbol.kind != Symbol::Kind::Function) unsupported_at(token, "call of what is no function");
    call.function = symbol.index;
  } else {
    add_source(i, source(operand(callee), {.bits = 64}));
  }
  const TokenRange declares = is_direct ? operand(callee) : operand(after);
  const auto fill = [&](TokenRange list, bool results, std::vector<CallDetail::Place>& places) {
    const std::vector<uint32_t> sizes = formal_sizes(declares, is_direct, results);
    for (const TokenRange range : elements(list)) {
      places.push_back(actual(range, places.size() < sizes.size() ? sizes[places.size()] : 0));
    }
    if (is_direct && places.size() != sizes.size()) unsupported("arguments of another number than declared");
  };
  if (is_list(0)) fill(operand(0), true, call.results);
  if (is_list(callee + 1)) fill(operand(callee + 1), false, call.parameters);
  i.detail = static_cast<uint32_t>(out_.calls.size());
  out_.calls.push_back(std::move(call));
  emit(i);
}

// ---- the rest ----

void FunctionDecoder::read_nanosleep() {
  Instruction i = begin(Kind::NanoSleep);
  expect_operands(1);
  add_source(i, source(operand(0), {.bits = 32}));
  emit(i);
}

void FunctionDecoder::read_dependency() {
  Modifiers modifiers(m_, statement().modifiers);
  const bool waits = modifiers.take(".wait");
  if (!waits && !modifiers.take(".launch_dependents")) unsupported("action");
  finish_modifiers(modifiers);
  emit(begin(waits ? Kind::DependencyWait : Kind::DependencyLaunch));
}

void FunctionDecoder::read_stack() {
  const std::string_view opcode = m_.text(statement().head);
  constexpr uint32_t kDefaultAlign = 8;
  if (opcode == "stackrestore") {
    Instruction i = begin(Kind::StackRestore);
    expect_operands(1);
    add_source(i, source(operand(0), {.bits = 64}));
    return emit(i);
  }
  Instruction i = begin(opcode == "alloca" ? Kind::Alloca : Kind::StackSave);
  const bool allocates = i.kind == Kind::Alloca;
  expect_operands(allocates ? 2 : 1, allocates ? 3 : 1);
  add_destination(i, destination(operand(0)));
  if (allocates) {
    add_source(i, source(operand(1), {.bits = 64}));
    const bool aligned = statement().operands.size() == 3;
    add_source(i, aligned ? source(operand(2), {.bits = 32}) : constant(kDefaultAlign));
  }
  emit(i);
}

// tex.1d.v4.s32.f32 {d0, d1, d2, d3}, [texture, {x}];
void FunctionDecoder::read_texture() {
  using Modifier = std::string_view;
  static constexpr std::pair<Modifier, uint8_t> kShapes[] = {{".1d", 1}, {".2d", 2}, {".3d", 3}};
  static constexpr std::pair<Modifier, NumberType> kResults[] = {
      {".f32", NumberType::Float}, {".s32", NumberType::Signed}, {".u32", NumberType::Unsigned}};
  Instruction i = begin(Kind::Texture);
  Modifiers modifiers(m_, statement().modifiers);
  const auto shape = modifiers.take_one(kShapes);
  const size_t count = modifiers.all().size();
  // The last two modifiers are the results' type and the coordinates', which may be the same.
  if (!shape || count != 4 || !modifiers.take(".v4")) unsupported("shape");
  const std::string_view result = modifiers.all()[2], coordinate = modifiers.all()[3];
  for (const auto& [name, type] : kResults) {
    if (result == name) i.texture.result = type;
  }
  const bool known = i.texture.result != NumberType::Bits && (coordinate == ".s32" || coordinate == ".f32");
  if (!known) unsupported("types");
  i.texture.dimensions = *shape;
  i.texture.float_coordinates = coordinate == ".f32";
  expect_operands(2);
  uint8_t bits = 0;
  for (const Operand& d : vector_destination(operand(0), bits)) add_destination(i, d);
  if (i.destination_count != 4) unsupported("not four destinations");
  const std::vector<TokenRange> place = elements(operand(1));
  if (place.size() != 2) unsupported("texture and sampler apart");
  if (!register_use(place[0])) unsupported("texture that is not in a register");
  add_source(i, source(place[0], {.bits = 64}));
  const std::vector<Operand> coordinates = vector_source(place[1], {32, i.texture.float_coordinates});
  // Two- and three-dimensional coordinates come in twos and fours.
  if (coordinates.size() < *shape || coordinates.size() > 4) unsupported("coordinates");
  for (size_t n = 0; n < *shape; ++n) add_source(i, coordinates[n]);
  emit(i);
}

}  // namespace klap::emulator
