#include "analysis/values/symbolic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/graph/module_constants.h"
#include "analysis/values/instruction_types.h"
#include "analysis/values/substitution.h"

namespace klap::analysis {

using ptx::Module;
using ptx::Statement;

namespace {

constexpr uint32_t kDeepest = 1000;  // definitions followed in a row
constexpr size_t kMostChoices = 4;
constexpr uint32_t kNowhere = ControlFlow::npos;

bool is_symbol_leaf(const ExprNode& n) { return n.kind == ExprKind::Opaque || n.kind == ExprKind::Merged; }

bool is_parameter_space(std::string_view space) { return space == "param" || space == "param::entry"; }

// Special registers that keep their value for the life of a thread.
bool is_steady(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kVectors = {"%tid.", "%ntid.", "%ctaid.", "%nctaid."};
  return name == "%laneid" || std::any_of(kVectors.begin(), kVectors.end(),
                                          [&](std::string_view vector) { return name.starts_with(vector); });
}

// The address in `space` that a generic address comes from, with what was added to it since.
Expr from_generic_sum(const Expr& sum, const std::string& space) {
  for (const Term& term : terms_of(sum)) {
    if (term.coefficient != 1 || term.factors.size() != 1) continue;
    const Expr& factor = term.factors[0];
    if (factor->kind == ExprKind::ToGeneric && factor->name == space) {
      return sum - factor + factor->operands[0];
    }
  }
  return {};
}

}  // namespace

std::string to_string(const Value& value) {
  if (!value.known()) return "unknown";
  if (value.choices.size() == 1) return to_string(value.choices[0]);
  std::vector<std::string> texts;
  for (const Expr& choice : value.choices) texts.push_back(to_string(choice));
  return fmt::format("one of {{{}}}", fmt::join(texts, ", "));
}

Symbolic::Symbolic(const ControlFlow& flow, const VirtualRegisters& registers,
                   const ReachingDefinitions& reaching)
    : m_(flow.module()),
      function_(flow.function()),
      flow_(flow),
      registers_(registers),
      reaching_(reaching),
      names_(flow.module(), flow.function().body),
      writers_(registers.all().size()) {
  for (uint32_t reg = 0; reg < registers.all().size(); ++reg) by_name_[registers[reg].name].push_back(reg);
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    for (const Access& access : registers.accesses(i)) {
      if (access.written) writers_[access.reg].push_back(i);
    }
  }
  parameters_fixed_ = parameters_stay();
}

// ---- registers ----

uint32_t Symbolic::bits_of(uint32_t reg) const {
  const VirtualRegister& r = registers_[reg];
  if (r.lanes != 1) return 0;
  if (r.is_predicate()) return 1;
  const auto parsed = parse_type(r.type);
  return parsed ? parsed->bits : 0;
}

uint32_t Symbolic::find(uint32_t index, std::string_view name) const {
  if (index != kNowhere) return registers_.find(index, name);
  const auto found = by_name_.find(name);
  const bool unique = found != by_name_.end() && found->second.size() == 1;
  return unique ? found->second[0] : VirtualRegisters::kNone;
}

bool Symbolic::always_writes(uint32_t index, uint32_t reg) const {
  const auto accesses = registers_.accesses(index);
  return std::any_of(accesses.begin(), accesses.end(),
                     [reg](const Access& access) { return access.reg == reg && access.kills; });
}

ReachingDefinitions::Origins Symbolic::origins(uint32_t index, uint32_t reg) const {
  if (index != kNowhere) return reaching_.origins(index, reg);
  const auto& writers = writers_[reg];
  // Where the only definition is certain, the register is taken to be read behind it.
  const bool certain = writers.size() == 1 ? always_writes(writers[0], reg)
                                           : std::any_of(writers.begin(), writers.end(),
                                                         [&](uint32_t w) { return always_writes(w, reg); });
  return {writers, !certain || registers_[reg].is_parameter};
}

