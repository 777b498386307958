// Queues that each launch of a parent allocates for itself (KLAP_BUFFER=malloc): cases of every kind of queue
// come out the same.
//
// The emulated driver frees such memory in its stream, and reports who uses it later, and what is read of it
// that nobody has written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

class OwnBuffers : public testing::TestWithParam<const char*> {};

TEST_P(OwnBuffers, ChangeNoCase) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  Work work;
  work.configuration = chosen_configurations(GetParam()).front();
  // One queue and several, for launches one after another and in several streams; with what is passed once,
  // with groups, and those that feed themselves.
  work.cases = {"simple",           "several_streams",    "three_sites_in_order",
                "two_parents",      "per_thread",         "arguments_all_the_same",
                "sizes_rows",       "groups_two_streams", "groups_of_several_sites",
                "loop_two_streams", "recursion_repeated", "recursion_two_streams"};
  work.last_seed = 2;
  // Small: queues that feed themselves are cleared for every launch.
  work.variables = {{"KLAP_BUFFER", "malloc"},
                    {"KLAP_POOL_BYTES", "1M"},
                    {"KLAP_ORDERING", "relaxed"},  // in none of these cases do children meet
                    {"KLAP_LOG", "info"}};
  const Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work);
  EXPECT_THAT(report.outcome.error, testing::HasSubstr("its queues are allocated for each launch"));
  ASSERT_TRUE(report.statistics.is_object());
  EXPECT_GT(report.statistics.at("children_aggregated"), 1000);
}

std::string buffer_test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Emulated, OwnBuffers, testing::Values("grid-host", "grid-device", "block-device"),
                         buffer_test_name);

}  // namespace
}  // namespace klap::differential
