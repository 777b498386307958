// Settings of the whole process: the config file, the log, the cache, statistics, and how images are linked.
#include <filesystem>
#include <span>

#include "effects.h"

namespace klap::settings_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ProcessEffects : public Effects {
 public:
  using Effect = void (ProcessEffects::*)();
  static const std::map<std::string, Effect>& table();

 protected:
  void config_file() {
    EXPECT_FALSE(run({config("[defaults]\ngranularity = \"none\"\n")}).redirected());
    EXPECT_THAT(run({"KLAP_CONFIG=" + path("absent.toml")}).err, HasSubstr("absent.toml: cannot open"));
  }
  void log_level() {
    EXPECT_EQ(run().err, "");
    EXPECT_THAT(run({"KLAP_LOG=info"}).err,
                HasSubstr("launch of child(int*, int) from parent(int*, int) rewritten: granularity grid"));
    EXPECT_THAT(run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid"}).err, HasSubstr("[-Rklap=parent-waits]"));
    EXPECT_THAT(run({"KLAP_LOG=info"}).err, Not(HasSubstr(" block=32x1x1 ")));
    EXPECT_THAT(run({"KLAP_LOG=debug"}).err, HasSubstr(" block=32x1x1 "));
  }
  void log_file() {
    const std::vector<std::string> settings{"KLAP_LOG=info", "KLAP_LOG_FILE=" + path("log-%p.txt")};
    EXPECT_EQ(run(settings).err, "");
    run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid", "KLAP_LOG_FILE=" + path("log.txt")});
    const size_t once = cli_test::read(path("log.txt")).size();
    run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid", "KLAP_LOG_FILE=" + path("log.txt")});
    EXPECT_GE(cli_test::read(path("log.txt")).size(), 2 * once - 20) << "appended";
    EXPECT_THAT(cli_test::read(path("log.txt")), HasSubstr("[-Rklap=parent-waits]"));
    size_t with_process = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path(""))) {
      const std::string name = entry.path().filename();
      if (name.starts_with("log-") && name != "log-%p.txt") ++with_process;
    }
    EXPECT_EQ(with_process, 1);
  }
  void disable() {
    const Outcome outcome = run({"KLAP_DISABLE=1"});
    EXPECT_EQ(outcome.launched, std::vector<std::string>{"_Z6parentPii"});
    EXPECT_EQ(outcome.stats, nullptr);
  }
  std::string cache_use(const std::string& setting) {
    return run({setting}).stats["modules"][0]["cache"].get<std::string>();
  }
  void cache_dir() {
    EXPECT_EQ(cache_use("KLAP_CACHE_DIR=" + path("kept")), "miss");
    EXPECT_FALSE(std::filesystem::is_empty(path("kept")));
    EXPECT_EQ(cache_use("KLAP_CACHE_DIR=" + path("kept")), "hit");
    EXPECT_EQ(cache_use("KLAP_CACHE_DIR=" + path("other")), "miss");
  }
  void cache_max_size() {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(cache_use("KLAP_CACHE_MAX_SIZE=1K"), "miss") << "does not fit";
    EXPECT_EQ(cache_use("KLAP_CACHE_MAX_SIZE=8M"), "miss");
    EXPECT_EQ(cache_use("KLAP_CACHE_MAX_SIZE=8M"), "hit");
  }
  void cache_disable() {
    EXPECT_EQ(cache_use("KLAP_CACHE_DISABLE=0"), "miss");
    EXPECT_EQ(cache_use("KLAP_CACHE_DISABLE=1"), "off");
    EXPECT_EQ(cache_use("KLAP_CACHE_DISABLE=0"), "hit");
  }
  void dump_dir() {
    run({"KLAP_DUMP_DIR=" + path("dump")});
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path("dump"))) {
      names.push_back(entry.path().filename());
    }
    EXPECT_THAT(names, testing::IsSupersetOf({"unit0.ptx", "linked.cubin"}));
  }
  void stats() {
    EXPECT_EQ(run({"KLAP_STATS="}).stats, nullptr);
    const Outcome outcome = run({"KLAP_GRANULARITY=grid"});
    EXPECT_EQ(outcome.stats["launches"]["redirected"]["_Z6parentPii"], 1);
    EXPECT_EQ(outcome.stats["sites"]["left"]["parent-waits"], 1);
  }
  void linker() {
    EXPECT_EQ(run({"KLAP_LINKER=nvjitlink", "KLAP_GRANULARITY=grid"}).stats["modules"][0]["how"],
              "rewritten");
    const std::string how = run({"KLAP_LINKER=driver", "KLAP_GRANULARITY=grid"}).stats["modules"][0]["how"];
    EXPECT_THAT(how, testing::HasSubstr("the driver's linker")) << "this driver cannot link";
  }
  // The launches that are left are still there, but not CUDA's functions for them.
  void device_runtime() {
    const auto image = [&](const std::string& setting) {
      run({"KLAP_DUMP_DIR=" + path(setting), "KLAP_LOG=warn", setting});
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path(setting)))
        if (entry.path().filename() == "linked.cubin") return cli_test::read(entry.path());
      return std::string();
    };
    EXPECT_THAT(image("KLAP_DEVICE_RUNTIME=1"), HasSubstr("cudaCDP2"));
    const std::string without = image("KLAP_DEVICE_RUNTIME=0");
    EXPECT_THAT(without, HasSubstr("_Z6parentPii"));
    EXPECT_THAT(without, Not(HasSubstr("cudaCDP2")));
    EXPECT_EQ(cache_use("KLAP_DEVICE_RUNTIME=1"), "miss");
    EXPECT_EQ(cache_use("KLAP_DEVICE_RUNTIME=0"), "miss") << "another image";
    EXPECT_EQ(cache_use("KLAP_DEVICE_RUNTIME=0"), "hit");
    EXPECT_TRUE(run({"KLAP_DEVICE_RUNTIME=0"}).redirected());
  }
  void count_children() {
    EXPECT_TRUE(run({"KLAP_COUNT_CHILDREN=1"}).stats["children_aggregated"].is_number());
    const auto uncounted = run({"KLAP_COUNT_CHILDREN=0"});
    EXPECT_TRUE(uncounted.redirected());
    EXPECT_EQ(uncounted.stats["children_aggregated"], nullptr);
  }
  // The fake driver runs nothing, so there are no children that a trial of the original could lose. All
  // launches take equally long.
  void guard() {
    const auto events = [&](const std::string& setting) {
      return run_kernel("chains.fatbin", "_Z5chainPii", {"KLAP_PROMOTION=none", setting}, 1, 8).events;
    };
    const auto profiles = [&] {
      const auto is_profile = [](const auto& file) { return file.path().extension() == ".profile"; };
      return std::ranges::count_if(std::filesystem::directory_iterator(path("cache/klap")), is_profile);
    };
    EXPECT_EQ(events("KLAP_GUARD=process"), 12) << "before and behind three launches of each form";
    EXPECT_EQ(events("KLAP_GUARD=off"), 0);
    EXPECT_EQ(profiles(), 0);
    EXPECT_EQ(events("KLAP_GUARD=on"), 14) << "and the first one";
    EXPECT_EQ(profiles(), 1);
    EXPECT_EQ(events("KLAP_GUARD=on"), 4) << "two more of the original, and the others are known";
    EXPECT_EQ(events("KLAP_GUARD=off"), 0);
    EXPECT_EQ(events("KLAP_GUARD=process"), 12);
    EXPECT_EQ(events("KLAP_GUARD=original"), 0);
    const nlohmann::json stats = run({"KLAP_GUARD=original", "KLAP_TIMING=1"}).stats;
    EXPECT_EQ(stats["launches"]["left"]["_Z6parentPii"]["original is asked for"], 1);
    EXPECT_EQ(stats["gpu_ms"]["launches"]["_Z6parentPii"], 1);
    EXPECT_EQ(stats["gpu_ms"]["parents"]["_Z6parentPii"], 1.5);
  }
  void tune() {
    const auto site = [](const Outcome& outcome) { return outcome.stats["modules"][0]["sites"][0]; };
    const Outcome before = run();
    EXPECT_EQ(before.stats["modules"][0]["is_tuned"], false);
    const std::string file = "cache/klap/" + before.stats["modules"][0]["tuned_file"].get<std::string>();
    write(file, "[[kernel]]\nname = \"_Z6parentPii\"\ngranularity = \"warp\"\n");
    const Outcome tuned = run();
    EXPECT_EQ(tuned.stats["modules"][0]["is_tuned"], true);
    EXPECT_EQ(tuned.stats["modules"][0]["cache"], "miss") << "other code";
    EXPECT_EQ(site(tuned)["granularity"], "warp");
    EXPECT_EQ(site(tuned)["notes"][0], "the tuning asks for granularity warp");
    EXPECT_EQ(run({"KLAP_TUNE=off"}).stats["modules"][0]["is_tuned"], false);
    EXPECT_EQ(site(run({"KLAP_TUNE=off"}))["granularity"], site(before)["granularity"]);
    EXPECT_EQ(site(run({"KLAP_GRANULARITY=block"}))["granularity"], "block") << "who asks, decides";
    EXPECT_EQ(site(run({config("[defaults]\ngranularity = \"block\"\n")}))["granularity"], "block");
    EXPECT_EQ(run({"KLAP_CACHE_DISABLE=1"}).stats["modules"][0]["is_tuned"], false);
    write(file, "[[kernel]]\nname = \"_Z6parentPii\"\ngranularity = \"wrap\"\n");
    const Outcome broken = run();
    EXPECT_THAT(broken.err, HasSubstr(".tuned:3"));
    EXPECT_EQ(site(broken)["granularity"], site(before)["granularity"]);
  }
  void counters() {
    EXPECT_EQ(run().stats["counters"], nullptr);
    const nlohmann::json counters =
        run({"KLAP_COUNTERS=inst.sum", "KLAP_CUPTI=" KLAP_FAKE_CUPTI}).stats["counters"];
    EXPECT_EQ(counters["launches"]["_Z6parentPii"], 1);
    EXPECT_EQ(counters["means"]["_Z6parentPii"]["inst.sum"], 1)
        << "what the fake CUPTI says of the first range";
    EXPECT_THAT(run({"KLAP_COUNTERS=inst.sum", "KLAP_STATS="}).err,
                HasSubstr("name a file for them in KLAP_STATS"));
    EXPECT_THAT(run({"KLAP_COUNTERS=inst.sum,"}).err, HasSubstr("use names of metrics, separated by commas"));
  }
  void timing() {
    EXPECT_EQ(run().stats["gpu_ms"], nullptr);
    const nlohmann::json stats = run({"KLAP_TIMING=1"}).stats, times = stats["gpu_ms"];
    EXPECT_EQ(times["launches"]["_Z6parentPii"], 1);
    EXPECT_EQ(times["parents"]["_Z6parentPii"], 1.5) << "what the fake driver says of any two events";
    EXPECT_EQ(times["consumers"]["_Z6parentPii"], 1.5);
    EXPECT_EQ(stats["timeline"]["first"][0]["children_ms"], 1.5);
    EXPECT_EQ(stats["timeline"]["first"][0]["begin_ms"], 0.0) << "it is the origin of all times";
  }
  void nvtx() {
    const std::string profiler = "NVTX_INJECTION64_PATH=" KLAP_FAKE_NVTX;
    EXPECT_THAT(run({profiler}).err, Not(HasSubstr("nvtx:"))) << "nobody asks for it";
    EXPECT_THAT(run({"KLAP_PROFILER_RANGES=1", "KLAP_GUARD=off", profiler}).err,
                HasSubstr("nvtx: klap_jit: begin parent(int*, int): aggregation at grid by the host\n"
                          "nvtx: klap_jit: end\n"));
    EXPECT_EQ(run({"KLAP_PROFILER_RANGES=1"}).stats["launches"]["redirected"]["_Z6parentPii"], 1)
        << "without a profiler";
  }
  void async() {
    const std::string log = "KLAP_LOG_FILE=" + path("log");
    const auto launch_twice = [&](const std::string& setting, const std::string& awaited) {
      std::filesystem::remove(path("log"));
      return run_kernel("launches.fatbin", "_Z6parentPii",
                        {"KLAP_GUARD=off", "KLAP_LOG=info", log, "LOADER_AWAITS=" + awaited, setting}, 2, 2);
    };
    const Outcome changed = launch_twice("KLAP_ASYNC=1", "rewritten, ");
    ASSERT_LE(2u, changed.launched.size());
    EXPECT_EQ(changed.launched[0], "_Z6parentPii") << "it does not wait";
    EXPECT_THAT(std::span(changed.launched).subspan(1),
                AllOf(testing::Contains(testing::StartsWith("_Z6parentB18klap_grid_")),
                      Not(testing::Contains("_Z6parentPii"))));
    EXPECT_EQ(changed.stats["launches"]["redirected"]["_Z6parentPii"], 1);
    EXPECT_EQ(changed.stats["modules"][0]["how"], "rewritten");
    EXPECT_TRUE(launch_twice("KLAP_ASYNC=1", "rewritten, ").redirected()) << "it is in the cache";
    EXPECT_TRUE(launch_twice("KLAP_ASYNC=0", "rewritten, ").redirected());
  }
  void sizes() {
    EXPECT_EQ(run().stats["child_sizes"], nullptr);
    const nlohmann::json sizes = run({"KLAP_SIZES=1"}).stats["child_sizes"];
    EXPECT_EQ(sizes[0]["parent"], "_Z6parentPii");
    EXPECT_EQ(sizes[0]["sizes"], nlohmann::json::array()) << "the fake device runs nothing";
    EXPECT_THAT(run({"KLAP_SIZES=1", "KLAP_STATS="}).err, HasSubstr("name a file for them in KLAP_STATS"));
    const Outcome failed = run({"KLAP_SIZES=1", "KLAP_GUARD=off", "FAKE_CUDA_FAIL=cuMemHostRegister_v2=2"});
    EXPECT_THAT(failed.err, HasSubstr("KLAP_SIZES: sizes are missing in the statistics"));
    EXPECT_EQ(failed.stats["launches"]["redirected"]["_Z6parentPii"], 1);
  }
};