Expr Symbolic::read(uint32_t index, uint32_t reg) const {
  const uint32_t bits = bits_of(reg);
  if (bits == 0) return {};
  if (index != kNowhere) {
    if (const auto only = reaching_.only_definition(index, reg)) return written(*only, reg);
  }
  // Listing the definitions that reach a read can be expensive. With several definitions the register stands
  // for itself.
  if (writers_[reg].size() == 1 && always_writes(writers_[reg][0], reg) && !registers_[reg].is_parameter) {
    const auto from = origins(index, reg);
    const Expr value = from.definitions.empty() ? Expr() : written(from.definitions[0], reg);
    if (index == kNowhere && !from.entry) return value;
    // A way without the definition gives the register no value at all. So a value that does not change holds
    // on all ways.
    if (value.known() && !any_leaf(value, is_symbol_leaf)) return value;
  }
  return Expr::merged(index, std::string(registers_[reg].name), bits);
}

Expr Symbolic::read(uint32_t index, std::string_view operand, uint32_t bits) const {
  if (operand.empty() || bits == 0) return {};
  if (const uint32_t reg = find(index, operand); reg != VirtualRegisters::kNone) {
    const Expr value = read(index, reg);
    return value.known() && value->bits >= bits ? convert(value, bits, Sign::Unsigned) : Expr();
  }
  if (operand == "WARP_SZ") return Expr::constant(32, bits);
  if (is_steady(operand)) return convert(Expr::special(std::string(operand.substr(1))), bits, Sign::Unsigned);
  const bool negative = operand.starts_with('-');
  if (const auto value = ptx::integer_value(negative ? operand.substr(1) : operand)) {
    return Expr::constant(negative ? ~*value + 1 : *value, bits);
  }
  const size_t plus = operand.find('+');
  const Expr base = symbol_address(operand.substr(0, plus), bits);
  if (plus == std::string_view::npos) return base;
  const auto offset = ptx::integer_value(operand.substr(plus + 1));
  return offset ? base + Expr::constant(*offset, bits) : Expr();
}

bool Symbolic::is_own_parameter(std::string_view name) const {
  if (names_.contains(name)) return false;  // a parameter of a call
  return std::any_of(function_.parameters.begin(), function_.parameters.end(),
                     [&](const ptx::Parameter& p) { return p.name == name; });
}

Expr Symbolic::symbol_address(std::string_view name, uint32_t bits) const {
  for (const ptx::Parameter& parameter : function_.parameters) {
    if (parameter.name != name || !is_own_parameter(name)) continue;
    if (function_.kind != ptx::FunctionKind::Entry) return {};
    return Expr::parameter_block(bits) + Expr::constant(parameter.offset, bits);
  }
  const bool visible = names_.variables().contains(name) || m_.find_variable(name) != nullptr ||
                       m_.find_function(name) != nullptr;
  return visible ? Expr::address(std::string(name), bits) : Expr();
}

// A kernel's parameters are constant. A called function's parameters live in memory that can change by its
// address, once that is taken.
bool Symbolic::parameters_stay() const {
  if (function_.kind == ptx::FunctionKind::Entry) return true;
  for (const FlatInstruction& f : flow_.instructions()) {
    const Statement& s = *f.statement;
    const bool loads = m_.is(s.head, "ld");
    for (uint32_t t = s.tokens.first; t < s.tokens.last && !loads; ++t) {
      if (is_own_parameter(m_.text(t))) return false;
    }
  }
  return true;
}

bool Symbolic::is_evaluated(uint32_t index, uint32_t reg) const {
  const Expr value = written(index, reg);
  return value.known() && !(value->kind == ExprKind::Opaque && value->value == index);
}

bool Symbolic::is_evaluated(uint32_t index) const {
  bool writes = false;
  for (const Access& access : registers_.accesses(index)) {
    if (access.written && !is_evaluated(index, access.reg)) return false;
    writes = writes || access.written;
  }
  return writes;
}

Expr Symbolic::written(uint32_t index, uint32_t reg) const {
  const uint32_t bits = bits_of(reg);
  if (bits == 0) return {};
  const Key key{index, reg};
  if (const auto found = memo_.find(key); found != memo_.end()) return found->second;
  // Definitions that are read only behind themselves form no cycle; where the others would, they are symbols.
  if (!evaluating_.insert(key).second) return {};
  Expr value;
  if (depth_ < kDeepest) {
    ++depth_;
    value = result(index, reg);
    --depth_;
  }
  evaluating_.erase(key);
  if (!value.known() || value->bits != bits) {
    value = Expr::opaque(index, std::string(registers_[reg].name), bits);
  }
  memo_.emplace(key, value);
  return value;
}

// ---- instructions ----

