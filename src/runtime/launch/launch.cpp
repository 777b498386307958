#include "runtime/launch/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptx-patterns/templates/common/queue.h"
#include "runtime/counters/counted_launch.h"
#include "runtime/driver.h"
#include "runtime/launch/fused_launch.h"
#include "runtime/launch/guarded_launch.h"
#include "runtime/launch/kernel_timer.h"
#include "runtime/launch/launch_params.h"
#include "runtime/launch/launch_range.h"
#include "runtime/launch/promoted_launch.h"
#include "runtime/launch/queue_room.h"
#include "runtime/launch/slices.h"
#include "runtime/launch/stream_turns.h"
#include "runtime/launch/thread_streams.h"
#include "runtime/launch/variant_launch.h"
#include "runtime/launch_reasons.h"
#include "runtime/parents/handles.h"
#include "runtime/parents/made_for.h"
#include "runtime/parents/pointers_apart.h"
#include "runtime/parents/readback.h"
#include "runtime/parents/registry.h"
#include "runtime/process.h"
#include "runtime/queues/launch_context.h"
#include "runtime/queues/queue_demand.h"
#include "runtime/sizes/child_sizes.h"
#include "runtime/stats.h"
#include "support/boundary.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// The program's attributes, as far as kernels in a parent's place have them.
class KeptAttributes {
 public:
  // The reason if one is not known to mean the same for other kernels; null if there is none.
  MaybeReason take(std::span<const CUlaunchAttribute> attributes) {
    std::optional<CUlaunchAttribute> carveout;
    for (const CUlaunchAttribute& attribute : attributes) {
      switch (attribute.id) {
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
          break;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
          if (of_consumers_ == kMostConsumerAttributes) return &reasons::kLaunchAttribute;
          kept_.at(of_consumers_++) = attribute;
          break;
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
          carveout = attribute;
          break;
        // It allows the parent to begin early, and no more. Records must not meet what still reads the last
        // ones.
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
          break;
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
          return &reasons::kCooperativeLaunch;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
          return &reasons::kClusterLaunch;
        default:
          return &reasons::kLaunchAttribute;
      }
    }
    count_ = of_consumers_;
    if (carveout) kept_.at(count_++) = *carveout;
    return nullptr;
  }

  [[nodiscard]] std::span<const CUlaunchAttribute> of_consumers() const {
    return std::span(kept_).first(of_consumers_);
  }
  // How much shared memory the program would like says nothing about kernels that need more of it, and whose
  // blocks must all find room.
  [[nodiscard]] std::span<const CUlaunchAttribute> of_parent(const jit::Variant& variant) const {
    return variant.promoted || variant.is_fused() ? of_consumers() : std::span(kept_).first(count_);
  }

 private:
  std::array<CUlaunchAttribute, kMostConsumerAttributes + 1> kept_{};  // the consumers' first
  size_t of_consumers_ = 0, count_ = 0;
};

void note_slices(const Launch& launch, ParentKernel& parent, const Cut& cut) {
  parent.info_once("slices",
                   fmt::format("a grid of {}x{}x{} blocks runs in {} slices of at most {} blocks ({})",
                               launch.grid[0], launch.grid[1], launch.grid[2], cut.slices.count(),
                               cut.slices.most_blocks(), cut.why->name));
}

// The launch's hold of the queues in its context, whose mutex the caller holds.
class HeldQueues {
 public:
  explicit HeldQueues(LaunchContext& context) : context_(context) {}
  ~HeldQueues() { context_.end_launch(); }
  HeldQueues(const HeldQueues&) = delete;
  HeldQueues& operator=(const HeldQueues&) = delete;

 private:
  LaunchContext& context_;
};

// The node of a captured parent is rewritten when its graph is instantiated (graphs/executables.h). With a
// driver that cannot do that, the original runs in the graph. Replays of such graphs were seen to hang on an
// H200 (driver 580). It happened if nothing between two replays makes device launches of its own. So from
// then on every launch in that context is the program's own, and behaves exactly as it does natively.
Outcome leave_captured(const std::string& parent) {
  if (can_rewrite_graphs(*driver())) return leave(reasons::kCaptured);
  unsigned long long context_id = 0;
  if (driver()->ctx_get_id(nullptr, &context_id) == CUDA_SUCCESS &&
      LaunchContexts::instance().note_graph(context_id)) {
    log().info("{} is captured into a graph: from here on every launch is the program's own",
               demangle(parent));
  }
  return leave(reasons::kStreamCapture);
}

