// Statistics: what ends in the JSON, and that writing it can never hurt the program.
#include "runtime/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/remark_json.h"
#include "support/file.h"

namespace klap::runtime {
namespace {

using nlohmann::json;

jit::SiteRemark rewritten_site() {
  jit::SiteRemark remark;
  remark.unit = "unit 0";
  remark.parent = "_Z6parentPii";
  remark.child = "_Z5childPii";
  remark.line = 97;
  remark.column = 2;
  remark.rewritten = true;
  remark.granularity = "grid";
  remark.launcher = "host";
  remark.source = {"/src/a.cu", 12, 3};
  remark.facts = {{"block", "32x1x1"}, {"stream", "NULL"}};
  remark.notes = {"launches of one block may overlap"};
  return remark;
}

jit::SiteRemark left_site() {
  jit::SiteRemark remark;
  remark.unit = "unit 1";
  remark.parent = "_Z6parentPii";
  remark.line = 12;
  remark.column = 3;
  remark.reason = "indirect-callee";
  remark.detail = "the callee is in a register";
  return remark;
}

ModuleRecord module_with_two_sites() {
  ModuleRecord module;
  module.how = "rewritten";
  module.load_path = "cuLibraryLoadData";
  module.remarks = {rewritten_site(), left_site()};
  module.variants = {"_Z6parentPii"};
  module.cache = "miss";
  module.timings.link = 20;
  module.timings.parse = 1.5;
  module.load_ms = 30;
  return module;
}

class StatsFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "klap-stats-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST(Stats, SizesOfChildrenAreAddedUp) {
  Stats stats;
  EXPECT_EQ(stats.to_json()["child_sizes"], nullptr);
  stats.look_for_sizes();
  EXPECT_EQ(stats.to_json()["child_sizes"], nlohmann::json::array());
  stats.sizes_found("parent", "child", "threads", {1, 0, 5, 7});
  stats.sizes_found("parent", "child", "threads", {0, 0, 1, 1});
  EXPECT_EQ(stats.to_json()["child_sizes"],
            json::parse(R"([{"parent": "parent", "child": "child", "counted": "threads",
                             "sizes": [{"up_to": 0, "children": 1}, {"up_to": 3, "children": 6},
                                       {"up_to": null, "children": 8}]}])"));
}

TEST(Stats, MemoryOfBlocksThatStopIsThereIfItWasCounted) {
  Stats stats;
  EXPECT_EQ(stats.to_json()["frames"], nullptr);
  stats.frames_found({true, 300, 100, 7});
  EXPECT_EQ(stats.to_json()["frames"], json({{"bytes_taken", 300}, {"bytes_returned", 100}, {"refused", 7}}));
}

TEST(Stats, FreshOnesAreAllZeroAndComplete) {
  const json stats = Stats().to_json();
  EXPECT_EQ(stats["modules"], json::array());
  EXPECT_EQ(stats["modules_passed_through"], 0);
  EXPECT_EQ(stats["children_aggregated"], 0);
  EXPECT_EQ(stats["children_launched_natively"], 0);
  EXPECT_EQ(stats["sites"]["rewritten"], 0);
  EXPECT_EQ(stats["sites"]["left"], json::object());
  EXPECT_EQ(stats["launches"]["redirected"], json::object());
  EXPECT_EQ(stats["launches"]["left"], json::object());
  EXPECT_EQ(stats["totals"]["load_ms"], 0);
  EXPECT_EQ(stats["toolchain_calls"], json({{"nvrtc", 0}, {"nvjitlink", 0}}));
}

TEST(Stats, SitesAndTimesAreAddedUpOverModules) {
  Stats stats;
  stats.module_seen(module_with_two_sites());
  ModuleRecord other = module_with_two_sites();
  other.cache = "hit";
  stats.module_seen(other);
  stats.module_passed_through();
  const json found = stats.to_json();
  EXPECT_EQ(found["modules"].size(), 2);
  EXPECT_EQ(found["modules"][0]["how"], "rewritten");
  EXPECT_EQ(found["modules"][0]["cache"], "miss");
  EXPECT_EQ(found["modules"][0]["load_path"], "cuLibraryLoadData");
  EXPECT_EQ(found["modules"][0]["sites"].size(), 2);
  EXPECT_EQ(found["modules_passed_through"], 1);
  EXPECT_EQ(found["sites"]["rewritten"], 2);
  EXPECT_EQ(found["sites"]["left"]["indirect-callee"], 2);
  EXPECT_EQ(found["totals"]["compile_ms"]["link"], 40);
  EXPECT_EQ(found["totals"]["compile_ms"]["parse"], 3);
  EXPECT_EQ(found["totals"]["load_ms"], 60);
}

