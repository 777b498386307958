// klap doctor looks at everything that the library needs on this machine. What cannot be checked here, as
// there is no GPU, is said and is no fault.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "klap/commands.h"
#include "klap/doctor/device.h"
#include "klap/doctor/files.h"
#include "klap/doctor/sample.h"
#include "klap/doctor/toolchain.h"
#include "klap_ptx/colour.h"
#include "klap_ptx/input.h"

namespace klap::tool {

namespace {

constexpr uint32_t kSmWithoutDevice = 90;

const char* to_string(State state) {
  switch (state) {
    case State::Fine:
      return "fine";
    case State::Broken:
      return "broken";
    case State::NotChecked:
      break;
  }
  return "not checked";
}

Findings look_at_all(const DoctorOptions& options) {
  const settings::Config config = settings::load_config();
  Devices devices = find_devices();
  Findings all = std::move(devices.findings);
  const auto add = [&all](Findings more) { all.insert(all.end(), more.begin(), more.end()); };
  const Findings toolchain = find_toolchain(config, devices.driver_version);
  const bool has_nvrtc = std::ranges::none_of(toolchain, [](const Finding& finding) {
    return finding.what == "NVRTC" && finding.state == State::Broken;
  });
  add(toolchain);
  add(check_settings(config));
  std::string library;
  add({check_cache(config), check_library(options.library, library)});
  add(has_nvrtc ? Findings{check_rewriting(config, devices.sm.value_or(kSmWithoutDevice)),
                           check_sample_run(library, devices.sm.has_value())}
                : without_nvrtc());
  return all;
}

Colour colour_of(State state) {
  if (state == State::Broken) return Colour::Red;
  return state == State::Fine ? Colour::Green : Colour::Yellow;
}

void print_findings(const Findings& findings) {
  for (const Finding& finding : findings) {
    const std::string state = fmt::format("{:11}", to_string(finding.state));
    fmt::print("{}  {:9}  {}\n", coloured(stdout, colour_of(finding.state), state), finding.what,
               finding.text);
    if (!finding.fix.empty()) fmt::print("{:24}fix: {}\n", "", finding.fix);
  }
}

void print_verdict(const Findings& findings) {
  const auto broken = std::ranges::count(findings, State::Broken, &Finding::state);
  const auto unknown = std::ranges::count(findings, State::NotChecked, &Finding::state);
  const std::string verdict =
      broken == 0 ? "all that could be checked is fine" : fmt::format("{} broken", broken);
  fmt::print("\n{}{}\n", verdict, unknown == 0 ? "" : fmt::format("; {} not checked", unknown));
}

nlohmann::json as_json(const Findings& findings) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Finding& finding : findings)
    rows.push_back({{"what", finding.what},
                    {"state", to_string(finding.state)},
                    {"text", finding.text},
                    {"fix", finding.fix}});
  return rows;
}

}  // namespace

int doctor(const DoctorOptions& options) {
  const Findings findings = look_at_all(options);
  const bool is_broken = std::ranges::count(findings, State::Broken, &Finding::state) != 0;
  if (options.json) {
    print_json({{"findings", as_json(findings)}, {"broken", is_broken}});
  } else {
    print_findings(findings);
    print_verdict(findings);
  }
  return is_broken ? 1 : 0;
}

}  // namespace klap::tool
