#include "emulator/driver/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include "support/error.h"

namespace klap::emulator::driver {
namespace {

constexpr std::string_view kPrefix = "KLAP_EMULATOR_";

constexpr ScheduleKind kSchedules[] = {
    ScheduleKind::Fast,      ScheduleKind::RoundRobin, ScheduleKind::Random,   ScheduleKind::OneBlock,
    ScheduleKind::StarveOne, ScheduleKind::ChildFirst, ScheduleKind::ChildLast};

std::optional<uint64_t> number(std::string_view text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return {};
  return value;
}

template <typename Target>
bool set_number(Target& target, std::string_view text, uint64_t least,
                uint64_t most = std::numeric_limits<Target>::max()) {
  const auto value = number(text, least, most);
  if (value) target = static_cast<Target>(*value);
  return value.has_value();
}

bool set_switch(bool& target, std::string_view text) {
  if (text != "0" && text != "1") return false;
  target = text == "1";
  return true;
}

// "OneBlock", "one-block" and "one_block" are the same.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '-' && c != '_') out += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return out;
}

bool set_schedule(ScheduleKind& target, std::string_view text) {
  const auto* const found = std::ranges::find_if(
      kSchedules, [&](ScheduleKind kind) { return folded(to_string(kind)) == folded(text); });
  if (found == std::end(kSchedules)) return false;
  target = *found;
  return true;
}

bool set_findings(bool& fatal, std::string_view text) {
  if (text != "fail" && text != "report") return false;
  fatal = text == "fail";
  return true;
}

struct Setting {
  std::string_view name, allowed, meaning;
  bool (*set)(Settings& settings, std::string_view text);
};

constexpr Setting kSettings[] = {
    {"SEED", "a number", "chooses among the runs that the schedule allows; the same seed gives the same run",
     [](Settings& s, std::string_view text) {
       return set_number(s.machine.executor.seed, text, 0) &&
              set_number(s.machine.executor.order.seed, text, 0);
     }},
    {"SCHEDULE", "fast, round-robin, random, one-block, starve-one, child-first or child-last",
     "which warp of which block of which grid goes next",
     [](Settings& s, std::string_view text) { return set_schedule(s.machine.executor.schedule, text); }},
    {"LATE_BLOCKS", "a number, 0 for none",
     "of a grid's blocks each starts so many thread instructions after the one before, at most",
     [](Settings& s, std::string_view text) { return set_number(s.machine.executor.late_blocks, text, 0); }},
    {"WEAK_MEMORY", "0 or 1", "loads may return older values where the memory model allows it",
     [](Settings& s, std::string_view text) {
       return set_switch(s.machine.executor.order.weak_memory, text);
     }},
    {"STALE_PERCENT", "0 to 100", "how often a load that may return an older value does",
     [](Settings& s, std::string_view text) {
       return set_number(s.machine.executor.order.stale_percent, text, 0, 100);
     }},
    {"RACES", "0 or 1", "finds accesses that nothing orders",
     [](Settings& s, std::string_view text) {
       return set_switch(s.machine.executor.order.detect_races, text);
     }},
    {"UNINITIALISED", "0 or 1", "finds loads of what nobody wrote",
     [](Settings& s, std::string_view text) {
       return set_switch(s.machine.executor.order.detect_uninitialised, text);
     }},
    {"BOUNDS", "0 or 1", "checks every access against the allocations; on unless switched off",
     [](Settings& s, std::string_view text) { return set_switch(s.machine.executor.check_bounds, text); }},
    {"MULTIPROCESSORS", "1 to 1024", "of the device",
     [](Settings& s, std::string_view text) {
       return set_number(s.machine.executor.device.multiprocessors, text, 1, 1024);
     }},
    {"RESIDENT_BLOCKS", "1 to 32", "of a multiprocessor, at most",
     [](Settings& s, std::string_view text) {
       return set_number(s.machine.executor.device.resident_blocks, text, 1, 32);
     }},
    {"COMPUTE_CAPABILITY", "50 to 129, as in 90 for 9.0", "of the device",
     [](Settings& s, std::string_view text) {
       return set_number(s.machine.executor.device.compute_capability, text, 50, 129);
     }},
    {"MEMORY", "a number of bytes, at least 1048576", "of the device",
     [](Settings& s, std::string_view text) {
       return set_number(s.machine.executor.device.memory_bytes, text, 1 << 20, uint64_t{1} << 40);
     }},
    {"SHARED_MANAGED", "0 or 1",
     "whether kernels and the host may use managed memory at once; on unless switched off",
     [](Settings& s, std::string_view text) {
       return set_switch(s.machine.executor.device.shares_managed_memory, text);
     }},
    {"PENDING_LAUNCHES", "1 to 1048576",
     "device launches that can wait at once, until the program asks for more",
     [](Settings& s, std::string_view text) {
       return set_number(s.machine.pending_launches, text, 1, 1 << 20);
     }},
    {"MAX_STEPS", "a number, 0 for no limit", "thread instructions before a run is given up",
     [](Settings& s, std::string_view text) { return set_number(s.machine.executor.max_steps, text, 0); }},
    {"DEVICES", "1 to 8", "how many devices of this kind there are",
     [](Settings& s, std::string_view text) { return set_number(s.devices, text, 1, 8); }},
    {"FINDINGS", "fail or report", "whether a finding makes the next synchronising call fail",
     [](Settings& s, std::string_view text) { return set_findings(s.findings_are_fatal, text); }},
    {"REFUSES_WAITS", "0 or 1",
     "whether code that calls cudaDeviceSynchronize() is refused, as it is for compute capability 9.0",
     [](Settings& s, std::string_view text) { return set_switch(s.refuses_waits, text); }},
    {"QUIET", "0 or 1", "leaves out the line that says that this is an emulation",
     [](Settings& s, std::string_view text) { return set_switch(s.quiet, text); }},
};

void set(Settings& settings, std::string_view name, std::string_view text) {
  const auto* const setting = std::ranges::find(kSettings, name, &Setting::name);
  if (setting == std::end(kSettings)) {
    throw Error(ErrorCode::Config, fmt::format("there is no setting {}{}", kPrefix, name))
        .fix("the settings are:\n" + describe_settings());
  }
  if (!setting->set(settings, text)) {
    throw Error(ErrorCode::Config,
                fmt::format("{}{} is \"{}\" and must be {}", kPrefix, name, text, setting->allowed));
  }
}

void set_pair(Settings& settings, std::string_view pair) {
  const size_t equals = pair.find('=');
  if (equals == std::string_view::npos) {
    throw Error(ErrorCode::Config, fmt::format("\"{}\" is not of the form NAME=VALUE", pair));
  }
  set(settings, pair.substr(0, equals), pair.substr(equals + 1));
}

}  // namespace

Settings settings_from_environment() {
  Settings settings;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.starts_with(kPrefix)) set_pair(settings, text.substr(kPrefix.size()));
  }
  return settings;
}

void change_settings(Settings& settings, std::string_view changes) {
  constexpr std::string_view kSeparators = " \t\n,;";
  while (true) {
    const size_t begin = changes.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) return;
    changes.remove_prefix(begin);
    const size_t end = std::min(changes.find_first_of(kSeparators), changes.size());
    set_pair(settings, changes.substr(0, end));
    changes.remove_prefix(end);
  }
}

std::string describe_settings() {
  std::string out;
  for (const Setting& setting : kSettings) {
    out += fmt::format("  {}{}: {} ({})\n", kPrefix, setting.name, setting.meaning, setting.allowed);
  }
  return out;
}

}  // namespace klap::emulator::driver