// The value that an instruction writes to one of its result registers, in that register's width. It is
// unknown if the instruction's arithmetic is not known.
Expr Symbolic::result(uint32_t index, uint32_t reg) const {
  const Statement& s = at(index);
  if (s.operands.size() < 2) return {};
  const std::vector<std::string> targets = components(m_, s.operands[0]);
  const auto target = std::find(targets.begin(), targets.end(), registers_[reg].name);
  if (target == targets.end()) return {};
  const auto component = static_cast<size_t>(target - targets.begin());
  const std::string_view opcode = m_.text(s.head);
  const uint32_t bits = bits_of(reg);
  const std::vector<ValueType> types = types_of(m_, s);
  if (opcode == "mov") return move(index, component, targets.size());
  if (opcode == "ld") {
    // A load into a wider register extends.
    return types.empty() ? Expr() : convert(load(index, component), bits, types.back().sign);
  }
  if (targets.size() != 1) return {};
  if (opcode == "cvt") return types.empty() ? Expr() : convert(convert_type(index), bits, types[0].sign);
  if (opcode == "cvta") return convert_address(index);
  return arithmetic(index);
}

// mov, also with a vector on one side: `mov.b64 %rd, {%r1, %r2}` packs, the other way round unpacks.
Expr Symbolic::move(uint32_t index, size_t component, size_t targets) const {
  const Statement& s = at(index);
  const std::vector<ValueType> types = types_of(m_, s);
  if (types.size() != 1 || s.operands.size() != 2 || !only_modified_by(m_, s, {})) return {};
  const std::vector<std::string> sources = components(m_, s.operands[1]);
  const uint32_t bits = types[0].bits;
  if (targets > 1) {
    if (sources.size() != 1) return {};
    const auto part = static_cast<uint32_t>(bits / targets);
    const Expr amount = Expr::constant(part * component, 32);
    return convert(shift_right(read(index, sources[0], bits), amount, Sign::Unsigned), part, Sign::Unsigned);
  }
  if (sources.size() == 1) return read(index, sources[0], bits);
  Expr packed = Expr::constant(0, bits);
  const auto part = static_cast<uint32_t>(bits / sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    const Expr wide = convert(read(index, sources[i], part), bits, Sign::Unsigned);
    packed = packed + shift_left(wide, Expr::constant(i * part, 32));
  }
  return packed;
}

Expr Symbolic::address(uint32_t index, ptx::TokenRange operand) const {
  const auto parsed = parse_address(m_, operand);
  if (!parsed) return {};
  const uint32_t reg = registers_.find(index, parsed->base);
  const uint32_t own_bits = reg == VirtualRegisters::kNone ? 64 : bits_of(reg);
  const uint32_t bits = own_bits == 0 ? 64 : own_bits;
  const Expr offset = Expr::constant(static_cast<uint64_t>(parsed->offset), bits);
  return parsed->base.empty() ? offset : read(index, parsed->base, bits) + offset;
}

std::optional<uint32_t> Symbolic::parameter_offset(uint32_t index) const {
  const Statement& s = at(index);
  if (!m_.is(s.head, "ld") || s.operands.size() != 2) return std::nullopt;
  const auto parsed = parse_address(m_, s.operands[1]);
  if (!parsed) return std::nullopt;
  const std::string space = address_space(m_, s);
  if (is_own_parameter(parsed->base) && space.starts_with("param") && parameters_fixed_) {
    for (const ptx::Parameter& p : function_.parameters) {
      if (p.name != parsed->base) continue;
      const int64_t offset = int64_t{p.offset} + parsed->offset;
      if (offset >= 0 && offset < UINT32_MAX) return static_cast<uint32_t>(offset);
    }
    return std::nullopt;
  }
  if (registers_.find(index, parsed->base) == VirtualRegisters::kNone ||
      function_.kind != ptx::FunctionKind::Entry) {
    return std::nullopt;
  }
  Expr place = address(index, s.operands[1]);
  if (space.empty()) {
    place = from_generic_sum(place, "param");
  } else if (!is_parameter_space(space)) {
    return std::nullopt;
  }
  if (!place.known()) return std::nullopt;
  const auto offset = (place - Expr::parameter_block(place->bits)).as_constant();
  if (!offset || *offset >= function_.parameter_bytes) return std::nullopt;
  return static_cast<uint32_t>(*offset);
}

