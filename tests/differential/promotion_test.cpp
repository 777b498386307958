// The cases of chains (chain_*) in every mode of promotion: right under many schedules with weak memory, with
// many blocks, with few, and where the device holds one; and promoted, not left.
//
// A mode that a chain does not allow gives way to one that needs less. Which mode is the best for each kernel
// is said here: a case that came to run in another one would show less than it seems to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

// As remarks begin, from the one that needs least on, and what asks for it.
const std::vector<std::string> kModes = {"one link after another", "overlapping", "look-back"};
const std::vector<std::string> kSettings = {"PA", "PAO", "lookback"};
enum Mode : size_t { PA, PAO, LookBack };
// The same with a launch for each link.
const std::vector<std::string> kLaunchSettings = {"P", "PO"};
constexpr char kByLaunches[] = " by device launches";
bool launches(const std::string& setting) { return std::ranges::count(kLaunchSettings, setting) != 0; }

// The best that the chain of each kernel allows.
const std::map<std::string, Mode>& best_modes() {
  static const std::map<std::string, Mode> all = {{"chain_up", PA},
                                                  {"chain_down", LookBack},
                                                  {"chain_mixed", PAO},
                                                  {"chain_swap", PA},
                                                  {"chain_handed_on", PA},
                                                  {"chain_compact", LookBack},
                                                  {"chain_shift", LookBack},
                                                  {"chain_highest", LookBack},
                                                  {"chain_all_operations", LookBack},
                                                  {"chain_until", PA},
                                                  {"chain_collatz", PAO},
                                                  {"chain_last_thread", PAO},
                                                  {"chain_leaving", PA},
                                                  {"chain_cubes", PAO},
                                                  {"chain_dynamic", LookBack},
                                                  {"chain_result", PA},
                                                  {"chain_counts", PA},
                                                  {"chain_placed", PA},
                                                  {"chain_to_largest", LookBack},
                                                  {"chain_to_smallest", LookBack}};
  return all;
}

// Launches that the links of all cases make that are promoted, in one run of each.
constexpr int kLinks = 2667;

// What the remark of a kernel must begin with where that mode is asked for.
std::string expected_mode(const std::string& kernel, const std::string& setting) {
  const size_t best = best_modes().at(kernel);
  if (setting == "auto") return kModes[best];
  const auto& settings = launches(setting) ? kLaunchSettings : kSettings;
  const size_t asked = static_cast<size_t>(std::ranges::find(settings, setting) - settings.begin());
  return kModes[std::min(best, asked)] + (launches(setting) ? kByLaunches : "");
}

std::vector<std::string> chains() { return case_names("chain_"); }

class Promotion : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  }

  // All chains, one after another in one process.
  static Report run(uint64_t seeds, std::map<std::string, std::string> settings = {}) {
    Work work;
    work.configuration = chosen_configurations("grid-host").front();
    work.cases = chains();
    work.last_seed = seeds;
    work.variables = std::move(settings);
    work.variables["KLAP_PROMOTION"] = GetParam();
    Report report = differential::Run(work).wait();
    EXPECT_EQ("", report.problem(work)) << command_line(work) << "\n" << report.first_errors();
    return report;
  }
  static int links(const Report& report) {
    return report.statistics.is_object() ? report.statistics.at("links_promoted").get<int>() : 0;
  }
};

void expect_modes(const nlohmann::json& statistics, const std::string& setting) {
  size_t found = 0;
  for (const auto& module : statistics.at("modules")) {
    for (const auto& site : module.at("sites")) {
      const std::string parent = site.at("parent"), detail = site.at("detail");
      if (!best_modes().contains(parent)) continue;
      ++found;
      EXPECT_EQ("promotion", site.value("granularity", "left")) << site.dump();
      EXPECT_EQ(expected_mode(parent, setting), detail.substr(0, detail.find(','))) << site.dump();
    }
  }
  EXPECT_GE(found, best_modes().size());
}

constexpr int kEqualSeeds = KLAP_FULL_TESTS ? KLAP_FEWER_SEEDS : 2;

TEST_P(Promotion, EqualsTheReference) {
  const Report report = run(kEqualSeeds);
  ASSERT_TRUE(report.statistics.is_object());
  expect_modes(report.statistics, GetParam());
  // Every launch that a link makes is a link, whatever the mode: so many in one run of all cases.
  EXPECT_EQ(kLinks * kEqualSeeds, links(report));
  const auto& left = report.statistics.at("launches").at("left");
  EXPECT_EQ(kEqualSeeds, left.at("chain_dynamic").at("not the chain's form"));
  EXPECT_EQ(2 * kEqualSeeds, left.at("chain_placed").at("not the chain's form"));
}