const std::map<std::string, ProcessEffects::Effect>& ProcessEffects::table() {
  static const std::map<std::string, Effect> effects{
      {"KLAP_CONFIG", &ProcessEffects::config_file},
      {"KLAP_LOG", &ProcessEffects::log_level},
      {"KLAP_LOG_FILE", &ProcessEffects::log_file},
      {"KLAP_DISABLE", &ProcessEffects::disable},
      {"KLAP_CACHE_DIR", &ProcessEffects::cache_dir},
      {"KLAP_CACHE_MAX_SIZE", &ProcessEffects::cache_max_size},
      {"KLAP_CACHE_DISABLE", &ProcessEffects::cache_disable},
      {"KLAP_DUMP_DIR", &ProcessEffects::dump_dir},
      {"KLAP_STATS", &ProcessEffects::stats},
      {"KLAP_LINKER", &ProcessEffects::linker},
      {"KLAP_DEVICE_RUNTIME", &ProcessEffects::device_runtime},
      {"KLAP_COUNT_CHILDREN", &ProcessEffects::count_children},
      {"KLAP_COUNTERS", &ProcessEffects::counters},
      {"KLAP_TIMING", &ProcessEffects::timing},
      {"KLAP_SIZES", &ProcessEffects::sizes},
      {"KLAP_PROFILER_RANGES", &ProcessEffects::nvtx},
      {"KLAP_GUARD", &ProcessEffects::guard},
      {"KLAP_TUNE", &ProcessEffects::tune},
      {"KLAP_ASYNC", &ProcessEffects::async},
  };
  return effects;
}

