#include "support/boundary.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string_view>

#include "support/log.h"
#include "support/own_thread.h"

namespace klap {
namespace {

constexpr int kMostReports = 50;

thread_local int entries = 0;

// The part of `line` that holds text.
std::string_view written(const char* line, size_t room, int length) {
  return {line, std::min(static_cast<size_t>(std::max(length, 0)), room - 1)};
}

}  // namespace

bool is_inside() noexcept { return entries != 0; }
Inside::Inside() noexcept { ++entries; }
Inside::~Inside() { --entries; }

void report_failure(const char* where, const char* consequence, const char* why) noexcept {
  static std::atomic<int> reports{0};
  const int before = reports.fetch_add(1, std::memory_order_relaxed);
  if (before >= kMostReports) return;
  // On the stack, since there may be no memory for a string.
  char line[1024];
  const int length = std::snprintf(line, sizeof line, "%s: %s: %s%s", where, consequence, why,
                                   before + 1 == kMostReports ? " (further failures are not reported)" : "");
  const std::string_view text = written(line, sizeof line, length);
  if (is_forked_from_work()) return write_log_line("warning", text);
  log_without_memory(spdlog::level::warn, text);
}

}  // namespace klap
