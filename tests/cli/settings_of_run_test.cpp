// Settings of klap run that contradict one another, and folders that cannot be written.
#include <gmock/gmock.h>

#include <string_view>

#include "emulated.h"

namespace klap::cli_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Words = std::vector<std::string>;

class SettingsOfRun : public OnEmulator {
 protected:
  Result run(Words options, const Words& environment = {}) {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {"sh", "-c", "echo run"});
    return klap(options, environment);
  }
};

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++found;
  return found;
}

TEST_F(SettingsOfRun, ContradictionsAreRefusedBeforeTheProgramRuns) {
  struct Row {
    Words options, environment;
    const char* message;
  };
  const std::string defaults =
      write("defaults.toml", "[defaults]\ngranularity = \"block\"\nlauncher = \"host\"\n");
  const std::string kernel = write("kernel.toml", "[[kernel]]\nname = \"bfs*\"\ngranularity = \"warp\"\n");
  for (const Row& row : {
           Row{{"--set", "granularity=warp", "--set", "launcher=fused"},
               {},
               "launcher fused (--set) contradicts granularity warp (--set): "},
           Row{{"--set", "launcher=host"},
               {"KLAP_GRANULARITY=block"},
               "launcher host (--set) contradicts granularity block (environment)"},
           Row{{},
               {"KLAP_GRANULARITY=multiblock", "KLAP_LAUNCHER=host-readback"},
               "contradicts granularity multiblock"},
           Row{{"--config", defaults}, {}, "defaults.toml:3) contradicts granularity block ("},
           Row{{"--config", kernel, "--set", "launcher=host"}, {}, "contradicts granularity warp ("},
           Row{{"--set", "launcher=host-readback", "--set", "flatten=on"},
               {},
               "flatten on (--set) contradicts"},
           Row{{"--set", "launcher=host-readback", "--set", "threshold=8"},
               {},
               "threshold 8 (--set) contradicts"},
           Row{{"--set", "KLAP_COUNTERS=some", "--set", "KLAP_GUARD=on"}, {}, "counting changes the times"},
           Row{{"--quiet", "--set", "KLAP_SIZES=1"},
               {},
               "KLAP_SIZES: what it counts is a part of the statistics"},
           Row{{"--compare", "--set", "granularity=warp", "--set", "launcher=host"}, {}, "contradicts"},
       }) {
    const Result result = run(row.options, row.environment);
    EXPECT_EQ(result.exit_code, 2) << row.message;
    EXPECT_EQ(result.out, "") << "the program must not run";
    EXPECT_THAT(result.err, AllOf(StartsWith("klap: "), HasSubstr(row.message), HasSubstr("(fix: ")));
  }
}

TEST_F(SettingsOfRun, WhatGoesTogetherRuns) {
  const std::string kernel =
      write("kernel.toml",
            "[defaults]\ngranularity = \"warp\"\n"
            "[[kernel]]\nname = \"bfs*\"\ngranularity = \"grid\"\nlauncher = \"host\"\n");
  for (const Words& options : {Words{"--set", "granularity=warp", "--set", "launcher=auto"},
                               Words{"--set", "granularity=block", "--set", "launcher=device"},
                               Words{"--set", "granularity=grid", "--set", "launcher=fused"},
                               Words{"--set", "launcher=host-readback", "--set", "flatten=off"},
                               Words{"--set", "KLAP_SIZES=1"}, Words{"--config", kernel}}) {
    const Result result = run(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "run\n");
  }
}

TEST_F(SettingsOfRun, DoctorNamesContradictions) {
  const Result result = klap({"doctor"}, {"KLAP_GRANULARITY=warp", "KLAP_LAUNCHER=host"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("launcher host (environment) contradicts granularity warp"));
}

// Each stage of each module, and each module, would fail in the same way.
TEST_F(SettingsOfRun, AFolderThatCannotBeWrittenIsOneWarning) {
  const std::string nowhere = write("file", "") + "/folder";
  struct Row {
    const char *variable, *message;
  };
  for (const Row& row : {Row{"KLAP_CACHE_DIR", "modules are not kept in the cache: "},
                         Row{"KLAP_DUMP_DIR", "KLAP_DUMP_DIR: stages are not written: "},
                         Row{"KLAP_LOG_FILE", "the log stays on standard error: "},
                         Row{"KLAP_STATS", "KLAP_STATS: statistics not written: "}}) {
    Words environment = driver();
    environment.insert(environment.end(), {"KLAP_CACHE_DIR=" + path("cache"), "LD_PRELOAD=" KLAP_SHIM});
    environment.push_back(row.variable + ("=" + nowhere));
    const Result result = command(micro_, environment);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(count(result.err, "warning: "), 1u) << row.variable << ":\n" << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr(row.message), HasSubstr(nowhere)));
  }
}

// The summary and the program's exit code are not lost with the file.
TEST_F(SettingsOfRun, StatisticsThatCannotBeWrittenAreAWarning) {
  const std::string nowhere = write("file", "") + "/stats.json";
  const Result result = klap_on_micro({"run"}, {"KLAP_STATS=" + nowhere});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("klap: 280 children run together\n"));
  EXPECT_THAT(result.err, HasSubstr("klap: warning: KLAP_STATS: statistics not written: " + nowhere));
  EXPECT_EQ(count(result.err, "warning: "), 1u) << result.err;
}

TEST_F(SettingsOfRun, AToolSaysItOnce) {
  const std::string nowhere = write("file", "") + "/folder";
  const std::string file = program("launches.ptx");
  const Result warmed = klap({"cache", "warm", file}, {"KLAP_CACHE_DIR=" + nowhere});
  EXPECT_EQ(warmed.exit_code, 1);
  EXPECT_EQ(warmed.err, "klap: " + nowhere + ": cannot open the cache folder: Not a directory\n");
  const Result dumped = klap({"explain", file}, {"KLAP_DUMP_DIR=" + nowhere});
  EXPECT_EQ(dumped.exit_code, 1);
  EXPECT_EQ(count(dumped.err, "\n"), 1u) << dumped.err;
}

}  // namespace
}  // namespace klap::cli_test
