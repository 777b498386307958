#include "analysis/legality/warp_aggregation.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/counts/launch_count.h"
#include "analysis/facts/runtime_calls.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;

Rejection reject(std::string detail) { return {Reason::StreamUnsupported, std::move(detail)}; }

// A thread's launches into its own stream run one after another. With warp aggregation they would go into the
// stream of whichever lane launches.
std::optional<Rejection> check_private_streams(const FunctionFacts& parent, const Site& site) {
  const bool is_own = std::any_of(site.streams.begin(), site.streams.end(),
                                  [](const StreamValue& v) { return v.kind == StreamClass::PerThread; });
  if (!is_own) return std::nullopt;
  for (const StreamLaunches& launches : launches_by_stream(parent)) {
    if (launches.stream != "per-thread") continue;
    if (launches.count.unknown || launches.count.most > 1) {
      return reject("a thread's launches into its per-thread stream are ordered; it launches " +
                    to_text(launches.count));
    }
  }
  const Effects& effects = parent.calls().closure(parent.function);
  for (const Effect& effect : effects.all()) {
    if (effect.kind != EffectKind::DeviceRuntime) continue;
    const bool harmless = idioms().is_kind(effect.what, "launch") || idioms().is_last_error(effect.what) ||
                          idioms().is_peek_last_error(effect.what);
    if (!harmless)
      return reject("the launch is ordered in the per-thread stream, and the kernel " +
                    runtime_call_text(effect.what, parent.module.place(effect.token)));
  }
  return std::nullopt;
}

// The stream tells which lanes can share a launch, and so must be known where they ask for its buffer.
std::optional<Rejection> check_late_stream(const FunctionFacts& parent, const Site& site) {
  if (parent.data.constant(site.stream)) return std::nullopt;
  const uint32_t at = parent.flow.index_of(site.get_call);
  for (const uint32_t definition : parent.data.definitions(site.stream)) {
    if (!parent.flow.can_follow(at, definition)) continue;
    return reject(fmt::format("the stream may be set between the launch's two calls ({})",
                              parent.module.place(parent.flow.instructions()[definition].statement->head)));
  }
  return std::nullopt;
}

}  // namespace

// Launches are immediate here, so the parent's other device-runtime calls keep their place among the
// launches. A function that it calls must not ask for the last error: only the parent knows a shared launch
// that failed.
std::optional<Rejection> check_calls_beside(const FunctionFacts& parent) {
  const Module& m = parent.module;
  const CallGraph& graph = parent.calls();
  for (const Effect& effect : graph.closure(parent.function).all()) {
    if (effect.kind != EffectKind::DeviceRuntime) continue;
    if (idioms().kind(effect.what) == nullptr || idioms().is_kind(effect.what, "wait"))
      return check_runtime_call(effect.what, "", m.place(effect.token));
  }
  for (const Function* callee : graph.callees(parent.function)) {
    if (!runtime_function(m, *callee).empty()) continue;
    for (const Effect& effect : graph.closure(*callee).all()) {
      if (effect.kind != EffectKind::DeviceRuntime) continue;
      if (!idioms().is_last_error(effect.what) && !idioms().is_peek_last_error(effect.what)) continue;
      return check_runtime_call(effect.what, fmt::format("{}, called by it, ", callee->name),
                                m.place(effect.token));
    }
  }
  return std::nullopt;
}

std::optional<Rejection> check_warp_aggregation(const FunctionFacts& parent, const Site& site) {
  if (site.idiom->form == LaunchForm::Documented)
    return Rejection{Reason::NotUnderstood, "the launch is described by its second call"};
  if (auto rejection = check_private_streams(parent, site)) return rejection;
  return check_late_stream(parent, site);
}

}  // namespace klap::analysis
