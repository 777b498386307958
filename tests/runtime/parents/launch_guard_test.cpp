// The guard of a parent on the fake driver: what is measured, and what runs when the original is faster.
#include <bit>
#include <cstring>

#include "../launch/redirected.h"
#include "ptx-patterns/templates/common/report.h"
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
      uint64_t address = 0;
      for (size_t i = 0; i < sizeof address; ++i)
        address |= uint64_t{std::stoul(call["data"].substr(2 * i, 2), nullptr, 16)} << (8 * i);
      words_ = std::bit_cast<volatile uint64_t*>(address);
    }
    return words_;
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

TEST_F(LaunchGuardTest, TriesNothingWhoseChildrenAreNotCounted) {
  take_ms("2");
  launch(100, 0);
  EXPECT_EQ(0u, times_launched("repeated"));
  EXPECT_EQ(0, left_);
}

TEST_F(LaunchGuardTest, TellsLaunchesApartByTheirParameters) {
  take_ms("2");
  for (int i = 0; i < 10; ++i) {
    second_param_ = static_cast<uint32_t>(i);
    launch(1, 10);
  }
  EXPECT_TRUE(calls("cuEventRecord").empty()) << "no two are the same";
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

}  // namespace
}  // namespace klap::runtime
