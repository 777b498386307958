// Tests of klap with programs on the emulated driver.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "command.h"

namespace klap::cli_test {

class OnEmulator : public Command {
 protected:
  // Runs klap with the emulated driver and VARIABLE=VALUE settings.
  Result klap(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {}) {
    std::vector<std::string> words{KLAP}, all = driver();
    words.insert(words.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), environment.begin(), environment.end());
    return command(words, all);
  }

  // Runs a subcommand of klap on the small program, with options before it.
  Result klap_on_micro(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
    arguments.insert(arguments.end(), micro_.begin(), micro_.end());
    return klap(arguments, environment);
  }

  [[nodiscard]] std::vector<std::string> driver() const {
    std::vector<std::string> all = tools();
    all.insert(all.end(), {"LD_LIBRARY_PATH=" EMULATOR, "KLAP_EMULATOR_QUIET=1", "KLAP_LINKER=driver"});
    return all;
  }
  [[nodiscard]] std::vector<std::string> tools() const {
    std::vector<std::string> all = {"KLAP_CACHE_DIR=" + path("cache")};
    if (const char* const nvrtc = std::getenv("KLAP_NVRTC"))
      all.push_back(std::string("KLAP_NVRTC=") + nvrtc);
    return all;
  }

  // It launches its parent seven times, each with forty children.
  const std::vector<std::string> micro_ = {EMULATED "micro", "--children", "40", "--parents", "64",
                                           "--reps",         "5"};
};

}  // namespace klap::cli_test
