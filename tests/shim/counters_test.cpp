// KLAP_COUNTERS from outside, with a stand-in for CUPTI: which launches are counted and how, and that the
// program runs on whatever fails.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "run_program.h"
#include "support/file.h"

namespace klap::shim_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Counted {
  Outcome run;
  nlohmann::json counters;
};

Counted count(const std::string& metrics, const std::string& failing = "",
              const std::string& scenario = "streams", std::map<std::string, std::string> more = {}) {
  const TemporaryFile stats("stats.json");
  Options options;
  options.environment = std::move(more);
  options.environment.insert({{"KLAP_STATS", stats.path()},
                              {"KLAP_COUNTERS", metrics},
                              {"KLAP_CUPTI", KLAP_FAKE_CUPTI},
                              {"KLAP_TUNE", "off"},
                              {"FAKE_CUPTI_FAIL", failing}});
  Counted out = {run_program("launching", {scenario}, options), {}};
  out.counters = nlohmann::json::parse(read_file(stats.path()))["counters"];
  EXPECT_EQ(0, out.run.status) << out.run.error;
  return out;
}

// The names of the calls from the first one of that name to its next one.
std::vector<std::string> calls_until_next(const Outcome& run, const std::string& name) {
  std::vector<std::string> out;
  for (const Call& call : run.calls) {
    if (call.name() == name && !out.empty()) break;
    if (call.name() == name || !out.empty()) out.push_back(call.name());
  }
  return out;
}

size_t calls_of_cupti(const Outcome& run) {
  return static_cast<size_t>(
      std::ranges::count_if(run.calls, [](const Call& call) { return call.name().starts_with("cupti"); }));
}

TEST(Counters, CountEachLaunchWithItsChildren) {
  const auto [run, counters] = count("inst.sum");
  EXPECT_TRUE(run.complaints().empty()) << run.error;
  EXPECT_EQ("CVCVCVC", roles(run));
  EXPECT_EQ(counters,
            nlohmann::json::parse(R"({"launches": {"parent": 3}, "means": {"parent": {"inst.sum": 2}},
                                      "problems": []})"))
      << "the values are 1, 2 and 3";
  std::vector<std::string> calls = calls_until_next(run, "cuptiRangeProfilerPushRange");
  ASSERT_GE(calls.size(), 6u);
  calls.resize(6);
  EXPECT_THAT(calls, ElementsAre("cuptiRangeProfilerPushRange", "cuLaunchKernel", "cuLaunchKernel",
                                 "cuCtxSynchronize", "cuptiRangeProfilerPopRange", "cuptiRangeProfilerStop"));
  EXPECT_EQ(1u, run.called("cuptiRangeProfilerEnable").size());
}

TEST(Counters, AreNotLookedForUnlessAsked) {
  const auto [run, counters] = count("");
  EXPECT_EQ(counters, nullptr);
  EXPECT_EQ(0u, calls_of_cupti(run));
}

// Two metrics that share no pass are counted in alternate launches; the third has room in the first pass.
TEST(Counters, TakeTurnsIfTheyNeedSeveralPasses) {
  const nlohmann::json means = count("wide_a,wide_b,other.pct").counters["means"]["parent"];
  EXPECT_EQ(means, nlohmann::json::parse(R"({"wide_a": 2, "other.pct": 2, "wide_b": 2})"))
      << "the first and third launch, and the second";
  EXPECT_EQ(count("wide_a,wide_b", "", "launch").counters["means"]["parent"],
            nlohmann::json::parse(R"({"wide_a": 1})"))
      << "there is no second launch";
}

TEST(Counters, ThatDoNotExistAreLeftOut) {
  const auto [run, counters] = count("unknown.sum,heavy.pct,empty.ratio,inst.sum");
  EXPECT_EQ(counters["means"]["parent"], nlohmann::json::parse(R"({"inst.sum": 2})"));
  ASSERT_EQ(2u, counters["problems"].size()) << "that a ratio has no value in a launch is no problem";
  EXPECT_THAT(counters["problems"][0], HasSubstr("unknown.sum is left out, as GH100 does not have it"));
  EXPECT_THAT(counters["problems"][1], HasSubstr("heavy.pct is left out: it takes 8 passes"));
  ASSERT_EQ(2u, run.complaints().size());
  EXPECT_THAT(run.complaints()[0], HasSubstr("KLAP_COUNTERS: unknown.sum is left out"));
  const Counted none = count("unknown.sum");
  EXPECT_THAT(none.run.complaints().back(), HasSubstr("no metric is left"));
}

TEST(Counters, OfOriginalsAreReadIfTheyAreAskedFor) {
  const auto [run, counters] = count("inst.sum", "", "streams", {{"KLAP_GUARD", "original"}});
  EXPECT_EQ("OOO", roles(run));
  EXPECT_EQ(counters["launches"]["parent"], 3);
}

class FailingCupti : public testing::TestWithParam<const char*> {};