Expr Symbolic::load(uint32_t index, size_t component) const {
  const Statement& s = at(index);
  const auto offset = parameter_offset(index);
  const std::vector<ValueType> types = types_of(m_, s);
  if (types.size() != 1) return {};
  if (!offset) {
    const auto constant = loaded_constant(m_, s, component);
    return constant ? Expr::constant(*constant, types[0].bits) : Expr();
  }
  const auto begin = static_cast<uint64_t>(*offset) + component * (types[0].bits / 8);
  if (begin + types[0].bits / 8 > function_.parameter_bytes) return {};
  return Expr::parameter(static_cast<uint32_t>(begin), types[0].bits);
}

Expr Symbolic::convert_type(uint32_t index) const {
  const Statement& s = at(index);
  const std::vector<ValueType> types = types_of(m_, s);
  if (types.size() != 2 || !only_modified_by(m_, s, {}) || s.operands.size() != 2) return {};
  if (!types[0].integer || !types[1].integer) return {};
  return convert(read(index, components(m_, s.operands[1])[0], types[1].bits), types[0].bits, types[1].sign);
}

Expr Symbolic::convert_address(uint32_t index) const {
  const Statement& s = at(index);
  const std::vector<ValueType> types = types_of(m_, s);
  std::string space = address_space(m_, s);
  if (types.size() != 1 || space.empty() || s.operands.size() != 2) return {};
  if (is_parameter_space(space)) space = "param";
  const Expr source = read(index, components(m_, s.operands[1])[0], types[0].bits);
  return m_.has_modifier(s, ".to") ? from_generic(source, space) : to_generic(source, space);
}

// mul and mad, in the forms .lo, .hi and .wide.
Expr Symbolic::product(uint32_t index) const {
  const Statement& s = at(index);
  const ValueType type = types_of(m_, s)[0];
  const bool wide = m_.has_modifier(s, ".wide"), high = m_.has_modifier(s, ".hi");
  if (!wide && !high && !m_.has_modifier(s, ".lo")) return {};
  Expr a = read(index, components(m_, s.operands[1])[0], type.bits);
  Expr b = read(index, components(m_, s.operands[2])[0], type.bits);
  if (wide) {
    if (type.bits > 32) return {};
    a = convert(a, 2 * type.bits, type.sign);
    b = convert(b, 2 * type.bits, type.sign);
  }
  const Expr out = high ? multiply_high(a, b, type.sign) : a * b;
  if (m_.is(s.head, "mul")) return out;
  if (s.operands.size() != 4 || !out.known()) return {};
  return out + read(index, components(m_, s.operands[3])[0], out->bits);
}

Expr Symbolic::arithmetic(uint32_t index) const {
  const Statement& s = at(index);
  const std::string_view opcode = m_.text(s.head);
  const std::vector<ValueType> types = types_of(m_, s);
  if (types.size() != 1 || !types[0].integer || !only_modified_by(m_, s, {".lo", ".hi", ".wide", ".cc"})) {
    return {};
  }
  const auto [bits, sign, integer] = types[0];
  const auto operand = [&, width = bits](size_t i, uint32_t own_width = 0) {
    if (i >= s.operands.size()) return Expr();
    return read(index, components(m_, s.operands[i])[0], own_width == 0 ? width : own_width);
  };
  if (s.operands.size() == 2) {
    if (opcode == "not") return bit_xor(operand(1), Expr::constant(~uint64_t{0}, bits));
    if (opcode == "neg") return -operand(1);
    if (opcode == "abs") return maximum(operand(1), -operand(1), Sign::Signed);
    return {};
  }
  if (opcode == "mul" || opcode == "mad") return product(index);
  if (opcode == "selp" && s.operands.size() == 4) return operand(1) == operand(2) ? operand(1) : Expr();
  if (s.operands.size() != 3) return {};
  if (opcode == "add") return operand(1) + operand(2);
  if (opcode == "sub") return operand(1) - operand(2);
  if (opcode == "div") return divide(operand(1), operand(2), sign);
  if (opcode == "rem") return remainder(operand(1), operand(2), sign);
  if (opcode == "shl") return shift_left(operand(1), operand(2, 32));
  if (opcode == "shr") return shift_right(operand(1), operand(2, 32), sign);
  if (opcode == "and") return bit_and(operand(1), operand(2));
  if (opcode == "or") return bit_or(operand(1), operand(2));
  if (opcode == "xor") return bit_xor(operand(1), operand(2));
  if (opcode == "min") return minimum(operand(1), operand(2), sign);
  if (opcode == "max") return maximum(operand(1), operand(2), sign);
  return {};
}

