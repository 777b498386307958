#include "analysis/legality/parent_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/effects/called_waiting.h"
#include "analysis/effects/waiting.h"
#include "analysis/executed/calls.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/facts/runtime_calls.h"
#include "analysis/facts/stream_order.h"
#include "analysis/inline/inlining.h"
#include "analysis/launches/retry.h"
#include "analysis/launches/wrappers.h"
#include "analysis/legality/allocation.h"
#include "analysis/legality/cooperation.h"
#include "analysis/legality/loop_launches.h"
#include "analysis/legality/sizes.h"
#include "analysis/legality/warp_aggregation.h"
#include "analysis/suspension/second_half.h"
#include "analysis/synchronisation/exits.h"
#include "analysis/synchronisation/single_thread.h"
#include "analysis/values/invariant_trip_count.h"
#include "analysis/values/values.h"
#include "ptx/dialect.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

std::optional<std::string> waits_for_others(const FunctionFacts& kernel) {
  Waiting waiting(kernel.module, kernel.flow, kernel.data, WaitsFor::Children);
  const auto found = waiting.find();
  return found ? found : waiting_by_calls(kernel.calls(), kernel.function);
}

namespace {

Rejection reject(Reason reason, std::string detail) { return {reason, std::move(detail)}; }

// ---- waiting ----

// True for an instruction by which a loop may see other threads' writes while it runs.
bool watches_memory(const Module& m, const Statement& s) {
  const std::string_view opcode = m.text(s.head);
  return is_strong_load(m, s) || opcode == "atom" || opcode == "membar" || opcode == "fence" ||
         opcode == "nanosleep" || opcode == "call";
}

// True for an instruction that belongs to launching and so does not wait. A launch in a loop is checked
// elsewhere, and calls for streams that are not needed are dropped. Around a launch, an atomic does not wait
// either if its result does not decide whether the loop goes on.
bool is_beside_launch(const FunctionFacts& parent, Waiting& waiting, uint32_t instruction,
                      const Aggregation& aggregation) {
  const Statement& s = *parent.flow.instructions()[instruction].statement;
  return is_part_of_launching(parent, s) || is_private_stream_call(parent, s) ||
         takes_frame(parent.module, s, parent.data.names()) ||
         (aggregation.is_executed && is_executed_call(parent, s)) ||
         (aggregation.has_loop_queue && parent.module.is(s.head, "atom") && !waiting.watches(instruction));
}

std::optional<Rejection> check_parent_waiting(const FunctionFacts& parent, uint32_t site,
                                              const Aggregation& aggregation) {
  Waiting waiting(parent.module, parent.flow, parent.data, WaitsFor::Children);
  std::optional<InvariantTripCount> iterations;  // few kernels need it
  const auto& instructions = parent.flow.instructions();
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const Statement& s = *instructions[i].statement;
    if (!watches_memory(parent.module, s) || !parent.flow.in_loop(i)) continue;
    if (memory_space(parent.module, s) == ".shared" || is_beside_launch(parent, waiting, i, aggregation))
      continue;
    if (!parent.flow.can_follow(site, i)) continue;
    if (parent.module.is(s.head, "atom") && !iterations)
      iterations.emplace(parent.module, parent.flow, parent.data);
    if (parent.module.is(s.head, "atom") && iterations->around(i)) continue;
    if (!waiting.ends_by_itself(i)) {
      return reject(Reason::ParentWaits,
                    fmt::format("{} in a loop after the launch ({})", parent.module.full_opcode(s),
                                parent.module.place(s.head)));
    }
  }
  // Threads that do not launch, or not yet, may wait for the children of threads that do.
  if (const auto found = waits_for_others(parent)) return reject(Reason::ParentWaits, *found);
  return std::nullopt;
}

// ---- calls ----

// True for one of the two calls of one of the parent's sites.
bool is_launch(const FunctionFacts& parent, const Statement& s) {
  return std::ranges::any_of(parent.sites,
                             [&](const Site& site) { return &s == site.get_call || &s == site.launch_call; });
}

