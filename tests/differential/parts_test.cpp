// Ranges in parts of other sizes than the usual, with neighbouring parts run as one, and loads that the
// caches need not keep.
#include <gtest/gtest.h>

#include "case.h"
#include "runs.h"

namespace klap::differential {
namespace {

struct Parts {
  const char* name;
  const char* file;
  const char* optimise;
};

class PartsOfRanges : public testing::TestWithParam<Parts> {};

TEST_P(PartsOfRanges, EqualTheReference) {
  if (!missing_emulator().empty()) GTEST_SKIP() << missing_emulator();
  Work work;
  work.configuration = chosen_configurations("grid-host").front();
  work.cases = case_names("ranges", GetParam().file);
  ASSERT_FALSE(work.cases.empty());
  work.last_seed = KLAP_FULL_TESTS ? KLAP_SEEDS : 2;
  work.variables = {{"KLAP_OPTIMISE", GetParam().optimise}};
  const Report report = differential::Run(work).wait();
  EXPECT_EQ("", report.problem(work)) << command_line(work) << "\n" << report.first_errors();
}

constexpr Parts kParts[] = {
    {"small", "ranges.ptx", "part_elements=32"},
    {"merged", "ranges.ptx", "merge_parts=on"},
    {"small_merged_streamed", "ranges.ptx", "part_elements=32,merge_parts=on,stream_loads=on,occupancy=all"},
    {"joined_small", "ranges_stored.ptx", "split_ranges=all,part_elements=32"},
    {"joined_small_merged", "ranges_stored.ptx",
     "split_ranges=all,part_elements=32,merge_parts=on,stream_loads=on"},
};

void PrintTo(const Parts& parts, std::ostream* out) { *out << parts.file << " with " << parts.optimise; }

std::string name_of(const testing::TestParamInfo<Parts>& parts) { return parts.param.name; }
INSTANTIATE_TEST_SUITE_P(Emulated, PartsOfRanges, testing::ValuesIn(kParts), name_of);

}  // namespace
}  // namespace klap::differential
