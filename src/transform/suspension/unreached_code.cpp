#include "transform/suspension/unreached_code.h"

#include <algorithm>

#include "analysis/graph/flow.h"
#include "ptx/edit.h"
#include "ptx/tree.h"

namespace klap::transform {

namespace {

using analysis::ControlFlow;
using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

class Remover {
 public:
  Remover(const Module& unit, const Function& kernel, ptx::Edits& edits)
      : kernel_(kernel), flow_(unit, kernel), edits_(edits) {}

  void run() {
    if (flow_.has_unknown_branch()) return;
    for (const Statement& each : kernel_.body.body) remove_from(each);
  }

 private:
  [[nodiscard]] bool is_reached(const Statement& instruction) const {
    const uint32_t index = flow_.index_of(&instruction);
    return index == ControlFlow::npos || flow_.blocks()[flow_.instructions()[index].block].reachable;
  }

  // True if there is code in the scope, and no thread comes to any of it.
  [[nodiscard]] bool is_unreached(const Statement& scope) const {
    bool has_code = false, is_dead = true;
    ptx::for_each_statement(scope, [&](const Statement& s) {
      if (s.kind != StatementKind::Instruction) return;
      has_code = true;
      is_dead = is_dead && !is_reached(s);
    });
    return has_code && is_dead;
  }

  // Labels stay: they cost nothing, and tables of branches may name them.
  void remove_from(const Statement& statement) {
    const bool is_code = statement.kind == StatementKind::Instruction;
    const bool is_scope = statement.kind == StatementKind::Block;
    if ((is_code && !is_reached(statement)) || (is_scope && is_unreached(statement))) {
      edits_.replace(statement.tokens, "");
      return;
    }
    for (const Statement& each : statement.body) remove_from(each);
  }

  const Function& kernel_;
  const ControlFlow flow_;
  ptx::Edits& edits_;
};

}  // namespace

std::string without_unreached(const std::string& ptx, const std::vector<std::string>& kernels,
                              const std::string& name) {
  const Module unit = ptx::parse(ptx, name);
  ptx::Edits edits(unit);
  for (const Function& function : unit.functions) {
    if (!function.is_definition || std::ranges::find(kernels, function.name) == kernels.end()) continue;
    Remover(unit, function, edits).run();
  }
  return edits.empty() ? ptx : edits.apply();
}

}  // namespace klap::transform
