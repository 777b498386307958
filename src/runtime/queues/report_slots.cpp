#include "runtime/queues/report_slots.h"

#include <bit>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ptx-patterns/templates/common/report.h"
#include "runtime/driver.h"
#include "runtime/process.h"
#include "runtime/queues/block_pool.h"
#include "runtime/stats.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

struct ReportPages {
  std::mutex mutex;
  std::vector<const volatile uint64_t*> pages;
};

ReportPages& report_pages() {
  // Leaked on purpose, as it is used while the process runs its exit handlers.
  static auto* const pages = new ReportPages;
  return *pages;
}

// Places of KLAP_REPORT_WORDS words in a page, one for each stream (templates/common/report.h).
size_t report_slots() { return host_page_bytes() / (KLAP_REPORT_WORDS * sizeof(uint64_t)); }

bool are_children_counted() { return !config().stats_file.empty() && config().counts_children; }

void add_up(const volatile uint64_t* page) {
  for (size_t slot = 0; slot < report_slots(); ++slot, page += KLAP_REPORT_WORDS) {
    const auto total = [&](size_t word) { return page[word] + page[KLAP_REPORT_ADDED + word]; };
    Stats::instance().children_total()->fetch_add(total(KLAP_REPORT_CHILDREN));
    Stats::instance().native_total()->fetch_add(total(KLAP_REPORT_NATIVE));
    Stats::instance().links_total()->fetch_add(total(KLAP_REPORT_LINKS));
    if (page[KLAP_REPORT_FAILURES] != 0) {
      log().error("a parent could not launch its recorded children from the device, and was ended");
    }
  }
}

}  // namespace

// The page is perhaps counted into the statistics at exit.
CUresult ReportSlots::map(Page& page, bool is_in_statistics) {
  const CUresult result = map_host_page(page);
  if (result != CUDA_SUCCESS || !is_in_statistics) return result;
  const std::lock_guard lock(report_pages().mutex);
  report_pages().pages.push_back(page.words);
  return result;
}

// Tries it once.
bool ReportSlots::make_page() {
  if (failed_) return false;
  CUresult result = map(page_, true);
  if (result == CUDA_SUCCESS) result = driver()->mem_alloc(&reports_, report_slots() * sizeof(KlapReport));
  if (result == CUDA_SUCCESS) page_.left = report_slots();
  failed_ = page_.left == 0;
  if (failed_)
    log().warn("children are not counted: there is no memory for their totals ({})", error_name(result));
  return !failed_;
}

void ReportSlots::make_ready(const GuardReports& guards) {
  const bool all_report = are_children_counted();
  const bool needs_page = guards.in_device || all_report, needs_guards = guards.in_host && !all_report;
  if (!needs_page && !needs_guards) return;
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (needs_page && page_.left == 0) make_page();
  if (needs_guards && guards_.words == nullptr && map(guards_, false) == CUDA_SUCCESS)
    guards_.left = report_slots();
}

ReportSlot ReportSlots::take_next(CUstream stream) {
  --page_.left;
  const size_t first_word = page_.left * KLAP_REPORT_WORDS;
  const KlapReport report{
      std::bit_cast<unsigned long long*>(page_.in_device + first_word * sizeof(unsigned long long)), {}};
  const CUdeviceptr at = reports_ + page_.left * sizeof report;
  if (driver()->memcpy_htod_async(at, &report, sizeof report, stream) != CUDA_SUCCESS) return {};
  return {at, page_.words + first_word};
}

// Its totals in device memory are those of its words, and go on from there.
ReportSlot ReportSlots::take_unused() {
  const ReportSlot slot = unused_.back();
  unused_.pop_back();
  return slot;
}

void ReportSlots::give_back(const ReportSlot& slot) {
  if (slot.address == 0) return;
  const std::lock_guard lock(mutex_);
  unused_.push_back(slot);
}

ReportSlot ReportSlots::take(CUstream stream) {
  if (!are_children_counted()) return {};
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (!unused_.empty()) return take_unused();
  return page_.left != 0 || make_page() ? take_next(stream) : ReportSlot{};
}

ReportSlot ReportSlots::take_ready(CUstream stream) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (!unused_.empty()) return take_unused();
  return page_.left != 0 ? take_next(stream) : ReportSlot{};
}

ReportSlot ReportSlots::take_ready_in_host() {
  static_assert(sizeof(KlapReport) <= KLAP_REPORT_WORDS * sizeof(uint64_t));
  const std::lock_guard lock(mutex_);
  if (guards_.left < 2) return {};
  guards_.left -= 2;
  const size_t words = guards_.left * KLAP_REPORT_WORDS, totals = words + KLAP_REPORT_WORDS;
  guards_.words[totals] = guards_.in_device + words * sizeof(uint64_t);  // KlapReport::words
  return {guards_.in_device + totals * sizeof(uint64_t), guards_.words + words};
}

void add_reports_to_statistics() {
  const std::lock_guard lock(report_pages().mutex);
  for (const volatile uint64_t* page : report_pages().pages) add_up(page);
  report_pages().pages.clear();
}

}  // namespace klap::runtime
