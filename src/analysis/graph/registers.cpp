#include "analysis/graph/registers.h"

#include <algorithm>

#include "analysis/graph/operands.h"
#include "ptx/opcodes.h"

namespace klap::analysis {

using ptx::Statement;
using ptx::StatementKind;
using ptx::TokenKind;
using ptx::TokenRange;

uint32_t VirtualRegister::words() const {
  if (is_predicate()) return 0;
  const uint32_t bytes = ptx::type_bytes(type);
  return lanes * (bytes == 0 ? 4 : (bytes + 3) / 4);
}

VirtualRegisters::VirtualRegisters(const ControlFlow& flow) : flow_(flow), module_(flow.module()) {
  declare_header();
  declare(flow.function().body);
  const auto count = static_cast<uint32_t>(flow.instructions().size());
  start_.reserve(count + 1);
  for (uint32_t i = 0; i < count; ++i) {
    start_.push_back(access_count());
    read_instruction(i);
  }
  start_.push_back(access_count());
}

// ---- declarations ----

// Registers of the header belong to no scope of the body: their scope is null.
void VirtualRegisters::declare_header() {
  const auto add_all = [&](const std::vector<ptx::Parameter>& list, bool results) {
    for (const ptx::Parameter& p : list) {
      if (p.tokens.empty() || !module_.is(p.tokens.first, ".reg")) continue;
      std::string_view type;
      for (uint32_t t = p.tokens.first + 1; t < p.tokens.last; ++t) {
        if (module_.tokens[t].kind == TokenKind::Dotted) type = module_.text(t);
      }
      const ScopedName name(nullptr, p.name);
      const Declaration made{p.tokens.first, 0, type, 1};
      declarations_.emplace(name, made);
      if (results) results_.push_back(number(made, nullptr, p.name));
    }
  };
  add_all(flow_.function().results, true);
  add_all(flow_.function().parameters, false);
}

void VirtualRegisters::declare(const Statement& scope) {
  for (const Statement& s : scope.body) {
    if (s.kind == StatementKind::Block) declare(s);
    std::string_view type;
    uint32_t lanes = 1;
    for (uint32_t t = s.head + 1; s.kind == StatementKind::Directive && t < s.tokens.last; ++t) {
      if (module_.tokens[t].kind != TokenKind::Dotted) continue;
      if (module_.is(t, ".v2") || module_.is(t, ".v4")) {
        lanes = module_.is(t, ".v2") ? 2 : 4;
      } else {
        type = module_.text(t);
      }
    }
    for_each_declared_register(module_, s, [&](uint32_t token, uint32_t count) {
      auto& table = count == 0 ? declarations_ : ranges_;
      table.emplace(ScopedName(&scope, module_.text(token)), Declaration{token, count, type, lanes});
    });
  }
}

// The declaration of a name in one scope, if it stands before the token.
const VirtualRegisters::Declaration* VirtualRegisters::declaration(const Statement* scope,
                                                                   std::string_view name,
                                                                   uint32_t token) const {
  const auto plain = declarations_.find(ScopedName(scope, name));
  if (plain != declarations_.end() && plain->second.token < token) return &plain->second;
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  // "%r12" may belong to a range "%r" or, rarely, to "%r1": try every split.
  for (size_t split = digits; split < name.size(); ++split) {
    const std::string_view index = name.substr(split);
    if ((index.size() > 1 && index[0] == '0') || index.size() > 9) continue;
    const auto range = ranges_.find(ScopedName(scope, name.substr(0, split)));
    if (range == ranges_.end() || range->second.token > token) continue;
    uint32_t value = 0;
    for (char c : index) value = value * 10 + static_cast<uint32_t>(c - '0');
    if (value < range->second.count) return &range->second;
  }
  return nullptr;
}

uint32_t VirtualRegisters::number(const Declaration& declaration, const Statement* scope,
                                  std::string_view name) {
  const auto [entry, is_new] =
      numbers_.emplace(ScopedName(scope, name), static_cast<uint32_t>(registers_.size()));
  if (is_new) registers_.push_back({name, declaration.type, declaration.lanes, scope, scope == nullptr});
  return entry->second;
}

uint32_t VirtualRegisters::resolve(const Statement* scope, uint32_t token) {
  const std::string_view name = module_.text(token);
  for (;; scope = flow_.enclosing(scope)) {
    const Declaration* found = declaration(scope, name, token);
    if (found != nullptr) return number(*found, scope, name);
    if (scope == nullptr) return kNone;
  }
}

uint32_t VirtualRegisters::find(uint32_t instruction, std::string_view name) const {
  for (const Access& access : accesses(instruction)) {
    if (registers_[access.reg].name == name) return access.reg;
  }
  return kNone;
}

// ---- accesses ----

void VirtualRegisters::read_instruction(uint32_t instruction) {
  const Statement& s = *flow_.instructions()[instruction].statement;
  if (s.predicated) read_range(instruction, {s.predicate, s.predicate + 1}, {.read = true});
  if (module_.is(s.head, "ret")) {
    for (uint32_t result : results_) add(instruction, {.reg = result, .read = true});
  }
  if (!ptx::opcode_of(module_, s).is_known()) unknown_.push_back(instruction);
  for (size_t i = 0; i < s.operands.size(); ++i) {
    const OperandUse use = operand_use(module_, s, i);
    Access access;
    access.read = use != OperandUse::Written;
    access.written = use != OperandUse::Read;
    access.kills = access.written && use != OperandUse::Unknown && !s.predicated;
    read_range(instruction, s.operands[i], access);
  }
}

void VirtualRegisters::read_range(uint32_t instruction, TokenRange range, Access access) {
  for (uint32_t t = range.first; t < range.last; ++t) {
    if (module_.tokens[t].kind != TokenKind::Identifier) continue;
    access.reg = resolve(flow_.instructions()[instruction].scope, t);
    if (access.reg == kNone) continue;
    Access one = access;
    // `v.x` is one lane of a vector register; on a plain register the same text selects bytes.
    const bool lane = t + 1 < range.last && module_.tokens[t + 1].kind == TokenKind::Dotted;
    if (lane && registers_[access.reg].lanes > 1) one.kills = false;
    add(instruction, one);
  }
}

// One entry a register. A register that is written twice, once for certain, is overwritten for certain.
void VirtualRegisters::add(uint32_t instruction, Access access) {
  for (uint32_t at = start_[instruction]; at < access_count(); ++at) {
    Access& known = accesses_[at];
    if (known.reg != access.reg) continue;
    known.read = known.read || access.read;
    known.written = known.written || access.written;
    known.kills = known.kills || access.kills;
    return;
  }
  accesses_.push_back(access);
}

}  // namespace klap::analysis
