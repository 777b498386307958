#include "analysis/graph/dataflow.h"

#include <algorithm>
#include <array>

#include "analysis/graph/module_constants.h"
#include "analysis/graph/operands.h"
#include "analysis/graph/registers.h"

namespace klap::analysis {

using ptx::Statement;
using ptx::StatementKind;
using ptx::TokenKind;
using ptx::TokenRange;

// ---- local names ----

LocalNames::LocalNames(const ptx::Module& module, const Statement& body) {
  ptx::for_each_statement(body, [&](const Statement& s) {
    if (s.kind == StatementKind::Label) others_.emplace(module.text(s.head));
    if (s.kind == StatementKind::Directive) declaration(module, s);
  });
}

void LocalNames::declaration(const ptx::Module& module, const Statement& d) {
  for_each_declared_register(module, d, [&](uint32_t token, uint32_t count) {
    const std::string name(module.text(token));
    if (count == 0) {
      registers_.insert(name);
    } else {
      ranges_[name] = std::max(ranges_[name], count);
    }
  });
  const std::string_view space = module.text(d.head);
  static constexpr std::array<std::string_view, 5> kSpaces = {".local", ".shared", ".param", ".global",
                                                              ".const"};
  if (std::find(kSpaces.begin(), kSpaces.end(), space) == kSpaces.end()) return;
  for (uint32_t t = d.head + 1; t < d.tokens.last && !module.is(t, "="); ++t) {
    if (module.tokens[t].kind != TokenKind::Identifier) continue;
    others_.emplace(module.text(t));
    if (space != ".param") variables_.emplace(module.text(t));
    (space == ".shared" ? shared_ : unshared_).emplace(module.text(t));
  }
}

bool LocalNames::is_register(std::string_view name) const {
  if (registers_.contains(name)) return true;
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  // "%r12" may belong to a range "%r" or, rarely, to "%r1": try every split.
  for (size_t split = digits; split < name.size(); ++split) {
    const auto range = ranges_.find(name.substr(0, split));
    if (range == ranges_.end()) continue;
    const std::string_view index = name.substr(split);
    if (index.size() > 1 && index[0] == '0') continue;
    uint64_t value = 0;
    for (char c : index) value = value * 10 + static_cast<uint64_t>(c - '0');
    if (index.size() < 10 && value < range->second) return true;
  }
  return false;
}

// ---- operands ----

std::vector<std::string> components(const ptx::Module& module, TokenRange operand) {
  std::vector<std::string> out;
  const bool vector = !operand.empty() && module.is(operand.first, "{");
  std::string current;
  for (uint32_t t = operand.first + (vector ? 1 : 0); t < operand.last - (vector ? 1 : 0); ++t) {
    if (vector && module.is(t, ",")) {
      out.push_back(std::move(current));
      current.clear();
    } else {
      current += module.text(t);
    }
  }
  if (!current.empty() || out.empty()) out.push_back(std::move(current));
  return out;
}

std::optional<Address> parse_address(const ptx::Module& module, TokenRange operand) {
  if (operand.size() < 3 || !module.is(operand.first, "[") || !module.is(operand.last - 1, "]"))
    return std::nullopt;
  Address address;
  int64_t sign = 1;
  for (uint32_t t = operand.first + 1; t < operand.last - 1; ++t) {
    const std::string_view text = module.text(t);
    if (module.tokens[t].kind == TokenKind::Identifier && address.base.empty()) {
      address.base = text;
    } else if (module.tokens[t].kind == TokenKind::Number) {
      const auto value = ptx::integer_value(text);
      if (!value || *value > INT64_MAX) return std::nullopt;
      if (__builtin_add_overflow(address.offset, sign * static_cast<int64_t>(*value), &address.offset))
        return std::nullopt;
      sign = 1;
    } else if (text == "-") {
      sign = -sign;
    } else if (text != "+") {
      return std::nullopt;
    }
  }
  return address;
}

namespace {

void collect(const ptx::Module& module, TokenRange range, const LocalNames& names,
             std::vector<std::string_view>& out) {
  for (uint32_t t = range.first; t < range.last; ++t) {
    if (module.tokens[t].kind == TokenKind::Identifier && names.is_register(module.text(t))) {
      out.push_back(module.text(t));
    }
  }
}

}  // namespace

Registers registers_of(const ptx::Module& module, const Statement& s, const LocalNames& names) {
  Registers out;
  if (s.predicated) out.read.push_back(module.text(s.predicate));
  for (size_t i = 0; i < s.operands.size(); ++i) {
    const OperandUse use = operand_use(module, s, i);
    if (use != OperandUse::Read) collect(module, s.operands[i], names, out.written);
    if (use != OperandUse::Written) collect(module, s.operands[i], names, out.read);
  }
  return out;
}

RegisterSet dependents(const ptx::Module& module, const ControlFlow& flow, const LocalNames& names,
                       const std::function<bool(const Statement&)>& is_source,
                       const std::function<bool(const Statement&)>& is_independent) {
  struct Step {
    Registers registers;
    bool depends;
  };
  std::vector<Step> steps;
  steps.reserve(flow.instructions().size());
  for (const FlatInstruction& f : flow.instructions()) {
    const Statement& s = *f.statement;
    steps.push_back({registers_of(module, s, names), is_source(s)});
    if (is_independent && is_independent(s)) steps.back().registers.read.clear();
  }
  RegisterSet set;
  for (bool grew = true; grew;) {
    grew = false;
    for (Step& step : steps) {
      const auto& read = step.registers.read;
      step.depends = step.depends || std::any_of(read.begin(), read.end(),
                                                 [&](std::string_view r) { return set.contains(r); });
      if (!step.depends) continue;
      for (std::string_view r : step.registers.written) grew = set.insert(r).second || grew;
      step.registers.written.clear();
    }
  }
  return set;
}

// ---- definitions and uses ----

DataFlow::DataFlow(const ptx::Module& module, const ptx::Function& function, const ControlFlow& flow)
    : module_(module), flow_(flow), names_(module, function.body) {
  const auto& instructions = flow.instructions();
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const Registers registers = registers_of(module, *instructions[i].statement, names_);
    for (std::string_view name : registers.written) definitions_[name].push_back(i);
    for (std::string_view name : registers.read) uses_[name].push_back(i);
  }
  std::unordered_set<std::string_view> seen;
  const VirtualRegisters registers(flow);
  for (const VirtualRegister& r : registers.all()) {
    if (!seen.insert(r.name).second || r.is_parameter) ambiguous_.insert(r.name);
  }
}

