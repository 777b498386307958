// How often kernels allocate where the lanes of a warp take memory together, counted by the emulated device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

// The fewest allocations of a run of the case under some seeds.
uint64_t fewest_allocations(const std::string& configuration, const std::string& name,
                            const std::map<std::string, std::string>& variables = {}) {
  Work work;
  work.configuration = chosen_configurations(configuration).front();
  work.cases = {name};
  work.last_seed = 4;
  work.variables = variables;
  const Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work) << "\n" << report.first_errors();
  const auto fewest = std::ranges::min_element(report.lines, {}, &Line::heap_allocations);
  return fewest == report.lines.end() ? 0 : fewest->heap_allocations;
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
