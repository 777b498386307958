// The cases of chains (chain_*) in every mode of promotion: right under many schedules with weak memory, with
// many blocks, with few, and where the device holds one; and promoted, not left.
//
// A mode that a chain does not allow gives way to one that needs less. Which modes each case's chain allows
// is said here: a case that came to run in another one would show less than it seems to.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

constexpr uint64_t kSeeds = KLAP_FEWER_SEEDS;

// The best mode that the chain of each kernel allows, as remarks name it.
const std::map<std::string, std::string>& best_modes() {
  static const std::map<std::string, std::string> all = {};
  return all;
}

const std::vector<std::string> kModes = {"one link after another", "overlapping", "look-back"};
const std::vector<std::string> kSettings = {"PA", "PAO", "lookback"};

size_t index_of(const std::vector<std::string>& all, const std::string& one) {
  return static_cast<size_t>(std::ranges::find(all, one) - all.begin());
}

// What the remark of a kernel must begin with where that mode is asked for.
std::string expected_mode(const std::string& kernel, const std::string& setting) {
  const size_t best = index_of(kModes, best_modes().at(kernel));
  return kModes[setting == "auto" ? best : std::min(best, index_of(kSettings, setting))];
}

bool is_chain(const Case& c) { return c.name.starts_with("chain_"); }

struct Promoted {
  const Case* of = nullptr;
  std::string setting;
};

std::vector<Promoted> all_promoted() {
  std::vector<Promoted> all;
  for (const Case& c : all_cases()) {
    if (!is_chain(c)) continue;
    for (const char* setting : {"PA", "PAO", "lookback"}) all.push_back({&c, setting});
  }
  return all;
}

class Promotion : public testing::TestWithParam<Promoted> {
 protected:
  void SetUp() override {
    if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  }

  static Report run(const std::map<std::string, std::string>& settings, uint64_t seeds = kSeeds) {
    Work work;
    work.configuration = chosen_configurations("grid-host").front();
    work.cases = {GetParam().of->name};
    work.last_seed = seeds;
    work.variables = settings;
    work.variables["KLAP_PROMOTION"] = GetParam().setting;
    Report report = differential::Run(work).wait();
    EXPECT_EQ("", report.problem(work)) << GetParam().of->about << "\n"
                                        << command_line(work) << "\n"
                                        << report.first_errors();
    return report;
  }
};

// The kernels that the case's steps launch and that launch themselves.
void expect_modes(const Report& report, const std::string& setting, const Case& c) {
  ASSERT_TRUE(report.statistics.is_object());
  for (const auto& module : report.statistics.at("modules")) {
    for (const auto& site : module.at("sites")) {
      const std::string parent = site.at("parent");
      if (!best_modes().contains(parent)) continue;
      EXPECT_EQ("rewritten", site.at("verdict")) << parent << ": " << site.dump();
      const std::string detail = site.at("detail");
      EXPECT_EQ(expected_mode(parent, setting), detail.substr(0, detail.find(',')))
          << parent << " " << site.dump();
    }
  }
  // Those that are begun by a kernel are its own business.
  if (c.name == "chain_from_the_device" || c.name == "chain_with_more_memory" || c.name == "chain_of_1")
    return;
  EXPECT_GT(report.statistics.at("links_promoted"), 0);
}

TEST_P(Promotion, EqualsTheReference) {
  const Report report = run({});
  expect_modes(report, GetParam().setting, *GetParam().of);
}

TEST_P(Promotion, WithOneResidentBlock) {
  run({{"KLAP_EMULATOR_MULTIPROCESSORS", "1"}, {"KLAP_EMULATOR_RESIDENT_BLOCKS", "1"}, {"KLAP_POOL", "5"}},
      2);
}

TEST_P(Promotion, WithFewBlocks) {
  for (const char* blocks : {"1", "2", "3"}) run({{"KLAP_POOL", blocks}}, 2);
}

std::string name_of(const testing::TestParamInfo<Promoted>& info) {
  return info.param.of->name + "_" + info.param.setting;
}
void PrintTo(const Promoted& promoted, std::ostream* out) {
  *out << promoted.of->name << " as " << promoted.setting;
}

INSTANTIATE_TEST_SUITE_P(Cases, Promotion, testing::ValuesIn(all_promoted()), name_of);

}  // namespace
}  // namespace klap::differential
