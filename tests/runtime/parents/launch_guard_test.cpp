// The guard of a parent on the fake driver: what is measured, and what runs when the original is faster.
#include <algorithm>
#include <bit>
#include <cstring>

#include "../launch/redirected.h"
#include "ptx-patterns/templates/common/report.h"
#include "ptx-patterns/templates/worklist/work_queue.h"
#include "runtime/parents/guard_profiles.h"
#include "runtime/parents/handles.h"

namespace klap::runtime {
namespace {

class LaunchGuardTest : public RedirectTest {
 protected:
  LaunchGuardTest() {
    make_kernels_ready();
    forget_calls();
  }
  // Launches so often. In each launch, so many children report that they ran.
  void launch(int times, uint64_t children) {
    for (int i = 0; i < times; ++i) {
      if (!redirect_launch(launch_of(repeated_))) ++left_;
      if (volatile uint64_t* const words = report_words()) words[KLAP_REPORT_CHILDREN] = words[0] + children;
    }
  }
  // The words in host memory that the stream's kernels count in. The fake driver gives devices the same
  // addresses. Null until the guard has asked for them.
  volatile uint64_t* report_words() {
    for (const Call& call : calls("cuMemcpyHtoDAsync_v2")) {
      if (call["data"].size() != 2 * sizeof(KlapReport)) continue;
      words_ = std::bit_cast<volatile uint64_t*>(address_in(call["data"]));
    }
    return words_;
  }
  // The address in the first bytes that were copied.
  static uint64_t address_in(const std::string& hex) {
    uint64_t address = 0;
    for (size_t i = 0; i < sizeof address; ++i)
      address |= uint64_t{std::stoul(hex.substr(2 * i, 2), nullptr, 16)} << (8 * i);
    return address;
  }
  // True if an event for times was made. Others mark what is in flight.
  [[nodiscard]] bool is_measured() const {
    return std::ranges::any_of(calls("cuEventCreate"), [](const Call& call) { return call["flags"] == "0"; });
  }
  static void take_ms(const char* ms) { setenv("FAKE_CUDA_MS", ms, 1); }
  [[nodiscard]] size_t times_launched(const std::string& kernel) const {
    const Names names = launched();
    return static_cast<size_t>(std::count(names.begin(), names.end(), kernel));
  }

  volatile uint64_t* words_ = nullptr;
  int left_ = 0;
};

TEST_F(LaunchGuardTest, RunsTheOriginalWhereItIsFaster) {
  take_ms("2");
  launch(5, 10);
  EXPECT_EQ(6u, calls("cuEventRecord").size()) << "around the third, fourth and fifth launch";
  EXPECT_EQ(0u, times_launched("repeated"));
  launch(1, 10);  // collects the fifth one
  take_ms("1");
  launch(9, 0);
  EXPECT_EQ(4u, times_launched("repeated")) << "measured, so the library launches it";
  EXPECT_GT(left_, 0) << "the rest is the program's own";
  EXPECT_GT(left("original is faster", "repeated"), 0);
  EXPECT_EQ(4, left("original is tried", "repeated"));
  const int before = left_;
  launch(10, 0);
  EXPECT_EQ(before + 10, left_);
}

TEST_F(LaunchGuardTest, KeepsTheVariantWhereItIsFaster) {
  take_ms("1");
  launch(30, 10);
  take_ms("3");
  launch(30, 10);
  EXPECT_EQ(0, left_);
  EXPECT_GE(times_launched("__klap_repeated"), 55u);
}

TEST_F(LaunchGuardTest, TriesAParentWithoutChildren) {
  take_ms("2");
  launch(6, 0);
  take_ms("1");
  launch(9, 0);
  EXPECT_EQ(4u, times_launched("repeated"));
  EXPECT_GT(left("original is faster", "repeated"), 0);
}

TEST_F(LaunchGuardTest, TriesNothingThatCouldLoseChildren) {
  take_ms("2");
  launch(100, 2049);
  EXPECT_EQ(0u, times_launched("repeated"));
  EXPECT_EQ(0, left_);
}

// A parent with queues for its sites. The time that its kernels need to report children would be longer than
// theirs, so one launch is counted apart from those that are measured.
class CountedGuardTest : public LaunchGuardTest {
 protected:
  // Launches so often. In a launch that is counted, so many children report that they ran.
  void launch(int times, uint64_t children, unsigned blocks = 4) {
    Launch made = launch_of(counted_);
    made.grid[0] = blocks;
    for (int i = 0; i < times; ++i) {
      forget_calls();
      if (!redirect_launch(made)) ++left_;
      if (times_launched("counted") != 0) ++tried_;
      report(children);
    }
  }
  // Both queues are told where to report, and told otherwise behind the launch.
  void report(uint64_t children) {
    std::vector<std::string> written, places;
    for (const Call& call : calls("cuMemcpyHtoDAsync_v2")) {
      if (call["bytes"] != "8") continue;
      written.push_back(call["data"]);
      places.push_back(call["to"]);
    }
    if (written.empty()) return;
    ++counted_launches_;
    ASSERT_EQ(4u, written.size());
    EXPECT_EQ(written[0], written[1]);
    EXPECT_EQ(std::string(16, '0'), written[2]);
    EXPECT_EQ(std::string(16, '0'), written[3]);
    EXPECT_NE(places[0], places[1]);
    EXPECT_EQ(places[0], places[2]);
    EXPECT_EQ(places[1], places[3]);
    const auto* const in_device = std::bit_cast<const KlapReport*>(address_in(written[0]));
    in_device->words[KLAP_REPORT_ADDED] += children;
  }