TEST_P(FailingCupti, LeavesTheProgramAsItIs) {
  const std::string failing = GetParam();
  const auto [run, counters] = count("inst.sum", failing + "=999");
  EXPECT_EQ("CVCVCVC", roles(run));
  ASSERT_FALSE(run.complaints().empty());
  EXPECT_THAT(run.complaints().back(), HasSubstr("KLAP_COUNTERS: no more launches are counted: "));
  EXPECT_THAT(run.error, HasSubstr(failing + " returns 999"));
  EXPECT_THAT(run.error, HasSubstr("(fix: "));
  EXPECT_EQ(counters["means"], nlohmann::json::object());
  EXPECT_THAT(counters["problems"].dump(), HasSubstr(failing));
}

INSTANTIATE_TEST_SUITE_P(
    Counters, FailingCupti,
    testing::Values("cuptiProfilerInitialize", "cuptiDeviceGetChipName",
                    "cuptiProfilerGetCounterAvailability", "cuptiProfilerHostInitialize",
                    "cuptiProfilerHostConfigAddMetrics", "cuptiProfilerHostGetConfigImageSize",
                    "cuptiProfilerHostGetConfigImage", "cuptiProfilerHostGetNumOfPasses",
                    "cuptiProfilerHostEvaluateToGpuValues", "cuptiRangeProfilerEnable",
                    "cuptiRangeProfilerGetCounterDataSize", "cuptiRangeProfilerCounterDataImageInitialize",
                    "cuptiRangeProfilerSetConfig", "cuptiRangeProfilerStart", "cuptiRangeProfilerStop",
                    "cuptiRangeProfilerPushRange", "cuptiRangeProfilerPopRange",
                    "cuptiRangeProfilerDecodeData", "cuptiRangeProfilerGetCounterDataInfo"),
    [](const auto& function) { return std::string(function.param); });

TEST(Counters, SayWhoMayReadThem) {
  const Outcome run = count("inst.sum", "cuptiRangeProfilerEnable=35").run;
  ASSERT_EQ(1u, run.complaints().size());
  EXPECT_THAT(run.complaints()[0],
              HasSubstr("only administrators read performance counters (ERR_NVGPUCTRPERM)"));
  EXPECT_THAT(run.complaints()[0], HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
}

TEST(Counters, SayThatThereIsNoCupti) {
  const auto [run, counters] = count("inst.sum", "", "streams", {{"KLAP_CUPTI", "/no/such/library"}});
  EXPECT_EQ("CVCVCVC", roles(run));
  ASSERT_EQ(1u, run.complaints().size());
  EXPECT_THAT(run.complaints()[0], HasSubstr("cannot open libcupti"));
  EXPECT_THAT(run.complaints()[0], HasSubstr("KLAP_CUPTI names this file"));
  EXPECT_THAT(counters["problems"][0], HasSubstr("cannot open libcupti"));
}

// A profiler that counts only one launch is replaced before the next one. What is not counted is only the
// launch in which that became known.
TEST(Counters, GetAProfilerForEachLaunchWhereTheyNeedOne) {
  const Counted begin = count("inst.sum", "cuptiRangeProfilerSetConfig=7@2");
  EXPECT_TRUE(begin.run.complaints().empty()) << begin.run.error;
  EXPECT_EQ(begin.counters["launches"]["parent"], 3);
  EXPECT_EQ(3u, begin.run.called("cuptiRangeProfilerEnable").size());
  EXPECT_EQ(2u, begin.run.called("cuptiRangeProfilerDisable").size());
  const Counted end = count("inst.sum", "cuptiRangeProfilerDecodeData=7@2");
  EXPECT_TRUE(end.run.complaints().empty()) << end.run.error;
  EXPECT_EQ(end.counters["launches"]["parent"], 2);
  EXPECT_EQ(2u, end.run.called("cuptiRangeProfilerEnable").size());
  const Counted never = count("inst.sum", "cuptiRangeProfilerStart=7@2+");
  EXPECT_EQ(1u, never.run.complaints().size());
  EXPECT_EQ(never.counters["launches"]["parent"], 1);
  EXPECT_EQ("CVCVCVC", roles(never.run));
}

TEST(Counters, AreReadInOneThreadAtATime) {
  const auto [run, counters] = count("inst.sum", "", "threads");
  EXPECT_TRUE(run.complaints().empty()) << run.error;
  EXPECT_GE(counters["launches"]["parent"], 5);
  EXPECT_LE(counters["launches"]["parent"], 64);
}

// The first launch's context is gone, and the profiler with it.
TEST(Counters, AreThoseOfOneContext) {
  const auto [run, counters] = count("inst.sum", "", "context_reset");
  EXPECT_TRUE(run.complaints().empty()) << run.error;
  EXPECT_EQ(counters["launches"]["parent"], 1);
}

}  // namespace
}  // namespace klap::shim_test
