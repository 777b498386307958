// Settings, and what they change.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <set>

#include "driver_fixture.h"

namespace klap::emulator::driver_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class SettingsTest : public DriverTest {};

TEST_F(SettingsTest, RefusesWrongOnes) {
  const auto message = [](const char* settings) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, klap_emulator_reset(settings)) << settings;
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(message("SCHEDULE=sideways"), AllOf(HasSubstr("KLAP_EMULATOR_SCHEDULE is \"sideways\""),
                                                  HasSubstr("starve-one"), HasSubstr("child-last")));
  EXPECT_THAT(message("WEAK_MEMORY=yes"), HasSubstr("must be 0 or 1"));
  EXPECT_THAT(message("MULTIPROCESSORS=0"), HasSubstr("must be 1 to 1024"));
  EXPECT_THAT(message("SEED=1 COLOUR=red"), AllOf(HasSubstr("COLOUR"), HasSubstr("KLAP_EMULATOR_RACES")));
  EXPECT_THAT(message("SEED"), HasSubstr("NAME=VALUE"));
}

TEST_F(SettingsTest, TakesScheduleNamesInAnySpelling) {
  for (const char* settings : {"SCHEDULE=RoundRobin", "SCHEDULE=round-robin;SEED=3", "SCHEDULE=one_block",
                               "SCHEDULE=ChildFirst, SEED=18446744073709551615", "SCHEDULE=fast"}) {
    EXPECT_EQ(0, klap_emulator_reset(settings)) << settings;
  }
}

// Which of the two blocks stores last depends on the schedule alone.
TEST_F(SettingsTest, SeedsDecideWhatRunsFirst) {
  const auto result = [&](const std::string& seed) {
    restart(("SCHEDULE=random SEED=" + seed).c_str());
    const CUdeviceptr out = device_array({-1});
    EXPECT_RESULT(CUDA_SUCCESS, launch(function("kernels.ptx", "race"), 2, 1, 0, nullptr, out));
    return host_array(out, 1).front();
  };
  std::set<int> seen;
  for (int seed = 0; seed < 20; ++seed) {
    const int first = result(std::to_string(seed));
    EXPECT_EQ(first, result(std::to_string(seed)));
    seen.insert(first);
  }
  EXPECT_EQ((std::set<int>{0, 1}), seen);
}

TEST_F(SettingsTest, LimitsSteps) {
  restart("MAX_STEPS=100");
  testing::internal::CaptureStderr();
  const CUdeviceptr data = device_array({1});
  OK(launch(function("kernels.ptx", "scale"), 8, 256, 0, nullptr, data, 1, 2));
  EXPECT_NE(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::Not(IsEmpty()));
}

// A process of its own, with the environment as the driver first sees it.
std::string started_with(const std::function<void()>& environment, int& result) {
  int ends[2];
  EXPECT_EQ(0, pipe(ends));
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    environment();
    execl("/proc/self/exe", "driver_test", "--gtest_filter=SettingsChild.DISABLED_Starts",
          "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string said;
  char piece[256];
  for (ssize_t n = 0; (n = read(ends[0], piece, sizeof piece)) > 0;)
    said.append(piece, static_cast<size_t>(n));
  close(ends[0]);
  waitpid(child, &result, 0);
  return said;
}

TEST(SettingsChild, DISABLED_Starts) {
  const char* const expected = std::getenv("EXPECTED_START");
  ASSERT_NE(nullptr, expected) << "for other tests to start";
  EXPECT_EQ(expected, name_of(cuInit(0)));
}

TEST(SettingsEnvironment, SaysOnceThatItIsAnEmulation) {
  int result = 0;
  const std::string said = started_with([] { setenv("EXPECTED_START", "CUDA_SUCCESS", 1); }, result);
  EXPECT_EQ(0, result) << said;
  EXPECT_EQ("klap emulator: this is an emulated GPU; times mean nothing\n", said);
  const std::string quiet = started_with(
      [] {
        setenv("EXPECTED_START", "CUDA_SUCCESS", 1);
        setenv("KLAP_EMULATOR_QUIET", "1", 1);
      },
      result);
  EXPECT_EQ(0, result);
  EXPECT_EQ("", quiet);
}

TEST(SettingsEnvironment, DoesNotStartWithAWrongOne) {
  int result = 0;
  const std::string said = started_with(
      [] {
        setenv("EXPECTED_START", "CUDA_ERROR_INVALID_VALUE", 1);
        setenv("KLAP_EMULATOR_MEMORY", "plenty", 1);
      },
      result);
  EXPECT_EQ(0, result) << said;
  EXPECT_THAT(said, HasSubstr("KLAP_EMULATOR_MEMORY is \"plenty\" and must be a number of bytes"));
}

}  // namespace
}  // namespace klap::emulator::driver_test