// Throws nothing. A part of the launch is in the stream, so the program's own launch must not follow.
void report_failed_launch(const ParentKernel& parent, const char* what, CUresult result) noexcept {
  try_or_report("cuLaunchKernel", what,
                [&] { log().error("{}: {} ({})", demangle(parent.name()), what, error_name(result)); });
}

// Launches of one variant differ in these.
struct LaunchDetails {
  std::span<const CUlaunchAttribute> of_consumers;  // attributes
  bool is_looked_at = false;                        // ChildForms::look() follows its parent
  FewChildren* counted = nullptr;                   // FewChildren::look() follows its parent
  bool may_wait = true;                             // for room in the driver's queue
};

// Whether the host enqueues kernels behind the parent.
bool has_consumers(const jit::Variant& variant) {
  return variant.launcher == jit::Launcher::Host && !variant.is_fused();
}

// Enqueues one slice of the parent and, unless the parent launches them, its consumers.
Outcome enqueue_slice(const Launch& launch, ParentKernel& parent, const PreparedVariant& prepared,
                      ExtendedParams& params, LaunchContext& context, const LaunchDetails& details,
                      bool is_first) {
  prepare_to_count_sizes(context);
  TimedLaunch timed(parent.name(), launch.stream, is_first);
  const CUresult parent_result = launch_variant(launch, prepared.parent, params.params(), params.extra());
  if (parent_result != CUDA_SUCCESS && is_first) return leave_refused(parent, parent_result);
  if (parent_result != CUDA_SUCCESS) {
    // This kernel has launched before in these blocks, so the context has failed.
    report_failed_launch(parent, "the rest of its grid cannot be launched", parent_result);
    return {parent_result, nullptr};
  }
  timed.parent_enqueued();
  count_sizes(parent.variant(), context);
  if (details.is_looked_at && is_first) parent.forms()->look(parent.variant(), context);
  if (details.counted && is_first) details.counted->look(parent.variant(), context);
  const bool by_host = parent.variant().launcher == jit::Launcher::Host;
  const CUresult result =
      !by_host              ? CUDA_SUCCESS
      : parent.reads_back() ? launch_after_readback(prepared, parent.variant(), context, details.of_consumers)
                            : launch_consumers(prepared, parent.variant(), context, details.of_consumers);
  if (result != CUDA_SUCCESS) {
    // The parent's records can no longer be run. So the program must learn of it, and nothing may be recorded
    // behind them. The consumer has launched before, so the whole context has failed.
    context.give_up(reasons::kConsumerFailed);
    report_failed_launch(parent, "its children cannot be launched", result);
    return {result, nullptr};
  }
  timed.complete();
  return {};
}

uint64_t threads_of_block(const Launch& launch) {
  return uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
}

// The launch as the variant is launched for it; nothing if it cannot be.
std::optional<Launch> as_launched(const Launch& launch, const jit::Variant& variant,
                                  const PreparedVariant& prepared, const LaunchContext& context) {
  if (!variant.is_fused()) return launch;
  const FusedLimits limits{context.context().multiprocessors, prepared.max_parent_threads};
  return fused_launch(variant, launch, limits);
}

// Enqueues the parent, slice by slice, each followed by its consumers. The caller holds the context's mutex,
// and the queues have room.
Outcome enqueue(const Launch& launch, const GridSlices& slices, ParentKernel& parent,
                const PreparedVariant& prepared, LaunchContext& context, const LaunchDetails& details) {
  std::vector<CUdeviceptr> queues(parent.variant().queues.size());
  ExtendedParams params;
  if (const MaybeReason reason = params.extend(parent.variant(), launch.params, launch.extra, queues)) {
    return leave(*reason);
  }
  // The parent alone is one operation, as in the program.
  std::optional<WholeLaunch> whole;
  std::optional<Operation> alone;
  if (has_consumers(parent.variant()) || slices.count() > 1)
    whole.emplace(launch.stream, context.is_blocking());
  else
    alone.emplace(launch.stream);
  Launch part = launch;
  const LaunchRange range(parent);
  CountedLaunch counted(parent.name());
  for (uint64_t i = 0; i < slices.count(); ++i) {
    const GridSlices::Slice slice = slices.at(i);
    std::copy_n(slice.grid, 3, part.grid);
    for (size_t q = 0; q < queues.size(); ++q) queues[q] = queue_of(parent.variant(), q, context);
    params.begin_part(slice.place, extents_of(part));
    const std::optional<Launch> made = as_launched(part, parent.variant(), prepared, context);
    if (!made) return leave(reasons::kParentBlock);
    const Outcome outcome = enqueue_slice(*made, parent, prepared, params, context, details, i == 0);
    if (outcome.left || outcome.result != CUDA_SUCCESS) return outcome;
  }
  counted.complete();
  if (is_ending_thread_stream(launch.stream)) context.record_use();
  return {.slices = slices.count()};
}