  int tried_ = 0, counted_launches_ = 0;
};

TEST_F(CountedGuardTest, RunsTheOriginalWhereItIsFaster) {
  take_ms("2");
  launch(5, 10);
  EXPECT_EQ(0, counted_launches_) << "these are measured";
  launch(2, 10);
  EXPECT_EQ(1, counted_launches_);
  EXPECT_EQ(0, left_);
  take_ms("1");
  launch(20, 10);
  EXPECT_EQ(1, counted_launches_);
  EXPECT_EQ(4, tried_);
  EXPECT_GT(left("original is faster", "counted"), 0);
}

TEST_F(CountedGuardTest, TriesNothingThatCouldLoseChildren) {
  take_ms("2");
  launch(100, 2049);
  EXPECT_EQ(1, counted_launches_);
  EXPECT_EQ(0, tried_);
}

// Slices take turns with the heads of the queues.
TEST_F(CountedGuardTest, CountsNoLaunchInSlices) {
  CUlibrary limited = nullptr;
  load_library({{"counted", uint64_t{52} << 10}}, limited);
  make_kernels_ready();
  take_ms("2");
  launch(50, 10, 100);
  EXPECT_LT(2u, times_launched("__klap_counted")) << "it runs in slices";
  Registry::instance().remove_library(limited);
  driver()->library_unload(limited);
  EXPECT_EQ(0, counted_launches_);
  EXPECT_EQ(0, tried_);
  EXPECT_EQ(0, left_);
}

TEST_F(CountedGuardTest, FailuresOfTheDriverOnlyEndTheCount) {
  take_ms("2");
  launch(5, 10);
  setenv("FAKE_CUDA_FAIL", "cuMemcpyHtoDAsync_v2=1", 1);
  EXPECT_TRUE(redirect_launch(launch_of(counted_)).has_value());
  EXPECT_TRUE(redirect_launch(launch_of(counted_)).has_value());
  unsetenv("FAKE_CUDA_FAIL");
  launch(1, 10);
  EXPECT_EQ(1, counted_launches_);
}

TEST_F(CountedGuardTest, ATrialThatFailsIsNotTheProgramsFailure) {
  take_ms("2");
  launch(7, 10);
  const int before = left("original is tried", "counted");
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:counted=2", 1);
  forget_calls();
  const auto result = redirect_launch(launch_of(counted_));
  unsetenv("FAKE_CUDA_FAIL");
  EXPECT_EQ(CUDA_SUCCESS, result);
  EXPECT_EQ((Names{"__klap_counted", "__klap_consumer", "__klap_consumer"}), launched());
  EXPECT_TRUE(std::ranges::any_of(calls("cuLaunchKernel"), [](const Call& call) {
    return call["kernel"] == "counted" && call["result"] == "2";
  })) << "the original was tried";
  EXPECT_EQ(before, left("original is tried", "counted"));
}

// After a decision for the original, the next launches are recognised by a few calls.
class KnownLaunchTest : public LaunchGuardTest {
 protected:
  KnownLaunchTest() {
    take_ms("2");
    launch(6, 10);
    take_ms("1");
    launch(10, 0);
    left_ = 0;
    forget_calls();
  }
  // True if the next launch is left to the program and is not counted yet, as it is in every other way.
  [[nodiscard]] bool is_recognised() {
    const int counted = left("original is faster", "repeated");
    forget_calls();
    launch(1, 0);
    return launched().empty() && left("original is faster", "repeated") == counted;
  }
};

TEST_F(KnownLaunchTest, IsTheProgramsOwnLaunch) {
  EXPECT_TRUE(is_recognised());
  launch(9, 0);
  EXPECT_EQ(10, left_);
  EXPECT_TRUE(launched().empty());
}

TEST_F(KnownLaunchTest, IsLikeTheOneBefore) {
  second_param_ = 7;
  EXPECT_FALSE(is_recognised());
  EXPECT_EQ(0, left_) << "nothing is known of it";
  second_param_ = 0x99aabbcc;
  EXPECT_FALSE(is_recognised()) << "another launch came between";
  EXPECT_TRUE(is_recognised());
  Launch other = launch_of(repeated_);
  other.grid[0] = 5;
  EXPECT_TRUE(redirect_launch(other).has_value());
}

TEST_F(KnownLaunchTest, IsNotCaptured) {
  EXPECT_TRUE(is_recognised());
  CUstream stream = new_stream();
  fake<PFN_cuStreamBeginCapture_v10010>("cuStreamBeginCapture_v2")(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  Launch captured = launch_of(repeated_);
  captured.stream = stream;
  EXPECT_EQ(std::nullopt, redirect_launch(captured));
  EXPECT_EQ(1, left("stream capture", "repeated"));
}

TEST_F(KnownLaunchTest, IsInTheSameStream) {
  EXPECT_TRUE(is_recognised());
  CUstream stream = new_stream();
  Launch elsewhere = launch_of(repeated_);
  elsewhere.stream = stream;
  const int counted = left("original is faster", "repeated");
  EXPECT_EQ(std::nullopt, redirect_launch(elsewhere));
  EXPECT_LT(counted, left("original is faster", "repeated")) << "it is decided anew, and the stream is seen";
  EXPECT_FALSE(is_recognised());
  EXPECT_TRUE(is_recognised());
  stream_about_to_end(stream);
  EXPECT_FALSE(is_recognised()) << "another stream may get its handle";
}

TEST_F(KnownLaunchTest, LosesNoChildren) {
  second_param_ = 7;
  take_ms("2");
  launch(190, 1000);
  take_ms("1");
  launch(60, 0);
  EXPECT_TRUE(is_recognised());
  // More streams may launch at once now, so each may launch less.
  for (int i = 0; i < 2; ++i) {
    Launch elsewhere = launch_of(parent_);
    elsewhere.stream = new_stream();
    expect_redirected(elsewhere);
  }
  EXPECT_FALSE(is_recognised());
  EXPECT_EQ(std::vector<std::string>({"__klap_repeated", "__klap_consumer"}), launched());
}

TEST_F(KnownLaunchTest, IsMeasuredAgain) {
  launch(1000, 0);
  EXPECT_TRUE(is_measured());
}

TEST_F(LaunchGuardTest, MeasuresAVariantAgain) {
  take_ms("1");
  launch(30, 10);
  take_ms("3");
  launch(30, 10);
  forget_calls();
  launch(40, 10);
  EXPECT_FALSE(is_measured());
  launch(60, 10);
  EXPECT_TRUE(is_measured());
  EXPECT_EQ(0, left_);
}

TEST_F(KnownLaunchTest, IsCounted) {
  finish_guards();
  const int before = left("original is faster", "repeated");
  launch(20, 0);
  finish_guards();
  EXPECT_EQ(before + 20, left("original is faster", "repeated"));
  add_guards_to_statistics();
  EXPECT_EQ(36, Stats::instance().to_json()["parents"]["repeated"]["guard"].back()["launches"]);
}

TEST_F(LaunchGuardTest, TellsLaunchesApartByTheirParameters) {
  take_ms("2");
  for (int i = 0; i < 10; ++i) {
    second_param_ = static_cast<uint32_t>(i);
    launch(1, 10);
  }
  EXPECT_TRUE(calls("cuEventRecord").empty()) << "no two are the same";
}

TEST_F(LaunchGuardTest, OverlooksWhatTheParentDoesNotRead) {
  take_ms("2");
  for (uint32_t i = 0; i < 5; ++i) {
    second_param_ = i << 16U;
    launch(1, 10);
  }
  EXPECT_EQ(6u, calls("cuEventRecord").size());
}

TEST_F(LaunchGuardTest, FailuresOfTheDriverOnlyEndTheMeasurement) {
  take_ms("2");
  for (const char* call : {"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime"}) {
    setenv("FAKE_CUDA_FAIL", (std::string(call) + "=2").c_str(), 1);
    launch(20, 10);
    unsetenv("FAKE_CUDA_FAIL");
  }
  EXPECT_EQ(0, left_);
  EXPECT_EQ(80u, times_launched("__klap_repeated"));
}

// The folder is known before any image is loaded.
struct ProfileFolder {
  ProfileFolder() {
    setenv("KLAP_CACHE_DIR", folder.c_str(), 1);
    setenv("KLAP_GUARD", "on", 1);
  }
  ~ProfileFolder() { std::filesystem::remove_all(folder); }
  const std::filesystem::path folder = testing::TempDir() + "klap-guard-" + std::to_string(getpid());
};

// Each process is one loading of the module.
class ProfiledGuardTest : private ProfileFolder, public LaunchGuardTest {
 protected:
  ProfiledGuardTest() { restart("module"); }
  ~ProfiledGuardTest() override { module_key_.clear(); }

  // The process ends, and another one begins with that module.
  void restart(const std::string& module = "module") {
    Registry::instance().remove_library(library_);
    driver()->library_unload(library_);
    GuardProfiles::instance().write(seconds_now());
    module_key_ = module;
    load_library({}, library_);
    make_kernels_ready();
    forget_calls();
  }
  // Processes that launch once, in which a launch takes so long.
  void run_once(const char* ms, int times = 1) {
    for (int i = 0; i < times; ++i) {
      take_ms(ms);
      launch(1, 10);
      if (i + 1 < times) restart();
    }
  }
  [[nodiscard]] std::ptrdiff_t profiles() const {
    return std::filesystem::exists(folder) ? std::distance(std::filesystem::directory_iterator(folder), {})
                                           : 0;
  }
};

TEST_F(ProfiledGuardTest, TriesAProgramThatLaunchesOnceInALaterRun) {
  run_once("2");
  EXPECT_EQ(4u, calls("cuEventRecord").size() + calls("cuEventCreate").size()) << "one launch is measured";
  restart();
  run_once("1");
  EXPECT_EQ(1u, times_launched("repeated")) << "0.07 ms at most are less than 3 % of 4";
  EXPECT_EQ(0, left_);
  restart();
  run_once("1");
  EXPECT_EQ(1u, times_launched("repeated")) << "measured once more";
  EXPECT_EQ(1, left("original is faster", "repeated"));
  EXPECT_EQ(1, left("original is tried", "repeated"));
  launch(1, 10);
  EXPECT_EQ(1, left_) << "the program's own launch";
}

TEST_F(ProfiledGuardTest, MakesNoQueueForAParentThatRunsAsItIs) {
  run_once("2");
  restart();
  run_once("1", 2);
  restart();
  launch(2, 10);
  EXPECT_EQ(1u, times_launched("repeated")) << "it is checked";
  EXPECT_EQ(1, left_);
  const auto is_queue = [](const Call& call) {
    return call["bytes"] == std::to_string(sizeof(KlapWorkQueue));
  };
  const std::vector<Call> copies = calls("cuMemcpyHtoDAsync_v2");
  EXPECT_TRUE(std::ranges::none_of(copies, is_queue));
}

TEST_F(ProfiledGuardTest, KnowsALaunchByAllButAddresses) {
  CUdeviceptr first = 0, second = 0;
  driver()->mem_alloc(&first, 1 << 20);
  driver()->mem_alloc(&second, 1 << 20);
  first_param_ = first;
  run_once("2", 2);
  restart();
  first_param_ = second + 16;
  run_once("1");
  EXPECT_EQ(1u, times_launched("repeated"));
  restart();
  second_param_ = 7;  // which may decide how many there are
  run_once("1");
  EXPECT_EQ(0u, times_launched("repeated"));
  restart();
  second_param_ = 0x99aabbcc;
  first_param_ = 12;  // no address
  run_once("1");
  EXPECT_EQ(0u, times_launched("repeated"));
}

TEST_F(ProfiledGuardTest, TellsModulesAndDevicesApart) {
  run_once("2", 2);
  restart("other module");
  run_once("1");
  EXPECT_EQ(0u, times_launched("repeated"));
  restart();
  setenv("FAKE_CUDA_NAME", "other device", 1);
  new_context();
  make_kernels_ready();
  run_once("1");
  unsetenv("FAKE_CUDA_NAME");
  EXPECT_EQ(0u, times_launched("repeated"));
  restart();
  EXPECT_EQ(3, profiles());
}

TEST_F(ProfiledGuardTest, SaysInStatisticsWhereADecisionIsFrom) {
  run_once("2", 2);
  restart();
  run_once("1");
  restart();
  run_once("1");
  finish_guards();
  add_guards_to_statistics();
  const nlohmann::json parent = Stats::instance().to_json()["parents"]["repeated"];
  EXPECT_EQ("work queue at grid by the host", parent["engine"]);
  const nlohmann::json guard = parent["guard"].back();
  EXPECT_EQ("original", guard["choice"]);
  EXPECT_EQ("earlier runs", guard["from"]);
  EXPECT_EQ(2, guard["variant_ms"]);
  EXPECT_EQ(1, guard["original_ms"]);
  EXPECT_EQ(1, guard["launches"]);
  EXPECT_EQ(0, guard["trials"]);
}

TEST_F(ProfiledGuardTest, LaunchesThatAreAlwaysOthersAreSoonLeftAlone) {
  take_ms("2");
  for (int i = 0; i < 100; ++i) {
    second_param_ = static_cast<uint32_t>(i);
    launch(1, 10);
  }
  EXPECT_LT(calls("cuEventRecord").size(), 40u) << "around 16 of them";
  restart();
  EXPECT_EQ(1, profiles());
}

TEST_F(ProfiledGuardTest, ReadsATimeBeforeTheContextEnds) {
  run_once("2");
  EXPECT_TRUE(is_launch_measured());
  collect_measured_launches();
  EXPECT_FALSE(is_launch_measured());
  new_context();  // in place of the one that the launch was made in
  restart();
  EXPECT_EQ(1, profiles());
}

TEST_F(ProfiledGuardTest, AsksNothingAboutAnotherContext) {
  run_once("2");
  new_context();
  forget_calls();
  collect_measured_launches();
  EXPECT_TRUE(is_launch_measured());
  restart();
  EXPECT_EQ(0, profiles()) << "its time was not read";
}

TEST_F(ProfiledGuardTest, WritesNothingWhereLittleWasLaunched) {
  run_once("0.1");
  restart();
  EXPECT_EQ(0, profiles());
}

}  // namespace
}  // namespace klap::runtime