TEST_P(Promotion, EndsWhereOneBlockIsResident) {
  const Report report = run(
      2,
      {{"KLAP_EMULATOR_MULTIPROCESSORS", "1"}, {"KLAP_EMULATOR_RESIDENT_BLOCKS", "1"}, {"KLAP_POOL", "5"}});
  EXPECT_EQ(kLinks * 2, links(report));
}

TEST_P(Promotion, IsRightWithAnyNumberOfBlocks) {
  for (const char* blocks : {"1", "2", "40"}) {
    SCOPED_TRACE(blocks);
    EXPECT_EQ(kLinks, links(run(1, {{"KLAP_POOL", blocks}})));
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Promotion, testing::Values("P", "PA", "PO", "PAO", "lookback"),
                         [](const auto& mode) { return mode.param; });

// Of chains that are promoted as a whole: nothing but their links is launched from the device.
class LaunchedLinks : public Promotion {
 protected:
  static constexpr int kSeeds = KLAP_FULL_TESTS ? 6 : 2;  // 6: all schedules
  static constexpr int kOwn = kLinks - 18;                // links of these cases, in one run of each
  static constexpr int kChains = 30;                      // that have a second link
  static Report run(std::map<std::string, std::string> settings) {
    Work work;
    work.configuration = chosen_configurations("grid-host").front();
    const std::vector<std::string> with_others = {"chain_from_the_device", "chain_of_another_form",
                                                  "chain_with_more_memory"};
    for (const std::string& name : chains()) {
      if (std::ranges::count(with_others, name) == 0) work.cases.push_back(name);
    }
    work.last_seed = kSeeds;
    work.variables = std::move(settings);
    work.variables["KLAP_PROMOTION"] = GetParam();
    Report report = differential::Run(work).wait();
    EXPECT_EQ("", report.problem(work)) << command_line(work) << "\n" << report.first_errors();
    EXPECT_EQ(kOwn * kSeeds, links(report));
    return report;
  }
  static uint64_t sum(const Report& report, uint64_t Line::*count) {
    uint64_t all = 0;
    for (const Line& line : report.lines) all += line.*count;
    return all;
  }
};

// With room for all, every link but the first two, which the host's block runs, has a launch of its own,
// however many may be under way.
TEST_P(LaunchedLinks, AreOnePerLink) {
  for (const char* const pool : {"2", "1000"}) {
    SCOPED_TRACE(pool);
    const Report report = run({{"KLAP_POOL", pool}, {"KLAP_EMULATOR_PENDING_LAUNCHES", "100000"}});
    EXPECT_EQ(static_cast<uint64_t>((kOwn - kChains) * kSeeds), sum(report, &Line::device_launches));
    EXPECT_EQ(0u, sum(report, &Line::launches_refused));
  }
}

// What cannot be launched is run all the same.
TEST_P(LaunchedLinks, AreRunByOthersWhereLaunchesAreRefused) {
  for (const char* const room : {"1", "3"}) {
    SCOPED_TRACE(room);
    const Report report = run({{"KLAP_EMULATOR_PENDING_LAUNCHES", room}});
    EXPECT_LT(0u, sum(report, &Line::device_launches));
    EXPECT_LT(0u, sum(report, &Line::launches_refused));
    EXPECT_GT(static_cast<uint64_t>(kOwn * kSeeds), sum(report, &Line::device_launches));
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, LaunchedLinks, testing::Values("P", "PO"),
                         [](const auto& mode) { return mode.param; });

// What is not to be promoted is not.
TEST(NoPromotion, LeavesChainsToAggregationOrAsTheyAre) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  Work work;
  work.configuration = chosen_configurations("grid-host").front();
  work.cases = chains();
  work.variables = {{"KLAP_PROMOTION", "none"}};
  const Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work) << "\n" << report.first_errors();
  ASSERT_TRUE(report.statistics.is_object());
  EXPECT_EQ(0, report.statistics.at("links_promoted"));
  EXPECT_THAT(report.statistics.at("modules").dump(), testing::Not(testing::HasSubstr("\"promotion\"")));
}

}  // namespace
}  // namespace klap::differential