// The variant, or the one behind it, by the sizes of the last launches' children.
struct ChosenForm {
  ParentKernel* parent = nullptr;
  bool is_looked_at = false;
};
ChosenForm choose_form(ParentKernel& parent, uint64_t context_id) {
  if (parent.forms() == nullptr) return {&parent};
  const ChildForms::Answer answer = parent.forms()->next(context_id);
  ParentKernel* const in_blocks = parent.otherwise().get();
  const bool takes_blocks = answer.next == ChildForms::Next::Blocks;
  if (answer.change) {
    const char* const form = answer.change->to_blocks ? "in blocks" : "thread by thread";
    parent.info_once(fmt::format("form {}", form),
                     fmt::format("children use {:.0f} % of their blocks' lanes: from here on they run {}",
                                 100 * answer.change->lanes_used, form));
  }
  return {takes_blocks ? in_blocks : &parent, answer.next == ChildForms::Next::LookedAt};
}

// True if that is for the guard to say, which compares the variant and the original first.
bool is_to_be_measured(const Launch& launch, ParentKernel& parent, uint64_t context_id) {
  return parent.guard() != nullptr && !parent.guard()->knows_variant(launch, context_id);
}

// The variant behind it whose own kernel runs the children, if it is to run this launch; else null.
ParentKernel* fused_form(ParentKernel& parent, const Launch& launch, uint64_t context_id,
                         LaunchDetails& details) {
  ParentKernel* const fused = parent.fused();
  if (fused == nullptr || !fused_launch(fused->variant(), launch, {})) return nullptr;
  FewChildren* const few = parent.few_children();
  if (few == nullptr) return fused;
  // A larger grid was not measured.
  constexpr uint64_t kMostThreads = uint64_t{1} << 17;
  if (grid_threads(launch) > kMostThreads || is_to_be_measured(launch, parent, context_id)) return nullptr;
  const FewChildren::Answer answer = few->next(context_id);
  if (answer.to_fused) {
    const bool few_now = *answer.to_fused;
    parent.info_once(fmt::format("few {}", few_now),
                     fmt::format("launches have {} children: from here on {}", few_now ? "few" : "many",
                                 few_now ? "its own kernel runs them" : "a consumer runs them"));
  }
  if (answer.next == FewChildren::Next::LookedAt) {
    details.counted = few;
    details.may_wait = !answer.has_few;
  }
  return answer.next == FewChildren::Next::Fused ? fused : nullptr;
}

Outcome leave_for_order(const Launch& launch, ParentKernel& parent) {
  parent.info_once("block", fmt::format("a launch of {} in blocks of {} runs the original: {}",
                                        fmt::join(launch.grid, "x"), fmt::join(launch.block, "x"),
                                        reasons::kOrderMatters.meaning));
  return leave(reasons::kOrderMatters);
}

// The operations that the launch adds to the driver's queue, beside the one kernel that the program asked
// for.
uint64_t added_operations(const Launch& launch, const GridSlices& slices, const ParentKernel& parent,
                          const LaunchContext& context, bool is_prepared) {
  constexpr uint64_t kTimingEvents = 3;
  constexpr uint64_t kMany = InFlight::kMost + 2;  // more than there may be, of however little
  const jit::Variant& variant = parent.variant();
  const uint64_t consumers = has_consumers(variant) ? variant.queues.size() : 0;
  const auto is_counted = [](const jit::ChildQueue& queue) { return !queue.counted.empty(); };
  const uint64_t counted =
      config().sizes ? static_cast<uint64_t>(std::ranges::count_if(variant.queues, is_counted)) : 0;
  uint64_t operations =
      std::min(slices.count(), kMany) * (1 + consumers + (config().timing ? kTimingEvents : 0) + counted) - 1;
  if (!is_prepared) operations += 2 * consumers;  // consumers are tried
  if (context.has_own_queues())
    operations += 2 * variant.queues.size();                                    // queues are taken and given
                                                                                // back
  return is_ending_thread_stream(launch.stream) ? operations + 1 : operations;  // LaunchContext::record_use()
}

