#include "analysis/legality/slicing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/effects/waiting.h"
#include "analysis/facts/launch_shape.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

namespace {

using MaybeText = std::optional<std::string>;

bool is_grid_register(std::string_view name) { return name == "%ctaid" || name == "%nctaid"; }

// Registers that are about the block or the processor, not about the launch.
bool is_same_in_slices(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kSame = {"%warpid", "%nwarpid", "%total_smem_size",
                                                            "%dynamic_smem_size"};
  return std::ranges::find(kSame, name) != kSame.end();
}

// True for effects by which blocks of one grid may cooperate, or that are not known to be harmless.
bool may_join_blocks(EffectKind kind) {
  using enum EffectKind;
  switch (kind) {
    case ClusterBarrier:
    case ClusterAccess:
    case GridDependency:
    case AsyncCopy:
    case Texture:
    case UnlistedInstruction:
    case UnknownCall:
    case IndirectCall:
      return true;
    default:
      return false;
  }
}

MaybeText check_effects(const FunctionFacts& parent) {
  const Module& m = parent.module;
  const CallGraph& graph = parent.calls();
  for (const Effect& effect : graph.closure(parent.function).all()) {
    const std::string place = m.place(effect.token);
    if (may_join_blocks(effect.kind)) return fmt::format("{} ({})", effect.what, place);
    if (effect.kind == EffectKind::OtherRegister && !is_same_in_slices(effect.what))
      return fmt::format("reads {} ({})", effect.what, place);
  }
  for (const Function* f : graph.functions()) {
    if (f == &parent.function) continue;
    for (const Effect& effect : graph.own(*f).all()) {
      if (effect.kind == EffectKind::PositionRegister && is_grid_register(effect.what))
        return fmt::format("{}, called by it, reads {} ({})", f->name, effect.what, m.place(effect.token));
    }
  }
  return std::nullopt;
}

// `%ctaid.x` is two tokens. A plain register can stand in its place where 32 bits are moved or converted.
bool is_replaceable(const Module& m, const Statement& s, uint32_t token) {
  if (!m.is(s.head, "mov") && !m.is(s.head, "cvt")) return false;
  if (s.modifiers.empty() || ptx::type_bytes(m.text(s.modifiers.last - 1)) != 4) return false;
  return m.is(token + 1, ".x") || m.is(token + 1, ".y") || m.is(token + 1, ".z");
}

MaybeText check_reads(const FunctionFacts& parent) {
  const Module& m = parent.module;
  MaybeText found;
  ptx::for_each_statement(parent.function.body, [&](const Statement& s) {
    if (found || s.kind != ptx::StatementKind::Instruction) return;
    for (uint32_t t = s.tokens.first; t < s.tokens.last && !found; ++t) {
      if (is_grid_register(m.text(t)) && !is_replaceable(m, s, t))
        found = fmt::format("{} reads {} in an unknown form ({})", m.full_opcode(s), m.text(t), m.place(t));
    }
  });
  return found;
}

// ---- waiting ----

// True for a load that reads one place of global memory again and again, and goes on by the value it finds.
bool asks_memory_again(const Module& m, const Statement& s, const Waiting& waiting, uint32_t instruction) {
  if (!m.is(s.head, "ld")) return false;
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    for (const char* space : {".shared", ".local", ".param", ".const"}) {
      if (m.text(t).starts_with(space)) return false;
    }
  }
  return waiting.asks_again(instruction);
}

// The rejection to loops by which a function may wait without saying so to the compiler.
MaybeText check_loops(const Module& m, const ControlFlow& flow, const DataFlow& data) {
  const Waiting waiting(m, flow, data);
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    const Statement& s = *flow.instructions()[i].statement;
    if (flow.in_loop(i) && asks_memory_again(m, s, waiting, i))
      return fmt::format("{} reads one address in every iteration of a loop ({})", m.full_opcode(s),
                         m.place(s.head));
  }
  return std::nullopt;
}

MaybeText check_waiting(const FunctionFacts& parent) {
  const Module& m = parent.module;
  for (const Function* f : parent.calls().functions()) {
    const ControlFlow flow(m, *f);
    if (!flow.has_unknown_branch() && Loops(flow).all().empty()) continue;
    if (auto found = check_loops(m, flow, DataFlow(m, *f, flow))) return found;
  }
  return std::nullopt;
}

MaybeText check_parameters(const FunctionFacts& parent) {
  const uint64_t queues = (uint64_t{parent.function.parameter_bytes} + 7) / 8 * 8 + 8 * parent.sites.size();
  if (queues + kSliceBytes <= parameter_limit(parent.module)) return std::nullopt;
  return fmt::format("{} bytes of parameters leave no room", parent.function.parameter_bytes);
}

}  // namespace

std::optional<std::string> check_slices(const FunctionFacts& parent) {
  for (const Site& site : parent.sites) {
    if (stream_kind(site) == StreamKind::Tail)
      return "it launches into the tail-launch stream, at " + ptx::place(site.position);
  }
  if (auto found = check_effects(parent)) return found;
  if (auto found = check_reads(parent)) return found;
  if (auto found = check_waiting(parent)) return found;
  return check_parameters(parent);
}

}  // namespace klap::analysis
