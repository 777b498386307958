// How often kernels allocate where warps take memory together, and how much of the heap they do not give
// back, counted by the emulated device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

using Variables = std::map<std::string, std::string>;

// Runs of the cases under some seeds, all of which are right.
std::vector<Line> right_runs(const std::string& configuration, const std::vector<std::string>& names,
                             const Variables& variables, uint64_t seeds = 4) {
  Work work;
  work.configuration = chosen_configurations(configuration).front();
  work.cases = names;
  work.last_seed = seeds;
  work.variables = variables;
  const Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work) << "\n" << report.first_errors();
  return report.lines;
}

// The fewest allocations of a run of the case.
uint64_t fewest_allocations(const std::string& configuration, const std::string& name,
                            const Variables& variables = {}) {
  const std::vector<Line> runs = right_runs(configuration, {name}, variables);
  const auto fewest = std::ranges::min_element(runs, {}, &Line::heap_allocations);
  return fewest == runs.end() ? 0 : fewest->heap_allocations;
}

class AggregatedMemory : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  }
};

constexpr uint64_t kTaken = 96;  // by the threads of these cases

TEST_P(AggregatedMemory, IsOneAllocationAWarp) {
  EXPECT_EQ(kTaken, fewest_allocations("native", "memory_shuffled"));
  EXPECT_EQ(kTaken / 32,
            fewest_allocations(GetParam(), "memory_shuffled", {{"KLAP_AGGREGATE_MALLOC", "warp"}}));
  // Blocks of a warp and a half.
  for (const char* name : {"memory_freed_by_pieces", "memory_of_runtime"})
    EXPECT_EQ(kTaken / 24, fewest_allocations(GetParam(), name, {{"KLAP_AGGREGATE_MALLOC", "warp"}})) << name;
}

// Lanes that cannot have anything do not take it from the others.
TEST_P(AggregatedMemory, IsSharedBesideSizesThatNobodyHas) {
  EXPECT_EQ(kTaken / 4, fewest_allocations("native", "memory_of_odd_sizes"));
  EXPECT_EQ(kTaken / 32,
            fewest_allocations(GetParam(), "memory_of_odd_sizes", {{"KLAP_AGGREGATE_MALLOC", "warp"}}));
}

// The emulated heap gives nothing for nothing, so there is nothing behind which a header could stand.
TEST_P(AggregatedMemory, OfNoSizeIsWhatTheDeviceSays) {
  for (const char* configuration : {"native", GetParam()})
    EXPECT_EQ(0U,
              fewest_allocations(configuration, "memory_of_no_size", {{"KLAP_AGGREGATE_MALLOC", "warp"}}));
}

TEST_P(AggregatedMemory, IsOffUntilSomebodyAsks) {
  // Empty is as good as not set, but for klap_case, which would set what the case is made for.
  EXPECT_EQ(kTaken,
            fewest_allocations(GetParam(), "memory_freed_by_pieces", {{"KLAP_AGGREGATE_MALLOC", ""}}));
  EXPECT_EQ(kTaken,
            fewest_allocations(GetParam(), "memory_freed_by_pieces", {{"KLAP_AGGREGATE_MALLOC", "off"}}));
}

const Variables kInChunks = {{"KLAP_AGGREGATE_MALLOC", "chunks"}, {"KLAP_ORDERING", "relaxed"}};

// Six times warps of 24 lanes on average.
TEST_P(AggregatedMemory, IsFewerAllocationsInChunks) {
  const uint64_t natively = fewest_allocations("native", "chunks_exchanged");
  EXPECT_EQ(6 * kTaken, natively);
  EXPECT_GT(natively / 24 / 2, fewest_allocations(GetParam(), "chunks_exchanged", kInChunks));
}

// Neither pieces nor chunks are lost, and no chunk stays open without a piece. The cases for allocations by
// warp are right with chunks, too.
TEST_P(AggregatedMemory, IsAllGivenBack) {
  std::vector<std::string> names = case_names("chunks_");
  std::erase(names, "chunks_kept");
  std::ranges::copy(case_names("", find_case("memory_shuffled")->file), std::back_inserter(names));
  ASSERT_LT(15U, names.size());
  for (const Line& run : right_runs(GetParam(), names, kInChunks, KLAP_FULL_TESTS ? 20 : 3))
    EXPECT_EQ(0U, run.heap_kept) << run.name << " with seed " << run.seed;
}

// A shuffle orders nothing, so the lane that frees the last piece may see older values of what it loads.
TEST(MemoryInChunks, IsGivenBackWhereOnlyThePointerIsShuffled) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  for (const Line& run : right_runs("grid-fused", {"memory_shuffled"}, kInChunks, 200))
    EXPECT_EQ(0U, run.heap_kept) << "with seed " << run.seed;
}

TEST_P(AggregatedMemory, IsKeptWhereNobodyFreesIt) {
  for (const char* configuration : {"native", GetParam()}) {
    for (const Line& run : right_runs(configuration, {"chunks_kept"}, kInChunks))
      EXPECT_LT(kTaken * 16, run.heap_kept) << configuration << " with seed " << run.seed;
  }
}

std::string memory_test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Emulated, AggregatedMemory,
                         testing::Values("grid-host", "grid-device", "block-device", "multiblock2-device",
                                         "warp-device"),
                         memory_test_name);

}  // namespace
}  // namespace klap::differential
