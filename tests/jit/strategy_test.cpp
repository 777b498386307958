// The strategy of sites in golden files, for each granularity and launcher that can be asked for.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "golden.h"
#include "jit/plan/plan.h"
#include "jit/strategy/strategy_of.h"
#include "tests/settings/given.h"

namespace klap::test {
namespace {

jit::Plan planned(const std::string& golden, jit::Request request, const GivenValues& values) {
  const jit::Program program =
      jit::program_from_ptx(read_golden(KLAP_GOLDEN_DIR "/" + golden + ".golden").section("ptx"), "golden");
  request.setting = given(values);
  jit::Timings timings;
  jit::Plan plan = jit::load_units(program, request, timings);
  jit::plan_sites(plan, request, timings);
  return plan;
}

// The names of all strategies in the plan of a golden file, with blanks between them.
std::string strategies(const std::string& golden, const GivenValues& values) {
  jit::Request request;
  request.promoting = values.contains("promotion");
  const jit::Plan plan = planned(golden, request, values);
  std::set<std::string_view> names;
  for (const jit::PlannedSite& site : plan.sites) names.insert(jit::strategy_of(site).name());
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : " ") + std::string(name);
  return text;
}

TEST(Strategies, FollowGranularityAndLauncher) {
  const std::string golden = "rewritten-per-thread-default";
  EXPECT_EQ("host-grid", strategies(golden, {{"granularity", "grid"}, {"launcher", "host"}}));
  EXPECT_EQ("device-grid", strategies(golden, {{"granularity", "grid"}, {"launcher", "device"}}));
  EXPECT_EQ("groups", strategies(golden, {{"granularity", "block"}}));
  EXPECT_EQ("groups", strategies(golden, {{"granularity", "multiblock"}}));
  EXPECT_EQ("warp", strategies(golden, {{"granularity", "warp"}}));
  EXPECT_EQ("", strategies(golden, {{"granularity", "none"}}));
}

TEST(Strategies, SuitWhatTheKernelDoes) {
  const GivenValues grid = {{"granularity", "grid"}, {"launcher", "host"}};
  GivenValues relaxed = grid;
  relaxed.emplace("ordering", "relaxed");
  EXPECT_EQ("worklist", strategies("rewritten-recursion", relaxed));
  EXPECT_EQ("loop-launches", strategies("rewritten-site-in-loop", grid));
  EXPECT_EQ("loop-launches", strategies("rewritten-order-kept-argument", grid));
  GivenValues without_executor = grid;
  without_executor.emplace("executor", "off");
  EXPECT_EQ("", strategies("left-recursion-stream-twice", without_executor));
  EXPECT_EQ("executor", strategies("left-recursion-stream-twice", grid));
  EXPECT_EQ("worklist", strategies("rewritten-mutual-recursion", grid));
  EXPECT_EQ("promotion", strategies("rewritten-chain-carried", {{"promotion", "auto"}}));
}

// How the variants of the parent of a golden file run its children, in the order in which they are preferred.
std::string forms(const std::string& golden, GivenValues values, bool by_sizes = true) {
  jit::Request request;
  request.by_sizes = by_sizes;
  values.insert({{"granularity", "grid"}, {"launcher", "host"}, {"executor", "off"}});
  const jit::Plan plan = planned(golden, request, values);
  std::string text;
  for (const jit::PlannedSite& site : plan.sites) {
    text += text.empty() ? "" : " ";
    text += site.shape.flat ? "flat" : site.in_blocks ? "in-blocks" : "plain";
  }
  return text;
}

TEST(Strategies, RunChildrenInTheirBlocksToo) {
  const std::string golden = "rewritten-flat-or-in-blocks";
  EXPECT_EQ("flat in-blocks", forms(golden, {}));
  EXPECT_EQ("flat in-blocks", forms(golden, {{"flatten", "auto"}}));
  EXPECT_EQ("flat", forms(golden, {{"flatten", "on"}}));
  EXPECT_EQ("plain", forms(golden, {{"flatten", "off"}}));
  EXPECT_EQ("flat", forms(golden, {}, false));
  EXPECT_EQ("plain", forms(golden, {{"launcher", "device"}}));
}

// The first variant rests on how the parent is launched; the second one keeps the order everywhere else.
TEST(Strategies, MayDifferBetweenVariantsOfAParent) {
  EXPECT_EQ("host-grid loop-launches",
            strategies("rewritten-straight-loop", {{"granularity", "grid"}, {"launcher", "host"}}));
}

}  // namespace
}  // namespace klap::test
