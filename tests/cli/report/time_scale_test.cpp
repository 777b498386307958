// The place of launches on the timeline of a report.
#include "klap/report/time_scale.h"

#include <gmock/gmock.h>

#include <cmath>

namespace klap::tool {
namespace {

TEST(TimeScale, WorkWithoutLongPausesIsLinear) {
  const TimeScale scale({{2, 5}, {0, 2}, {5.5, 10}});
  EXPECT_TRUE(scale.pauses().empty());
  for (const double time : {0.0, 1.0, 5.2, 10.0}) {
    EXPECT_NEAR(scale.at(time), time / 10, 1e-9);
    EXPECT_NEAR(scale.time_at(time / 10), time, 1e-9);
  }
  EXPECT_EQ(scale.at(-3), 0);
  EXPECT_EQ(scale.at(30), 1);
}

TEST(TimeScale, LongPausesAreShort) {
  const TimeScale scale({{-1, 0}, {1000, 1001}, {1000.5, 1001}});
  const std::vector<TimeScale::Pause> pauses = scale.pauses();
  ASSERT_EQ(pauses.size(), 1u);
  EXPECT_DOUBLE_EQ(pauses[0].length, 1000);
  EXPECT_LT(pauses[0].to - pauses[0].from, 0.05);
  EXPECT_NEAR(scale.at(0), pauses[0].from, 1e-9);
  EXPECT_NEAR(scale.at(1000), pauses[0].to, 1e-9);
  EXPECT_NEAR(scale.at(500), (pauses[0].from + pauses[0].to) / 2, 1e-9);
  EXPECT_NEAR(scale.time_at(scale.at(1000.25)), 1000.25, 1e-9);
}

// Even if every launch stands alone, most of the line is for launches.
TEST(TimeScale, ManyPausesLeaveRoomForTheWork) {
  std::vector<TimeScale::Interval> busy;
  for (int i = 0; i < 128; ++i) busy.emplace_back(i * 100.0, i * 100.0 + 1);
  double in_pauses = 0;
  for (const TimeScale::Pause& pause : TimeScale(busy).pauses()) in_pauses += pause.to - pause.from;
  EXPECT_GT(in_pauses, 0.1);
  EXPECT_LT(in_pauses, 0.5);
}

TEST(TimeScale, NothingAndInstantsHaveAPlace) {
  EXPECT_EQ(TimeScale({}).at(5), 0);
  EXPECT_EQ(TimeScale({}).time_at(0.5), 0);
  const TimeScale instants({{1, 1}, {2, 2}});
  for (const double time : {0.0, 1.0, 1.5, 2.0}) EXPECT_TRUE(std::isfinite(instants.at(time)));
}

}  // namespace
}  // namespace klap::tool
