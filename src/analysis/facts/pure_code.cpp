#include "analysis/facts/pure_code.h"

#include <algorithm>

#include "analysis/values/values.h"
#include "ptx/opcodes.h"

namespace klap::analysis {

using ptx::Module;
using ptx::Statement;

namespace {

// A value that takes more is computed where it stands.
constexpr size_t kMostInstructions = 256;

const Statement& at(const FunctionFacts& k, uint32_t instruction) {
  return *k.flow.instructions()[instruction].statement;
}

bool is_param_space(const Module& m, const Statement& s) {
  return m.has_modifier(s, ".param") || m.has_modifier(s, ".param::entry");
}

const ptx::Parameter* own_parameter(const FunctionFacts& k, std::string_view name) {
  if (k.data.names().contains(name)) return nullptr;
  const auto found = std::ranges::find(k.function.parameters, name, &ptx::Parameter::name);
  return found == k.function.parameters.end() ? nullptr : &*found;
}

// Registers that say where a thread stands in its block, and do not change.
bool differs_by_thread(std::string_view name) { return name.starts_with("%tid.") || name == "%laneid"; }

bool is_steady_register(std::string_view name) {
  return differs_by_thread(name) || name.starts_with("%ntid.") || name.starts_with("%ctaid.") ||
         name.starts_with("%nctaid.");
}

// A variable that all kernels of the module share, whose address is a constant.
bool is_shared_by_all(const FunctionFacts& k, std::string_view name) {
  const ptx::Variable* v = k.data.names().contains(name) ? nullptr : k.module.find_variable(name);
  return v != nullptr && (v->space == ".global" || v->space == ".const");
}

bool is_literal(std::string_view operand) {
  return !operand.empty() && ((operand[0] >= '0' && operand[0] <= '9') || operand[0] == '-');
}

}  // namespace

bool PureCode::has_settled_results(uint32_t instruction) const {
  const VirtualRegisters& registers = k_.values().registers;
  for (const Access& access : registers.accesses(instruction)) {
    if (!access.written) continue;
    const VirtualRegister& reg = registers[access.reg];
    if (!access.kills || access.read || reg.scope != &k_.function.body || reg.lanes != 1 ||
        reg.is_parameter || k_.data.is_ambiguous(reg.name) || k_.data.definitions(reg.name).size() != 1)
      return false;
  }
  return true;
}

// Identifiers other than registers: what they stand for must not change while the kernel runs.
bool PureCode::has_steady_operands(uint32_t instruction) const {
  const Statement& s = at(k_, instruction);
  const Module& m = k_.module;
  for (const ptx::TokenRange operand : s.operands) {
    for (uint32_t t = operand.first; t < operand.last; ++t) {
      if (m.tokens[t].kind != ptx::TokenKind::Identifier) continue;
      std::string name(m.text(t));
      if (k_.data.names().is_register(name) || name == "WARP_SZ" || name == "_") continue;
      if (t + 1 < operand.last && m.tokens[t + 1].kind == ptx::TokenKind::Dotted) name += m.text(t + 1);
      const bool moved = m.is(s.head, "mov") && s.operands.size() == 2;
      if (moved && (is_steady_register(name) || is_shared_by_all(k_, name))) continue;
      return false;
    }
  }
  return true;
}

// By the parameter's name and a constant offset.
bool PureCode::is_parameter_load(uint32_t instruction) const {
  const Statement& s = at(k_, instruction);
  if (!k_.module.is(s.head, "ld") || !is_param_space(k_.module, s) || s.operands.size() != 2) return false;
  const auto address = parse_address(k_.module, s.operands[1]);
  return address && own_parameter(k_, address->base) != nullptr &&
         k_.values().symbolic.parameter_offset(instruction).has_value();
}

bool PureCode::is_movable(uint32_t instruction) const {
  const Statement& s = at(k_, instruction);
  const Module& m = k_.module;
  if (s.predicated || k_.flow.instructions()[instruction].scope != &k_.function.body ||
      !has_settled_results(instruction))
    return false;
  if (is_parameter_load(instruction)) return true;
  const bool is_pure = ptx::opcode_of(m, s).result == ptx::OpcodeResult::Pure && !m.has_modifier(s, ".cc");
  return is_pure && instruction_effects(m, s).empty() && has_steady_operands(instruction);
}

std::vector<ByteRange> PureCode::parameter_bytes(uint32_t instruction) const {
  const Statement& s = at(k_, instruction);
  std::vector<ByteRange> out;
  if (is_parameter_load(instruction)) {
    const auto count = static_cast<uint32_t>(components(k_.module, s.operands[0]).size());
    const uint32_t bytes = ptx::type_bytes(k_.module.text(s.modifiers.last - 1));
    const uint32_t offset = *k_.values().symbolic.parameter_offset(instruction);
    for (uint32_t i = 0; i < count; ++i) out.push_back({offset + i * bytes, bytes});
    return out;
  }
  for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
    if (const ptx::Parameter* p = own_parameter(k_, k_.module.text(t))) out.push_back({p->offset, p->bytes});
  }
  return out;
}

bool PureCode::add(uint32_t reader, std::string_view operand, PureSlice& out) const {
  const Values& v = k_.values();
  const uint32_t reg = v.registers.find(reader, operand);
  if (reg == VirtualRegisters::kNone) return is_literal(operand);
  const auto definition = v.reaching.only_definition(reader, reg);
  if (!definition || !is_movable(*definition)) return false;
  // The code runs in text order, so a value must be computed before it is read.
  if (*definition >= reader) return false;
  if (std::ranges::find(out.instructions, *definition) != out.instructions.end()) return true;
  if (out.instructions.size() >= kMostInstructions) return false;
  out.instructions.push_back(*definition);
  const Statement& s = at(k_, *definition);
  for (const ByteRange& bytes : parameter_bytes(*definition)) out.reads.push_back(bytes);
  for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t)
    out.by_thread = out.by_thread || k_.module.is(t, "%tid") || differs_by_thread(k_.module.text(t));
  for (const Access& access : v.registers.accesses(*definition)) {
    if (access.read && !add(*definition, v.registers[access.reg].name, out)) return false;
  }
  return true;
}

std::optional<PureSlice> PureCode::slice(uint32_t reader, std::string_view operand) const {
  PureSlice out;
  if (!add(reader, operand, out)) return std::nullopt;
  std::ranges::sort(out.instructions);
  return out;
}

}  // namespace klap::analysis
