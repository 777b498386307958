// Nothing is compiled in the program's threads: they may have small stacks, be cancelled, and see exit() or
// fork() at any time. Each case runs in fresh processes that compile all of it.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "run_program.h"

namespace klap::shim_test {
namespace {

using testing::HasSubstr;

// From the first look at an image to the end of its compilation, which takes some ten milliseconds here.
std::vector<int> moments() {
  std::vector<int> microseconds;
  for (int at = 200; at < 100'000; at += at / 2) microseconds.push_back(at);
  return microseconds;
}

// With NVRTC itself, whatever stands in for it elsewhere.
Outcome run_compiling(const std::string& scenario, int moment) {
  Options options;
  options.environment = {{"KLAP_NVRTC", ""}};
  return run_program("launching", {scenario, std::to_string(moment)}, options);
}

TEST(Thread, ASmallStackIsEnough) {
  Options options;
  options.environment = {{"KLAP_NVRTC", ""}};
  const Outcome run = run_program("launching", {"small_stack"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("CVC", roles(run)) << run.error;
}

TEST(Thread, ASmallStackIsEnoughForAllSettings) {
  const TemporaryFile config("klap.toml"), stats("stats.json"), folder("cache");
  Options options;
  options.environment = {{"KLAP_CONFIG", config.path()},
                         {"KLAP_STATS", stats.path()},
                         {"KLAP_CACHE_DISABLE", "0"},
                         {"KLAP_CACHE_DIR", folder.path()},
                         {"KLAP_LOG", "debug"}};
  std::filesystem::create_directories(config.path().parent_path());
  FILE* const file = fopen(config.path().c_str(), "w");
  ASSERT_NE(file, nullptr);
  (void)fputs("[defaults]\ngranularity = \"grid\"\n[[kernel]]\nname = \"parent\"\npool_bytes = \"64M\"\n",
              file);
  ASSERT_EQ(0, fclose(file));
  for (int i = 0; i < 2; ++i) {
    const Outcome run = run_program("launching", {"small_stack"}, options);
    EXPECT_EQ(0, run.status) << run.error;
    EXPECT_EQ("CVC", roles(run)) << run.error;
  }
}

TEST(Thread, ExitWhileOthersCompile) {
  for (const int at : moments()) {
    const Outcome run = run_compiling("exit_loading", at);
    EXPECT_EQ(0, run.status) << at << " us: " << run.error;
  }
}

TEST(Thread, CancelledWhileItCompiles) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers take a cancelled thread's stack to be in use";
  for (const int at : moments()) {
    const Outcome run = run_compiling("cancel_loading", at);
    EXPECT_EQ(0, run.status) << at << " us: " << run.error;
    EXPECT_TRUE(run.complaints().empty()) << at << " us: " << run.error;
  }
}

TEST(Thread, ForkWhileAnotherCompiles) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer's own locks may be held by the thread that compiles";
  for (const int at : moments()) {
    const Outcome run = run_compiling("fork_loading", at);
    EXPECT_EQ(0, run.status) << at << " us: " << run.error;
  }
}

// What other threads enqueue in the same stream comes before a launch or behind it, never between its
// kernels.
void expect_whole_launches(const std::string& scenario) {
  Options options;
  options.environment = {{"KLAP_GUARD", "off"}, {"KLAP_TUNE", "off"}};  // klap_jit enqueues nothing else
  const Outcome run = run_program("launching", {scenario}, options);
  EXPECT_EQ(0, run.status) << run.error;
  const std::vector<Call> launches = run.launches();
  const auto is_variant = [](const Call& call) {
    return call.name() == "cuLaunchKernel" && role(call) == Role::Variant;
  };
  const auto first = std::ranges::find_if(launches, is_variant);
  ASSERT_NE(first, launches.end());
  const std::string stream = (*first)["stream"];
  std::string halved;
  int whole = 0, others = 0;
  for (const Call& call : run.calls) {
    if (call["stream"] != stream) continue;
    const bool is_launch = call.name().starts_with("cuLaunchKernel");
    if (!halved.empty()) {
      EXPECT_TRUE(is_launch && role(call) == Role::Consumer) << call.text << "\nbehind " << halved;
      ++whole;
      halved.clear();
    } else if (is_launch && role(call) == Role::Variant) {
      halved = call.text;
    } else {
      ++others;
    }
  }
  EXPECT_EQ(run.said("launches"), std::to_string(whole));
  EXPECT_LE(20 * 4, others) << "four operations a round";
}

TEST(Thread, LaunchesAreWholeInAStreamOfSeveralThreads) { expect_whole_launches("turns"); }
TEST(Thread, LaunchesAreWholeInTheLegacyStream) { expect_whole_launches("turns_in_legacy_stream"); }

// The library's constructor holds the loader's lock, for which a compilation would wait.
TEST(Thread, AConstructorThatLoadsRunsUnchanged) {
  const Outcome run =
      run_program("launching", {"load_in_constructor", KLAP_PROGRAMS "/libloaded_library.so"});
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("OCVC", roles(run)) << run.error;
  ASSERT_EQ(1u, run.complaints().size()) << run.error;
  EXPECT_THAT(run.complaints()[0], HasSubstr("while this thread loads a library"));
}

}  // namespace
}  // namespace klap::shim_test
