#include "runtime/process.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <string>

#include "settings/contradictions.h"
#include "support/boundary.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

std::atomic<bool> forked{false};

settings::Config* read_settings() {
  auto* const read = new settings::Config(settings::load_config());
  settings::apply_log_settings(*read);
  // Each setting alone may be right. klap run refuses such settings before the program begins.
  const auto contradiction = settings::find_contradiction(*read);
  if (contradiction && std::ranges::count(read->problems, contradiction->what()) == 0)
    read->problems.emplace_back(contradiction->what());
  for (const std::string& problem : read->problems) log().warn("{}", problem);
  return read;
}

}  // namespace

const settings::Config& config() {
  static const settings::Config* const process_wide = read_settings();
  return *process_wide;
}

bool active() noexcept {
  if (is_forked_child()) return false;
  // If there is no memory for the settings, nothing is done.
  bool is_active = false;
  try_or_report("settings", "runs unchanged", [&] { is_active = !config().disabled; });
  return is_active;
}

void guard_against_forks() {
  if (pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); }) != 0)
    throw std::bad_alloc();
}

bool is_forked_child() noexcept { return forked.load(std::memory_order_relaxed); }

}  // namespace klap::runtime
