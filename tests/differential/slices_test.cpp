// Parents in slices of their grids: that the cases made for it do run so, and that every other case comes out
// the same where its queues have room for a few threads only.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

uint64_t total(const nlohmann::json& statistics) {
  uint64_t slices = 0;
  for (const auto& [parent, sliced] : statistics.at("launches").at("sliced").items())
    slices += sliced.at("slices").get<uint64_t>();
  return slices;
}

Report run(const std::string& configuration, const std::vector<std::string>& cases, uint64_t seeds,
           const std::map<std::string, std::string>& variables) {
  Work work;
  work.configuration = chosen_configurations(configuration).front();
  work.cases = cases;
  work.last_seed = seeds;
  work.variables = variables;
  Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work) << "\n" << report.first_errors();
  return report;
}

constexpr std::array kConfigurations = {"grid-host", "grid-device", "multiblock2-device", "block-device"};

class Slices : public testing::TestWithParam<const char*> {
 protected:
  // In the full run every case in each configuration, else in one of them.
  static bool is_its_turn(const std::string& name) {
    const auto which =
        std::ranges::find(kConfigurations, std::string_view(GetParam())) - kConfigurations.begin();
    return KLAP_FULL_TESTS || (turn_of(name) + static_cast<size_t>(which)) % kConfigurations.size() == 0;
  }
};

TEST_P(Slices, AreRunByTheCasesMadeForThem) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const std::string& name : case_names("slices_")) {
    SCOPED_TRACE(name);
    const Case& c = *find_case(name);
    const Report report = run(GetParam(), {c.name}, 1, c.settings);
    const bool is_rewritten =
        expected_verdict(c.sites.front(), chosen_configurations(GetParam()).front()) == "rewritten";
    const bool is_cut = is_rewritten && c.name != "slices_place_in_function";
    EXPECT_EQ(is_cut, total(report.statistics) > c.steps.size()) << report.statistics.at("launches");
  }
}

TEST_P(Slices, ChangeNoCase) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  std::vector<std::string> names;
  for (const Case& c : all_cases()) {
    if (c.name.starts_with("turns_")) continue;  // right only where the executor runs them
    if (c.settings.empty() && is_its_turn(c.name)) names.push_back(c.name);
  }
  const Report report = run(GetParam(), names, 1, {{"KLAP_POOL_BYTES", "2K"}});
  EXPECT_GT(total(report.statistics), KLAP_FULL_TESTS ? 100 : 25)
      << "a quarter of the cases, a quarter as many";
}

std::string without_dash(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Emulated, Slices, testing::ValuesIn(kConfigurations), without_dash);

}  // namespace
}  // namespace klap::differential
