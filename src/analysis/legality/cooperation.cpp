#include "analysis/legality/cooperation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

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

struct SharedSize {
  uint64_t bytes = 0, align = 1;
};

// The size of a declaration such as `.shared .align 4 .b8 name[4][32]`.
SharedSize size_of(const Module& m, uint32_t name) {
  uint64_t bytes = 16, align = 1, count = 1;  // of the largest type
  for (uint32_t t = name; t > 0 && !m.is(t, ".shared"); --t) {
    if (const uint32_t size = ptx::type_bytes(m.text(t))) bytes = size;
    if (m.is(t, ".v2") || m.is(t, ".v4")) count *= m.is(t, ".v2") ? 2 : 4;
    if (m.is(t, ".align")) align = ptx::integer_value(m.text(t + 1)).value_or(1);
  }
  for (uint32_t t = name + 1; m.is(t, "["); t += 3) count *= ptx::integer_value(m.text(t + 1)).value_or(1);
  return {bytes * count, std::max(align, bytes)};
}

std::vector<SharedSize> own_variables(const Module& m, const Effects& effects) {
  std::vector<SharedSize> sizes;
  for (const Effect& effect : effects.all()) {
    if (effect.kind == EffectKind::StaticShared) sizes.push_back(size_of(m, declaration_token(m, effect)));
  }
  return sizes;
}

uint64_t own_bytes(const Module& m, const Effects& effects) {
  uint64_t bytes = 0;
  for (const SharedSize& size : own_variables(m, effects)) bytes += size.bytes + size.align - 1;
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

std::optional<Rejection> check_consumer(const Module& m, const Function& child, const CallGraph& graph,
                                        const std::array<uint32_t, 3>& block,
                                        const Aggregation& aggregation) {
  const Effects& effects = graph.closure(child);
  const Effect* barrier = effects.find(EffectKind::BlockBarrier);
  if (barrier == nullptr) barrier = effects.find(EffectKind::PartialBarrier);
  const Effect* meeting = barrier == nullptr ? effects.find(EffectKind::WarpSync) : barrier;
  if (meeting == nullptr) return std::nullopt;
  const Reason reason = barrier == nullptr ? Reason::ChildWarpSync : Reason::ChildBarrier;
  const uint32_t threads = block[0] * block[1] * block[2];
  if (threads % kWarp != 0 && aggregation.is_executed && barrier != nullptr)
    return check_counted_barriers(m, child, graph, false);
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

uint32_t default_shared_limit(const Module& m, const Function& kernel) {
  constexpr uint64_t kDynamicAlign = 16;
  const CallGraph graph(m, kernel);
  const Effects& effects = graph.closure(kernel);
  std::vector<SharedSize> sizes = own_variables(m, effects);
  std::ranges::sort(sizes, std::ranges::greater(), &SharedSize::align);
  if (effects.has(EffectKind::DynamicShared)) sizes.push_back({0, kDynamicAlign});
  uint64_t bytes = 0;
  for (const SharedSize& size : sizes)
    bytes = (bytes + size.align - 1) / size.align * size.align + size.bytes;
  return static_cast<uint32_t>(kSharedLimit - std::min(bytes, kSharedLimit));
}

uint32_t shared_room(const Module& m, const Function& child) {
  return static_cast<uint32_t>(kSharedLimit - std::min(most_static_shared_bytes(m, child), kSharedLimit));
}

std::optional<MayExit> early_exits(const Module& m, const Function& child,
                                   const std::array<uint32_t, 3>& block) {
  return find_early_exits(m, child, block).may_exit;
}

bool is_block_barrier(const Module& m, const ptx::Statement& s) {
  return (m.is(s.head, "bar") || m.is(s.head, "barrier")) && !m.has_modifier(s, ".warp");
}

bool has_block_barriers(const Module& m, const Function& child) {
  return CallGraph(m, child).closure(child).has(EffectKind::BlockBarrier);
}

std::optional<Rejection> check_counted_barriers(const Module& m, const Function& child,
                                                const CallGraph& graph, bool has_full_warps) {
  const auto reject = [](std::string detail) { return Rejection{Reason::ChildBarrier, std::move(detail)}; };
  for (const Effect& effect : graph.closure(child).all()) {
    using enum EffectKind;
    const bool is_lanes = effect.kind == WarpSync && !has_full_warps;
    const bool is_called = effect.kind == BlockBarrier && effect.function != &child;
    if (is_lanes || is_called || effect.kind == PartialBarrier)
      return reject(fmt::format("{} in blocks that need not have full warps, nor those of the consumer",
                                at(m, effect)));
  }
  std::optional<Rejection> found;
  ptx::for_each_statement(child.body, [&](const ptx::Statement& s) {
    if (found || s.kind != ptx::StatementKind::Instruction || !is_block_barrier(m, s)) return;
    const bool is_plain = !s.predicated && m.has_modifier(s, ".sync") && s.operands.size() == 1 &&
                          ptx::integer_value(m.text(s.operands[0])) == 0u;
    if (!is_plain)
      found =
          reject(fmt::format("{} ({}) is no plain barrier, in blocks that may have fewer threads than the "
                             "consumer's",
                             m.full_opcode(s), m.place(s.head)));
  });
  if (found) return found;
  const Finding finding = early_exit(FunctionFacts(m, child), false, MayExit::Nobody);
  return finding.answer == Answer::No ? std::nullopt : std::optional(reject(finding.detail));
}

std::optional<Rejection> check_cooperation(const Module& m, const Function& child, const CallGraph& graph,
                                           const std::array<uint32_t, 3>& block, uint32_t shared_bytes,
                                           const Aggregation& aggregation) {
  const Effects& effects = graph.closure(child);
  if (auto rejection = check_shared_memory(m, effects, shared_bytes)) return rejection;
  if (aggregation.launcher != Launcher::Host && !aggregation.has_loop_queue) return std::nullopt;
  return check_consumer(m, child, graph, block, aggregation);
}

}  // namespace klap::analysis
