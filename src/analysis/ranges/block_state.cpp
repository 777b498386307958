#include "analysis/ranges/block_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/graph/dataflow.h"
#include "analysis/legality/warp_block.h"
#include "analysis/optimise/accumulators.h"
#include "ptx/opcodes.h"

namespace klap::analysis {

using ptx::Statement;

BlockState::BlockState(const Values& values, const EndRun& run, BlockEffects* effects)
    : v_(values),
      m_(values.flow.module()),
      flow_(values.flow),
      run_(run),
      effects_(effects),
      variables_(shared_variables()),
      threads_(run.threads) {
  for (BlockThread& thread : threads_) thread.registers.resize(v_.registers.all().size());
}

const Statement& BlockState::at(uint32_t i) const { return *flow_.instructions()[i].statement; }

Refused BlockState::refused(uint32_t i, const std::string& why) const {
  return Refused{fmt::format("{}: {} {}", m_.place(at(i).head), m_.full_opcode(at(i)), why)};
}

uint32_t BlockState::bits_of(const std::string& type) { return 8 * ptx::type_bytes(type); }

std::string BlockState::type_of(const Statement& s) const {
  return s.modifiers.empty() ? "" : std::string(m_.text(s.modifiers.last - 1));
}

HeldValue BlockState::read(uint32_t t, uint32_t i, const std::string& word, uint32_t bits) {
  if (const auto special = special_register(t, word)) return {Expr::constant(*special, bits), {}, {}};
  const uint32_t reg = v_.registers.find(i, word);
  if (reg != VirtualRegisters::kNone)
    return is_of_another(t, threads_[t].registers[reg]) ? HeldValue() : threads_[t].registers[reg];
  if (word.starts_with("0f") || word.starts_with("0d"))
    return {Expr::constant(std::stoull(word.substr(2), nullptr, 16), bits), {}, {}};
  if (const auto literal = literal_of(word)) return {Expr::constant(*literal, bits), {}, {}};
  if (ambiguous_.contains(word)) throw refused(i, "names one of several variables: " + word);
  if (variables_.contains(word) || is_variable(word)) return {Expr::address(word, bits), {}, {}};
  throw refused(i, "has an operand that is not known: " + word);
}

bool BlockState::is_variable(const std::string& word) const {
  return effects_ != nullptr && std::ranges::any_of(m_.variables, [&](const ptx::Variable& variable) {
           return variable.name == word && variable.space != ".shared" && variable.range == 0;
         });
}

bool BlockState::is_of_another(uint32_t t, const HeldValue& value) const {
  return value.opaque && effects_->values()[*value.opaque].thread.value_or(t) != t;
}

HeldValue BlockState::read(uint32_t t, uint32_t i, size_t operand, uint32_t bits) {
  const std::vector<std::string> words = components(m_, at(i).operands[operand]);
  if (words.size() != 1) throw refused(i, "has a vector that is not known");
  return read(t, i, words[0], bits);
}

Expr BlockState::number(uint32_t t, uint32_t i, size_t operand, uint32_t bits) {
  const HeldValue value = read(t, i, operand, bits);
  if (value.sum || !value.number.known() || value.number->bits == bits)
    return value.sum ? Expr() : value.number;
  return convert(value.number, bits, Sign::Unsigned);
}

uint64_t BlockState::constant(uint32_t t, uint32_t i, size_t operand) {
  const auto value = number(t, i, operand, 32).as_constant();
  if (!value) throw refused(i, "goes by a value that is not known");
  return *value;
}

std::optional<uint64_t> BlockState::literal_of(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const auto value = ptx::integer_value(is_negative ? text.substr(1) : text);
  if (!value) return std::nullopt;
  return is_negative ? uint64_t{0} - static_cast<uint64_t>(*value) : static_cast<uint64_t>(*value);
}

std::optional<uint64_t> BlockState::special_register(uint32_t t, const std::string& name) const {
  if (name == "%tid.x") return t;
  if (name == "%ntid.x") return threads_.size();
  if (name == "%laneid") return t % kWarpLanes;
  for (const char* const zero : {"%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"}) {
    if (name == zero) return 0;
  }
  for (const char* const one : {"%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z"}) {
    if (name == one) return 1;
  }
  return std::nullopt;
}

std::map<std::string, uint32_t, std::less<>> BlockState::shared_variables() {
  std::map<std::string, uint32_t, std::less<>> out;
  const auto add = [&](ptx::TokenRange declaration) {
    const auto variable = read_shared_variable(m_, declaration);
    if (variable && !out.emplace(variable->name, variable->bytes).second) ambiguous_.insert(variable->name);
  };
  for (const ptx::Variable& variable : m_.variables) {
    if (variable.space == ".shared" && !variable.declaration.empty() && variable.range == 0)
      add(variable.declaration);
  }
  ptx::for_each_statement(flow_.function().body, [&](const Statement& s) {
    if (s.kind == ptx::StatementKind::Directive && m_.is(s.head, ".shared")) add(s.tokens);
  });
  return out;
}

void BlockState::write(uint32_t t, uint32_t i, const std::string& word, HeldValue value) {
  if (word == "_") return;
  const uint32_t reg = v_.registers.find(i, word);
  if (reg == VirtualRegisters::kNone) throw refused(i, "has a result that is not known");
  threads_[t].registers[reg] = std::move(value);
}

void BlockState::write(uint32_t t, uint32_t i, HeldValue value) {
  const std::vector<std::string> words = components(m_, at(i).operands[0]);
  if (words.size() != 1) throw refused(i, "has several results");
  write(t, i, words[0], std::move(value));
}

OperandNumber BlockState::numbers(uint32_t t, uint32_t i) {
  return [this, t, i](size_t operand, uint32_t bits) { return number(t, i, operand, bits); };
}

void BlockState::write_unknown(uint32_t t, uint32_t i) {
  for (const Access& access : v_.registers.accesses(i)) {
    if (access.written) threads_[t].registers[access.reg] = {};
  }
}

std::pair<HeldValue, int64_t> BlockState::address_parts(uint32_t t, uint32_t i, size_t operand) {
  const ptx::TokenRange range = at(i).operands[operand];
  const uint32_t last = range.last - 1;
  if (!m_.is(range.first, "[") || !m_.is(last, "]")) throw refused(i, "has an address that is not known");
  const std::string base(m_.text(range.first + 1));
  int64_t offset = 0;
  if (range.first + 2 != last) {
    std::string text;
    for (uint32_t token = range.first + 2; token < last; ++token) text += m_.text(token);
    if (text.starts_with("+")) text = text.substr(1);
    const auto value = literal_of(text);
    if (!value) throw refused(i, "has an address that is not known");
    offset = static_cast<int64_t>(*value);
  }
  const uint32_t reg = v_.registers.find(i, base);
  const uint32_t bits = reg == VirtualRegisters::kNone ? 32 : bits_of(std::string(v_.registers[reg].type));
  return {read(t, i, base, bits), offset};
}

Expr BlockState::address(uint32_t t, uint32_t i, size_t operand) {
  const auto [base, offset] = address_parts(t, i, operand);
  if (base.sum || !base.number.known()) throw refused(i, "has an address that is not known");
  return base.number + Expr::constant(static_cast<uint64_t>(offset), base.number->bits);
}

SharedPlace BlockState::shared_place(uint32_t t, uint32_t i, size_t operand) {
  const Expr where = address(t, i, operand);
  SharedPlace place;
  for (const Term& term : terms_of(where)) {
    if (term.factors.empty()) {
      place.second =
          where->bits == 32 ? static_cast<int32_t>(term.coefficient) : static_cast<int64_t>(term.coefficient);
    } else if (term.coefficient == 1 && term.factors.size() == 1 && place.first.empty() &&
               term.factors[0]->kind == ExprKind::Address) {
      place.first = term.factors[0]->name;
    } else {
      throw refused(i, "has an address that is not known");
    }
  }
  if (!variables_.contains(place.first)) throw refused(i, "has an address that is not known");
  const int64_t end = place.second + static_cast<int64_t>(ptx::type_bytes(type_of(at(i))));
  if (place.second < 0 || end > static_cast<int64_t>(variables_.find(place.first)->second))
    throw refused(i, "reaches beyond its variable");
  return place;
}

bool BlockState::is_plain_access(const Statement& s, std::string_view space) const {
  for (uint32_t token = s.modifiers.first; token + 1 < s.modifiers.last; ++token) {
    if (!m_.is(token, space) && !m_.is(token, ".volatile") && !m_.is(token, ".weak")) return false;
  }
  return m_.has_modifier(s, space);
}

std::optional<std::vector<size_t>> BlockState::complete_sums(std::string_view operation,
                                                             const std::vector<uint8_t>& times) const {
  std::vector<size_t> out;
  for (size_t sum = 0; sum < times.size() / threads_.size(); ++sum) {
    const auto first = times.begin() + static_cast<std::ptrdiff_t>(sum * threads_.size());
    const auto last = first + static_cast<std::ptrdiff_t>(threads_.size());
    if (std::all_of(first, last, [](uint8_t n) { return n == 0; })) continue;
    const bool is_complete =
        std::all_of(first, last, [&](uint8_t n) { return n == 1 || (n > 1 && is_idempotent(operation)); });
    if (!is_complete) return std::nullopt;
    out.push_back(sum);
  }
  return out;
}

}  // namespace klap::analysis
