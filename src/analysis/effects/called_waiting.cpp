#include "analysis/effects/called_waiting.h"

#include <fmt/format.h>

#include "analysis/effects/waiting.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

namespace {

using MaybeText = std::optional<std::string>;

bool sees_other_threads(const Effects& effects) {
  using enum EffectKind;
  return effects.has(StrongLoad) || effects.has(Atomic) || effects.has(Fence) || effects.has(Sleep);
}

// The function that a call leads to, if the module defines it.
const Function* callee_of(const Module& m, const Statement& s, const LocalNames& names) {
  const auto call = parse_call(m, s, names);
  const Function* callee = call && call->direct ? m.find_function(call->callee) : nullptr;
  return callee != nullptr && callee->is_definition ? callee : nullptr;
}

// Loops around calls of functions that see other threads.
MaybeText find_in_loops(const CallGraph& graph, const ControlFlow& flow, const DataFlow& data,
                        const Waiting& waiting) {
  const Module& m = graph.module();
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    if (!flow.in_loop(i) || !waiting.goes_on_by_memory(i)) continue;
    const Statement& s = *flow.instructions()[i].statement;
    const Function* callee = callee_of(m, s, data.names());
    if (callee != nullptr && sees_other_threads(graph.closure(*callee)))
      return fmt::format("{}, called in a loop, may see what other threads do ({})", callee->name,
                         m.place(s.head));
  }
  return std::nullopt;
}

MaybeText find_in(const CallGraph& graph, const Function& function, bool is_called) {
  const Module& m = graph.module();
  if (is_called && graph.is_recursive(function) && sees_other_threads(graph.closure(function)))
    return fmt::format("{}, called by it, calls itself and may see what other threads do", function.name);
  const ControlFlow flow(m, function);
  if (!flow.has_unknown_branch() && Loops(flow).all().empty()) return std::nullopt;  // most have no loop
  const DataFlow data(m, function, flow);
  Waiting waiting(m, flow, data);
  if (const auto found = is_called ? waiting.find() : std::nullopt)
    return fmt::format("{}, called by it, may wait: {}", function.name, *found);
  return find_in_loops(graph, flow, data, waiting);
}

}  // namespace

MaybeText waiting_by_calls(const CallGraph& graph, const Function& kernel) {
  if (graph.functions().size() < 2) return std::nullopt;
  for (const Function* f : graph.functions()) {
    // A debug build's functions that stand for the device runtime's only pass the call on.
    if (f != &kernel && !runtime_function(graph.module(), *f).empty()) continue;
    if (auto found = find_in(graph, *f, f != &kernel)) return found;
  }
  return std::nullopt;
}

}  // namespace klap::analysis
