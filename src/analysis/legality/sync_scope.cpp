#include "analysis/legality/sync_scope.h"

#include "analysis/effects/effects.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;

namespace {

bool uses_shared_memory(const Effects& effects) {
  using enum EffectKind;
  return effects.has(StaticShared) || effects.has(DynamicShared) || effects.has(SharedAccess);
}

}  // namespace

SyncScope sync_scope(const Module& module, const Function& kernel) {
  const CallGraph graph(module, kernel);
  const Effects& effects = graph.closure(kernel);
  if (effects.has(EffectKind::BlockBarrier) || effects.has(EffectKind::PartialBarrier))
    return SyncScope::Block;
  return effects.has(EffectKind::WarpSync) ? SyncScope::Warp : SyncScope::Thread;
}

SyncScope reuse_scope(const Module& module, const Function& kernel) {
  const CallGraph graph(module, kernel);
  const Effects& effects = graph.closure(kernel);
  const bool as_block = uses_shared_memory(effects) || effects.has(EffectKind::BlockBarrier) ||
                        effects.has(EffectKind::BlockScope);
  if (as_block) return SyncScope::Block;
  return effects.has(EffectKind::WarpSync) ? SyncScope::Warp : SyncScope::Thread;
}

}  // namespace klap::analysis
