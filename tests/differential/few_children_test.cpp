// Which launches are one kernel since they have few children, as the statistics tell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

using nlohmann::json;

json fused_of(const std::string& name, std::map<std::string, std::string> variables = {}) {
  variables.emplace("KLAP_GUARD", "off");  // it would compare with the original first
  variables.emplace("KLAP_LAUNCHER", "auto");
  Work work;
  work.configuration = chosen_configurations("grid-host").front();
  work.cases = {name};
  work.variables = std::move(variables);
  const Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work);
  return report.statistics.at("launches").at("fused");
}

// There are 25 launches with few children, 25 with many and 25 with few. Launches 3 to 6 are looked at. From
// 7 on they are one kernel, but for those that are looked at: 22, and 38, which has many. The next looks are
// from 69 to 72, which have few. So the last three launches are one kernel, too.
TEST(FewChildren, FollowTheCountsOfChildren) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  EXPECT_EQ(33, fused_of("changing_counts").at("counts_parent"));
  EXPECT_EQ(33, fused_of("changing_counts_of_two_children").at("counts_of_two_parent"));
}

// Blocks that are full run as such, and the queue counts them.
TEST(FewChildren, AreNotThoseOfManyThreads) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  EXPECT_EQ(json::object(), fused_of("changing_counts_in_blocks"));
}

TEST(FewChildren, AreNotCountedWhereTheUserDecides) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  EXPECT_EQ(json::object(), fused_of("changing_counts", {{"KLAP_TUNE", "off"}}));
  EXPECT_EQ(json::object(), fused_of("changing_counts", {{"KLAP_LAUNCHER", "host"}}));
  EXPECT_EQ(75, fused_of("changing_counts", {{"KLAP_LAUNCHER", "fused"}}).at("counts_parent"));
}

}  // namespace
}  // namespace klap::differential
