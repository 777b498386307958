#include "runtime/parents/launch_guard.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "ptx-patterns/templates/worklist/work_queue.h"
#include "runtime/driver.h"
#include "runtime/queues/block_pool.h"
#include "support/hash.h"

namespace klap::runtime {
namespace {

template <class Value>
void append(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
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
    bytes.append(static_cast<const char*>(from), variant.parent_param_sizes[i]);
  }
  return true;
}

// Children, and launches that were the program's own.
uint64_t children_in(const ReportSlot& slot) {
  const auto total = [&](size_t word) { return slot.words[word] + slot.words[KLAP_REPORT_ADDED + word]; };
  return total(KLAP_REPORT_CHILDREN) + total(KLAP_REPORT_NATIVE);
}

// From here on the kernels of the stream report there, or nowhere.
bool report_to(CUdeviceptr queue, CUdeviceptr report, CUstream stream) {
  return driver()->memcpy_htod_async(queue + offsetof(KlapWorkQueue, report), &report, sizeof report,
                                     stream) == CUDA_SUCCESS;
}

bool record(CUevent& event, CUstream stream) {
  return driver()->event_create(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
         driver()->event_record(event, stream) == CUDA_SUCCESS;
}

}  // namespace

std::optional<LaunchGuard::Key> LaunchGuard::key_of(const Launch& launch) const {
  std::string bytes;
  append(bytes, launch.grid);
  append(bytes, launch.block);
  append(bytes, launch.shared_bytes);
  if (!append_parameters(bytes, launch, variant_)) return std::nullopt;
  return content_hash(bytes);
}

LaunchGuard::Launches* LaunchGuard::find(const Key& key) {
  const auto known = std::ranges::find(launches_, key, &Launches::key);
  return known != launches_.end() && known->last_used != 0 ? &*known : nullptr;
}

// The array keeps the launches that were used last.
LaunchGuard::Launches& LaunchGuard::launches_of(const Key& key) {
  if (Launches* const known = find(key)) return *known;
  Launches& oldest = *std::ranges::min_element(launches_, {}, &Launches::last_used);
  oldest = {key, 0, {}};
  return oldest;
}

LaunchGuard::Next LaunchGuard::next(const Launch& launch, LaunchContext& context, uint64_t most_children) {
  const std::optional<Key> key = key_of(launch);
  if (!key) return Next::Variant;
  const std::lock_guard lock(mutex_);
  collect(context.context().id);
  Launches& launches = launches_of(*key);
  launches.last_used = ++clock_;
  Next next = launches.choice.next(most_children);
  const bool is_measured = next == Next::MeasuredVariant || next == Next::MeasuredOriginal;
  // One at a time, and only if children can be counted.
  const ReportSlot report = is_measured && !sample_ ? context.guard_report() : ReportSlot{};
  if (is_measured && report.words == nullptr) {
    launches.choice.not_measured();
    next = Next::Variant;
  } else if (is_measured) {
    sample_ = Sample{*key, next == Next::MeasuredOriginal, context.context().id, nullptr, nullptr, report, 0};
    is_complete_ = false;
  }
  return next;
}

void LaunchGuard::begin(const Launch& launch, LaunchContext& context) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (!sample_) return;
  sample_->children_before = children_in(sample_->report);
  const bool is_reported = context.reports() || sample_->is_original ||
                           report_to(context.work_queue(), sample_->report.address, launch.stream);
  if (!record(sample_->before, launch.stream) || !is_reported) drop_sample();
}

void LaunchGuard::end(const Launch& launch, LaunchContext& context, bool succeeded) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (!sample_) return;
  const bool is_begun = sample_->before != nullptr;
  is_complete_ = succeeded && is_begun && record(sample_->after, launch.stream);
  if (is_begun && !context.reports() && !sample_->is_original)
    report_to(context.work_queue(), 0, launch.stream);
  if (!is_complete_) drop_sample();
}

void LaunchGuard::drop_sample() {
  for (const CUevent event : {sample_->before, sample_->after}) {
    if (event) driver()->event_destroy(event);
  }
  if (Launches* const launches = find(sample_->key)) launches->choice.not_measured();
  sample_.reset();
}

// Reads the sample if its launch is done. The driver cannot be asked about events of another context, which
// may be gone.
void LaunchGuard::collect(uint64_t context_id) {
  if (!sample_ || !is_complete_ || sample_->context_id != context_id) return;
  const RelaxedCapture relaxed;
  const CUresult state = driver()->event_query(sample_->after);
  if (state == CUDA_ERROR_NOT_READY) return;
  float ms = 0;
  const bool is_known = state == CUDA_SUCCESS &&
                        driver()->event_elapsed_time(&ms, sample_->before, sample_->after) == CUDA_SUCCESS;
  // Launches that were made meanwhile may be counted here too, which is more than there were.
  const uint64_t children = children_in(sample_->report) - sample_->children_before;
  Launches* const launches = is_known ? find(sample_->key) : nullptr;
  if (launches != nullptr && sample_->is_original) {
    launches->choice.original_took(ms);
    if (launches->choice.is_original())
      found_ = Found{launches->choice.variant_ms(), launches->choice.original_ms()};
  } else if (launches != nullptr) {
    launches->choice.variant_took(ms, children);
  }
  drop_sample();
}

std::optional<LaunchGuard::Found> LaunchGuard::take_found() {
  const std::lock_guard lock(mutex_);
  return std::exchange(found_, std::nullopt);
}

}  // namespace klap::runtime