// True for a device-runtime function that does the same before and after a launch: memory that is taken stays
// (check_frees() looks at the rest), and the device is what it is. If it fails, it leaves an error that
// the kernel can ask for.
bool has_no_order(std::string_view function) {
  return idioms().is_kind(function, "allocation") || idioms().is_kind(function, "query");
}

std::optional<Rejection> check_parent_call(const FunctionFacts& parent, const Site& site,
                                           const FlatInstruction& instruction,
                                           const Aggregation& aggregation) {
  const Statement& s = *instruction.statement;
  const auto call = parse_call(parent.module, s, parent.data.names());
  if (!call || is_launch(parent, s)) return std::nullopt;
  const std::string where = parent.module.place(s.head);
  if (!call->direct) return reject(Reason::ParentCallsUnknown, fmt::format("an indirect call ({})", where));
  if (is_private_stream_call(parent, s)) return std::nullopt;
  if (aggregation.is_executed && is_executed_call(parent, s)) return std::nullopt;
  const std::string_view function = runtime_function(parent.module, call->callee);
  if (function.empty() || idioms().is_last_error(function) || idioms().is_peek_last_error(function) ||
      idioms().is_error_text(function))
    return std::nullopt;
  if (has_no_order(function) && parent.error_queries.empty()) return std::nullopt;
  Rejection rejection = check_runtime_call(function, "", where);
  if (has_no_order(function)) rejection.detail += ", and the kernel asks for the last error";
  const bool own_stream = std::any_of(site.streams.begin(), site.streams.end(), [](const StreamValue& v) {
    return v.kind == StreamClass::Created || v.kind == StreamClass::Array;
  });
  if (own_stream && idioms().is_kind(function, "stream-create"))
    rejection.detail += "; the launch's stream is " + print(site.streams);
  if (idioms().is_kind(function, "stream-create") || idioms().is_kind(function, "stream-destroy"))
    rejection.detail += ", and " + parent.private_streams.problem;
  return rejection;
}

std::optional<Rejection> check_parent_calls(const FunctionFacts& parent, const Site& site,
                                            const Aggregation& aggregation) {
  const Module& m = parent.module;
  for (const FlatInstruction& f : parent.flow.instructions()) {
    auto rejection = check_parent_call(parent, site, f, aggregation);
    if (rejection && !(aggregation.is_immediate() && rejection->reason == Reason::RuntimeCall))
      return rejection;
  }
  for (const ErrorQuery& query : parent.error_queries) {
    if (query.problem.empty()) continue;
    return reject(Reason::RuntimeCall,
                  fmt::format("a last-error query ({}): {}", m.place(query.call->head), query.problem));
  }
  const CallGraph& graph = parent.calls();
  const Effects& effects = graph.closure(parent.function);
  if (const Effect* call = effects.find(EffectKind::IndirectCall)) {
    return reject(Reason::ParentCallsUnknown, fmt::format("{}, called by it, has an indirect call ({})",
                                                          call->function->name, m.place(call->token)));
  }
  if (const Effect* unknown = effects.find(EffectKind::UnknownCall))
    return reject(Reason::ParentCallsUnknown, unknown_callee_text(m, *unknown));
  if (aggregation.is_immediate()) return check_calls_beside(parent);
  if (auto rejection = check_frees(parent)) return rejection;
  for (const Function* callee : graph.callees(parent.function)) {
    // A function that a wrapper calls counts as called at the wrapper's place.
    if (!runtime_function(m, *callee).empty()) continue;
    if (const Effect* call = graph.closure(*callee).find(EffectKind::DeviceRuntime))
      return check_runtime_call(call->what, fmt::format("{}, called by it, ", callee->name),
                                m.place(call->token));
  }
  return std::nullopt;
}

// Lists the values that a parameter of a called function has at its calls: "a (line 12:2), b (line 40:2)".
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

// Tells where a kernel's address comes from, if it is not simply its name.
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

