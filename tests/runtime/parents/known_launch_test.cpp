// Which launches are known by the one before. What follows from that is tested in launch_guard_test.cpp.
#include "runtime/parents/known_launch.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>

namespace klap::runtime {
namespace {

class KnownLaunchFormsTest : public testing::Test {
 protected:
  KnownLaunchFormsTest() {
    variant_.parent_param_sizes = {8, 4};
    launch_.params = params_.data();
  }
  // True if the launch is known behind itself.
  bool is_remembered() {
    KnownLaunch known;
    known.remember(launch_, variant_, {}, 3);
    return known.may_know() && known.knows(launch_);
  }

  uint64_t first_ = 1;
  uint32_t second_ = 2;
  std::array<unsigned char, 256> large_{};
  std::array<void*, 20> params_{&first_, &second_};
  jit::Variant variant_;
  Launch launch_;
};

TEST_F(KnownLaunchFormsTest, IsKnownSoOften) {
  KnownLaunch known;
  EXPECT_FALSE(known.may_know());
  EXPECT_FALSE(known.knows(launch_));
  known.remember(launch_, variant_, {}, 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(known.knows(launch_));
    known.count();
  }
  EXPECT_FALSE(known.knows(launch_));
  EXPECT_EQ(2u, known.forget());
  EXPECT_EQ(0u, known.forget()) << "they are counted once";
}

TEST_F(KnownLaunchFormsTest, EveryPartCounts) {
  KnownLaunch known;
  known.remember(launch_, variant_, {}, 100);
  const auto differs = [&](auto& part, auto other) {
    const auto before = std::exchange(part, other);
    EXPECT_FALSE(known.knows(launch_));
    part = before;
    EXPECT_TRUE(known.knows(launch_));
  };
  for (unsigned& extent : launch_.grid) differs(extent, 7U);
  for (unsigned& extent : launch_.block) differs(extent, 7U);
  differs(launch_.shared_bytes, 16U);
  differs(launch_.stream, CU_STREAM_LEGACY);
  differs(first_, uint64_t{1} << 63U);
  differs(second_, uint32_t{1} << 31U);
  differs(params_[1], static_cast<void*>(nullptr));
}

TEST_F(KnownLaunchFormsTest, OtherFormsAreDecidedEachTime) {
  EXPECT_TRUE(is_remembered());
  launch_.stream = CU_STREAM_PER_THREAD;
  EXPECT_FALSE(is_remembered()) << "each thread has its own";
  launch_.stream = nullptr;
  const CUlaunchAttribute attribute{};
  launch_.attributes = {&attribute, 1};
  EXPECT_FALSE(is_remembered());
  launch_.attributes = {};
  launch_.extra = params_.data();
  EXPECT_FALSE(is_remembered()) << "packed parameters";
}

TEST_F(KnownLaunchFormsTest, ThereIsRoomForSoManyParameters) {
  params_.fill(&first_);
  variant_.parent_param_sizes.assign(16, 8);
  EXPECT_TRUE(is_remembered());
  variant_.parent_param_sizes.assign(17, 4);
  EXPECT_FALSE(is_remembered());
  params_[0] = large_.data();
  variant_.parent_param_sizes = {128};
  EXPECT_TRUE(is_remembered());
  variant_.parent_param_sizes = {136};
  EXPECT_FALSE(is_remembered());
  variant_.parent_param_sizes = {256};
  EXPECT_FALSE(is_remembered());
  variant_.parent_param_sizes = {};
  EXPECT_TRUE(is_remembered()) << "a kernel without parameters";
}

}  // namespace
}  // namespace klap::runtime
