#include "emulator/driver/control.h"

#include <utility>

#include "emulator/driver/context_lifetime.h"
#include "emulator/driver/process.h"

using namespace klap::emulator::driver;

#define KLAP_CONTROL extern "C" __attribute__((visibility("default")))

// The number of devices stays: programs hold their numbers.
KLAP_CONTROL int klap_emulator_reset(const char* settings) {
  return call("klap_emulator_reset", Needs::Nothing, [&](Process& process) {
    Settings next = settings_from_environment();
    if (settings != nullptr) change_settings(next, settings);
    process.settings = std::move(next);
    process.findings = 0;
  });
}

KLAP_CONTROL int klap_emulator_counts(klap_emulator_counters* counters) {
  return call("klap_emulator_counts", Needs::Nothing, [&](Process& process) {
    require(counters != nullptr);
    const Totals all = totals(process);
    *counters = {all.launches.device_launches,
                 all.launches.refused,
                 all.launches.over_limit,
                 all.launches.host_launches,
                 all.steps,
                 all.heap_allocations,
                 all.heap_kept};
  });
}

KLAP_CONTROL uint64_t klap_emulator_findings() {
  const std::lock_guard lock(the_mutex());
  return the_process().findings;
}
