// Which launches run their children in blocks, as the statistics tell.
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

json forms_of(const std::string& name, std::map<std::string, std::string> variables = {}) {
  variables.emplace("KLAP_GUARD", "off");  // what it measures is not looked at
  Work work;
  work.configuration = chosen_configurations("grid-host").front();
  work.cases = {name};
  work.variables = std::move(variables);
  const Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work);
  return report.statistics.at("forms");
}

// Twelve launches of small children, twelve of large ones, and twelve of small ones. There are few of them,
// so only the first launch and the twentieth behind it are looked at.
TEST(ChildForms, FollowTheSizesOfChildren) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const auto& [name, parent] : {std::pair("changing_sizes", "sizes_parent"),
                                     std::pair("changing_sizes_of_two_children", "two_sizes_parent")}) {
    const json forms = forms_of(name).at(parent);
    EXPECT_EQ(forms.at("flat"), 21) << name;
    EXPECT_EQ(forms.at("in_blocks"), 15) << name;
    EXPECT_EQ(forms.at("looks"), 2) << name;
    EXPECT_GT(forms.at("lanes_used"), 0.5) << name;
  }
}

TEST(ChildForms, FollowTheSizesOfTheFirstSlice) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  EXPECT_EQ(forms_of("changing_sizes", {{"KLAP_POOL_BYTES", "4K"}}).at("sizes_parent").at("in_blocks"), 15);
}

// Queues of one launch are as small as can be, and a look copies no more than they have.
TEST(ChildForms, FollowTheSizesInSmallQueues) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const json forms = forms_of("changing_sizes", {{"KLAP_BUFFER", "malloc"}}).at("sizes_parent");
  EXPECT_EQ(forms.at("in_blocks"), 15);
  EXPECT_EQ(forms.at("looks"), 2);
}

TEST(ChildForms, AreNotChosenWhereTheUserDoes) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  EXPECT_EQ(json::object(), forms_of("changing_sizes", {{"KLAP_TUNE", "off"}}));
  EXPECT_EQ(json::object(), forms_of("changing_sizes", {{"KLAP_OPTIMISE", "+flatten"}}));
  EXPECT_EQ(json::object(), forms_of("changing_sizes", {{"KLAP_OPTIMISE", "-flatten"}}));
}

}  // namespace
}  // namespace klap::differential
