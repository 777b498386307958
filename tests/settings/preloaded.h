// A program run under the preload library with chosen settings, and its outcome.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"

namespace klap::settings_test {

struct Outcome {
  std::string err;                    // standard error
  std::vector<std::string> launched;  // kernels, in order
  std::vector<int> grids, blocks;     // theirs, in the first dimension
  int events = 0;                     // that were recorded
  nlohmann::json stats;               // null when there were none

  // Whether the parent's launch went to its variant.
  [[nodiscard]] bool redirected() const {
    return std::ranges::none_of(launched, [](const std::string& name) { return name == "_Z6parentPii"; });
  }
};

class Preloaded : public cli_test::Command {
 protected:
  // Runs the loader with VARIABLE=VALUE settings. Statistics are always asked for, and the folders of the
  // user who runs the tests are not used.
  Outcome run(const std::vector<std::string>& settings = {}, int blocks = 2) {
    return run_kernel("launches.fatbin", "_Z6parentPii", settings, blocks);
  }

  // Runs a kernel of a program in this way.
  Outcome run_kernel(const std::string& program, const std::string& kernel,
                     const std::vector<std::string>& settings, int blocks, int times = 1) {
    std::filesystem::remove(path("calls"));
    std::filesystem::remove(path("statistics.json"));
    std::vector<std::string> environment{"LD_PRELOAD=" KLAP_SHIM, "LD_LIBRARY_PATH=" KLAP_FAKE_FOLDER,
                                         "XDG_CACHE_HOME=" + path("cache"), "FAKE_CUDA_LOG=" + path("calls"),
                                         "KLAP_STATS=" + path("statistics.json")};
    environment.insert(environment.end(), settings.begin(), settings.end());
    const auto result = command(
        {KLAP_LOADER, cli_test::program(program), kernel, std::to_string(blocks), std::to_string(times)},
        environment);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "") << "standard output is the program's";
    Outcome outcome{.err = result.err,
                    .launched = launches(),
                    .grids = numbers("grid="),
                    .blocks = numbers("block="),
                    .events = count("cuEventRecord"),
                    .stats = nullptr};
    if (std::filesystem::exists(path("statistics.json"))) {
      outcome.stats = nlohmann::json::parse(cli_test::read(path("statistics.json")));
    }
    return outcome;
  }

  // KLAP_CONFIG=... for a config file of that text.
  std::string config(const std::string& text) { return "KLAP_CONFIG=" + write("klap.toml", text); }

 private:
  std::vector<std::string> launches() const {
    std::vector<std::string> names;
    const std::string calls = cli_test::read(path("calls"));
    for (size_t at = 0; (at = calls.find("cuLaunchKernel", at)) != std::string::npos; ++at) {
      const size_t begin = calls.find("kernel=", at) + 7;
      names.push_back(calls.substr(begin, calls.find(' ', begin) - begin));
    }
    return names;
  }

  int count(const std::string& call) const {
    const std::string calls = cli_test::read(path("calls"));
    int found = 0;
    for (size_t at = 0; (at = calls.find(call, at)) != std::string::npos; ++at) ++found;
    return found;
  }

  // The first of the numbers behind `key` in each launch.
  std::vector<int> numbers(const std::string& key) const {
    std::vector<int> found;
    const std::string calls = cli_test::read(path("calls"));
    for (size_t at = 0; (at = calls.find("cuLaunchKernel", at)) != std::string::npos; ++at) {
      found.push_back(std::stoi(calls.substr(calls.find(key, at) + key.size())));
    }
    return found;
  }
};

}  // namespace klap::settings_test
