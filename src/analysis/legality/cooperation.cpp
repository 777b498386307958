#include "analysis/legality/cooperation.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/facts.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;

constexpr uint32_t kWarp = 32;

// ---- sizes of shared variables ----

// The place where a function's effect names a variable that stands outside all functions, or its declaration.
uint32_t declaration_token(const Module& m, const Effect& effect) {
  const ptx::Variable* variable = m.find_variable(effect.what);
  if (variable == nullptr) return effect.token;  // declared where it was found
  for (uint32_t t = variable->tokens.first; t < variable->tokens.last; ++t) {
    if (m.is(t, effect.what)) return t;
  }
  return effect.token;
}

// At most so many bytes a declaration such as `.shared .align 4 .b8 name[4][32]` takes, alignment included.
uint64_t most_bytes(const Module& m, uint32_t name) {
  uint64_t bytes = 16, align = 1, count = 1;  // of the largest type
  for (uint32_t t = name; t > 0 && !m.is(t, ".shared"); --t) {
    if (const uint32_t size = ptx::type_bytes(m.text(t))) bytes = size;
    if (m.is(t, ".v2") || m.is(t, ".v4")) count *= m.is(t, ".v2") ? 2 : 4;
    if (m.is(t, ".align")) align = ptx::integer_value(m.text(t + 1)).value_or(1);
  }
  for (uint32_t t = name + 1; m.is(t, "["); t += 3) count *= ptx::integer_value(m.text(t + 1)).value_or(1);
  return bytes * count + std::max(align, bytes) - 1;
}

uint64_t own_bytes(const Module& m, const Effects& effects) {
  uint64_t bytes = 0;
  for (const Effect& effect : effects.all()) {
    if (effect.kind == EffectKind::StaticShared) bytes += most_bytes(m, declaration_token(m, effect));
  }
  return bytes;
}

std::optional<Rejection> check_shared_memory(const Module& m, const Effects& effects, uint32_t shared_bytes) {
  const uint64_t fixed = own_bytes(m, effects);
  for (const Effect& effect : effects.all()) {
    if (effect.kind != EffectKind::DynamicShared) continue;
    const uint32_t name = declaration_token(m, effect);
    if (!m.is(name + 1, "[") || !m.is(name + 2, "]")) {
      return Rejection{Reason::ChildSharedMemory,
                       fmt::format("{} is defined in another unit ({})", effect.what, m.place(effect.token))};
    }
  }
  if (shared_bytes == 0 || fixed + shared_bytes <= kSharedLimit) return std::nullopt;
  return Rejection{
      Reason::DynamicSharedMemory,
      fmt::format("the launch passes {} bytes, which with up to {} of the child's own are more than {}",
                  shared_bytes, fixed, kSharedLimit)};
}

// ---- the host's consumer ----

std::string at(const Module& m, const Effect& effect) {
  return fmt::format("{} ({})", effect.what, m.place(effect.token));
}

struct EarlyExits {
  std::optional<MayExit> may_exit;
  std::string detail;  // the reason if it is nothing
};

// Chooses the least that suffices: letting threads exit has a price at every barrier.
EarlyExits find_early_exits(const Module& m, const Function& child, const std::array<uint32_t, 3>& block) {
  const FunctionFacts facts(m, child);
  EarlyExits out;
  for (const MayExit may_exit : {MayExit::Nobody, MayExit::Warps}) {
    const Finding finding = early_exit(facts, block[0] % kWarp == 0, may_exit);
    if (finding.answer == Answer::No) return {may_exit, ""};
    out.detail = finding.detail;
  }
  return out;
}

std::optional<Rejection> check_consumer(const Module& m, const Function& child, const Effects& effects,
                                        const std::array<uint32_t, 3>& block) {
  const Effect* barrier = effects.find(EffectKind::BlockBarrier);
  if (barrier == nullptr) barrier = effects.find(EffectKind::PartialBarrier);
  const Effect* meeting = barrier == nullptr ? effects.find(EffectKind::WarpSync) : barrier;
  if (meeting == nullptr) return std::nullopt;
  const Reason reason = barrier == nullptr ? Reason::ChildWarpSync : Reason::ChildBarrier;
  const uint32_t threads = block[0] * block[1] * block[2];
  if (threads % kWarp != 0) {
    return Rejection{reason, fmt::format("{} in blocks of {} threads, whose last warp is not full",
                                         at(m, *meeting), threads)};
  }
  const EarlyExits found = find_early_exits(m, child, block);
  if (found.may_exit) return std::nullopt;
  return Rejection{reason, found.detail};
}

}  // namespace

uint64_t most_static_shared_bytes(const Module& m, const Function& kernel) {
  return own_bytes(m, CallGraph(m, kernel).closure(kernel));
}

uint32_t shared_room(const Module& m, const Function& child) {
  return static_cast<uint32_t>(kSharedLimit - std::min(most_static_shared_bytes(m, child), kSharedLimit));
}

std::optional<MayExit> early_exits(const Module& m, const Function& child,
                                   const std::array<uint32_t, 3>& block) {
  return find_early_exits(m, child, block).may_exit;
}

std::optional<Rejection> check_cooperation(const Module& m, const Function& child, const CallGraph& graph,
                                           const std::array<uint32_t, 3>& block, uint32_t shared_bytes,
                                           const Aggregation& aggregation) {
  const Effects& effects = graph.closure(child);
  if (auto rejection = check_shared_memory(m, effects, shared_bytes)) return rejection;
  if (aggregation.launcher != Launcher::Host && !aggregation.has_loop_queue) return std::nullopt;
  return check_consumer(m, child, effects, block);
}

}  // namespace klap::analysis
