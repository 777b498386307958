#include "runtime/load/first_image.h"

#include <cstdlib>
#include <mutex>

#include "runtime/driver.h"
#include "runtime/launch/kernel_timer.h"
#include "runtime/parents/frame_memory.h"
#include "runtime/parents/guard_profiles.h"
#include "runtime/parents/launch_guard.h"
#include "runtime/process.h"
#include "runtime/queues/report_slots.h"
#include "runtime/sizes/child_sizes.h"
#include "runtime/stats.h"
#include "support/boundary.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

void write_all_statistics() {
  if (is_forked_child()) return;  // the counters are the parent process's
  finish_guards();
  add_guards_to_statistics();
  add_reports_to_statistics();
  add_sizes_to_statistics();
  add_frames_to_statistics();
  if (config().timing && driver()) collect_timed_launches();
  if (!config().counts_children) Stats::instance().leave_out_children();
  if (config().sizes) Stats::instance().look_for_sizes();
  Stats::instance().write(config().stats_file.string());
}

// An exit handler.
void write_statistics() { contain("KLAP_STATS", "statistics not written", write_all_statistics); }

// Another one. If nothing was launched that the guard knows, it does nothing.
void write_profiles() {
  contain("KLAP_GUARD", "profiles not written", [] {
    if (is_forked_child() || !driver()) return;
    finish_guards();
    GuardProfiles::instance().write(seconds_now());
  });
}

}  // namespace

void first_image_loaded() {
  static std::once_flag once;
  std::call_once(once, [] {
    guard_against_forks();
    if (!config().stats_file.empty() && std::atexit(write_statistics) != 0) {
      log().warn("statistics will not be written: the process has too many exit handlers");
    }
    // Registered later, it runs before that.
    if (GuardProfiles::instance().are_kept() && std::atexit(write_profiles) != 0)
      log().info("profiles will not be written: the process has too many exit handlers");
  });
}

}  // namespace klap::runtime
