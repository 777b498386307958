// Faults put into cases on purpose: each must be found by the runner, and a random program's be made small.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "case_file.h"
#include "random/campaign.h"
#include "random/reduce.h"
#include "runs.h"
#include "support/file.h"

namespace klap::differential {
namespace {

using testing::HasSubstr;

class Planted : public testing::Test {
 protected:
  void SetUp() override {
    if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  }

  // What a native run of the case says under a few seeds.
  std::string native(const Case& c, uint64_t seeds = 6) const {
    Work work;
    work.configuration = chosen_configurations("native")[0];
    work.files = {folder_.path() / "case.json"};
    work.last_seed = seeds;
    write_case(c, work.files[0]);
    const Report report = differential::Run(work).wait();
    return report.problem(work) + report.first_errors();
  }

  static Case by_hand(const std::string& name) {
    Case c = *find_case(name);
    c.ptx = read_file(own_folder() / "differential" / c.file);
    return c;
  }

  static void replace(std::string& text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  }

  TemporaryFolder folder_;
};

TEST_F(Planted, NothingIsFoundWhereNothingIsWrong) { EXPECT_EQ("", native(by_hand("barrier_then_launch"))); }

TEST_F(Planted, AWrongValueIsADifference) {
  Case c = by_hand("simple");
  c.buffers[0].expected[100] ^= std::byte{4};
  EXPECT_THAT(native(c), HasSubstr("different: cells[25] is"));
}

TEST_F(Planted, AMissingBarrierIsARace) {
  Case c = by_hand("barrier_then_launch");
  const std::string before = c.ptx;
  replace(c.ptx, "bar.sync \t0;", "");
  ASSERT_NE(before, c.ptx);
  EXPECT_THAT(native(c), HasSubstr("data race"));
}

TEST_F(Planted, AMissingChildIsADifference) {
  Case c = by_hand("some_lanes");
  c.steps[0].launch.grid[0] -= 1;
  EXPECT_THAT(native(c), HasSubstr("different"));
}

TEST_F(Planted, AWrongErrorCodeIsAFailure) {
  Case c = by_hand("refused_by_host");
  c.steps[0].launch_error = 0;
  EXPECT_THAT(native(c), HasSubstr("failed: step 0"));
}

TEST_F(Planted, AFaultInARandomProgramIsFoundAndReduced) {
  random::Plan plan;
  plan.programs = 40;
  plan.time = std::chrono::seconds(60);
  plan.mixes = {random::parse_mix("all")};
  plan.configurations = chosen_configurations("native");
  plan.seeds = 1;
  plan.most_failures = 1;
  plan.out = folder_.path() / "failing";
  plan.plant = [](Case& c) { replace(c.ptx, ".global.xor.b32", ".global.or.b32"); };
  const random::Tally tally = run_campaign(plan);
  ASSERT_EQ(1U, tally.failures.size());
  EXPECT_THAT(tally.failures[0], HasSubstr("different: sums["));
  // What was written fails again, by itself, and is small: one update, and what makes its operand not 0.
  for (const auto& entry : std::filesystem::directory_iterator(plan.out)) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_THAT(native(read_case(entry.path()), 1), HasSubstr("different"));
    if (entry.path().stem().string().ends_with("_whole")) continue;
    EXPECT_LE(std::ranges::count(read_case(entry.path()).ptx, '\n'), 60) << read_case(entry.path()).ptx;
  }
}

// Programs whose result depends on ordered launches, whose launches nothing orders.
TEST_F(Planted, LaunchesOutOfOrderAreFound) {
  random::Plan plan;
  plan.programs = 30;
  plan.time = std::chrono::seconds(60);
  plan.mixes = {random::parse_mix("order")};
  plan.configurations = chosen_configurations("native");
  plan.seeds = 3;
  plan.most_failures = 5;
  plan.most_tries = 0;
  plan.out = folder_.path() / "failing";
  plan.plant = [](Case& c) {
    replace(c.ptx, "st.param.b64 \t[param1+0], 0;", "st.param.b64 \t[param1+0], 4;");  // fire and forget
  };
  EXPECT_EQ(5U, run_campaign(plan).failures.size());
}

}  // namespace
}  // namespace klap::differential
