#include "analysis/legality/shared_overlay.h"

#include <algorithm>

#include "analysis/effects/effects.h"
#include "analysis/legality/warp_block.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

// The declaration of a kernel's variable in its body; null if it stands elsewhere.
const Statement* declaration_in(const Module& m, const Function& kernel, const std::string& name) {
  const Statement* found = nullptr;
  ptx::for_each_statement(kernel.body, [&](const Statement& s) {
    if (s.kind != ptx::StatementKind::Directive || !m.is(s.head, ".shared")) return;
    const auto variable = read_shared_variable(m, s.tokens);
    if (variable && variable->name == name) found = &s;
  });
  return found;
}

std::vector<OverlaidVariable> variables_of(const Module& m, const Function& kernel, SharedOverlay& overlay) {
  std::vector<OverlaidVariable> out;
  const CallGraph graph(m, kernel);
  uint32_t end = 0;
  for (const Effect& effect : graph.own(kernel).all()) {
    if (effect.kind != EffectKind::StaticShared) continue;
    const bool is_named_elsewhere = std::ranges::any_of(graph.functions(), [&](const Function* f) {
      return f != &kernel && std::ranges::any_of(graph.own(*f).all(), [&](const Effect& other) {
               return other.kind == EffectKind::StaticShared && other.what == effect.what;
             });
    });
    const Statement* const declaration = declaration_in(m, kernel, effect.what);
    const ptx::Variable* const of_unit = m.find_variable(effect.what);
    if (is_named_elsewhere || (declaration == nullptr) == (of_unit == nullptr)) continue;
    const auto variable =
        read_shared_variable(m, declaration != nullptr ? declaration->tokens : of_unit->tokens);
    if (!variable || variable->name != effect.what) continue;
    const uint32_t offset = (end + variable->align - 1) / variable->align * variable->align;
    end = offset + variable->bytes;
    out.push_back({variable->name, offset, variable->bytes, declaration});
    overlay.align = std::max(overlay.align, variable->align);
  }
  overlay.bytes = std::max(overlay.bytes, end);
  return out;
}

}  // namespace

SharedOverlay shared_overlay(const Module& m, std::span<const Function* const> kernels) {
  SharedOverlay out;
  for (const Function* kernel : kernels)
    out.kernels.push_back(kernel == nullptr ? std::vector<OverlaidVariable>()
                                            : variables_of(m, *kernel, out));
  const auto has_none = [](const auto& variables) { return variables.empty(); };
  if (std::ranges::count_if(out.kernels, has_none) + 1 < std::ssize(out.kernels)) return out;
  return {std::vector<std::vector<OverlaidVariable>>(kernels.size()), 0, 1};
}

}  // namespace klap::analysis
