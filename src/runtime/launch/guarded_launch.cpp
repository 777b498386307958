#include "runtime/launch/guarded_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "runtime/counters/counted_launch.h"
#include "runtime/driver.h"
#include "runtime/launch/kernel_timer.h"
#include "runtime/launch/stream_turns.h"
#include "runtime/launch/variant_launch.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {
namespace {

// As many launches from the device can be pending without one being lost, if all streams make as many.
uint64_t most_children_of_a_stream() {
  return pending_limit() / std::max<size_t>(LaunchContexts::instance().size(), 1);
}

}  // namespace

uint64_t pending_limit() {
  constexpr uint64_t kDefault = 2048;
  size_t limit = 0;
  const CUresult result = driver()->ctx_get_limit(&limit, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT);
  return result == CUDA_SUCCESS ? limit : kDefault;
}

Outcome launch_measured_original(const Launch& launch, MeasuredLaunch& measured, LaunchGuard::Next next) {
  const bool is_tried = next == LaunchGuard::Next::MeasuredOriginal;
  const Operation operation(launch.stream);
  measured.begin();
  const CUresult result = launch_variant(launch, launch.function, launch.params, launch.extra);
  measured.end(result == CUDA_SUCCESS);
  return {.result = result,
          .ran_original = is_tried ? &reasons::kOriginalIsTried : &reasons::kOriginalIsFaster};
}

Outcome launch_original(const Launch& launch, const ParentKernel& parent) {
  if (capture_state(launch.stream) != Capture::None) return leave(reasons::kStreamCapture);
  const Operation operation(launch.stream);
  CountedLaunch counted(parent.name());
  TimedLaunch timed(parent.name(), launch.stream);
  const CUresult result = launch_variant(launch, launch.function, launch.params, launch.extra);
  if (result == CUDA_SUCCESS) {
    timed.parent_enqueued();
    timed.complete();
    counted.complete();
  }
  return {.result = result, .ran_original = &reasons::kOriginalIsAskedFor};
}

// A launch that is captured must be taken note of, so it goes the long way.
bool is_known_original(const Launch& launch, ParentKernel& first) {
  const auto may_run = [&launch](const KnownLaunch::Circumstances& in) {
    unsigned long long context_id = 0;
    return in.streams_ended == LaunchContexts::instance().streams_ended() &&
           driver()->ctx_get_id(nullptr, &context_id) == CUDA_SUCCESS && context_id == in.context_id &&
           capture_state(launch.stream) == Capture::None &&
           (in.children == 0 || in.children <= most_children_of_a_stream());
  };
  for (ParentKernel* parent = &first; parent != nullptr; parent = parent->otherwise().get()) {
    LaunchGuard* const guard = parent->guard();
    if (guard != nullptr && guard->knows_original(launch, may_run)) return true;
  }
  return false;
}

LaunchGuard::Next next_form(const Launch& launch, ParentKernel& parent, LaunchContext& context) {
  LaunchGuard* const guard = parent.guard();
  if (guard == nullptr || guard->knows_variant(launch, context.context().id))
    return LaunchGuard::Next::Variant;
  const LaunchGuard::Next next = guard->next(launch, context, most_children_of_a_stream());
  if (const auto found = guard->take_found()) {
    const std::string runs =
        found->runs == 0 ? "in this process" : fmt::format("in {} earlier runs", found->runs);
    log().info("{}: the original takes {:.4f} ms and the variant {:.4f} {}, the {} runs from here on",
               demangle(parent.name()), found->original_ms, found->variant_ms, runs,
               found->is_original ? "original" : "variant");
  }
  return next;
}

}  // namespace klap::runtime