// ---- values that are one of several ----

bool Symbolic::is_selection(const ExprNode& n) const {
  return n.kind == ExprKind::Opaque && n.value < flow_.instructions().size() &&
         m_.is(at(static_cast<uint32_t>(n.value)).head, "selp");
}

// The values that a Merged symbol or the result of a selection can have; nothing if these are not known.
std::vector<Expr> Symbolic::alternatives(const ExprNode& symbol, Names& under_way) const {
  std::vector<Expr> out;
  if (is_selection(symbol)) {
    const auto index = static_cast<uint32_t>(symbol.value);
    const Statement& s = at(index);
    for (const size_t i : {size_t{1}, size_t{2}}) {
      const auto some = expand(read(index, components(m_, s.operands[i])[0], symbol.bits), under_way);
      if (some.empty()) return {};
      out.insert(out.end(), some.begin(), some.end());
    }
    return out;
  }
  if (std::find(under_way.begin(), under_way.end(), symbol.name) != under_way.end()) return {};
  const auto index = static_cast<uint32_t>(symbol.value);
  const uint32_t reg = find(index, symbol.name);
  if (reg == VirtualRegisters::kNone) return {};
  const auto from = origins(index, reg);
  if (from.entry) return {};
  under_way.emplace_back(symbol.name);
  for (const uint32_t writer : from.definitions) {
    const auto some = expand(written(writer, reg), under_way);
    // A symbol of one definition may mean another moment than the same symbol elsewhere in the expression.
    const bool steady =
        std::none_of(some.begin(), some.end(), [](const Expr& e) { return any_leaf(e, is_symbol_leaf); });
    if (some.empty() || !steady || out.size() > kMostChoices) {
      out.clear();
      break;
    }
    out.insert(out.end(), some.begin(), some.end());
  }
  under_way.pop_back();
  return out;
}

std::vector<Expr> Symbolic::expand(const Expr& e, Names& under_way) const {
  if (!e.known()) return {};
  ExprNode symbol;
  const bool composed = any_leaf(e, [&](const ExprNode& n) {
    if (n.kind != ExprKind::Merged && !is_selection(n)) return false;
    symbol = n;
    return true;
  });
  if (!composed) return {e};
  std::vector<Expr> out;
  for (const Expr& alternative : alternatives(symbol, under_way)) {
    const Expr replaced = substitute(e, [&](const Expr& leaf) -> std::optional<Expr> {
      const bool same = leaf->kind == symbol.kind && leaf->value == symbol.value && leaf->name == symbol.name;
      return same ? std::optional<Expr>(alternative) : std::nullopt;
    });
    const std::vector<Expr> some = expand(replaced, under_way);
    if (some.empty()) return {};
    for (const Expr& choice : some) {
      if (std::find(out.begin(), out.end(), choice) == out.end()) out.push_back(choice);
    }
    if (out.size() > kMostChoices) return {};
  }
  return out;
}

Value Symbolic::value(uint32_t index, std::string_view operand, uint32_t bits) const {
  Names under_way;
  Value out{expand(read(index, operand, bits), under_way)};
  std::sort(out.choices.begin(), out.choices.end(),
            [](const Expr& a, const Expr& b) { return Expr::compare(a, b) < 0; });
  return out;
}

Value Symbolic::value(std::string_view operand, uint32_t bits) const {
  return value(kNowhere, operand, bits);
}

std::string print_values(const ControlFlow& flow, const VirtualRegisters& registers,
                         const Symbolic& symbolic) {
  const Module& m = flow.module();
  std::string out;
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    const Statement& s = *flow.instructions()[i].statement;
    for (const Access& access : registers.accesses(i)) {
      if (!access.written) continue;
      const std::string value = symbolic.is_evaluated(i, access.reg)
                                    ? to_string(symbolic.written(i, access.reg))
                                    : "unknown, by " + m.full_opcode(s);
      out += fmt::format("line {}: {}{} = {}\n", m.line(s.head), s.predicated ? "perhaps " : "",
                         registers[access.reg].name, value);
    }
  }
  return out;
}

}  // namespace klap::analysis
