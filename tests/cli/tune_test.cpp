// klap-ptx tune on programs that run on the emulated driver. Times mean nothing there, so what is chosen does
// not matter: that runs are made, checked and dropped does, and that what is written is a config file. Where
// a choice is needed, the program changes the times that the library has written.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "command.h"

namespace klap::cli_test {
namespace {

using namespace std::string_literals;
using nlohmann::json;
using testing::HasSubstr;

class Tune : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (!std::filesystem::exists(emulated("micro"))) GTEST_SKIP() << "this build has no emulated programs";
  }
  // Tunes a program in the folder of emulated ones, or a command.
  Result tune(std::vector<std::string> options, const std::vector<std::string>& program) {
    options.insert(options.begin(), "tune");
    for (const std::string& word : {"--runs"s, "1"s, "--samples"s, samples_, "--counters"s, counters_, "-o"s})
      options.push_back(word);
    options.push_back(path("klap.toml"));
    options.emplace_back("--");
    options.insert(options.end(), program.begin(), program.end());
    // What is in the environment is not tried.
    std::vector<std::string> environment = emulator();
    environment.emplace_back("KLAP_CONSUMER_THREADS=auto");
    environment.insert(environment.end(), is_set_.begin(), is_set_.end());
    return klap_ptx(options, environment);
  }
  [[nodiscard]] std::vector<std::string> emulator() const {
    std::vector<std::string> environment = {"LD_LIBRARY_PATH=" EMULATOR, "KLAP_EMULATOR_QUIET=1",
                                            "KLAP_LINKER=driver", "KLAP_CACHE_DIR=" + path("cache")};
    if (const char* const nvrtc = std::getenv("KLAP_NVRTC"))
      environment.push_back(std::string("KLAP_NVRTC=") + nvrtc);
    return environment;
  }
  static std::string emulated(const std::string& name) { return EMULATED + name; }
  std::string samples_ = "3", counters_ = "none";
  std::vector<std::string> is_set_ = {"KLAP_GRANULARITY=grid"};
  const std::vector<std::string> micro_ = {emulated("micro"), "--children", "40", "--parents", "64",
                                           "--reps",          "5"};
};

TEST_F(Tune, WritesAConfigFile) {
  const Result result = tune({"--json"}, micro_);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = result.json();
  ASSERT_FALSE(report["kernels"].empty());
  EXPECT_GT(report["kernels"][0]["default_ms"], 0);
  const json sizes = report["kernels"][0]["child_sizes"];
  ASSERT_EQ(sizes.size(), 1);
  EXPECT_EQ(sizes[0]["counted"], "threads");
  ASSERT_EQ(sizes[0]["sizes"].size(), 1) << "all children are alike";
  EXPECT_EQ(report["kernels"][0]["exhaustive"], nullptr);
  EXPECT_EQ(report["kernels"][0]["pictures"], json::array());
  ASSERT_FALSE(report["settings"].empty()) << "some change how it launches";
  for (const json& setting : report["settings"]) {
    EXPECT_EQ(setting["problem"], "") << setting;
    EXPECT_EQ(setting["runs"].size(), 1u) << setting;
  }
  for (const json& setting : report["settings"]) EXPECT_NE(setting["key"], "granularity") << "it is set";
  EXPECT_THAT(read(path("klap.toml")), HasSubstr("klap-ptx tune"));
  const Result config = klap_ptx({"config", "--config", path("klap.toml")});
  EXPECT_EQ(config.exit_code, 0);
  EXPECT_EQ(config.err, "") << "it is understood without a warning";
}

// The program as if its kernels were faster with a threshold of 64 alone, and much faster with a way of
// promotion as well. One of its performance counters grows with the time, and one is always the same. `late`
// is a test of the shell for runs of the whole program that end half a second later.
std::vector<std::string> faster_with_settings(const std::vector<std::string>& program,
                                              const std::string& late) {
  const std::string script = R"("$@" || exit
[ -n "$KLAP_STATS" ] || { [ )" +
                             late +
                             R"( "$KLAP_CONFIG" ] && sleep 0.5; exit 0; }
exec python3 - <<'END'
import json, os, tomllib
file = os.environ["KLAP_STATS"]
config = os.environ.get("KLAP_CONFIG")
tables = tomllib.load(open(config, "rb"))["kernel"] if config else []
statistics = json.load(open(file))
times, counters = statistics["gpu_ms"], statistics["counters"]
for parent, launches in (times or counters)["launches"].items():
    of_kernel = next((table for table in tables if table["name"] == parent), {})
    setting = lambda key: of_kernel.get(key, os.environ.get("KLAP_" + key.upper()))
    ms = 10 if setting("threshold") != "64" else 8 if setting("promotion") != "PA" else 1
    for part in ("parents", "consumers") if times else ():
        times[part][parent] = ms * launches
    if counters:
        counters["means"][parent] = {"same.pct": 50, "work.sum": 1000 * ms}
json.dump(statistics, open(file, "w"))
END)";
  std::vector<std::string> out = {"sh", "-c", script, "sh"};
  out.insert(out.end(), program.begin(), program.end());
  return out;
}

