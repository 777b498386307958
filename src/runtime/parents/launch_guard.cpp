#include "runtime/parents/launch_guard.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "ptx-patterns/templates/common/queue.h"
#include "ptx-patterns/templates/worklist/work_queue.h"
#include "runtime/driver.h"
#include "runtime/parents/guard_profiles.h"
#include "runtime/queues/block_pool.h"
#include "runtime/stats.h"
#include "support/boundary.h"
#include "support/hash.h"

namespace klap::runtime {
namespace {

template <class Value>
void append(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Writes the same over what the parent does not read of a parameter, whose value stands at `value`.
void clear_unread(char* value, uint32_t offset, uint32_t size, const jit::Variant& variant) {
  for (const auto& [unread, bytes] : variant.unread_parameters) {
    if (unread >= offset && unread < offset + size) std::memset(value + (unread - offset), 0, bytes);
  }
}

// Both forms of parameters make the same bytes. False if the launch does not pass them all.
bool append_parameters(std::string& bytes, const Launch& launch, const jit::Variant& variant) {
  const bool is_packed = launch.extra != nullptr && launch.params == nullptr;
  std::optional<std::span<const unsigned char>> packed;
  if (is_packed) packed = packed_parameters(launch.extra);
  if (is_packed && (!packed || packed->size() < variant.parent_param_bytes)) return false;
  for (size_t i = 0; i < variant.parent_param_offsets.size(); ++i) {
    if (!is_packed && (launch.params == nullptr || launch.params[i] == nullptr)) return false;
    const void* const from = is_packed ? &(*packed)[variant.parent_param_offsets[i]] : launch.params[i];
    const uint32_t size = variant.parent_param_sizes[i];
    bytes.append(static_cast<const char*>(from), size);
    clear_unread(bytes.data() + bytes.size() - size, variant.parent_param_offsets[i], size, variant);
  }
  return true;
}

std::optional<std::string> bytes_of(const Launch& launch, const jit::Variant& variant) {
  std::string bytes;
  append(bytes, launch.grid);
  append(bytes, launch.block);
  append(bytes, launch.shared_bytes);
  if (!append_parameters(bytes, launch, variant)) return std::nullopt;
  return bytes;
}

// True for an address that the driver knows. It is only asked about values that may be one.
bool is_address(uint64_t value) {
  constexpr uint64_t kLeast = uint64_t{1} << 32, kMost = uint64_t{1} << 57;
  if (value < kLeast || value >= kMost) return false;
  unsigned type = 0;
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* asked = &type;
  return driver()->pointer_get_attributes(1, &attribute, &asked, value) == CUDA_SUCCESS && type != 0;
}

// Writes the same over all addresses in words that decide nothing. `bytes` ends with the parameters.
void hide_addresses(std::string& bytes, const jit::Variant& variant) {
  size_t end = bytes.size();
  for (size_t i = variant.parent_param_sizes.size(); i-- > 0;) {
    const uint32_t offset = variant.parent_param_offsets[i], size = variant.parent_param_sizes[i];
    const size_t begin = end - size;
    for (const uint32_t word : variant.words_without_effect) {
      uint64_t value = 0;
      if (word < offset || word + sizeof value > offset + size) continue;
      char* const at = &bytes[begin + (word - offset)];
      std::memcpy(&value, at, sizeof value);
      if (is_address(value)) std::memset(at, 0xff, sizeof value);
    }
    end = begin;
  }
}

std::atomic<uint32_t> measured_launches{0};  // that are in their streams

// All guards that there are. A guard is taken out before it is destroyed.
struct Guards {
  std::mutex mutex;
  std::set<LaunchGuard*> all;

  static Guards& instance() {
    static auto* const guards = new Guards;  // leaked: it is used by exit handlers
    return *guards;
  }
};

// Children, and launches that were the program's own.
uint64_t children_in(const ReportSlot& slot) {
  const auto total = [&](size_t word) { return slot.words[word] + slot.words[KLAP_REPORT_ADDED + word]; };
  return total(KLAP_REPORT_CHILDREN) + total(KLAP_REPORT_NATIVE);
}

// KlapQueue has a base, so offsetof does not take it.
ptrdiff_t report_offset() {
  static const KlapQueue queue{};
  return reinterpret_cast<const char*>(&queue.report) - reinterpret_cast<const char*>(&queue);
}

// A launch's kernels look here, in its queues, where to report.
std::vector<CUdeviceptr> report_places(const jit::Variant& variant, const LaunchContext& context) {
  if (variant.queues.front().is_work_queue) return {context.work_queue() + offsetof(KlapWorkQueue, report)};
  std::vector<CUdeviceptr> places;
  for (size_t i = 0; i < variant.queues.size(); ++i) places.push_back(context.queue(i) + report_offset());
  return places;
}

// From here on the kernels of the stream report there, or nowhere.
bool report_to(CUdeviceptr report, const std::vector<CUdeviceptr>& places, CUstream stream) {
  return std::ranges::all_of(places, [&](CUdeviceptr place) {
    return driver()->memcpy_htod_async(place, &report, sizeof report, stream) == CUDA_SUCCESS;
  });
}

bool record(CUevent& event, CUstream stream) {
  return driver()->event_create(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
         driver()->event_record(event, stream) == CUDA_SUCCESS;
}

}  // namespace

LaunchGuard::LaunchGuard(const jit::Variant& variant, std::string module)
    : variant_(variant), module_(std::move(module)) {
  Guards& guards = Guards::instance();
  const std::lock_guard lock(guards.mutex);
  guards.all.insert(this);
}

// Its module is being unloaded, so its context is still there.
LaunchGuard::~LaunchGuard() {
  {
    Guards& guards = Guards::instance();
    const std::lock_guard lock(guards.mutex);
    guards.all.erase(this);
  }
  try_or_report("KLAP_GUARD", "its times are not kept", [this] {
    finish();
    add_to_statistics();
  });
  forget_sample();
}

LaunchGuard::Launches* LaunchGuard::find(const Key& key) {
  const auto known = std::ranges::find(launches_, key, &Launches::key);
  return known != launches_.end() && known->last_used != 0 ? &*known : nullptr;
}

// The array keeps the launches that were used last.
LaunchGuard::Launches& LaunchGuard::launches_of(const Key& key, const Launch& launch,
                                                const LaunchContext& context) {
  if (Launches* const known = find(key)) return *known;
  Launches& oldest = *std::ranges::min_element(launches_, {}, &Launches::last_used);
  hand_over(oldest);
  oldest = {};
  oldest.key = key;
  take_profile(oldest, launch, context);
  return oldest;
}

// A program may launch with other numbers each time, of which no profile will ever know anything.
void LaunchGuard::take_profile(Launches& launches, const Launch& launch, const LaunchContext& context) {
  constexpr size_t kMostProfiled = 16;
  const std::string& model = context.context().model;
  if (module_.empty() || model.empty() || profiled_ == kMostProfiled) return;
  ++profiled_;
  std::string bytes = bytes_of(launch, variant_).value();
  hide_addresses(bytes, variant_);
  launches.profiled = content_hash(bytes);
  launches.profile = module_ + model;
  const GuardTimes earlier =
      GuardProfiles::instance().earlier(launches.profile, {variant_.parent_variant, launches.profiled});
  launches.choice = GuardChoice(earlier, seconds_now());
  note_choice(launches.choice);
}

void LaunchGuard::hand_over(Launches& launches) const {
  const auto found = launches.profile.empty() ? std::nullopt : launches.choice.found();
  if (found)
    GuardProfiles::instance().found(launches.profile, {variant_.parent_variant, launches.profiled}, *found,
                                    launches.choice.replaces());
  launches.profile.clear();
}

void LaunchGuard::note_choice(const GuardChoice& choice) {
  if (!choice.is_decided()) return;
  found_ = Found{choice.is_original(), choice.variant_ms(), choice.original_ms(),
                 choice.is_told() ? choice.earlier_runs() : 0};
}

bool LaunchGuard::counts_apart() const { return !variant_.queues.front().is_work_queue; }

uint64_t LaunchGuard::operations() const {
  constexpr uint64_t kEvents = 2;
  return kEvents + 2 * (counts_apart() ? variant_.queues.size() : 1);
}

ReportSlot LaunchGuard::report_for(Next next, LaunchContext& context) const {
  if (next == Next::CountedVariant && counts_apart()) return context.count_report();
  return counts_apart() ? ReportSlot{} : context.guard_report();
}

LaunchGuard::Next LaunchGuard::next(const Launch& launch, LaunchContext& context, uint64_t most_children) {
  std::optional<std::string> bytes = bytes_of(launch, variant_);
  if (!bytes) return Next::Variant;
  append(*bytes, context.context().device);
  const Key key = content_hash(*bytes);
  const std::lock_guard lock(mutex_);
  count_known();
  collect(context.context().id);
  Launches& launches = launches_of(key, launch, context);
  launches.last_used = ++clock_;
  Next next = launches.choice.next(most_children);
  const bool is_measured = next != Next::Variant && next != Next::Original;
  const bool needs_report = next == Next::CountedVariant || !counts_apart();
  // One at a time, and only if children can be counted.
  const ReportSlot report = is_measured && !sample_ ? report_for(next, context) : ReportSlot{};
  if (is_measured && (sample_ || (needs_report && report.words == nullptr))) {
    launches.choice.not_measured();
    next = next == Next::CheckedOriginal ? Next::Original : Next::Variant;
  } else if (is_measured) {
    sample_ =
        Sample{.key = key, .form = next, .context_id = context.context().id, .report = report, .places = {}};
    is_complete_ = false;
  }
  if (!is_measured) {
    known_key_ = key;
    known_next_ = next;
    const KnownLaunch::Circumstances in{context.context().id, LaunchContexts::instance().streams_ended(),
                                        launches.choice.children()};
    known_.remember(launch, variant_, in, launches.choice.settled_launches());
  }
  return next;
}

// Adds the launches that did not ask.
void LaunchGuard::count_known() {
  const uint64_t times = known_.forget();
  if (times == 0) return;
  if (Launches* const launches = find(known_key_)) launches->choice.did_not_ask(times);
  if (known_next_ == Next::Original)
    Stats::instance().launch_left(variant_.parent, reasons::kOriginalIsFaster.name, times);
}

void LaunchGuard::begin(const Launch& launch, LaunchContext& context, bool is_whole) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (!sample_) return;
  if (sample_->form == Next::CountedVariant && !is_whole) return drop_sample();
  const bool is_counted = sample_->report.words != nullptr;
  if (is_counted) sample_->children_before = children_in(sample_->report);
  if (is_counted && !context.reports() && !is_original(sample_->form))
    sample_->places = report_places(variant_, context);
  const bool is_reported = report_to(sample_->report.address, sample_->places, launch.stream);
  if (!record(sample_->before, launch.stream) || !is_reported) drop_sample();
}

void LaunchGuard::end(const Launch& launch, bool succeeded) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (!sample_) return;
  const bool is_begun = sample_->before != nullptr;
  is_complete_ = succeeded && is_begun && record(sample_->after, launch.stream);
  if (is_begun) report_to(0, sample_->places, launch.stream);
  if (is_complete_) {
    measured_launches.fetch_add(1);
  } else {
    drop_sample();
  }
}

void LaunchGuard::drop_sample() {
  for (const CUevent event : {sample_->before, sample_->after}) {
    if (event) driver()->event_destroy(event);
  }
  forget_sample();
}

// Its events go with their context.
void LaunchGuard::forget_sample() {
  if (!sample_) return;
  if (Launches* const launches = find(sample_->key)) launches->choice.not_measured();
  if (std::exchange(is_complete_, false)) measured_launches.fetch_sub(1);
  sample_.reset();
}

// Reads the sample if its launch is done. The driver cannot be asked about events of another context, which
// may be gone.
void LaunchGuard::collect(uint64_t context_id) {
  if (!sample_ || !is_complete_) return;
  if (sample_->context_id != context_id) {
    constexpr uint32_t kMostLaunches = 100;  // in other contexts, behind which it is taken to be gone
    if (++sample_->launches_elsewhere > kMostLaunches) forget_sample();
    return;
  }
  const RelaxedCapture relaxed;
  const CUresult state = driver()->event_query(sample_->after);
  if (state == CUDA_ERROR_NOT_READY) return;
  float ms = 0;
  const bool is_known = state == CUDA_SUCCESS &&
                        driver()->event_elapsed_time(&ms, sample_->before, sample_->after) == CUDA_SUCCESS;
  Launches* const launches = is_known ? find(sample_->key) : nullptr;
  if (launches != nullptr) take_result(launches->choice, *sample_, ms);
  drop_sample();
}

void LaunchGuard::take_result(GuardChoice& choice, const Sample& sample, double ms) {
  const bool was_decided = choice.is_decided();
  if (is_original(sample.form)) {
    choice.original_took(ms);
  } else {
    // Launches that were made meanwhile may be counted here too, which is more than there were.
    if (sample.report.words != nullptr) choice.counted(children_in(sample.report) - sample.children_before);
    if (sample.form == Next::MeasuredVariant) choice.variant_took(ms);
  }
  if (!was_decided) note_choice(choice);
}

std::optional<LaunchGuard::Found> LaunchGuard::take_found() {
  const std::lock_guard lock(mutex_);
  return std::exchange(found_, std::nullopt);
}

void LaunchGuard::collect() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  unsigned long long context_id = 0;
  if (lock.owns_lock() && sample_ && driver()->ctx_get_id(nullptr, &context_id) == CUDA_SUCCESS)
    collect(context_id);
}

