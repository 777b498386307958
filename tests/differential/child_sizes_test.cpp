// The sizes of children in the statistics are those that the parents launched (KLAP_SIZES).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <string_view>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

using nlohmann::json;

Report run_with_sizes(const std::string& name, const std::string& optimise, const std::string& pool = "1G") {
  Work work;
  work.configuration = chosen_configurations("grid-host").front();
  work.cases = {name};
  work.variables = {{"KLAP_SIZES", "1"},
                    {"KLAP_OPTIMISE", optimise},
                    {"KLAP_POOL_BYTES", pool},
                    {"KLAP_ORDERING", "relaxed"}};
  Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work);
  return report;
}

// The bins that children of these sizes fall into, as they stand in the statistics.
template <class SizeOf>
json bins(int launches, int children, const SizeOf& size_of) {
  std::map<int, uint64_t> counts;
  for (int i = 0; i < children; ++i)
    if (const unsigned size = size_of(i)) counts[std::bit_width(size)] += launches;
  json out = json::array();
  for (const auto& [bits, count] : counts) out.push_back({{"up_to", (1 << bits) - 1}, {"children", count}});
  return out;
}

int threads_of(int child) { return child * 7 % 71; }  // as in cases/simple.cu
constexpr int kLaunches = 3, kChildren = 200;

TEST(ChildSizes, AreThreadsOfFlatChildren) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const json sizes = run_with_sizes("simple", "+flatten").statistics.at("child_sizes");
  ASSERT_EQ(sizes.size(), 1);
  EXPECT_EQ(sizes[0]["parent"], "simple_parent");
  EXPECT_EQ(sizes[0]["counted"], "threads");
  EXPECT_EQ(sizes[0]["sizes"], bins(kLaunches, kChildren, threads_of));
}

TEST(ChildSizes, AreBlocksOfOthers) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const json sizes = run_with_sizes("simple", "-flatten").statistics.at("child_sizes");
  ASSERT_EQ(sizes.size(), 1);
  EXPECT_EQ(sizes[0]["counted"], "blocks of 32 threads");
  EXPECT_EQ(sizes[0]["sizes"], bins(kLaunches, kChildren, [](int i) { return (threads_of(i) + 31) / 32; }));
}

TEST(ChildSizes, AreCountedSliceBySlice) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const Report report = run_with_sizes("simple", "+flatten", "4K");
  EXPECT_FALSE(report.statistics.at("launches").at("sliced").empty());
  EXPECT_EQ(report.statistics.at("child_sizes")[0]["sizes"], bins(kLaunches, kChildren, threads_of));
}

// The parent's own kernel runs them in some launches, and a consumer in the others.
TEST(ChildSizes, AreCountedInBothFormsOfLaunches) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const char* const launcher : {"host", "auto", "fused"}) {
    Work work;
    work.configuration = chosen_configurations("grid-host").front();
    work.cases = {"changing_counts"};
    work.variables = {{"KLAP_SIZES", "1"}, {"KLAP_LAUNCHER", launcher}, {"KLAP_GUARD", "off"}};
    const Report report = differential::Run(work).wait();
    EXPECT_EQ("", report.problem(work)) << command_line(work);
    EXPECT_EQ(launcher == std::string_view("host"), report.statistics.at("launches").at("fused").empty());
    const json sizes = report.statistics.at("child_sizes");
    ASSERT_EQ(1, sizes.size()) << launcher;
    EXPECT_EQ(2 * 25 * 40 + 25 * 1200, sizes[0]["sizes"][0]["children"]) << launcher;
  }
}

TEST(ChildSizes, OfTheLargestHaveNoUpperEnd) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  const json sizes = run_with_sizes("arguments_of_big_children", "-flatten").statistics.at("child_sizes");
  ASSERT_FALSE(sizes.empty());
  EXPECT_EQ(sizes[0]["sizes"].back()["up_to"], nullptr);
  EXPECT_GE(sizes[0]["sizes"].back()["children"], 1);
}

TEST(ChildSizes, AreNotCountedUnlessAskedFor) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  Work work;
  work.configuration = chosen_configurations("grid-host").front();
  work.cases = {"simple"};
  const Report report = differential::Run(work).wait();
  EXPECT_EQ(report.statistics.at("child_sizes"), nullptr);
}

}  // namespace
}  // namespace klap::differential
