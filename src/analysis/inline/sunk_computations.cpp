#include "analysis/inline/sunk_computations.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "analysis/graph/dataflow.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

class ScopeSearch {
 public:
  ScopeSearch(const Module& module, const Statement& scope, const LocalNames& names)
      : m_(module), scope_(scope), names_(names), own_names_(module, scope) {}

  void run(std::vector<SunkComputation>& out) {
    std::vector<SunkComputation> found;
    for (const Statement& s : scope_.body) {
      if (s.kind == StatementKind::Directive) continue;
      if (s.kind != StatementKind::Instruction) return;
      if (m_.is(s.head, "call")) {
        out.insert(out.end(), found.begin(), found.end());
        return;
      }
      if (may_stand_before(s)) {
        found.push_back({&scope_, &s});
      } else if (m_.is(s.head, "st") && m_.has_modifier(s, ".param")) {
        const Registers registers = registers_of(m_, s, names_);
        read_.insert(registers.read.begin(), registers.read.end());
      } else {
        return;
      }
    }
  }

 private:
  // True if the result depends on the operands alone, and no statement that stays in the scope touches
  // either.
  [[nodiscard]] bool may_stand_before(const Statement& s) const {
    const bool is_pure =
        ptx::opcode_of(m_, s).result == ptx::OpcodeResult::Pure && !m_.has_modifier(s, ".cc");
    if (s.predicated || !is_pure || names_own(s)) return false;
    const Registers registers = registers_of(m_, s, names_);
    return std::ranges::none_of(registers.written, [&](std::string_view r) { return read_.contains(r); });
  }

  [[nodiscard]] bool names_own(const Statement& s) const {
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      if (m_.tokens[t].kind == ptx::TokenKind::Identifier && own_names_.contains(m_.text(t))) return true;
    }
    return false;
  }

  const Module& m_;
  const Statement& scope_;
  const LocalNames& names_;     // of the function
  const LocalNames own_names_;  // of the scope
  std::set<std::string_view> read_;
};

}  // namespace

std::vector<SunkComputation> find_sunk_computations(const Module& module, const ptx::Function& function) {
  std::vector<SunkComputation> out;
  const LocalNames names(module, function.body);
  ptx::for_each_statement(function.body, [&](const Statement& s) {
    if (s.kind == StatementKind::Block) ScopeSearch(module, s, names).run(out);
  });
  return out;
}

}  // namespace klap::analysis