TEST_P(ProcessEffects, Show) { (this->*table().at(GetParam()))(); }

INSTANTIATE_TEST_SUITE_P(Process, ProcessEffects, testing::ValuesIn(places_of(ProcessEffects::table())),
                         name_of_place);

// The log file cannot be written: one warning, and the log goes where it went before.
class LogFile : public Preloaded {};

TEST_F(LogFile, ThatCannotBeOpenedIsOneWarning) {
  const Outcome outcome = run({"KLAP_LOG_FILE=" + path("absent/log.txt")});
  EXPECT_EQ(outcome.err, "klap: warning: KLAP_LOG_FILE: the log stays on standard error: " +
                             path("absent/log.txt") + ": cannot append: No such file or directory\n");
  EXPECT_TRUE(outcome.redirected());
  EXPECT_THAT(run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid", "KLAP_LOG_FILE=" + path("absent/log.txt")}).err,
              HasSubstr("[-Rklap=parent-waits]"));
}

TEST_F(LogFile, ThatFillsUpIsOneWarning) {
  const Outcome outcome = run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid", "KLAP_LOG_FILE=/dev/full"});
  EXPECT_THAT(outcome.err,
              testing::StartsWith("klap: warning: /dev/full: cannot write the log: No space left"));
  EXPECT_EQ(outcome.err.find("cannot write the log", 60), std::string::npos) << "once";
  EXPECT_THAT(outcome.err, HasSubstr("[-Rklap=parent-waits]")) << "no line is lost";
  EXPECT_TRUE(outcome.redirected());
}

}  // namespace

std::vector<std::string> process_places() { return places_of(ProcessEffects::table()); }

}  // namespace klap::settings_test