// A launch into the tail stream begins when the grid and all its other launches are complete. So it must run
// last, launched by the host behind all records. Nothing may then be launched in another way, or by a later
// part of the grid.
std::optional<Rejection> check_tail(const FunctionFacts& parent, const Site& site,
                                    const Aggregation& aggregation) {
  const auto is_tail = [](const Site& s) { return stream_kind(s) == StreamKind::Tail; };
  const auto tail = std::ranges::find_if(parent.sites, is_tail);
  if (tail == parent.sites.end() || aggregation.is_executed) return std::nullopt;
  const bool is_last = aggregation.granularity == Granularity::Grid && aggregation.launcher == Launcher::Host;
  if (is_tail(site) && (!is_last || aggregation.uses_work_queue()))
    return reject(Reason::StreamUnsupported, "the stream is " + print(site.streams));
  if (is_tail(site) && !is_second_half(site.callee) &&
      !is_launched_by_one_thread_of_all(parent, site, aggregation.block, aggregation.grid))
    return reject(Reason::StreamUnsupported,
                  "several threads of the grid may launch into its tail-launch stream");
  if (is_tail(site) && std::any_of(tail + 1, parent.sites.end(), is_tail)) {
    return reject(Reason::SeveralSites, fmt::format("{} and others launch into the tail-launch stream",
                                                    ptx::place(tail->position)));
  }
  return is_last ? check_differing_sizes(parent, site) : std::nullopt;
}

}  // namespace

std::optional<Rejection> check_parent(const FunctionFacts& parent, const Site& site,
                                      const Aggregation& aggregation) {
  const Module& m = parent.module;
  if (!site.understood()) return reject(Reason::NotUnderstood, site.problem);
  if (site.callee.empty()) return reject(Reason::CalleeUnknown, callee_text(parent, site));
  if (parent.function.kind != ptx::FunctionKind::Entry) {
    return reject(
        Reason::LaunchInFunction,
        fmt::format("{} is called, not launched: by {}{}", parent.function.name,
                    print(callers_of(m, parent.function.name)), not_inlined_text(m, parent.function)));
  }
  if (aggregation.is_immediate()) {
    if (site.idiom->is_version_1())
      return reject(Reason::OldRuntime, fmt::format("it calls {}", site.idiom->launch));
    if (auto rejection = check_parent_calls(parent, site, aggregation)) return rejection;
    if (stream_kind(site) == StreamKind::Other || stream_kind(site) == StreamKind::Private ||
        stream_kind(site) == StreamKind::Tail)
      return reject(Reason::StreamUnsupported, "the stream is " + print(site.streams));
    if (auto rejection = check_warp_aggregation(parent, site)) return rejection;
    if (const auto directive = cluster_directive(m, parent.function))
      return reject(Reason::ParentCluster, *directive);
    return std::nullopt;
  }
  const uint32_t at = parent.flow.index_of(site.get_call);
  if (parent.flow.in_loop(at) && !aggregation.has_loop_queue) {
    const std::string retry = print_retry(retry_place({m, parent.function, parent.flow, parent.data}, site));
    return reject(Reason::SiteInLoop,
                  fmt::format("control can come back to {}{}{}", m.place(site.get_call->head),
                              retry.empty() ? "" : ": ", retry));
  }
  if (auto rejection = check_parent_calls(parent, site, aggregation)) return rejection;
  const StreamKind stream = stream_kind(site);
  if (stream == StreamKind::Other && !aggregation.is_executed)
    return reject(Reason::StreamUnsupported, "the stream is " + print(site.streams));
  if (auto rejection = check_tail(parent, site, aggregation)) return rejection;
  if (auto rejection = check_parent_waiting(parent, at, aggregation)) return rejection;
  if (const auto directive = cluster_directive(m, parent.function))
    return reject(Reason::ParentCluster, *directive);
  if (parent.function.parameter_bytes + 8 + 8 * parent.sites.size() > parameter_limit(m)) {
    return reject(Reason::ParameterSpace,
                  fmt::format("{} bytes of parameters", parent.function.parameter_bytes));
  }
  if (auto rejection = check_launch_sizes(parent, site, aggregation)) return rejection;
  if (site.idiom->is_version_1())
    return reject(Reason::OldRuntime, fmt::format("it calls {}", site.idiom->launch));
  if (aggregation.launcher == Launcher::Device) return check_exits(parent);
  return std::nullopt;
}

}  // namespace klap::analysis
