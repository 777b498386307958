#include "analysis/slicing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/waiting.h"
#include "analysis/wrappers.h"

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

// What blocks of one grid may do together, or what is not known not to be that.
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

MaybeText object_to_effects(const FunctionFacts& parent) {
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

MaybeText object_to_reads(const FunctionFacts& parent) {
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

bool sees_other_threads(const Effects& effects) {
  using enum EffectKind;
  return effects.has(StrongLoad) || effects.has(Atomic) || effects.has(Fence) || effects.has(Sleep);
}

// A load that reads one place of global memory again and again, and goes on by what it finds.
bool asks_memory_again(const Module& m, const Statement& s, const Waiting& waiting, uint32_t instruction) {
  if (!m.is(s.head, "ld")) return false;
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    for (const char* space : {".shared", ".local", ".param", ".const"}) {
      if (m.text(t).starts_with(space)) return false;
    }
  }
  return waiting.asks_again(instruction);
}

// The function that a call leads to, if the module defines it.
const Function* callee_of(const Module& m, const Statement& s, const LocalNames& names) {
  const auto call = parse_call(m, s, names);
  const Function* callee = call && call->direct ? m.find_function(call->callee) : nullptr;
  return callee != nullptr && callee->is_definition ? callee : nullptr;
}

// Loops of one function that may wait although Waiting::find() does not say so.
MaybeText object_to_loops(const CallGraph& graph, const ControlFlow& flow, const DataFlow& data,
                          const Waiting& waiting) {
  const Module& m = graph.module();
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    if (!flow.in_loop(i)) continue;
    const Statement& s = *flow.instructions()[i].statement;
    if (asks_memory_again(m, s, waiting, i))
      return fmt::format("{} reads one address in every round of a loop ({})", m.full_opcode(s),
                         m.place(s.head));
    const Function* callee = callee_of(m, s, data.names());
    if (callee != nullptr && sees_other_threads(graph.closure(*callee)))
      return fmt::format("{}, called in a loop, may see what other blocks do ({})", callee->name,
                         m.place(s.head));
  }
  return std::nullopt;
}

MaybeText object_to_callee(const CallGraph& graph, const Function& callee) {
  const Module& m = graph.module();
  if (graph.is_recursive(callee) && sees_other_threads(graph.closure(callee)))
    return fmt::format("{}, called by it, calls itself and may see what other blocks do", callee.name);
  const ControlFlow flow(m, callee);
  if (!flow.has_unknown_branch() && Loops(flow).all().empty()) return std::nullopt;
  const DataFlow data(m, callee, flow);
  Waiting waiting(m, flow, data);
  if (const auto found = waiting.find())
    return fmt::format("{}, called by it, may wait: {}", callee.name, *found);
  return object_to_loops(graph, flow, data, waiting);
}

MaybeText object_to_waiting(const FunctionFacts& parent) {
  const CallGraph& graph = parent.calls();
  if (parent.flow.has_unknown_branch() || !Loops(parent.flow).all().empty()) {
    const Waiting waiting(parent.module, parent.flow, parent.data);
    if (auto found = object_to_loops(graph, parent.flow, parent.data, waiting)) return found;
  }
  for (const Function* f : graph.functions()) {
    // What stands for the device runtime's functions in a debug build only passes the call on.
    if (f == &parent.function || !runtime_function(parent.module, *f).empty()) continue;
    if (auto found = object_to_callee(graph, *f)) return found;
  }
  return std::nullopt;
}

MaybeText object_to_parameters(const FunctionFacts& parent) {
  const uint64_t queues = (uint64_t{parent.function.parameter_bytes} + 7) / 8 * 8 + 8 * parent.sites.size();
  if (queues + kSliceBytes <= parameter_limit(parent.module)) return std::nullopt;
  return fmt::format("{} bytes of parameters leave no room", parent.function.parameter_bytes);
}

}  // namespace

std::optional<std::string> object_to_slices(const FunctionFacts& parent) {
  if (auto found = object_to_effects(parent)) return found;
  if (auto found = object_to_reads(parent)) return found;
  if (auto found = object_to_waiting(parent)) return found;
  return object_to_parameters(parent);
}

}  // namespace klap::analysis
