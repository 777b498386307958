#include "runtime/process.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "ptx-patterns/templates/common/queue.h"
#include "runtime/driver.h"
#include "runtime/launch/kernel_timer.h"
#include "runtime/stats.h"
#include "support/boundary.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

std::atomic<bool> forked{false};

struct ReportPages {
  std::mutex mutex;
  std::vector<const volatile uint64_t*> pages;
};

ReportPages& report_pages() {
  static auto* const pages = new ReportPages;
  return *pages;
}

settings::Config* read_settings() {
  auto* const read = new settings::Config(settings::load_config());
  settings::apply_log_settings(*read);
  for (const std::string& problem : read->problems) log().warn("{}", problem);
  return read;
}

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

void write_all_statistics() {
  if (forked.load(std::memory_order_relaxed)) return;  // the counters are the parent process's
  {
    const std::lock_guard lock(report_pages().mutex);
    for (const volatile uint64_t* page : report_pages().pages) add_up(page);
    report_pages().pages.clear();
  }
  if (config().timing && driver()) collect_timed_launches();
  if (!config().counts_children) Stats::instance().leave_out_children();
  Stats::instance().write(config().stats_file.string());
}

// An exit handler.
void write_statistics() { contain("KLAP_STATS", "statistics not written", write_all_statistics); }

}  // namespace

const settings::Config& config() {
  static const settings::Config* const process_wide = read_settings();
  return *process_wide;
}

bool active() noexcept {
  if (forked.load(std::memory_order_relaxed)) return false;
  // If there is no memory for the settings, nothing is done.
  bool is_active = false;
  try_or_report("settings", "runs unchanged", [&] { is_active = !config().disabled; });
  return is_active;
}

void first_image_loaded() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); }) != 0)
      throw std::bad_alloc();
    if (!config().stats_file.empty() && std::atexit(write_statistics) != 0) {
      log().warn("statistics will not be written: the process has too many exit handlers");
    }
  });
}

size_t report_page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
size_t report_slots() { return report_page_bytes() / (KLAP_REPORT_WORDS * sizeof(uint64_t)); }

void* new_report_page() {
  if (config().stats_file.empty() || !config().counts_children) return nullptr;
  void* const page =
      mmap(nullptr, report_page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  const std::lock_guard lock(report_pages().mutex);
  report_pages().pages.push_back(static_cast<const volatile uint64_t*>(page));
  return page;
}

}  // namespace klap::runtime
