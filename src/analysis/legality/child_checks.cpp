#include "analysis/legality/child_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/effects/called_waiting.h"
#include "analysis/effects/waiting.h"
#include "analysis/executed/earlier_blocks.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/facts/runtime_calls.h"
#include "analysis/inline/inlining.h"
#include "analysis/inline/redirection.h"
#include "analysis/launches/wrappers.h"
#include "analysis/legality/cooperation.h"
#include "analysis/legality/sizes.h"
#include "ptx/dialect.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

namespace {

Rejection reject(Reason reason, std::string detail) { return {reason, std::move(detail)}; }

// ---- instructions of the child and of what it calls ----

// The reason why a consumer cannot run a child whose instructions have this effect; nothing if it can.
std::optional<Reason> reason_against(EffectKind effect) {
  using enum EffectKind;
  switch (effect) {
    case ClusterBarrier:
      return Reason::ChildBarrier;
    case Texture:
      return Reason::ChildTexture;
    case OtherRegister:
      return Reason::ChildSpecialRegister;
    case BarrierObject:
    case ClusterAccess:
    case StackAllocation:
    case AsyncCopy:
    case GridDependency:
    case UnlistedInstruction:
      return Reason::ChildInstruction;
    case DeviceRuntime:
      return Reason::ChildLaunches;
    case UnknownCall:
    case IndirectCall:
      return Reason::ChildCallsUnknown;
    case BlockBarrier:  // these and what follows up to SharedAccess: see cooperation.h
    case PartialBarrier:
    case WarpSync:
    case StaticShared:
    case DynamicShared:
    case SharedAccess:
    case BlockScope:
    case PositionRegister:
    case LaneRegister:
    case ClockRegister:
    case ProcessorRegister:
    case LocalMemory:
    case Atomic:
    case Reduction:
    case StrongLoad:
    case StrongStore:
    case Fence:
    case Sleep:
    case Allocation:
    case Printing:
    case Assertion:
    case Trap:
    case Exit:
      return std::nullopt;
  }
  return Reason::ChildInstruction;
}

std::optional<Rejection> check_instruction(const Module& m, const Statement& s) {
  for (EffectKind effect : instruction_effects(m, s)) {
    if (const auto reason = reason_against(effect))
      return reject(*reason, fmt::format("{} ({})", m.full_opcode(s), m.place(s.head)));
  }
  return std::nullopt;
}

using Kinds = std::initializer_list<EffectKind>;
constexpr Kinds kNamedMemory = {EffectKind::Texture, EffectKind::StaticShared, EffectKind::DynamicShared};
constexpr Kinds kNamedRegisters = {EffectKind::OtherRegister};

// Checks instructions first, then variables and registers that the function names.
std::optional<Rejection> check_effects(const Module& m, const Function& f, const Effects& effects,
                                       Kinds names) {
  std::optional<Rejection> found;
  ptx::for_each_statement(f.body, [&](const Statement& s) {
    if (!found) found = check_instruction(m, s);
  });
  if (found) return found;
  for (const Effect& effect : effects.all()) {
    if (std::find(names.begin(), names.end(), effect.kind) == names.end()) continue;
    if (const auto reason = reason_against(effect.kind))
      return reject(*reason, fmt::format("{} ({})", effect.what, m.place(effect.token)));
  }
  return std::nullopt;
}

// The rejection to a called function. It may do less than the child itself, because its registers are not
// replaced and its `exit` is not turned into a branch.
std::optional<Rejection> check_callee(const CallGraph& graph, const Function& callee,
                                      const Aggregation& aggregation) {
  const Module& m = graph.module();
  const Effects& effects = graph.own(callee);
  if (auto rejection = check_effects(m, callee, effects, kNamedMemory)) return rejection;
  for (const Effect& effect : effects.all()) {
    using enum EffectKind;
    const bool is_register =
        effect.kind == PositionRegister || effect.kind == LaneRegister || effect.kind == OtherRegister;
    // If threads end as they do natively, lanes and exits are unchanged.
    const bool is_kept = effect.kind == LaneRegister || effect.kind == Exit;
    if ((!is_register && effect.kind != Exit) || (is_kept && aggregation.is_immediate())) continue;
    const std::string what = is_register ? "reads " + effect.what : "may exit";
    return reject(Reason::ChildCallsUnknown, fmt::format("{}, called by it, {} ({}){}", callee.name, what,
                                                         m.place(effect.token), not_inlined_text(m, callee)));
  }
  return std::nullopt;
}

// The kernels that a kernel and what it calls launch, as far as they are known.
struct Launched {
  std::string kernel;
  std::string place;
};
std::vector<Launched> launched_by(const Module& m, const Function& kernel) {
  const LaunchNames names = launch_names(m);
  std::vector<const Function*> functions = call_closure(m, kernel).functions;
  functions.insert(functions.begin(), &kernel);
  std::vector<Launched> out;
  for (const Function* f : functions) {
    if (!may_launch(m, *f, names)) continue;
    const ControlFlow flow(m, *f);
    for (const Site& site : find_sites(m, *f, flow, DataFlow(m, *f, flow))) {
      if (!site.callee.empty()) out.push_back({site.callee, ptx::place(site.position)});
    }
  }
  return out;
}

// True if `kernel`, or what it launches at any depth, launches `target`.
bool leads_to(const Module& m, const std::string& kernel, const std::string& target) {
  std::vector<std::string> work = {kernel};
  for (size_t next = 0; next < work.size(); ++next) {
    const Function* f = m.find_function(work[next]);
    if (f == nullptr || !f->is_definition) continue;
    for (const Launched& launched : launched_by(m, *f)) {
      if (launched.kernel == target) return true;
      if (std::find(work.begin(), work.end(), launched.kernel) == work.end()) work.push_back(launched.kernel);
    }
  }
  return false;
}

// Describes the use that a child makes of the device runtime; `call` is its first call there.
std::string launches_text(const Module& m, const Function& child, const Effect& call) {
  std::string otherwise = runtime_call_text(call.what, m.place(call.token));
  if (!idioms().is_kind(call.what, "launch")) return otherwise;
  const std::vector<Launched> launched = launched_by(m, child);
  if (launched.empty()) return otherwise;
  for (const Launched& l : launched) {
    if (l.kernel == child.name) return fmt::format("launches itself ({}): recursion", l.place);
  }
  for (const Launched& l : launched) {
    if (leads_to(m, l.kernel, child.name))
      return fmt::format("launches {} ({}), which leads back to it: mutual recursion", l.kernel, l.place);
  }
  return fmt::format("launches {} ({})", launched[0].kernel, launched[0].place);
}

// If the consumer runs a worklist, recursion.h checks the child's own launches.
std::optional<Rejection> check_calls(const CallGraph& graph, const Function& child,
                                     const Aggregation& aggregation) {
  const Effects& effects = graph.closure(child);
  const Module& m = graph.module();
  if (const Effect* call = effects.find(EffectKind::IndirectCall))
    return reject(Reason::ChildCallsUnknown, fmt::format("an indirect call ({})", m.place(call->token)));
  for (const Effect& effect : effects.all()) {
    if (aggregation.is_recursive && effect.function == &child && effect.kind == EffectKind::DeviceRuntime)
      continue;
    if (effect.kind == EffectKind::DeviceRuntime)
      return reject(Reason::ChildLaunches, launches_text(m, child, effect));
    if (effect.kind == EffectKind::UnknownCall)
      return reject(Reason::ChildCallsUnknown, unknown_callee_text(m, effect));
  }
  if (graph.is_recursive(child)) return reject(Reason::ChildCallsUnknown, "calls itself");
  for (const Function* callee : graph.functions()) {
    if (callee == &child) continue;
    if (auto rejection = check_callee(graph, *callee, aggregation)) return rejection;
  }
  return std::nullopt;
}

// The executor runs all threads of a child's block at the same time. Others may run them one after another.
std::optional<Rejection> check_child_waiting(const CallGraph& graph, const Function& child,
                                             const Aggregation& aggregation) {
  if (const auto found = waiting_by_calls(graph, child)) return reject(Reason::ChildWaits, *found);
  const Module& m = graph.module();
  const ControlFlow flow(m, child);
  if (!flow.has_unknown_branch() && Loops(flow).all().empty()) return std::nullopt;  // most have no loop
  const DataFlow data(m, child, flow);
  const WaitsFor whom = aggregation.is_executed ? WaitsFor::OtherBlocks : WaitsFor::Anybody;
  const auto found = Waiting(m, flow, data, whom).find();
  if (!found) return std::nullopt;
  if (!aggregation.is_executed) return reject(Reason::ChildWaits, *found);
  const EarlierBlocks earlier = waits_for_earlier_blocks(FunctionFacts(m, child));
  if (earlier.shown) return std::nullopt;
  if (earlier.why_not.empty()) return reject(Reason::ChildWaits, *found);
  return reject(Reason::ChildWaits,
                fmt::format("{}, and not only for blocks before it: {}", *found, earlier.why_not));
}

// ---- the launch ----

std::optional<Rejection> check_block(const Module& m, const Function& child,
                                     const std::array<uint32_t, 3>& block) {
  const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  const std::string text = fmt::format("{}x{}x{}", block[0], block[1], block[2]);
  if (threads == 0 || block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024) {
    return reject(Reason::BlockRefused, text);
  }
  if (const auto most = dimensions_attribute(m, child, ".maxntid")) {
    if (threads > most->size[0] * most->size[1] * most->size[2]) {
      return reject(Reason::BlockRefused,
                    fmt::format("{} exceeds the child's launch bounds ({})", text, most->place));
    }
  }
  if (const auto exact = dimensions_attribute(m, child, ".reqntid")) {
    if (!std::equal(block.begin(), block.end(), exact->size.begin())) {
      return reject(Reason::BlockRefused,
                    fmt::format("{} is not the block size the child requires ({})", text, exact->place));
    }
  }
  return std::nullopt;
}

std::optional<Rejection> check_arguments(const Function& child, const FunctionFacts& parent,
                                         const Site& site) {
  if (site.idiom->form == LaunchForm::Documented) {
    const auto bytes = parent.data.constant(site.buffer_bytes);
    if (!bytes || *bytes < child.parameter_bytes) {
      return reject(Reason::ArgumentMismatch,
                    fmt::format("a buffer of {} bytes, parameters of {} bytes",
                                bytes ? std::to_string(*bytes) : site.buffer_bytes, child.parameter_bytes));
    }
  }
  for (const Argument& argument : site.arguments) {
    if (argument.offset + argument.bytes > child.parameter_bytes) {
      return reject(
          Reason::ArgumentMismatch,
          fmt::format("an argument at offset {} of {} bytes ({}), parameters of {} bytes", argument.offset,
                      argument.bytes, parent.module.place(argument.store->head), child.parameter_bytes));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Rejection> check_child(const Module& m, const Function& child, const FunctionFacts& parent,
                                     const Site& site, const Aggregation& aggregation) {
  return check_child(m, child, parent, site, aggregation, constant_block(site, parent));
}

std::optional<Rejection> check_child(const Module& m, const Function& child, const FunctionFacts& parent,
                                     const Site& site, const Aggregation& aggregation,
                                     const std::optional<std::array<uint32_t, 3>>& block) {
  if (child.kind != ptx::FunctionKind::Entry || !child.is_definition) {
    return reject(Reason::ChildNotFound, fmt::format("{} is not a kernel defined there", child.name));
  }
  // Any other block is refused by CUDA at the launch, as natively.
  if (auto rejection = block ? check_block(m, child, *block) : std::nullopt) return rejection;
  if (auto rejection = check_arguments(child, parent, site)) return rejection;
  if (const auto directive = cluster_directive(m, child)) return reject(Reason::ChildCluster, *directive);
  const CallGraph graph(m, child);
  if (auto rejection = check_calls(graph, child, aggregation)) return rejection;
  if (auto rejection = check_effects(m, child, graph.own(child), kNamedMemory)) return rejection;
  if (auto rejection = check_effects(m, child, graph.own(child), kNamedRegisters)) return rejection;
  if (const auto token = not_redirected(m, child))
    return reject(Reason::ChildParameterUse,
                  fmt::format("'{}' cannot be redirected ({})", m.text(*token), m.place(*token)));
  if (auto rejection = check_child_waiting(graph, child, aggregation)) return rejection;
  if (auto rejection = block ? std::nullopt : check_child_sizes(m, child, graph, parent, site, aggregation))
    return rejection;
  // Shared memory that is not constant is checked there.
  const auto shared_bytes = constant_shared_bytes(site, parent).value_or(0);
  if (auto rejection = check_cooperation(m, child, graph, block.value_or(std::array<uint32_t, 3>{}),
                                         shared_bytes, aggregation))
    return rejection;
  return std::nullopt;
}

}  // namespace klap::analysis
