#include "analysis/suspension/same_values.h"

#include <algorithm>
#include <string_view>

#include "ptx/opcodes.h"

namespace klap::analysis {

namespace {

using ptx::Module;
using ptx::Statement;

constexpr uint32_t kNoDefinition = ~0u, kSeveral = ~0u - 1;

bool is_place_of_thread(std::string_view name) {
  static constexpr std::string_view kNames[] = {"%tid", "%ntid", "%ctaid", "%nctaid", "%laneid"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// A load of one of the kernel's own parameters, at a constant place.
bool is_parameter_load(const FlowFacts& kernel, const Statement& s) {
  const Module& m = kernel.module;
  if (!m.is(s.head, "ld") || !m.has_modifier(s, ".param") || s.operands.size() != 2) return false;
  const auto address = parse_address(m, s.operands[1]);
  return address && std::ranges::find(kernel.function.parameters, address->base, &ptx::Parameter::name) !=
                        kernel.function.parameters.end();
}

}  // namespace

SameValues::SameValues(const FlowFacts& kernel, const VirtualRegisters& registers)
    : kernel_(kernel), registers_(registers), definition_(registers.all().size(), kNoDefinition) {
  const auto count = static_cast<uint32_t>(kernel.flow.instructions().size());
  for (uint32_t i = 0; i < count; ++i) {
    for (const Access& access : registers.accesses(i)) {
      if (!access.written) continue;
      uint32_t& definition = definition_[access.reg];
      definition = definition == kNoDefinition ? i : kSeveral;
    }
  }
}

bool SameValues::may_be_repeated(uint32_t instruction) const {
  const Module& m = kernel_.module;
  const FlatInstruction& flat = kernel_.flow.instructions()[instruction];
  const Statement& s = *flat.statement;
  if (s.predicated || flat.scope != &kernel_.function.body || m.has_modifier(s, ".cc")) return false;
  if (ptx::opcode_of(m, s).result != ptx::OpcodeResult::Pure && !is_parameter_load(kernel_, s)) return false;
  if (s.operands.empty() || s.operands[0].size() != 1) return false;  // parts of a vector
  for (uint32_t t = s.operands[0].last; t < s.tokens.last; ++t) {
    const std::string_view name = m.text(t);
    const bool is_special =
        name.starts_with("%") && registers_.find(instruction, name) == VirtualRegisters::kNone;
    if (is_special && !is_place_of_thread(name)) return false;
  }
  return true;
}

bool SameValues::is_same(uint32_t reg) {
  if (const auto found = known_.find(reg); found != known_.end()) return found->second;
  known_[reg] = false;
  const uint32_t definition = definition_[reg];
  if (definition == kNoDefinition || definition == kSeveral) return false;
  if (registers_[reg].scope != &kernel_.function.body || !may_be_repeated(definition)) return false;
  for (const Access& access : registers_.accesses(definition)) {
    if (access.read && !is_same(access.reg)) return false;
  }
  return known_[reg] = true;
}

void SameValues::add(uint32_t reg, std::vector<const Statement*>& to) {
  const Statement* const statement = kernel_.flow.instructions()[definition_[reg]].statement;
  if (std::ranges::find(to, statement) != to.end()) return;
  for (const Access& access : registers_.accesses(definition_[reg]))
    if (access.read) add(access.reg, to);
  to.push_back(statement);
}

std::vector<const Statement*> SameValues::computing(const std::vector<uint32_t>& registers) {
  std::vector<const Statement*> statements;
  for (const uint32_t reg : registers) add(reg, statements);
  return statements;
}

}  // namespace klap::analysis