const std::vector<uint32_t>& DataFlow::definitions(std::string_view name) const {
  static const std::vector<uint32_t> kNone;
  const auto found = definitions_.find(name);
  return found == definitions_.end() ? kNone : found->second;
}

const std::vector<uint32_t>& DataFlow::uses(std::string_view name) const {
  static const std::vector<uint32_t> kNone;
  const auto found = uses_.find(name);
  return found == uses_.end() ? kNone : found->second;
}

// The source of the chain of single, unpredicated moves that ends in `operand`.
std::string_view DataFlow::moved_from(std::string_view operand) const {
  for (int steps = 0; steps < 32 && names_.is_register(operand); ++steps) {
    const auto& writers = definitions(operand);
    if (writers.size() != 1 || is_ambiguous(operand)) return operand;
    const Statement& s = *flow_.instructions()[writers[0]].statement;
    if (!module_.is(s.head, "mov") || s.predicated || s.operands.size() != 2) return operand;
    if (s.operands[0].size() != 1) return operand;
    const std::string_view source = module_.text(s.operands[1]);
    if (module_.tokens[s.operands[1].first].kind == TokenKind::Number && s.operands[1].size() == 1)
      return source;
    if (s.operands[1].size() != 1) return s.operands[1].size() == 2 ? source : operand;
    operand = source;
  }
  return operand;
}

std::optional<uint64_t> DataFlow::constant_loaded_to(std::string_view reg) const {
  const auto& writers = definitions(reg);
  if (writers.size() != 1 || is_ambiguous(reg)) return std::nullopt;
  const Statement& s = *flow_.instructions()[writers[0]].statement;
  if (!module_.is(s.head, "ld") || s.predicated || s.modifiers.empty()) return std::nullopt;
  // A signed load may extend the value. A load of a type other than an integer does not give a known integer.
  const std::string_view type = module_.text(s.modifiers.last - 1);
  if (!type.starts_with(".u") && !type.starts_with(".b")) return std::nullopt;
  const std::vector<std::string> targets = components(module_, s.operands[0]);
  const auto target = std::ranges::find(targets, reg);
  return loaded_constant(module_, s, static_cast<size_t>(target - targets.begin()));
}

std::optional<uint64_t> DataFlow::constant(std::string_view operand) const {
  std::string_view value = moved_from(operand);
  if (names_.is_register(value)) return constant_loaded_to(value);
  const bool negative = value.starts_with('-');
  if (negative) value.remove_prefix(1);
  const auto number = ptx::integer_value(value);
  if (!number) return std::nullopt;
  return negative ? ~*number + 1 : *number;
}

std::optional<std::string> DataFlow::symbol(std::string_view operand) const {
  const std::string_view source = moved_from(operand);
  if (source.empty() || names_.contains(source) || is_ambiguous(source)) return std::nullopt;
  const bool is_name = (source[0] >= 'a' && source[0] <= 'z') || (source[0] >= 'A' && source[0] <= 'Z') ||
                       source[0] == '_' || source[0] == '$';
  if (!is_name) return std::nullopt;
  return std::string(source);
}

}  // namespace klap::analysis