// Granularity warp: the variant takes the original's place, and needs nothing but itself.
Outcome redirect_to_variant(const Launch& launch, const Registry::Handle& handle) {
  ParentKernel& parent = *handle.parent;
  if (grid_threads(launch) == 0) return leave(reasons::kEmptyGrid);
  const Capture capture = capture_state(launch.stream);
  if (capture == Capture::Active) return leave_captured(parent.name());
  if (capture == Capture::Unknown) return leave(reasons::kStreamCapture);
  // These attributes need more than a kernel that does the same. All other attributes are about the launch.
  for (const CUlaunchAttribute& attribute : launch.attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return leave(reasons::kCooperativeLaunch);
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ||
        attribute.id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) {
      return leave(reasons::kClusterLaunch);
    }
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
      return leave(reasons::kLaunchAttribute);
  }
  unsigned long long context_id = 0;
  if (driver()->ctx_get_id(nullptr, &context_id) != CUDA_SUCCESS) return leave(reasons::kNoCurrentContext);
  if (handle.context_id != kEveryContext && handle.context_id != context_id)
    return leave(reasons::kHandleOfAnotherContext);
  if (LaunchContexts::instance().has_graphs(context_id)) return leave(reasons::kParentsInGraphs);
  if (!is_made_for(parent, launch)) return leave_for_order(launch, parent);
  const auto prepared = parent.prepare_alone(context_id);
  if (prepared->unusable) return leave(*prepared->unusable);
  const MaybeReason block_reason =
      parent.check_block(*prepared, threads_of_block(launch), launch.shared_bytes);
  if (block_reason) return leave(*block_reason);
  return launch_alone(launch, parent, prepared->parent, launch.params, launch.extra);
}

// The launch context of the launch's stream, or why there is none for it.
struct FoundContext {
  std::shared_ptr<LaunchContext> context;
  MaybeReason left = nullptr;
};
FoundContext find_context(const Launch& launch, const Registry::Handle& handle) {
  const Capture capture = capture_state(launch.stream);
  if (capture == Capture::Active) return {nullptr, leave_captured(handle.parent->name()).left};
  if (capture == Capture::Unknown) return {nullptr, &reasons::kStreamCapture};

  unsigned long long context_id = 0, stream_id = 0;
  if (driver()->ctx_get_id(nullptr, &context_id) != CUDA_SUCCESS)
    return {nullptr, &reasons::kNoCurrentContext};
  if (driver()->stream_get_id(launch.stream, &stream_id) != CUDA_SUCCESS)
    return {nullptr, &reasons::kUnknownStream};
  if (handle.context_id != kEveryContext && handle.context_id != context_id)
    return {nullptr, &reasons::kHandleOfAnotherContext};
  if (LaunchContexts::instance().has_graphs(context_id)) return {nullptr, &reasons::kParentsInGraphs};
  const auto context = LaunchContexts::instance().get(context_id, stream_id, launch.stream);
  if (is_ending_thread_stream(launch.stream)) release_at_thread_end(context_id, stream_id);
  return {context};
}

