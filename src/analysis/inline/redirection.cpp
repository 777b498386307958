#include "analysis/inline/redirection.h"

#include <algorithm>
#include <string_view>

#include "analysis/effects/effects.h"
#include "analysis/graph/dataflow.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;
using ptx::TokenRange;

class Search {
 public:
  Search(const Module& module, const ptx::Function& kernel)
      : m_(module), kernel_(kernel), names_(module, kernel.body) {}

  std::optional<uint32_t> run() {
    std::optional<uint32_t> found;
    ptx::for_each_statement(kernel_.body, [&](const Statement& s) {
      if (!found && s.kind == ptx::StatementKind::Instruction) found = instruction(s);
    });
    return found;
  }

 private:
  [[nodiscard]] bool is_parameter(uint32_t token) const {
    const std::string_view text = m_.text(token);
    return !names_.contains(text) &&
           std::ranges::any_of(kernel_.parameters, [&](const ptx::Parameter& p) { return p.name == text; });
  }

  [[nodiscard]] std::optional<uint32_t> instruction(const Statement& s) const {
    const bool in_parameters = m_.has_modifier(s, ".param") || m_.has_modifier(s, ".param::entry");
    if (m_.is(s.head, "ld") && in_parameters) {
      if (s.operands.size() != 2 || !parse_address(m_, s.operands[1])) return s.head;
      return rest(s, s.operands[1]);
    }
    if (m_.is(s.head, "mov") && s.operands.size() == 2 && is_parameter(s.operands[1].first)) {
      if (!takes_address(s)) return s.head;
      return rest(s, s.operands[1]);
    }
    if (m_.is(s.head, "cvta") && in_parameters && s.operands.size() == 2 &&
        is_parameter(s.operands[1].first)) {
      if (s.operands[1].size() != 1) return s.head;
      return rest(s, s.operands[1]);
    }
    return rest(s, {});
  }

  // `mov.b64 %rd, parameter` and `parameter+8`.
  [[nodiscard]] bool takes_address(const Statement& s) const {
    const TokenRange source = s.operands[1];
    if (s.modifiers.empty() || ptx::type_bytes(m_.text(s.modifiers.last - 1)) != 8) return false;
    if (source.size() == 1) return true;
    return source.size() == 3 && m_.is(source.first + 1, "+") &&
           ptx::integer_value(m_.text(source.first + 2)).has_value();
  }

  // The first token that no known form redirects, outside of an operand that one does.
  [[nodiscard]] std::optional<uint32_t> rest(const Statement& s, TokenRange known) const {
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      if (t >= known.first && t < known.last) continue;
      if (is_parameter(t)) return t;
      if (reads_narrow_position(m_, s, t)) return t;
    }
    return std::nullopt;
  }

  const Module& m_;
  const ptx::Function& kernel_;
  const LocalNames names_;
};

}  // namespace

std::optional<uint32_t> not_redirected(const Module& module, const ptx::Function& kernel) {
  return Search(module, kernel).run();
}

bool reads_narrow_position(const Module& m, const Statement& s, uint32_t token) {
  if (!is_virtual_special_register(m.text(token))) return false;
  const std::string_view axis = m.text(token + 1);
  const bool is_wide = !s.modifiers.empty() && ptx::type_bytes(m.text(s.modifiers.last - 1)) == 4;
  return !is_wide || (axis != ".x" && axis != ".y" && axis != ".z");
}

}  // namespace klap::analysis