TEST(Stats, ModulesThatAreLoadedAgainAreCounted) {
  Stats stats;
  for (int i = 0; i < 3; ++i) {
    ModuleRecord module = module_with_two_sites();
    module.load_ms = 10 * (i + 1);
    stats.module_seen(module);
  }
  const json found = stats.to_json();
  ASSERT_EQ(found["modules"].size(), 1);
  EXPECT_EQ(found["modules"][0]["loads"], 3);
  EXPECT_EQ(found["modules"][0]["load_ms"], 60);
  EXPECT_EQ(found["modules"][0]["compile_ms"]["link"], 60);
  EXPECT_EQ(found["sites"]["rewritten"], 3);
  EXPECT_EQ(found["sites"]["left"]["indirect-callee"], 3);
  EXPECT_EQ(found["totals"]["load_ms"], 60);
}

TEST(Stats, LaunchesAreCountedByParentAndReason) {
  Stats stats;
  stats.launch_redirected("_Z6parentPii");
  stats.launch_redirected("_Z6parentPii");
  stats.launch_left("_Z6parentPii", "stream capture");
  stats.children_total()->fetch_add(4096);
  const json found = stats.to_json();
  EXPECT_EQ(found["launches"]["redirected"]["_Z6parentPii"], 2);
  EXPECT_EQ(found["launches"]["left"]["_Z6parentPii"]["stream capture"], 1);
  EXPECT_EQ(found["children_aggregated"], 4096);
}

TEST(Stats, WhatWasNotCountedIsNotZero) {
  Stats stats;
  stats.leave_out_children();
  const json found = stats.to_json();
  for (const char* const key : {"children_aggregated", "children_launched_natively", "links_promoted"}) {
    EXPECT_TRUE(found.contains(key)) << key;
    EXPECT_EQ(found[key], nullptr) << key;
  }
}

TEST(Stats, SlicesAreCountedBesideLaunches) {
  Stats stats;
  EXPECT_TRUE(stats.to_json()["launches"]["sliced"].empty());
  stats.launch_sliced("p", 3);
  stats.launch_sliced("p", 40);
  stats.launch_timed({"p", 1, 0, 1, 2});
  stats.launch_timed({"p", 1, 3, 4, 8, true});
  const json found = stats.to_json();
  EXPECT_EQ(found["launches"]["sliced"]["p"]["launches"], 2);
  EXPECT_EQ(found["launches"]["sliced"]["p"]["slices"], 43);
  EXPECT_EQ(found["gpu_ms"]["launches"]["p"], 1);
  EXPECT_EQ(found["gpu_ms"]["parents"]["p"], 5);
  EXPECT_EQ(found["gpu_ms"]["consumers"]["p"], 10);
}

TEST(Stats, TheTimelineHasTheFirstLaunchesAndTheSlowest) {
  Stats stats;
  EXPECT_EQ(stats.to_json()["timeline"], nullptr);
  constexpr int kLaunches = 1000;
  for (int i = 0; i < kLaunches; ++i)
    stats.launch_timed({"p", 7, i * 10.0, 1, i == 500 ? 90.0 : i % 50 / 10.0});
  const json found = stats.to_json()["timeline"];
  ASSERT_EQ(found["first"].size(), Timeline::kFirst);
  ASSERT_EQ(found["slowest"].size(), Timeline::kSlowest);
  EXPECT_EQ(found["first"][3],
            json::parse(R"({"parent": "p", "context": 7, "begin_ms": 30.0, "parent_ms": 1.0,
                                               "children_ms": 0.3, "is_slice": false})"));
  EXPECT_EQ(found["slowest"][0]["begin_ms"], 5000.0);
  for (size_t i = 1; i < Timeline::kSlowest; ++i)
    EXPECT_GE(found["slowest"][i - 1]["children_ms"], found["slowest"][i]["children_ms"]);
  EXPECT_EQ(found["slowest"][20]["children_ms"], 4.9) << "there are twenty of these";
}

TEST(Stats, DevicesAndTheMostMemoryOfQueuesAreThere) {
  Stats stats;
  EXPECT_EQ(stats.to_json()["queues"]["most_bytes"], 0);
  EXPECT_EQ(stats.to_json()["devices"], json::array());
  stats.queues_hold(300);
  stats.queues_hold(200);
  stats.device_seen("a GPU");
  stats.device_seen("a GPU");
  EXPECT_EQ(stats.to_json()["queues"]["most_bytes"], 300);
  EXPECT_EQ(stats.to_json()["devices"], json::array({"a GPU"}));
}

