#include "analysis/legality.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/allocation.h"
#include "analysis/called_waiting.h"
#include "analysis/chaining.h"
#include "analysis/cooperation.h"
#include "analysis/exits.h"
#include "analysis/fixed_rounds.h"
#include "analysis/inlining.h"
#include "analysis/own_streams.h"
#include "analysis/redirection.h"
#include "analysis/retry.h"
#include "analysis/sharing.h"
#include "analysis/single_thread.h"
#include "analysis/sizes.h"
#include "analysis/values.h"
#include "analysis/waiting.h"
#include "analysis/wrappers.h"
#include "ptx/dialect.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

const char* to_string(Reason reason) {
  switch (reason) {
#define KLAP_REASON(name, text, meaning) \
  case Reason::name:                     \
    return text;
    KLAP_REASONS(KLAP_REASON)
#undef KLAP_REASON
  }
  return "unknown";
}

const char* meaning(Reason reason) {
  switch (reason) {
#define KLAP_REASON(name, text, meaning) \
  case Reason::name:                     \
    return meaning;
    KLAP_REASONS(KLAP_REASON)
#undef KLAP_REASON
  }
  return "unknown";
}

namespace {

Objection object(Reason reason, std::string detail) { return {reason, std::move(detail)}; }

// ---- instructions of the child and of what it calls ----

// What a consumer cannot give a child whose instructions have this effect; nothing where it can.
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

std::optional<Objection> object_to_instruction(const Module& m, const Statement& s) {
  for (EffectKind effect : instruction_effects(m, s)) {
    if (const auto reason = reason_against(effect))
      return object(*reason, fmt::format("{} ({})", m.full_opcode(s), m.place(s.head)));
  }
  return std::nullopt;
}

using Kinds = std::initializer_list<EffectKind>;
constexpr Kinds kNamedMemory = {EffectKind::Texture, EffectKind::StaticShared, EffectKind::DynamicShared};
constexpr Kinds kNamedRegisters = {EffectKind::OtherRegister};

// Instructions first, then what the function names: variables or registers of these kinds.
std::optional<Objection> object_to_effects(const Module& m, const Function& f, const Effects& effects,
                                           Kinds names) {
  std::optional<Objection> found;
  ptx::for_each_statement(f.body, [&](const Statement& s) {
    if (!found) found = object_to_instruction(m, s);
  });
  if (found) return found;
  for (const Effect& effect : effects.all()) {
    if (std::find(names.begin(), names.end(), effect.kind) == names.end()) continue;
    if (const auto reason = reason_against(effect.kind))
      return object(*reason, fmt::format("{} ({})", effect.what, m.place(effect.token)));
  }
  return std::nullopt;
}

// What a called function may do less of than the child itself: its registers are not replaced, and its `exit`
// is not turned into a branch.
std::optional<Objection> object_to_callee(const CallGraph& graph, const Function& callee, const Way& way) {
  const Module& m = graph.module();
  const Effects& effects = graph.own(callee);
  if (auto objection = object_to_effects(m, callee, effects, kNamedMemory)) return objection;
  for (const Effect& effect : effects.all()) {
    using enum EffectKind;
    const bool is_register =
        effect.kind == PositionRegister || effect.kind == LaneRegister || effect.kind == OtherRegister;
    // Where threads end as natively, lanes and exits are what they were.
    const bool is_kept = effect.kind == LaneRegister || effect.kind == Exit;
    if ((!is_register && effect.kind != Exit) || (is_kept && way.is_at_once())) continue;
    const std::string what = is_register ? "reads " + effect.what : "may exit";
    return object(Reason::ChildCallsUnknown, fmt::format("{}, called by it, {} ({}){}", callee.name, what,
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

}  // namespace

std::string runtime_call_text(std::string_view function, const std::string& place) {
  return fmt::format("{}, {}", idioms().describe(function), place);
}

std::optional<std::string> waits_for_others(const FunctionFacts& kernel) {
  Waiting waiting(kernel.module, kernel.flow, kernel.data, WaitsFor::Children);
  const auto found = waiting.find();
  return found ? found : waiting_by_calls(kernel.calls(), kernel.function);
}

namespace {

std::string unknown_callee_text(const Module& m, const Effect& call) {
  return fmt::format("{} is defined in another unit ({})", call.what, m.place(call.token));
}

// What a child asks of the device runtime, `call` being its first call there.
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

// Where the consumer feeds itself, the child's own launches are judged by feeding.h.
std::optional<Objection> object_to_calls(const CallGraph& graph, const Function& child, const Way& way) {
  const Effects& effects = graph.closure(child);
  const Module& m = graph.module();
  if (const Effect* call = effects.find(EffectKind::IndirectCall))
    return object(Reason::ChildCallsUnknown, fmt::format("an indirect call ({})", m.place(call->token)));
  for (const Effect& effect : effects.all()) {
    if (way.feeds && effect.function == &child && effect.kind == EffectKind::DeviceRuntime) continue;
    if (effect.kind == EffectKind::DeviceRuntime)
      return object(Reason::ChildLaunches, launches_text(m, child, effect));
    if (effect.kind == EffectKind::UnknownCall)
      return object(Reason::ChildCallsUnknown, unknown_callee_text(m, effect));
  }
  if (graph.is_recursive(child)) return object(Reason::ChildCallsUnknown, "calls itself");
  for (const Function* callee : graph.functions()) {
    if (callee == &child) continue;
    if (auto objection = object_to_callee(graph, *callee, way)) return objection;
  }
  return std::nullopt;
}

// ---- waiting ----

// An instruction by which a loop may see what other threads write while it runs.
bool watches_memory(const Module& m, const Statement& s) {
  const std::string_view opcode = m.text(s.head);
  return is_strong_load(m, s) || opcode == "atom" || opcode == "membar" || opcode == "fence" ||
         opcode == "nanosleep" || opcode == "call";
}

// What belongs to launching does not wait: a launch in a loop is for others to judge, and calls for streams
// that are not needed are left out. Around a launch, neither does an atomic whose result is about something
// else than whether the loop goes on.
bool is_beside_launch(const FunctionFacts& parent, Waiting& waiting, uint32_t instruction, const Way& way) {
  const Statement& s = *parent.flow.instructions()[instruction].statement;
  return is_part_of_launching(parent, s) || is_own_stream_call(parent, s) ||
         (way.chains && parent.module.is(s.head, "atom") && !waiting.watches(instruction));
}

std::optional<Objection> object_to_parent_waiting(const FunctionFacts& parent, uint32_t site,
                                                  const Way& way) {
  Waiting waiting(parent.module, parent.flow, parent.data, WaitsFor::Children);
  std::optional<FixedRounds> rounds;  // few kernels need it
  const auto& instructions = parent.flow.instructions();
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const Statement& s = *instructions[i].statement;
    if (!watches_memory(parent.module, s) || !parent.flow.in_loop(i)) continue;
    if (memory_space(parent.module, s) == ".shared" || is_beside_launch(parent, waiting, i, way)) continue;
    if (!parent.flow.can_follow(site, i)) continue;
    if (parent.module.is(s.head, "atom") && !rounds) rounds.emplace(parent.module, parent.flow, parent.data);
    if (parent.module.is(s.head, "atom") && rounds->around(i)) continue;
    if (!waiting.ends_by_itself(i)) {
      return object(Reason::ParentWaits,
                    fmt::format("{} in a loop after the launch ({})", parent.module.full_opcode(s),
                                parent.module.place(s.head)));
    }
  }
  // Threads that do not launch, or not yet, may wait for the children of those that do.
  if (const auto found = waits_for_others(parent)) return object(Reason::ParentWaits, *found);
  return std::nullopt;
}

std::optional<Objection> object_to_child_waiting(const CallGraph& graph, const Function& child) {
  if (const auto found = waiting_by_calls(graph, child)) return object(Reason::ChildWaits, *found);
  const Module& m = graph.module();
  const ControlFlow flow(m, child);
  if (!flow.has_unknown_branch() && Loops(flow).all().empty()) return std::nullopt;  // most have no loop
  const DataFlow data(m, child, flow);
  if (const auto found = Waiting(m, flow, data).find()) return object(Reason::ChildWaits, *found);
  return std::nullopt;
}

// ---- the parent ----

}  // namespace

Objection object_to_runtime_call(std::string_view function, const std::string& subject,
                                 const std::string& place) {
  const std::string text = subject + runtime_call_text(function, place);
  if (!idioms().is_kind(function, "wait")) return object(Reason::RuntimeCall, text);
  return object(
      Reason::ParentWaits,
      text + ": only version 1 of dynamic parallelism can, and ptxas refuses it for sm_90 and later");
}

namespace {

// One of the two calls of one of the parent's sites.
bool is_launch(const FunctionFacts& parent, const Statement& s) {
  return std::ranges::any_of(parent.sites,
                             [&](const Site& site) { return &s == site.get_call || &s == site.launch_call; });
}

// True for a device-runtime function that does the same before and after a launch: memory that is taken stays
// (object_to_frees() looks at the rest), and the device is what it is. Where it fails, it leaves an error for
// the kernel to ask for.
bool has_no_order(std::string_view function) {
  return idioms().is_kind(function, "allocation") || idioms().is_kind(function, "query");
}

std::optional<Objection> object_to_parent_call(const FunctionFacts& parent, const Site& site,
                                               const FlatInstruction& instruction) {
  const Statement& s = *instruction.statement;
  const auto call = parse_call(parent.module, s, parent.data.names());
  if (!call || is_launch(parent, s)) return std::nullopt;
  const std::string where = parent.module.place(s.head);
  if (!call->direct) return object(Reason::ParentCallsUnknown, fmt::format("an indirect call ({})", where));
  if (is_own_stream_call(parent, s)) return std::nullopt;
  const std::string_view function = runtime_function(parent.module, call->callee);
  if (function.empty() || idioms().is_last_error(function) || idioms().is_peek_last_error(function) ||
      idioms().is_error_text(function))
    return std::nullopt;
  if (has_no_order(function) && parent.error_queries.empty()) return std::nullopt;
  Objection objection = object_to_runtime_call(function, "", where);
  if (has_no_order(function)) objection.detail += ", and the kernel asks for the last error";
  const bool own_stream = std::any_of(site.streams.begin(), site.streams.end(), [](const StreamValue& v) {
    return v.kind == StreamClass::Created || v.kind == StreamClass::Array;
  });
  if (own_stream && idioms().is_kind(function, "stream-create"))
    objection.detail += "; the launch's stream is " + print(site.streams);
  if (idioms().is_kind(function, "stream-create") || idioms().is_kind(function, "stream-destroy"))
    objection.detail += ", and " + parent.own_streams.problem;
  return objection;
}

std::optional<Objection> object_to_parent_calls(const FunctionFacts& parent, const Site& site,
                                                const Way& way) {
  const Module& m = parent.module;
  for (const FlatInstruction& f : parent.flow.instructions()) {
    auto objection = object_to_parent_call(parent, site, f);
    if (objection && !(way.is_at_once() && objection->reason == Reason::RuntimeCall)) return objection;
  }
  for (const ErrorQuery& query : parent.error_queries) {
    if (query.problem.empty()) continue;
    return object(Reason::RuntimeCall,
                  fmt::format("a last-error query ({}): {}", m.place(query.call->head), query.problem));
  }
  const CallGraph& graph = parent.calls();
  const Effects& effects = graph.closure(parent.function);
  if (const Effect* call = effects.find(EffectKind::IndirectCall)) {
    return object(Reason::ParentCallsUnknown, fmt::format("{}, called by it, has an indirect call ({})",
                                                          call->function->name, m.place(call->token)));
  }
  if (const Effect* unknown = effects.find(EffectKind::UnknownCall))
    return object(Reason::ParentCallsUnknown, unknown_callee_text(m, *unknown));
  if (way.is_at_once()) return object_to_calls_beside(parent);
  if (auto objection = object_to_frees(parent)) return objection;
  for (const Function* callee : graph.callees(parent.function)) {
    // What a wrapper calls counts as called where the wrapper is.
    if (!runtime_function(m, *callee).empty()) continue;
    if (const Effect* call = graph.closure(*callee).find(EffectKind::DeviceRuntime))
      return object_to_runtime_call(call->what, fmt::format("{}, called by it, ", callee->name),
                                    m.place(call->token));
  }
  return std::nullopt;
}

// What a parameter of a called function is at its calls: "a (line 12:2), b (line 40:2)".
std::string passed_by_callers(const FunctionFacts& callee, uint64_t parameter) {
  const Module& m = callee.module;
  std::string text;
  for (const Caller& caller : callers_of(m, callee.function.name).calls) {
    const FunctionFacts facts(m, *caller.function);
    const auto call = parse_call(m, *caller.call, facts.data.names());
    std::string passed = "unknown";
    if (caller.scope != &caller.function->body && parameter < call->parameters.size()) {
      const CallScope scope = read_call_scope(m, *caller.scope, *caller.call);
      const std::string* operand = scope.actual(call->parameters[parameter], 0);
      if (operand != nullptr) passed = print(origins_of(facts, *operand), *caller.function);
    }
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", passed, caller.place);
  }
  return text;
}

// Where an address of a kernel comes from that is not simply its name.
std::string callee_text(const FunctionFacts& parent, const Site& site) {
  const std::vector<Origin> origins = origins_of(parent, site.callee_operand);
  const bool selected =
      origins.size() > 1 && std::all_of(origins.begin(), origins.end(),
                                        [](const Origin& o) { return o.kind == OriginKind::Symbol; });
  std::string text = fmt::format("the kernel's address is {}{}", selected ? "selected: " : "",
                                 print(origins, parent.function));
  for (const Origin& origin : origins) {
    if (origin.kind != OriginKind::Parameter || parent.function.kind == ptx::FunctionKind::Entry) continue;
    const std::string passed = passed_by_callers(parent, origin.value);
    text += passed.empty() ? ", which nothing in its unit calls" : ", which is given " + passed;
  }
  return text;
}

// The directive by which a kernel is launched in clusters, with its place.
std::optional<std::string> cluster_directive(const Module& m, const Function& f) {
  for (uint32_t t = f.attributes.first; t < f.attributes.last; ++t) {
    for (const char* name :
         {".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters"}) {
      if (m.is(t, name)) return fmt::format("{} ({})", name, m.place(t));
    }
  }
  return std::nullopt;
}

}  // namespace

uint32_t parameter_limit(const Module& m) {
  return m.version.size() > 2 && m.version >= "8.1" ? 32764 : 4096;
}

namespace {

// ---- the launch ----

// `.maxntid 256, 1, 1` and `.reqntid`: the numbers behind a performance directive; 1 where fewer than three
// stand.
struct Dimensions {
  std::array<uint64_t, 3> size = {1, 1, 1};
  std::string place;
};
std::optional<Dimensions> dimensions_attribute(const Module& m, const Function& f, std::string_view name) {
  for (uint32_t t = f.attributes.first; t < f.attributes.last; ++t) {
    if (!m.is(t, name)) continue;
    Dimensions out;
    out.place = m.place(t);
    size_t axis = 0;
    for (++t; t < f.attributes.last && axis < 3; ++t) {
      if (m.is(t, ",")) continue;
      const auto value = ptx::integer_value(m.text(t));
      if (!value) break;
      out.size[axis++] = *value;
    }
    return out;
  }
  return std::nullopt;
}

std::optional<Objection> object_to_block(const Module& m, const Function& child,
                                         const std::array<uint32_t, 3>& block) {
  const uint64_t threads = uint64_t{block[0]} * block[1] * block[2];
  const std::string text = fmt::format("{}x{}x{}", block[0], block[1], block[2]);
  if (threads == 0 || block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024) {
    return object(Reason::BlockRefused, text);
  }
  if (const auto most = dimensions_attribute(m, child, ".maxntid")) {
    if (threads > most->size[0] * most->size[1] * most->size[2]) {
      return object(Reason::BlockRefused,
                    fmt::format("{} exceeds the child's launch bounds ({})", text, most->place));
    }
  }
  if (const auto exact = dimensions_attribute(m, child, ".reqntid")) {
    if (!std::equal(block.begin(), block.end(), exact->size.begin())) {
      return object(Reason::BlockRefused,
                    fmt::format("{} is not the block size the child requires ({})", text, exact->place));
    }
  }
  return std::nullopt;
}

std::optional<Objection> object_to_arguments(const Function& child, const FunctionFacts& parent,
                                             const Site& site) {
  if (site.idiom->form == LaunchForm::Documented) {
    const auto bytes = parent.data.constant(site.buffer_bytes);
    if (!bytes || *bytes < child.parameter_bytes) {
      return object(Reason::ArgumentMismatch,
                    fmt::format("a buffer of {} bytes, parameters of {} bytes",
                                bytes ? std::to_string(*bytes) : site.buffer_bytes, child.parameter_bytes));
    }
  }
  for (const Argument& argument : site.arguments) {
    if (argument.offset + argument.bytes > child.parameter_bytes) {
      return object(
          Reason::ArgumentMismatch,
          fmt::format("an argument at offset {} of {} bytes ({}), parameters of {} bytes", argument.offset,
                      argument.bytes, parent.module.place(argument.store->head), child.parameter_bytes));
    }
  }
  return std::nullopt;
}

}  // namespace

uint64_t most_threads_allowed(const Module& m, const Function& kernel) {
  const auto most = dimensions_attribute(m, kernel, ".maxntid");
  return most ? most->size[0] * most->size[1] * most->size[2] : ~uint64_t{0};
}

std::optional<std::string> required_block(const Module& m, const Function& kernel) {
  const auto exact = dimensions_attribute(m, kernel, ".reqntid");
  return exact ? std::optional(exact->place) : std::nullopt;
}

// Where the stream depends on a condition, the site is judged by the strictest of its streams. That is exact:
// each check for the NULL stream is about a pair of launches that may both go there, and holds for the
// launches that do, whichever they are; the laxer streams promise nothing that the check for the strictest
// does not cover.
StreamKind stream_kind(const Site& site) {
  if (site.streams.empty()) return StreamKind::Other;
  const auto is_tail = [](const StreamValue& stream) { return stream.kind == StreamClass::TailLaunch; };
  if (std::ranges::all_of(site.streams, is_tail)) return StreamKind::Tail;
  StreamKind strictest = StreamKind::FireAndForget;
  for (const StreamValue& stream : site.streams) {
    StreamKind kind = StreamKind::Other;
    if (stream.kind == StreamClass::Null) kind = StreamKind::Null;
    if (stream.kind == StreamClass::PerThread) kind = StreamKind::PerThread;
    if (stream.kind == StreamClass::FireAndForget) kind = StreamKind::FireAndForget;
    if (stream.kind == StreamClass::Own) kind = StreamKind::Own;
    strictest = std::max(strictest, kind);
  }
  return strictest;
}

std::vector<Origin> origins_of(const FunctionFacts& facts, std::string_view operand) {
  return origins_of({facts.module, facts.function, facts.flow, facts.data}, operand);
}

void FunctionFacts::find_own_streams() { own_streams = analysis::find_own_streams(*this, sites); }

const Values& FunctionFacts::values() const {
  if (values_ == nullptr) values_ = std::make_shared<const Values>(flow);
  return *values_;
}

const CallGraph& FunctionFacts::calls() const {
  if (calls_ == nullptr) calls_ = std::make_shared<const CallGraph>(module, function);
  return *calls_;
}

std::optional<std::array<uint32_t, 3>> constant_block(const Site& site, const FunctionFacts& parent) {
  std::array<uint32_t, 3> out{};
  std::optional<SiteValues> computed;
  for (size_t axis = 0; axis < 3; ++axis) {
    auto value = parent.data.constant(site.block.at(axis));
    // Most blocks are literals; only the others are worth evaluating.
    if (!value && !computed) computed = site_values(parent.values(), site);
    if (!value) value = computed->block.at(axis).value.constant();
    if (!value) return std::nullopt;
    out.at(axis) = static_cast<uint32_t>(*value);
  }
  return out;
}

std::optional<uint32_t> constant_shared_bytes(const Site& site, const FunctionFacts& parent) {
  auto value = parent.data.constant(site.shared);
  if (!value) value = site_values(parent.values(), site).shared.value.constant();
  if (!value) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

std::optional<Objection> object_to_unit(const Module& m, bool debug_allowed) {
  const std::string directive = m.place(ptx::target_directive(m));
  if (m.debug && !debug_allowed)
    return object(Reason::DebugBuild, fmt::format("the unit's target says debug ({})", directive));
  const auto target = ptx::parse_target(m.target);
  if (!target || !ptx::parse_version(m.version)) {
    return object(Reason::NotUnderstood,
                  fmt::format("PTX {} for target {} ({})", m.version, m.target, directive));
  }
  if (ptx::runs_in_lockstep(*target)) {
    return object(Reason::TargetTooOld, fmt::format("the unit's target is {} ({})", m.target, directive));
  }
  return std::nullopt;
}

namespace {

// What is launched into the tail stream begins when the grid and all else that it launched is complete. So it
// is the last to be run, and by the host, behind all that was recorded: nothing may be launched in another
// way then, or by a later part of the grid.
std::optional<Objection> object_to_tail(const FunctionFacts& parent, const Site& site, const Way& way) {
  const auto is_tail = [](const Site& s) { return stream_kind(s) == StreamKind::Tail; };
  const auto tail = std::ranges::find_if(parent.sites, is_tail);
  if (tail == parent.sites.end()) return std::nullopt;
  const bool is_last = way.granularity == Granularity::Grid && way.launcher == Launcher::Host;
  if (is_tail(site) && (!is_last || way.has_own_room()))
    return object(Reason::StreamUnsupported, "the stream is " + print(site.streams));
  if (is_tail(site) && !is_launched_by_one_thread_of_all(parent, site, way.block, way.grid))
    return object(Reason::StreamUnsupported,
                  "several threads of the grid may launch into its tail-launch stream");
  if (is_tail(site) && std::any_of(tail + 1, parent.sites.end(), is_tail)) {
    return object(Reason::SeveralSites, fmt::format("{} and others launch into the tail-launch stream",
                                                    ptx::place(tail->position)));
  }
  return is_last ? object_to_differing_sizes(parent, site) : std::nullopt;
}

}  // namespace

std::optional<Objection> object_to_parent(const FunctionFacts& parent, const Site& site, const Way& way) {
  const Module& m = parent.module;
  if (!site.understood()) return object(Reason::NotUnderstood, site.problem);
  if (site.callee.empty()) return object(Reason::CalleeUnknown, callee_text(parent, site));
  if (parent.function.kind != ptx::FunctionKind::Entry) {
    return object(
        Reason::LaunchInFunction,
        fmt::format("{} is called, not launched: by {}{}", parent.function.name,
                    print(callers_of(m, parent.function.name)), not_inlined_text(m, parent.function)));
  }
  if (way.is_at_once()) {
    if (site.idiom->is_version_1())
      return object(Reason::OldRuntime, fmt::format("it calls {}", site.idiom->launch));
    if (auto objection = object_to_parent_calls(parent, site, way)) return objection;
    if (stream_kind(site) == StreamKind::Other || stream_kind(site) == StreamKind::Own ||
        stream_kind(site) == StreamKind::Tail)
      return object(Reason::StreamUnsupported, "the stream is " + print(site.streams));
    if (auto objection = object_to_sharing(parent, site)) return objection;
    if (const auto directive = cluster_directive(m, parent.function))
      return object(Reason::ParentCluster, *directive);
    return std::nullopt;
  }
  const uint32_t at = parent.flow.index_of(site.get_call);
  if (parent.flow.in_loop(at) && !way.chains) {
    const std::string retry = print_retry(retry_place({m, parent.function, parent.flow, parent.data}, site));
    return object(Reason::SiteInLoop,
                  fmt::format("control can come back to {}{}{}", m.place(site.get_call->head),
                              retry.empty() ? "" : ": ", retry));
  }
  if (auto objection = object_to_parent_calls(parent, site, way)) return objection;
  const StreamKind stream = stream_kind(site);
  if (stream == StreamKind::Other)
    return object(Reason::StreamUnsupported, "the stream is " + print(site.streams));
  if (auto objection = object_to_tail(parent, site, way)) return objection;
  if (auto objection = object_to_parent_waiting(parent, at, way)) return objection;
  if (const auto directive = cluster_directive(m, parent.function))
    return object(Reason::ParentCluster, *directive);
  if (parent.function.parameter_bytes + 8 + 8 * parent.sites.size() > parameter_limit(m)) {
    return object(Reason::ParameterSpace,
                  fmt::format("{} bytes of parameters", parent.function.parameter_bytes));
  }
  if (auto objection = object_to_launch_sizes(parent, site, way)) return objection;
  if (site.idiom->is_version_1())
    return object(Reason::OldRuntime, fmt::format("it calls {}", site.idiom->launch));
  if (way.launcher == Launcher::Device) return object_to_exits(parent);
  return std::nullopt;
}

std::optional<Objection> object_to_child(const Module& m, const Function& child, const FunctionFacts& parent,
                                         const Site& site, const Way& way) {
  return object_to_child(m, child, parent, site, way, constant_block(site, parent));
}

std::optional<Objection> object_to_child(const Module& m, const Function& child, const FunctionFacts& parent,
                                         const Site& site, const Way& way,
                                         const std::optional<std::array<uint32_t, 3>>& block) {
  if (child.kind != ptx::FunctionKind::Entry || !child.is_definition) {
    return object(Reason::ChildNotFound, fmt::format("{} is not a kernel defined there", child.name));
  }
  // Any other block is refused by CUDA at the launch, as natively.
  if (auto objection = block ? object_to_block(m, child, *block) : std::nullopt) return objection;
  if (auto objection = object_to_arguments(child, parent, site)) return objection;
  if (const auto directive = cluster_directive(m, child)) return object(Reason::ChildCluster, *directive);
  const CallGraph graph(m, child);
  if (auto objection = object_to_calls(graph, child, way)) return objection;
  if (auto objection = object_to_effects(m, child, graph.own(child), kNamedMemory)) return objection;
  if (auto objection = object_to_effects(m, child, graph.own(child), kNamedRegisters)) return objection;
  if (const auto token = not_redirected(m, child))
    return object(Reason::ChildParameterUse,
                  fmt::format("'{}' cannot be redirected ({})", m.text(*token), m.place(*token)));
  if (auto objection = object_to_child_waiting(graph, child)) return objection;
  if (auto objection = block ? std::nullopt : object_to_child_sizes(m, child, graph, site, way))
    return objection;
  // What is not constant is looked at there.
  const auto shared_bytes = constant_shared_bytes(site, parent).value_or(0);
  if (auto objection = object_to_cooperation(m, child, graph, block.value_or(std::array<uint32_t, 3>{}),
                                             shared_bytes, way))
    return objection;
  return std::nullopt;
}

}  // namespace klap::analysis
