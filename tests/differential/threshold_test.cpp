// Children that are not recorded are children all the same: the report counts them.
#include <gtest/gtest.h>

#include "runs.h"

namespace klap::differential {
namespace {

uint64_t children(const std::string& configuration, const std::string& threshold) {
  Work work;
  work.configuration = chosen_configurations(configuration).front();
  work.cases = {"threshold_leaves"};
  work.variables = {{"KLAP_THRESHOLD", threshold}};
  const Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work) << "\n" << report.first_errors();
  return report.statistics.at("children_aggregated");
}

class Threshold : public testing::TestWithParam<const char*> {};

TEST_P(Threshold, LosesNoChildInTheReport) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const char* const threshold : {"0", "8"})
    EXPECT_EQ(128u, children(GetParam(), threshold)) << threshold << ": two thirds of 192 threads launch";
}

std::string without_dash(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Emulated, Threshold, testing::Values("grid-host", "block-device"), without_dash);

}  // namespace
}  // namespace klap::differential
