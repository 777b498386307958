// How many rounds of a child's loops stand in a row: as many as are asked for, or as suit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transform/aggregate/aggregate.h"

namespace klap::transform {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<uint32_t> in_row(const std::vector<uint32_t>& loads, std::optional<uint32_t> rounds) {
  std::vector<analysis::StraightLoop> loops(loads.size());
  for (size_t i = 0; i < loads.size(); ++i) loops[i].loads = loads[i];
  ConsumerShape shape;
  unroll(shape, std::move(loops), rounds);
  std::vector<uint32_t> out;
  for (const RoundsInRow& row : shape.loops) out.push_back(row.rounds);
  return out;
}

TEST(RoundsInRow, AreFourOfShortRounds) {
  EXPECT_THAT(in_row({1}, std::nullopt), ElementsAre(4));
  EXPECT_THAT(in_row({12}, std::nullopt), ElementsAre(4));
}

TEST(RoundsInRow, AreFewerWhereARoundLoadsMuch) {
  EXPECT_THAT(in_row({13}, std::nullopt), ElementsAre(3));
  EXPECT_THAT(in_row({24, 1}, std::nullopt), ElementsAre(2, 4));
  EXPECT_THAT(in_row({25}, std::nullopt), IsEmpty());
  EXPECT_THAT(in_row({60}, std::nullopt), IsEmpty());
}

TEST(RoundsInRow, AreThoseAskedFor) {
  EXPECT_THAT(in_row({1, 25}, 8), ElementsAre(8, 8));
  EXPECT_THAT(in_row({1}, 1), IsEmpty());
  EXPECT_THAT(in_row({}, 2), IsEmpty());
}

}  // namespace
}  // namespace klap::transform