TEST_F(Tune, KeepsTheBestForLaterRuns) {
  samples_ = "60";
  is_set_ = {"KLAP_GRANULARITY=grid", "KLAP_LAUNCHER=auto", "KLAP_OPTIMISE=unroll=auto"};
  const Result result = tune({"--json"}, faster_with_settings(micro_, "-z"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = result.json();
  for (const json& kernel : report["kernels"]) {
    EXPECT_EQ(kernel["settings"], json::parse(R"({"threshold": "64", "promotion": "PA"})"));
    EXPECT_EQ(kernel["default_ms"], 20) << "parent and consumer";
    EXPECT_EQ(kernel["best_ms"], 2);
    EXPECT_LT(kernel["model"]["median_error"], 0.5);
    EXPECT_GT(kernel["model"]["importance"]["threshold"], 0.1);
    EXPECT_GE(kernel["model"]["samples"].size(), 10u);
  }
  EXPECT_FALSE(report["slows_program"]);
  ASSERT_EQ(report["kept_in"].size(), 1u);
  EXPECT_THAT(read(report["kept_in"][0]), HasSubstr("threshold = \"64\""));
  const auto is_tuned = [&](const char* setting) {
    std::vector<std::string> environment = emulator();
    for (const std::string& variable :
         {std::string(setting), std::string("LD_PRELOAD=" KLAP_SHIM), "KLAP_STATS=" + path("stats.json")})
      environment.push_back(variable);
    EXPECT_EQ(command(micro_, environment).exit_code, 0);
    return json::parse(read(path("stats.json")))["modules"][0]["is_tuned"].get<bool>();
  };
  EXPECT_TRUE(is_tuned("KLAP_TUNE=1"));
  EXPECT_FALSE(is_tuned("KLAP_TUNE=off"));
  const Result listed = klap_ptx({"cache", "ls"}, emulator());
  EXPECT_THAT(listed.out, HasSubstr("tuned settings for"));
  EXPECT_THAT(listed.out, HasSubstr("1 programs tuned"));
  is_set_.insert(is_set_.end(), {"KLAP_THRESHOLD=auto", "KLAP_PROMOTION=auto"});  // so nothing is tried
  EXPECT_EQ(tune({"--json"}, micro_).json()["kept_in"], json::array());
  EXPECT_FALSE(is_tuned("KLAP_TUNE=1")) << "the newest tuning counts";
  EXPECT_EQ(klap_ptx({"cache", "ls", "--json"}, emulator()).json()["tuned"], json::array());
  write(report["kept_in"][0].get<std::string>().substr(path("").size()), "[[kernel]]\nname = \"a\"\n");
  EXPECT_EQ(klap_ptx({"cache", "clear", "--json"}, emulator()).json()["tuned_removed"], 1);
  EXPECT_FALSE(is_tuned("KLAP_TUNE=1"));
}

TEST_F(Tune, KeepsNothingThatSlowsTheProgramDown) {
  is_set_ = {"KLAP_GRANULARITY=grid", "KLAP_LAUNCHER=auto", "KLAP_OPTIMISE=unroll=auto"};
  const Result result = tune({}, faster_with_settings(micro_, "-n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("so later runs do not use them"));
  EXPECT_EQ(klap_ptx({"cache", "ls", "--json"}, emulator()).json()["tuned"], json::array());
}

// Three thresholds and two ways of promotion, so there are 4 times 3 combinations. Six of them are the
// default and each setting alone. Without proposals the model can choose no more than the best one alone.
TEST_F(Tune, ComparesItsChoiceWithTheBestOfAll) {
  samples_ = "0";
  is_set_ = {"KLAP_GRANULARITY=grid", "KLAP_LAUNCHER=auto", "KLAP_OPTIMISE=unroll=auto"};
  const Result result =
      tune({"--json", "--exhaustive", "--pictures", path("pictures")}, faster_with_settings(micro_, "-z"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_FALSE(result.json()["kernels"].empty());
  EXPECT_EQ(result.json()["samples"], 6);
  for (const json& kernel : result.json()["kernels"]) {
    const json& exhaustive = kernel["exhaustive"];
    EXPECT_EQ(exhaustive["tried"], 12);
    EXPECT_EQ(exhaustive["all"], 12);
    EXPECT_EQ(exhaustive["proposals"], 0);
    EXPECT_EQ(exhaustive["model"], json::parse(R"({"settings": {"threshold": "64"}, "ms": 16})"));
    EXPECT_EQ(exhaustive["best"],
              json::parse(R"({"settings": {"threshold": "64", "promotion": "PA"}, "ms": 2})"));
    EXPECT_EQ(exhaustive["distance"], 7) << "it takes seven times more";
    EXPECT_EQ(kernel["settings"], exhaustive["best"]["settings"]);
    const json& model = kernel["model"];
    EXPECT_EQ(model["samples"].size(), 12u);
    EXPECT_EQ(model["components"][0]["weights"].size(), 5u);
    EXPECT_EQ(model["clusters"]["merges"].size(), 11u);
    ASSERT_EQ(kernel["pictures"].size(), 4u);
    for (const json& picture : kernel["pictures"]) {
      EXPECT_THAT(picture.get<std::string>(), testing::StartsWith(path("pictures")));
      EXPECT_THAT(read(picture), testing::StartsWith("<svg"));
    }
  }
}

TEST_F(Tune, ShowsWhichSamplesAreAlike) {
  samples_ = "0";
  is_set_ = {"KLAP_GRANULARITY=grid", "KLAP_LAUNCHER=auto", "KLAP_OPTIMISE=unroll=auto"};
  const std::vector<std::string> program = faster_with_settings(micro_, "-z");
  const std::string text = tune({"--exhaustive", "--pictures", path("pictures")}, program).out;
  EXPECT_THAT(text,
              HasSubstr("12 of 12 combinations were tried. After 0 proposals the model would have chosen "
                        "threshold = 64: 16.0000 ms, 700.0 % more than the best of all"));
  EXPECT_THAT(text, HasSubstr("% of the variance: "));
  EXPECT_THAT(text, HasSubstr("    12 samples, 2.0000 to 20.0000 ms\n"));
  EXPECT_THAT(text, HasSubstr("Pictures of this are in " + path("pictures")));
}

// The first run with several settings is so long that there is no time for a second one.
TEST_F(Tune, SaysHowManyCombinationsWereTriedInTime) {
  samples_ = "0";
  is_set_ = {"KLAP_GRANULARITY=grid", "KLAP_LAUNCHER=auto", "KLAP_OPTIMISE=unroll=auto"};
  std::vector<std::string> program = {
      "sh", "-c", "[ -n \"$KLAP_STATS\" ] && [ -n \"$KLAP_CONFIG\" ] && sleep 4; exec \"$@\"", "sh"};
  program.insert(program.end(), micro_.begin(), micro_.end());
  const Result result = tune({"--json", "--exhaustive", "--seconds", "30"}, program);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = result.json();
  const json& exhaustive = report["kernels"][0]["exhaustive"];
  const int tried = exhaustive["tried"], all = exhaustive["all"];
  EXPECT_GT(tried, 0);
  EXPECT_LT(tried, all) << "each of them takes four seconds";
  EXPECT_THAT(result.err, HasSubstr(fmt::format("{} of {} combinations were tried for ", tried, all)));
}

// All 12 combinations are counted, each once, and those that were timed again not a second time.
TEST_F(Tune, ReadsCountersInRunsOfTheirOwn) {
  samples_ = "0";
  counters_ = "work.sum,same.pct";
  is_set_ = {"KLAP_GRANULARITY=grid", "KLAP_LAUNCHER=auto", "KLAP_OPTIMISE=unroll=auto",
             "KLAP_CUPTI=" KLAP_FAKE_CUPTI};
  std::vector<std::string> program = {
      "sh", "-c",
      "[ -n \"$KLAP_COUNTERS\" ] && echo \"$KLAP_TIMING.\" >> " + path("counted") + "; exec \"$@\"", "sh"};
  const std::vector<std::string> faster = faster_with_settings(micro_, "-z");
  program.insert(program.end(), faster.begin(), faster.end());
  const Result result = tune({"--json", "--exhaustive", "--pictures", path("pictures")}, program);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = result.json();
  EXPECT_EQ(report["counters"], json::parse(R"({"metrics": ["work.sum", "same.pct"], "problems": []})"));
  std::string each_once;
  for (int i = 0; i < 12; ++i) each_once += ".\n";
  EXPECT_EQ(read(path("counted")), each_once) << "and without timing";
  for (const json& kernel : report["kernels"]) {
    const json& found = kernel["counters"];
    ASSERT_EQ(found["samples"].size(), 12u);
    EXPECT_EQ(found["samples"][0]["counters"], json::parse(R"({"same.pct": 50, "work.sum": 1000})"));
    EXPECT_EQ(found["samples"][0]["ms"], 2);
    EXPECT_GT(found["importance"]["work.sum"], 0.99);
    EXPECT_EQ(found["held_out"].size(), 2u);
    ASSERT_EQ(found["components"].size(), 1u) << "the other one never changes";
    EXPECT_EQ(found["components"][0]["weights"], json::parse(R"({"work.sum": 1.0})"));
    EXPECT_EQ(found["clusters"]["merges"].size(), 11u);
    EXPECT_EQ(kernel["pictures"].size(), 8u) << "those of the settings, and those of the counters";
  }
  is_set_.emplace_back("KLAP_PROMOTION=auto");
  EXPECT_THAT(tune({"--exhaustive"}, faster_with_settings(micro_, "-z")).out,
              testing::Not(HasSubstr("counters")))
      << "fewer than ten samples";
}

TEST_F(Tune, SaysWhatItsTimeGoesWith) {
  samples_ = "0";
  counters_ = "work.sum,unknown.pct";
  is_set_ = {"KLAP_GRANULARITY=grid", "KLAP_LAUNCHER=auto", "KLAP_OPTIMISE=unroll=auto",
             "KLAP_CUPTI=" KLAP_FAKE_CUPTI};
  const std::string text = tune({"--exhaustive"}, faster_with_settings(micro_, "-z")).out;
  EXPECT_THAT(text,
              HasSubstr("The counters of 12 configurations were read. From these, a model of four in five"));
  EXPECT_THAT(text, HasSubstr("Its time goes with the counters: work.sum 100 %\n"));
  EXPECT_THAT(text, HasSubstr("    100 % of the variance: work.sum (+1.00)\n"));
  EXPECT_THAT(text, HasSubstr("Samples with like performance counters make these groups:\n"));
  EXPECT_THAT(text, HasSubstr("Counters: unknown.pct is left out"));
}

TEST_F(Tune, WorksFromTimesIfCountersCannotBeRead) {
  samples_ = "0";
  counters_ = "work.sum";
  is_set_ = {"KLAP_GRANULARITY=grid", "KLAP_LAUNCHER=auto", "KLAP_OPTIMISE=unroll=auto",
             "KLAP_CUPTI=" KLAP_FAKE_CUPTI, "FAKE_CUPTI_FAIL=cuptiRangeProfilerEnable=35"};
  std::vector<std::string> program = {
      "sh", "-c", "[ -n \"$KLAP_COUNTERS\" ] && echo . >> " + path("counted") + "; exec \"$@\"", "sh"};
  program.insert(program.end(), micro_.begin(), micro_.end());
  const Result result = tune({}, program);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("performance counters cannot be read: "));
  EXPECT_THAT(result.out, HasSubstr("Models know times and settings only"));
  EXPECT_THAT(result.out, HasSubstr("ERR_NVGPUCTRPERM"));
  EXPECT_EQ(read(path("counted")), ".\n") << "one run is enough to know";
  program[2] = "[ -n \"$KLAP_COUNTERS\" ] && exit 3; exec \"$@\"";
  EXPECT_THAT(tune({}, program).out, HasSubstr("a run that reads them is wrong: exit code 3 instead of 0"));
  counters_ = "none";
  EXPECT_THAT(tune({}, program).out, HasSubstr("performance counters are not read (--counters none)"));
  counters_ = "work.sum,";
  EXPECT_EQ(tune({}, program).exit_code, 2);
}

TEST_F(Tune, SaysBeforeAllRunsThatPicturesHaveNoPlace) {
  write("file", "");
  const Result result = tune({"--pictures", path("file/pictures")}, micro_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr(path("file/pictures") + ": cannot make the folder"));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("natively")));
}

TEST_F(Tune, TriesOnlyWhatChangesSomething) {
  const json settings = tune({"--json"}, micro_).json()["settings"];
  for (const json& setting : settings) EXPECT_NE(setting["key"], "promotion") << "there is no chain";
}

TEST_F(Tune, DropsASettingWithAWrongRun) {
  const std::string script = "[ \"$KLAP_THRESHOLD\" = 64 ] && exit 3; exec \"$@\"";
  std::vector<std::string> program = {"sh", "-c", script, "sh"};
  program.insert(program.end(), micro_.begin(), micro_.end());
  const Result result = tune({"--json"}, program);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = result.json();
  bool is_dropped = false;
  for (const json& setting : report["settings"]) {
    const bool is_wrong = setting["key"] == "threshold" && setting["value"] == "64";
    EXPECT_EQ(setting["problem"], is_wrong ? "exit code 3 instead of 0" : "") << setting;
    is_dropped = is_dropped || is_wrong;
  }
  EXPECT_TRUE(is_dropped);
  for (const json& kernel : report["kernels"]) EXPECT_NE(kernel["settings"].value("threshold", ""), "64");
}

// Most programs that launch much lose launches natively, and say so by their exit code.
TEST_F(Tune, TakesAProgramThatIsWrongNatively) {
  std::vector<std::string> program = {"sh", "-c", "[ -z \"$LD_PRELOAD\" ] && exit 1; exec \"$@\"", "sh"};
  program.insert(program.end(), micro_.begin(), micro_.end());
  const Result result = tune({"--seconds", "0.001"}, program);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("exit code 1"));
  EXPECT_THAT(result.err, HasSubstr("with the library its exit code is 0"));
  program[2] = "[ -z \"$LD_PRELOAD\" ] || exit 1";
  EXPECT_THAT(tune({}, program).err,
              HasSubstr("with the library the program is wrong: exit code 1 instead of 0"));
}

// The program is wrong with every config file, and so with what was chosen.
TEST_F(Tune, KeepsTheFileThatIsThere) {
  write("klap.toml", "[defaults]\nlauncher = \"host\"\n");
  std::vector<std::string> program = {"sh", "-c", "[ -n \"$KLAP_CONFIG\" ] && exit 3; exec \"$@\"", "sh"};
  program.insert(program.end(), micro_.begin(), micro_.end());
  const Result result = tune({"--json"}, program);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the settings together are wrong (exit code 3 instead of 0)"));
  EXPECT_EQ(result.json()["config"], nullptr);
  EXPECT_EQ(read(path("klap.toml")), "[defaults]\nlauncher = \"host\"\n");
}

TEST_F(Tune, HasRunsChecked) {
  EXPECT_EQ(tune({"--seconds", "1", "--check", "grep -q right \"$1\""}, micro_).exit_code, 0);
  const Result result = tune({"--check", "grep -q nonsense \"$1\""}, micro_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("with the library the program is wrong: the check ends with 1"));
}

// Times mean nothing here, so all that is known is that the original was measured, and only where a check can
// tell that it loses no launches.
TEST_F(Tune, TriesKernelsAsTheyAreIfRunsAreChecked) {
  const auto has_original = [&](const json& report) {
    return std::ranges::any_of(report["settings"], [](const json& setting) {
      return setting["value"] == "none" && setting["problem"] == "" && !setting["runs"][0].empty();
    });
  };
  is_set_ = {"KLAP_LAUNCHER=auto", "KLAP_THRESHOLD=auto", "KLAP_OPTIMISE=unroll=auto"};
  EXPECT_TRUE(has_original(tune({"--json", "--check", "grep -q right \"$1\""}, micro_).json()));
  EXPECT_FALSE(has_original(tune({"--json"}, micro_).json()));
}

// A kernel as it is may take far longer than with any setting.
TEST_F(Tune, GoesOnBehindASlowSetting) {
  samples_ = "0";
  is_set_ = {"KLAP_LAUNCHER=auto", "KLAP_THRESHOLD=auto", "KLAP_OPTIMISE=unroll=auto"};
  std::vector<std::string> program = {"sh", "-c", "[ \"$KLAP_GUARD\" = original ] && sleep 6; exec \"$@\"",
                                      "sh"};
  program.insert(program.end(), micro_.begin(), micro_.end());
  const Result result = tune({"--json", "--seconds", "30", "--check", "grep -q right \"$1\""}, program);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.json()["not_tried"], 0) << result.err;
}

TEST_F(Tune, SaysWhatIsNotTriedInTime) {
  const Result result = tune({"--seconds", "0.001"}, micro_);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("settings are not tried: time is up"));
}

TEST_F(Tune, SaysWhatIsWrong) {
  EXPECT_THAT(tune({}, {"/no/such/program"}).err, HasSubstr("cannot start '/no/such/program'"));
  EXPECT_THAT(tune({}, {"true"}).err, HasSubstr("replaces none of the program's launches"));
  EXPECT_THAT(tune({"--library", "/no/such/library"}, {"true"}).err,
              HasSubstr("name libklap_jit.so with --library"));
  EXPECT_EQ(klap_ptx({"tune"}).exit_code, 2);
}

}  // namespace
}  // namespace klap::cli_test