// Another thread may be launching. Its times are lost then, which is better than to wait for it.
void LaunchGuard::finish() {
  collect();
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  count_known();
  for (Launches& launches : launches_) hand_over(launches);
}

void LaunchGuard::add_to_statistics() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const Launches& launches : launches_) {
    const GuardChoice& choice = launches.choice;
    if (choice.launches() == 0 || (!choice.is_decided() && choice.variant_ms() == 0)) continue;
    Stats::instance().guard_found(variant_.parent, {.launches = choice.launches(),
                                                    .children = choice.children(),
                                                    .is_decided = choice.is_decided(),
                                                    .is_original = choice.is_original(),
                                                    .earlier_runs = choice.earlier_runs(),
                                                    .is_told = choice.is_told(),
                                                    .variant_ms = choice.variant_ms(),
                                                    .original_ms = choice.original_ms(),
                                                    .trials = choice.trials(),
                                                    .lost_ms = choice.lost_ms()});
  }
}

bool is_launch_measured() noexcept { return measured_launches.load(std::memory_order_relaxed) != 0; }

void collect_measured_launches() {
  Guards& guards = Guards::instance();
  const std::lock_guard lock(guards.mutex);
  for (LaunchGuard* const guard : guards.all) guard->collect();
}

void finish_guards() {
  Guards& guards = Guards::instance();
  const std::lock_guard lock(guards.mutex);
  for (LaunchGuard* const guard : guards.all) guard->finish();
}

void add_guards_to_statistics() {
  Guards& guards = Guards::instance();
  const std::lock_guard lock(guards.mutex);
  for (LaunchGuard* const guard : guards.all) guard->add_to_statistics();
}

}  // namespace klap::runtime