// A ratio may have no value in a launch; others count.
TEST(Stats, CountersAreMeansOverTheLaunchesThatHaveThem) {
  Stats stats;
  EXPECT_EQ(stats.to_json()["counters"], nullptr);
  stats.launch_counted("p", {{"bytes", 10}, {"rate", 50}});
  stats.launch_counted("p", {{"bytes", 30}});
  stats.launch_counted("q", {});
  stats.counting_failed("no more of it");
  EXPECT_EQ(
      stats.to_json()["counters"],
      json::parse(R"({"launches": {"p": 2, "q": 1}, "means": {"p": {"bytes": 20.0, "rate": 50.0}, "q": {}},
                            "problems": ["no more of it"]})"));
}

TEST(Stats, CountsFromManyThreadsAreExact) {
  Stats stats;
  {
    const auto count = [&] {
      for (int n = 0; n < 1000; ++n) {
        stats.launch_redirected("p");
        stats.launch_left("p", "r");
        stats.module_passed_through();
      }
    };
    std::jthread first(count), second(count), third(count), fourth(count);
  }
  const json found = stats.to_json();
  EXPECT_EQ(found["launches"]["redirected"]["p"], 4000);
  EXPECT_EQ(found["launches"]["left"]["p"]["r"], 4000);
  EXPECT_EQ(found["modules_passed_through"], 4000);
}

TEST(Stats, RemarkOfARewrittenSite) {
  EXPECT_EQ(to_json(rewritten_site()), json({{"unit", "unit 0"},
                                             {"line", 97},
                                             {"column", 2},
                                             {"source", {{"file", "/src/a.cu"}, {"line", 12}, {"column", 3}}},
                                             {"facts", {{"block", "32x1x1"}, {"stream", "NULL"}}},
                                             {"parent", "_Z6parentPii"},
                                             {"parent_demangled", "parent(int*, int)"},
                                             {"child", "_Z5childPii"},
                                             {"child_demangled", "child(int*, int)"},
                                             {"verdict", "rewritten"},
                                             {"granularity", "grid"},
                                             {"launcher", "host"},
                                             {"detail", ""},
                                             {"notes", {"launches of one block may overlap"}}}));
}

TEST(Stats, RemarkOfASiteThatWasLeft) {
  EXPECT_EQ(to_json(left_site()), json({{"unit", "unit 1"},
                                        {"line", 12},
                                        {"column", 3},
                                        {"source", nullptr},
                                        {"facts", json::object()},
                                        {"parent", "_Z6parentPii"},
                                        {"parent_demangled", "parent(int*, int)"},
                                        {"child", ""},
                                        {"child_demangled", ""},
                                        {"verdict", "left"},
                                        {"reason", "indirect-callee"},
                                        {"detail", "the callee is in a register"},
                                        {"notes", json::array()}}));
}

TEST_F(StatsFile, FileHoldsTheJson) {
  Stats stats;
  stats.module_seen(module_with_two_sites());
  stats.write((folder_ / "stats.json").string());
  EXPECT_EQ(json::parse(read_file(folder_ / "stats.json")), stats.to_json());
}

// Most often it is a slip of the pen, and nobody wants a new tree for that.
TEST_F(StatsFile, AMissingFolderIsSaid) {
  testing::internal::CaptureStderr();
  Stats().write((folder_ / "sub/stats.json").string());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("there is no folder " + (folder_ / "sub").string()));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "sub"));
}

TEST_F(StatsFile, ProcessIdTakesThePlaceOfPercentP) {
  Stats().write((folder_ / "s-%p.json").string());
  EXPECT_TRUE(std::filesystem::exists(folder_ / ("s-" + std::to_string(getpid()) + ".json")));
}

TEST_F(StatsFile, NamesThatAreNotUtf8DoNotCostTheReport) {
  Stats stats;
  stats.launch_redirected("\xff\xfe");
  stats.write((folder_ / "stats.json").string());
  EXPECT_TRUE(json::accept(read_file(folder_ / "stats.json")));
}

TEST_F(StatsFile, DashIsStandardError) {
  testing::internal::CaptureStderr();
  Stats().write("-");
  EXPECT_TRUE(json::accept(testing::internal::GetCapturedStderr()));
}

TEST_F(StatsFile, FileThatCannotBeWrittenIsOneWarning) {
  testing::internal::CaptureStderr();
  Stats().write(folder_.string());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex(
                  "klap: warning: KLAP_STATS: statistics not written: [^\n]*cannot create[^\n]*\n"));
}

}  // namespace
}  // namespace klap::runtime
