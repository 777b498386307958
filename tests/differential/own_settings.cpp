#include "own_settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include "support/error.h"

namespace klap::differential {

namespace {

std::optional<std::string> wish(const Case& c, const std::string& variable) {
  const auto wanted = c.settings.find(variable);
  return wanted == c.settings.end() ? std::nullopt : std::optional(wanted->second);
}

// The value that all cases want.
std::string common_value(std::span<const Case> cases, const std::string& variable) {
  const auto first = wish(cases.front(), variable);
  for (const Case& c : cases) {
    const auto other = wish(c, variable);
    if (other == first) continue;
    const std::string none = "the default";
    throw Error(ErrorCode::Config,
                fmt::format("{} is made for {}={} and {} for {}, and one process has but one of them",
                            cases.front().name, variable, first.value_or(none), c.name, other.value_or(none)))
        .fix("name them in calls of their own, or set the variable");
  }
  return *first;  // of a variable that some case names
}

}  // namespace

OwnSettings find_own_settings(std::span<const Case> cases, const VariableOf& variable) {
  std::set<std::string> names;
  for (const Case& c : cases) {
    for (const auto& [name, value] : c.settings) names.insert(name);
  }
  OwnSettings own;
  for (const std::string& name : names) {
    const char* const set = variable(name.c_str());
    if (set == nullptr) {
      own.missing[name] = common_value(cases, name);
      continue;
    }
    for (const Case& c : cases) {
      const auto wanted = c.settings.find(name);
      if (wanted == c.settings.end() || wanted->second == set) continue;
      own.notes.push_back(
          fmt::format("{} is made for {}={}; it stays '{}'", c.name, name, wanted->second, set));
    }
  }
  return own;
}

void begin_with_settings_of(std::span<const Case> cases, char** argv) {
  // Nothing else reads them.
  const char* const preloaded = getenv("LD_PRELOAD");
  if (preloaded == nullptr || *preloaded == '\0') return;
  const OwnSettings own = find_own_settings(cases, [](const char* name) { return getenv(name); });
  if (own.missing.empty()) {
    // Said once: by the process that runs them.
    for (const std::string& note : own.notes) std::fprintf(stderr, "klap_case: %s\n", note.c_str());
    return;
  }
  for (const auto& [name, value] : own.missing) setenv(name.c_str(), value.c_str(), 1);
  execv("/proc/self/exe", argv);
  throw Error(ErrorCode::Io, fmt::format("cannot start anew: {}", std::strerror(errno)));
}

}  // namespace klap::differential
