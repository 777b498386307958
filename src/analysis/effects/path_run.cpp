#include "analysis/effects/path_run.h"

#include <fmt/format.h>

#include <utility>

#include "analysis/effects/effects.h"

namespace klap::analysis {

using ptx::Statement;

bool PathRun::writes_memory(const Statement& s) const {
  if (m_.is(s.head, "st")) return !m_.has_modifier(s, ".local") && !m_.has_modifier(s, ".param");
  return m_.is(s.head, "atom") || m_.is(s.head, "red");
}

PathRun::Value PathRun::value_of(std::string_view operand, PathState& state) {
  if (!data_.names().is_register(operand)) {
    if (operand.starts_with('%') && register_effect(operand) != EffectKind::PositionRegister)
      return values_.fresh();
    return values_.named(std::string(operand));
  }
  const auto known = state.registers.find(operand);
  if (known != state.registers.end()) return known->second;
  // A register that the loop does not write has one value for the whole loop, else the value at the head.
  const Value value = values_.named(fmt::format("{} at the head", operand));
  state.start.emplace(operand, value);
  return state.registers[operand] = value;
}
PathRun::Value PathRun::value_of(ptx::TokenRange operand, PathState& state) {
  if (operand.size() == 1) return value_of(m_.text(operand), state);
  const std::string text = m_.compact(operand);
  if (ptx::integer_value(text.starts_with('-') ? text.substr(1) : text)) return values_.named(text);
  return values_.fresh();
}

std::string PathRun::cell(const Statement& s, PathState& state) {
  const auto address = parse_address(m_, s.operands[1]);
  if (!address) return fmt::format("? {}", values_.fresh());
  // A signed load may extend the value to a wider register, so it counts as another cell.
  const std::string_view type = m_.text(s.modifiers.last - 1);
  const bool extends = m_.is(s.head, "ld") && type.starts_with(".s");
  std::string_view space;
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    if (m_.is(t, ".global") || m_.text(t).starts_with(".shared") || m_.is(t, ".const")) space = m_.text(t);
  }
  return fmt::format("{} + {}: {}{}{}", value_of(address->base, state), address->offset,
                     ptx::type_bytes(type), extends ? "s" : "", space);
}
PathRun::Value PathRun::content(const std::string& cell, PathState& state) {
  const auto [entry, is_new] = state.memory.emplace(cell, 0);
  if (is_new) entry->second = values_.fresh();
  return entry->second;
}

void PathRun::set(const Statement& s, Value value, PathState& state) {
  state.registers[m_.text(s.operands[0])] = value;
}
void PathRun::set_unknown(const Statement& s, PathState& state) {
  for (std::string_view r : registers_of(m_, s, data_.names()).written) state.registers[r] = values_.fresh();
}

void PathRun::execute(const Statement& s, PathState& state) {
  const std::string_view opcode = m_.text(s.head);
  if (opcode == "st" || writes_memory(s)) state.memory.clear();
  const bool one_result = !s.operands.empty() && s.operands[0].size() == 1 &&
                          registers_of(m_, s, data_.names()).written.size() == 1;
  if (s.predicated || !one_result) {
    set_unknown(s, state);
  } else if (opcode == "mov" && s.operands.size() == 2) {
    set(s, value_of(s.operands[1], state), state);
  } else if (opcode == "ld" && s.operands.size() == 2 && !m_.has_modifier(s, ".param")) {
    set(s, content(cell(s, state), state), state);
  } else if (opcode == "setp" && s.operands.size() == 3 && s.modifiers.size() == 2) {
    Condition c{Condition::Compare,
                false,
                std::string(m_.text(s.modifiers.first)).substr(1),
                std::string(m_.text(s.modifiers.first + 1)),
                0,
                0};
    c.a = value_of(s.operands[1], state);
    c.b = value_of(s.operands[2], state);
    set(s, values_.condition(std::move(c)), state);
  } else if (m_.has_modifier(s, ".pred") && (opcode == "and" || opcode == "or" || opcode == "not")) {
    combine(s, opcode, state);
  } else {
    compute(s, opcode, state);
  }
}

void PathRun::combine(const Statement& s, std::string_view opcode, PathState& state) {
  Condition c;
  c.kind = opcode == "or" ? Condition::Or : Condition::And;
  c.negated = opcode == "not";
  c.a = value_of(s.operands[1], state);
  c.b = opcode == "not" ? c.a : value_of(s.operands[2], state);
  set(s, values_.condition(std::move(c)), state);
}

// Operations on operands alone get a number by their text. Minima and maxima also get an order.
void PathRun::compute(const Statement& s, std::string_view opcode, PathState& state) {
  const bool pure = instruction_effects(m_, s).empty() && opcode != "ld" && opcode != "st" &&
                    opcode != "addc" && opcode != "subc" && opcode != "madc" && !m_.has_modifier(s, ".cc");
  if (!pure) {
    set_unknown(s, state);
    return;
  }
  std::string text = m_.full_opcode(s);
  std::vector<Value> operands;
  for (size_t n = 1; n < s.operands.size(); ++n) {
    operands.push_back(value_of(s.operands[n], state));
    text += fmt::format(" {}", operands.back());
  }
  const Value result = values_.named(text);
  set(s, result, state);
  if (operands.size() != 2 || !orders(s.modifiers.empty() ? "" : m_.text(s.modifiers.last - 1))) return;
  if (opcode == "max") state.order.greater_of(result, operands[0], operands[1]);
  if (opcode == "min") state.order.lesser_of(result, operands[0], operands[1]);
}

bool PathRun::orders(std::string_view type) const {
  return type.size() > 1 && type[1] == reading_.letter && ptx::type_bytes(type) == reading_.bytes;
}

void PathRun::assume(Value predicate, bool holds, PathState& state) {
  const Condition* c = values_.condition_of(predicate);
  if (c == nullptr) return;
  const bool is = holds != c->negated;
  if (c->kind == Condition::Compare) {
    assume(*c, is, state.order);
  } else if ((c->kind == Condition::And && is) || (c->kind == Condition::Or && !is) || c->a == c->b) {
    assume(c->a, is, state);
    assume(c->b, is, state);
  }
}

void PathRun::assume(const Condition& c, bool holds, ValueOrder& order) const {
  if (c.type.starts_with(".f") || c.type.starts_with(".bf")) return;
  std::string r = c.relation;
  static const std::map<std::string, std::string> kOpposite = {
      {"eq", "ne"}, {"ne", "eq"}, {"lt", "ge"}, {"ge", "lt"}, {"le", "gt"},
      {"gt", "le"}, {"lo", "hs"}, {"hs", "lo"}, {"ls", "hi"}, {"hi", "ls"}};
  const auto opposite = kOpposite.find(r);
  if (opposite == kOpposite.end()) return;
  if (!holds) r = opposite->second;
  if (r == "eq") order.equal(c.a, c.b);
  if (r == "ne") order.differ(c.a, c.b);
  if (!orders(c.type)) return;
  if (r == "lt" || r == "lo") order.less(c.a, c.b);
  if (r == "gt" || r == "hi") order.less(c.b, c.a);
  if (r == "le" || r == "ls") order.at_most(c.a, c.b);
  if (r == "ge" || r == "hs") order.at_most(c.b, c.a);
}

}  // namespace klap::analysis
