#include "analysis/optimise/early_start.h"

#include <algorithm>
#include <array>

#include "analysis/effects/coherence.h"
#include "analysis/effects/effects.h"
#include "ptx/dialect.h"

namespace klap::analysis {
namespace {

constexpr uint32_t kFirstWithWait = 90;

constexpr std::array kUnseen{EffectKind::UnknownCall, EffectKind::IndirectCall, EffectKind::GridDependency,
                             EffectKind::UnlistedInstruction};
// Effects that children must not have either. Unlike the parent's, their device-runtime calls are not
// replaced, and textures and asynchronous copies have no coherent form.
constexpr std::array kNotInChildren{EffectKind::DeviceRuntime, EffectKind::Texture, EffectKind::AsyncCopy};

template <size_t n>
bool has_any(const Effects& effects, const std::array<EffectKind, n>& kinds) {
  return std::ranges::any_of(kinds, [&](EffectKind kind) { return effects.has(kind); });
}

}  // namespace

bool reads_coherently(const ptx::Module& module, const ptx::Function& kernel) {
  const CallGraph graph(module, kernel);
  const Effects& effects = graph.closure(kernel);
  if (has_any(effects, kUnseen) || has_any(effects, kNotInChildren)) return false;
  return !noncoherent_load_below(module, kernel);
}

bool may_start_early(const ptx::Module& module, const ptx::Function& kernel) {
  return ptx::dialect_of(module).target.arch >= kFirstWithWait && reads_coherently(module, kernel);
}

bool may_be_overtaken(const ptx::Module& module, const ptx::Function& parent) {
  const CallGraph graph(module, parent);
  return std::ranges::none_of(graph.functions(), [&](const ptx::Function* f) {
    const Effects& own = graph.own(*f);
    return has_any(own, kUnseen) || (f != &parent && own.has(EffectKind::DeviceRuntime));
  });
}

}  // namespace klap::analysis
