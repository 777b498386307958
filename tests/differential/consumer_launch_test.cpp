// How the host launches a consumer changes no case: after it has read back what was recorded (launcher
// host-readback), when the parent is complete, or before (programmatic dependent launch).
//
// The emulated driver begins a dependent before the work of its parent is visible, so all cases of other
// tests that are launched by the host are about that, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

// One queue and several, in several streams; with children of many blocks, of none and of other sizes, with
// parents that record nothing, in slices; and those whose queue has a size of its own.
const std::vector<std::string> kCases = {
    "simple",        "several_streams",        "three_sites_in_order", "two_parents",
    "per_thread",    "arguments_all_the_same", "sizes_rows",           "arguments_of_big_children",
    "child_barrier", "three_dimensions",       "loop_two_streams",     "recursion_repeated",
    "chained"};

Report run_with(const std::map<std::string, std::string>& variables) {
  Work work;
  work.configuration = chosen_configurations("grid-host").front();
  work.cases = kCases;
  work.last_seed = KLAP_FULL_TESTS ? 3 : 1;
  work.variables = variables;
  work.variables["KLAP_POOL_BYTES"] = "1M";
  work.variables["KLAP_ORDERING"] = "relaxed";  // in none of these cases do children meet
  Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work);
  EXPECT_TRUE(report.statistics.is_object());
  return report;
}

TEST(ConsumerLaunch, AfterReadingBack) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Report report = run_with({{"KLAP_LAUNCHER", "host-readback"}, {"KLAP_LOG", "info"}});
  EXPECT_THAT(report.outcome.error, testing::HasSubstr("the host reads back what it recorded"));
  EXPECT_THAT(report.outcome.error, testing::HasSubstr("launched by the host without reading back"));
  EXPECT_GT(report.statistics.at("children_aggregated"), 1000);
}

TEST(ConsumerLaunch, WhenTheParentIsComplete) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Report report = run_with({{"KLAP_OPTIMISE", "-dependent_launch"}, {"KLAP_LOG", "debug"}});
  EXPECT_THAT(report.outcome.error,
              testing::Not(testing::HasSubstr("launched before the parent is complete")));
}

// What the driver is asked for where the executor runs blocks whose sizes are not constant.
std::string blocks_of_executor(const std::string& name) {
  Work work;
  work.configuration = chosen_configurations("grid-host").front();
  work.cases = {name};
  work.variables = {{"KLAP_LOG", "debug"}};
  const Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work);
  return report.outcome.error;
}

TEST(ConsumerLaunch, InBlocksAsLargeAsAnyThatMayRun) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const std::string bounded = blocks_of_executor("executed_in_bounds");
  EXPECT_THAT(bounded, testing::HasSubstr(" blocks of 64 threads"));  // of 12 x 3; `mark` has 40
  EXPECT_THAT(bounded, testing::HasSubstr(" blocks of 96 threads"));
  EXPECT_THAT(bounded, testing::Not(testing::HasSubstr(" blocks of 1024 threads")));
  EXPECT_THAT(blocks_of_executor("executed_across_axes"), testing::HasSubstr(" blocks of 1024 threads"));
}

TEST(ConsumerLaunch, BeforeTheParentIsComplete) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Report report = run_with({{"KLAP_LOG", "debug"}});
  EXPECT_THAT(report.outcome.error, testing::HasSubstr("launched before the parent is complete"));
}

}  // namespace
}  // namespace klap::differential