// Launches the variant that was chosen. The outcome is the reason if it cannot be.
Outcome redirect_to_form(const Launch& launch, const ChosenForm& form, LaunchContext& context,
                         LaunchDetails details) {
  ParentKernel& parent = *form.parent;
  if (has_too_many_threads(launch, parent.variant())) return leave(reasons::kTooManyThreads);

  const std::lock_guard lock(context.mutex);
  if (context.unusable()) return leave(*context.unusable());
  const DecidingBlock block = parent.deciding(launch.block);
  auto prepared = parent.prepared(context.context().id, block);
  if (prepared && prepared->unusable) return leave(*prepared->unusable);
  if (parent.variant().promoted) return launch_chain(launch, parent, context);
  const HeldQueues held(context);
  // A parent that is known to be faster as it is needs no queue.
  const LaunchGuard::Next next = next_form(launch, parent, context);
  if (next == LaunchGuard::Next::Original) return leave(reasons::kOriginalIsFaster);
  const bool is_measured = next != LaunchGuard::Next::Variant;
  MeasuredLaunch measured(is_measured ? parent.guard() : nullptr, launch, context);
  const uint64_t to_measure = is_measured ? parent.guard()->operations() : 0;
  // A look takes time, which is not the variant's.
  details.is_looked_at = form.is_looked_at && !is_measured;
  if (is_measured) details.counted = nullptr;
  if (LaunchGuard::is_original(next)) {
    if (!context.may_add(to_measure)) return leave(reasons::kTooManyInFlight);
    const Outcome outcome = launch_measured_original(launch, measured, next);
    // The program did not ask for the trial, so it does not see that it fails.
    if (outcome.result == CUDA_SUCCESS) return outcome;
  }
  Cut cut = make_room(launch, parent, context);
  if (const MaybeReason reason = cut.no_room) {
    parent.warn_once(std::string(reason->name) + ", the original runs");
    return leave(*reason);
  }
  const uint64_t operations = to_measure +
                              added_operations(launch, cut.slices, parent, context, prepared != nullptr) +
                              (details.is_looked_at ? parent.forms()->operations() : 0) +
                              (details.counted ? details.counted->operations() : 0);
  if (!context.may_add(operations, details.may_wait)) return leave(reasons::kTooManyInFlight);
  if (!prepared) prepared = parent.prepare(context, block);
  if (prepared->unusable) return leave(*prepared->unusable);
  const std::optional<Launch> own = as_launched(launch, parent.variant(), *prepared, context);
  if (!own) return leave(reasons::kParentBlock);
  const MaybeReason block_reason = parent.check_block(*prepared, threads_of_block(*own), own->shared_bytes);
  if (block_reason) return leave(*block_reason);
  if (cut.why) note_slices(launch, parent, cut);
  if (context.has_own_queues()) parent.info_once("buffer", "its queues are allocated for each launch");
  if (parent.reads_back()) parent.info_once("readback", "the host reads back what it recorded");
  measured.begin(cut.slices.count() == 1);
  const Outcome outcome = enqueue(launch, cut.slices, parent, *prepared, context, details);
  measured.end(!outcome.left && outcome.result == CUDA_SUCCESS);
  if (!outcome.left) context.added(operations);
  return outcome;
}

// Launches the variant whose own kernel runs the children.
Outcome redirect_to_fused(Launch launch, ParentKernel& fused, LaunchContext& context,
                          const KeptAttributes& attributes, const LaunchDetails& details) {
  launch.attributes = attributes.of_parent(fused.variant());
  const Outcome outcome = redirect_to_form(launch, {&fused}, context, details);
  if (!outcome.left) fused.launch_redirected();
  return outcome;
}

// The driver's queue has no room for two kernels. It has for one, which the program asked for.
Outcome redirect_behind_others(const Launch& launch, ParentKernel& parent, LaunchContext& context,
                               const KeptAttributes& attributes, LaunchDetails details) {
  details.counted = nullptr;
  ParentKernel* const fused = parent.fused();
  Outcome outcome = leave(reasons::kTooManyInFlight);
  if (fused != nullptr && fused_launch(fused->variant(), launch, {}))
    outcome = redirect_to_fused(launch, *fused, context, attributes, details);
  parent.info_once("in flight", outcome.left ? "behind work that does not end the original runs"
                                             : "behind work that does not end its own kernel runs children");
  return outcome;
}

// `parent`: the variant that is made for the launch.
Outcome redirect_to(ParentKernel& parent, const Launch& launch, LaunchContext& context,
                    const KeptAttributes& attributes) {
  LaunchDetails details;
  details.of_consumers = attributes.of_consumers();
  if (ParentKernel* const fused = fused_form(parent, launch, context.context().id, details)) {
    const Outcome outcome = redirect_to_fused(launch, *fused, context, attributes, details);
    if (!outcome.left) return outcome;
  }
  const ChosenForm form = choose_form(parent, context.context().id);
  Launch made = launch;
  made.attributes = attributes.of_parent(form.parent->variant());
  const Outcome outcome = redirect_to_form(made, form, context, details);
  if (outcome.left != &reasons::kTooManyInFlight) return outcome;
  return redirect_behind_others(launch, parent, context, attributes, details);
}

