#include "klap/doctor/toolchain.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <optional>

#include "jit/compile/toolchain.h"
#include "support/error.h"

namespace klap::tool {

namespace {

constexpr const char* kNvrtc = "NVRTC";
constexpr const char* kNvJitLink = "nvJitLink";

// "13.0, /usr/local/cuda/lib64/libnvrtc.so.13, of 2025-08-20"
std::string describe(const std::string& library) {
  for (const jit::ToolFile& tool : jit::opened_toolchain()) {
    if (tool.library != library) continue;
    const std::time_t modified = tool.modified / 1'000'000'000;
    return fmt::format("version {}, {}, of {:%Y-%m-%d}", tool.version, tool.path, fmt::localtime(modified));
  }
  return "found";
}

// A driver loads no code that a newer toolkit has made.
std::optional<Finding> too_new(const char* what, const std::string& version, int driver_version) {
  const long major = std::strtol(version.c_str(), nullptr, 10);
  if (driver_version == 0 || major <= driver_version / 1000) return std::nullopt;
  return Finding{what, State::Broken,
                 fmt::format("version {} is newer than the driver, which is for CUDA {}", version,
                             driver_version / 1000),
                 fmt::format("install a newer driver, or name an older library in KLAP_{}",
                             what == kNvrtc ? "NVRTC" : "NVJITLINK")};
}

Finding find_nvrtc(int driver_version) {
  try {
    const std::string version = jit::nvrtc_version();
    if (auto problem = too_new(kNvrtc, version, driver_version)) return *problem;
    return {kNvrtc, State::Fine, describe("nvrtc"), ""};
  } catch (const Error& error) {
    return {kNvrtc, State::Broken, error.reason(),
            "install libnvrtc of the CUDA toolkit, or name its file in KLAP_NVRTC"};
  }
}

// The driver's linker takes its place.
Finding find_nvjitlink(const settings::Config& config, int driver_version) {
  if (config.linker == settings::LinkerChoice::Driver)
    return {kNvJitLink, State::Fine, "not used, as KLAP_LINKER=driver", ""};
  try {
    const std::string version = jit::nvjitlink_version();
    if (auto problem = too_new(kNvJitLink, version, driver_version)) return *problem;
    return {kNvJitLink, State::Fine, describe("nvJitLink"), ""};
  } catch (const Error& error) {
    const bool is_needed = config.linker == settings::LinkerChoice::NvJitLink;
    return {kNvJitLink, is_needed ? State::Broken : State::Fine,
            is_needed ? error.reason() : "missing, so the driver links: " + error.reason(),
            "install libnvJitLink of the CUDA toolkit, or name its file in KLAP_NVJITLINK"};
  }
}

}  // namespace

Findings find_toolchain(const settings::Config& config, int driver_version) {
  return {find_nvrtc(driver_version), find_nvjitlink(config, driver_version)};
}

}  // namespace klap::tool
