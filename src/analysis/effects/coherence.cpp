#include "analysis/effects/coherence.h"

#include "analysis/effects/effects.h"

namespace klap::analysis {

std::optional<NoncoherentLoad> noncoherent_load_below(const ptx::Module& m, const ptx::Function& kernel) {
  std::optional<NoncoherentLoad> found;
  for (const ptx::Function* callee : call_closure(m, kernel).functions) {
    ptx::for_each_statement(callee->body, [&](const ptx::Statement& s) {
      if (found || s.kind != ptx::StatementKind::Instruction) return;
      if (m.is(s.head, "ld") && m.has_modifier(s, ".nc")) found = NoncoherentLoad{callee, s.head};
    });
  }
  return found;
}

}  // namespace klap::analysis