Outcome redirect(const Launch& launch, const Registry::Handle& handle) {
  if (handle.parent->variant().granularity == jit::Granularity::Warp)
    return redirect_to_variant(launch, handle);
  // The driver refuses such a launch, and shall say so itself.
  if (grid_threads(launch) == 0) return leave(reasons::kEmptyGrid);
  // This comes before all other reasons to run the original: a captured parent is noted, whichever kernel
  // runs.
  const auto [context, no_context] = find_context(launch, handle);
  if (no_context) return leave(*no_context);
  KeptAttributes attributes;
  if (const MaybeReason reason = attributes.take(launch.attributes)) return leave(*reason);
  ParentKernel* const made_for_it = variant_for(handle.parent, launch);
  if (made_for_it == nullptr) return leave_for_order(launch, *handle.parent);
  Outcome outcome = redirect_to(*made_for_it, launch, *context, attributes);
  // The first variant is made for launches whose children may overlap.
  outcome.in_order = made_for_it != handle.parent.get();
  return outcome;
}

}  // namespace

CUstream per_thread_stream(CUstream stream) { return stream ? stream : CU_STREAM_PER_THREAD; }

std::optional<CUresult> redirect_launch(const Launch& launch) {
  load_kernels_for_launch();
  const auto handle = Registry::instance().find(launch.function);
  if (handle) {
    for (ParentKernel* parent = handle->parent.get(); parent != nullptr; parent = parent->otherwise().get())
      parent->load_kernels_for_launch();
  }
  if (!handle || is_known_original(launch, *handle->parent)) return std::nullopt;
  const Outcome outcome = config().guard == settings::GuardMode::Original
                              ? launch_original(launch, *handle->parent)
                              : redirect(launch, *handle);
  if (outcome.left == &reasons::kCaptured) return std::nullopt;  // nothing runs now
  try {
    const std::string& name = handle->parent->name();
    if (outcome.left) {
      Stats::instance().launch_left(name, outcome.left->name);
      // Each reason is logged once. A look whether it is new would cost the launch more than the line is
      // worth.
      if (log().should_log(spdlog::level::info)) {
        handle->parent->info_once(outcome.left->name,
                                  fmt::format("the original runs: {}", outcome.left->name));
      }
    } else if (outcome.ran_original) {
      Stats::instance().launch_left(name, outcome.ran_original->name);
    } else if (outcome.result == CUDA_SUCCESS) {
      handle->parent->launch_redirected(outcome.in_order);
      if (outcome.slices > 1) Stats::instance().launch_sliced(name, outcome.slices);
    }
  } catch (const std::exception&) {
    // A launch for which memory has run out is not counted. Throwing now would make the shim launch the
    // kernel a second time.
  }
  if (outcome.left) return std::nullopt;
  return outcome.result;
}

void stream_about_to_end(CUstream stream) {
  if (LaunchContexts::instance().empty()) return;
  // To ask a captured stream for its id would end the capture, and an event recorded now would become part of
  // the graph. The memory stays allocated until its context goes.
  if (capture_state(stream) != Capture::None) return LaunchContexts::instance().forget(stream);
  unsigned long long stream_id = 0;
  if (driver()->stream_get_id(stream, &stream_id) != CUDA_SUCCESS) return;
  for (const auto& context : LaunchContexts::instance().remove_stream(stream_id)) {
    const std::lock_guard lock(context->mutex);
    context->release_in_stream();
  }
}

void before_allocation(uint64_t bytes) {
  unsigned long long context_id = 0;
  if (!LazyMemory::is_used() || driver()->ctx_get_id(nullptr, &context_id) != CUDA_SUCCESS) return;
  LaunchContexts::instance().before_allocation(context_id, bytes);
}

bool give_back_queue_memory() {
  if (!LaunchContexts::instance().has_queues()) return false;
  unsigned long long context_id = 0;
  if (driver()->ctx_get_id(nullptr, &context_id) != CUDA_SUCCESS) return false;
  const uint64_t bytes = LaunchContexts::instance().give_back(context_id);
  if (bytes != 0) log().info("the program needs memory: {} bytes of queues are given back", bytes);
  return bytes != 0;
}

}  // namespace klap::runtime
