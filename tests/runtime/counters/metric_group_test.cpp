// Groups of metrics, as the toolkit's own CUPTI puts them together. It needs no GPU for that, only the name
// of a chip.
#include "runtime/counters/metric_group.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "klap_ptx/tune/counter_metrics.h"
#include "support/error.h"

namespace klap::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MetricGroupsTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      Cupti::get();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  MetricGroups groups(const std::string& chip, const std::vector<std::string>& metrics) {
    problems_.clear();
    return metric_groups(Cupti::get(), {chip, {}}, metrics, problems_);
  }
  std::vector<std::string> problems_;
};

TEST_F(MetricGroupsTest, TheMetricsOfTuningTakeOnePass) {
  for (const char* const chip : {"GA100", "GA102", "AD102", "GH100", "GB100", "GB202"}) {
    EXPECT_EQ(groups(chip, tool::default_metrics()).size(), 1u) << chip;
    EXPECT_THAT(problems_, testing::IsEmpty()) << chip;
  }
}

TEST_F(MetricGroupsTest, MetricsThatShareNoPassAreApart) {
  std::vector<std::string> metrics = tool::default_metrics();
  for (const char* const reason : {"barrier", "membar", "long_scoreboard"})
    metrics.push_back(fmt::format("smsp__average_warps_issue_stalled_{}_per_issue_active.ratio", reason));
  const MetricGroups found = groups("GH100", metrics);
  EXPECT_GT(found.size(), 1u);
  std::vector<std::string> all;
  for (const auto& group : found) {
    EXPECT_EQ(group->passes(), 1u);
    all.insert(all.end(), group->metrics().begin(), group->metrics().end());
  }
  EXPECT_THAT(all, testing::UnorderedElementsAreArray(metrics));
}

TEST_F(MetricGroupsTest, MetricsOfSeveralPassesAreLeftOut) {
  const MetricGroups found = groups("GH100", {"sm__throughput.avg.pct_of_peak_sustained_elapsed",
                                              "no_such.sum", "smsp__inst_executed.sum"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0]->metrics(), ElementsAre("smsp__inst_executed.sum"));
  EXPECT_FALSE(found[0]->config_image().empty());
  ASSERT_EQ(problems_.size(), 2u);
  EXPECT_THAT(problems_[0],
              HasSubstr("sm__throughput.avg.pct_of_peak_sustained_elapsed is left out: it takes "));
  EXPECT_THAT(problems_[1], HasSubstr("no_such.sum is left out, as GH100 does not have it in this form"));
}

TEST_F(MetricGroupsTest, AnUnknownChipIsOneFailure) {
  try {
    groups("XX999", {"dram__bytes.sum"});
    FAIL() << "CUPTI knows it";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("this CUPTI is older than the GPU (fix: install the CUDA toolkit for"));
  }
}

}  // namespace
}  // namespace klap::runtime
