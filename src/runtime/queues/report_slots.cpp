#include "runtime/queues/report_slots.h"

#include <sys/mman.h>
#include <unistd.h>

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

size_t report_page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// Places of KLAP_REPORT_WORDS words in a page, one for each stream (templates/common/report.h).
size_t report_slots() { return report_page_bytes() / (KLAP_REPORT_WORDS * sizeof(uint64_t)); }

// A page of host memory that the device writes to, counted into the statistics at exit. The page is mapped
// for this alone: pinned memory may not be inherited across fork, so it must not share a page with anything.
// Null when there is no memory.
void* new_report_page() {
  void* const page =
      mmap(nullptr, report_page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  const std::lock_guard lock(report_pages().mutex);
  report_pages().pages.push_back(static_cast<const volatile uint64_t*>(page));
  return page;
}

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

bool ReportSlots::make_page() {
  if (failed_) return false;
  void* const page = new_report_page();
  if (!page) return false;
  const Driver& cuda = *driver();
  CUresult result = cuda.mem_host_register(page, report_page_bytes(), CU_MEMHOSTREGISTER_DEVICEMAP);
  if (result == CUDA_SUCCESS) result = cuda.mem_host_get_device_pointer(&words_, page, 0);
  if (result == CUDA_SUCCESS) result = cuda.mem_alloc(&reports_, report_slots() * sizeof(KlapReport));
  if (result == CUDA_SUCCESS) left_ = report_slots();
  page_ = static_cast<const volatile uint64_t*>(page);
  failed_ = left_ == 0;
  if (failed_)
    log().warn("children are not counted: there is no memory for their totals ({})", error_name(result));
  return !failed_;
}

void ReportSlots::make_ready(bool guards) {
  if (!guards && !are_children_counted()) return;
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  if (left_ == 0) make_page();
}

ReportSlot ReportSlots::take_next(CUstream stream) {
  --left_;
  const size_t first_word = left_ * KLAP_REPORT_WORDS;
  const KlapReport report{
      std::bit_cast<unsigned long long*>(words_ + first_word * sizeof(unsigned long long)), {}};
  const CUdeviceptr at = reports_ + left_ * sizeof report;
  if (driver()->memcpy_htod_async(at, &report, sizeof report, stream) != CUDA_SUCCESS) return {};
  return {at, page_ + first_word};
}

ReportSlot ReportSlots::take(CUstream stream) {
  if (!are_children_counted()) return {};
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  return left_ != 0 || make_page() ? take_next(stream) : ReportSlot{};
}

ReportSlot ReportSlots::take_ready(CUstream stream) {
  const RelaxedCapture relaxed;
  const std::lock_guard lock(mutex_);
  return left_ != 0 ? take_next(stream) : ReportSlot{};
}

void add_reports_to_statistics() {
  const std::lock_guard lock(report_pages().mutex);
  for (const volatile uint64_t* page : report_pages().pages) add_up(page);
  report_pages().pages.clear();
}

}  // namespace klap::runtime
