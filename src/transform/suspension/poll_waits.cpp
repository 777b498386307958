#include "transform/suspension/poll_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/launches/idioms.h"
#include "analysis/suspension/polls.h"
#include "analysis/suspension/suspension.h"
#include "ptx/edit.h"
#include "transform/text/parts.h"

namespace klap::transform {

namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

bool launches(const analysis::Effects& effects) {
  return std::ranges::any_of(effects.all(), [](const analysis::Effect& each) {
    return each.kind == analysis::EffectKind::DeviceRuntime &&
           analysis::idioms().is_kind(each.what, "launch");
  });
}

// Kernels that launch, and what they call.
std::set<const Function*> functions_of_parents(const Module& unit) {
  std::set<const Function*> found;
  for (const Function& kernel : unit.functions) {
    if (!kernel.is_definition || kernel.kind != ptx::FunctionKind::Entry) continue;
    const analysis::CallGraph graph(unit, kernel);
    if (launches(graph.closure(kernel))) found.insert(graph.functions().begin(), graph.functions().end());
  }
  return found;
}

// The statement of the function's body that holds the instruction. A thread can stop in front of that alone.
const Statement& in_body(const Function& function, const Statement& instruction) {
  return *std::ranges::find_if(function.body.body, [&](const Statement& each) {
    return each.tokens.first <= instruction.tokens.first && instruction.tokens.last <= each.tokens.last;
  });
}

}  // namespace

std::optional<std::string> with_waits_at_polls(const Module& unit) {
  ptx::Edits edits(unit);
  const std::string wait =
      fmt::format("{{ .param .b32 retval0; call.uni (retval0), {}, (); }} ", analysis::kWaitAtPoll);
  for (const Function* const function : functions_of_parents(unit)) {
    for (const Statement* const poll : analysis::find_polls(analysis::FlowFacts(unit, *function)))
      edits.insert_before(in_body(*function, *poll).tokens.first, wait);
  }
  if (edits.empty()) return std::nullopt;
  edits.insert_before(behind_header(unit),
                      fmt::format(".extern .func (.param .b32 result) {} (); ", analysis::kWaitAtPoll));
  return edits.apply();
}

}  // namespace klap::transform
