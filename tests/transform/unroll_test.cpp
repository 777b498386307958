// How many rounds of a child's loops stand in a row: as many as are asked for, or as suit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transform/aggregate/aggregate.h"

namespace klap::transform {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<uint32_t> factor(const std::vector<uint32_t>& loads, std::optional<uint32_t> iterations) {
  std::vector<analysis::StraightLoop> loops(loads.size());
  for (size_t i = 0; i < loads.size(); ++i) loops[i].loads = loads[i];
  ConsumerShape shape;
  unroll(shape, std::move(loops), iterations);
  std::vector<uint32_t> out;
  for (const UnrolledCopy& row : shape.loops) out.push_back(row.iterations);
  return out;
}

TEST(UnrolledCopy, AreFourOfShortRounds) {
  EXPECT_THAT(factor({1}, std::nullopt), ElementsAre(4));
  EXPECT_THAT(factor({12}, std::nullopt), ElementsAre(4));
}

TEST(UnrolledCopy, AreFewerWhereARoundLoadsMuch) {
  EXPECT_THAT(factor({13}, std::nullopt), ElementsAre(3));
  EXPECT_THAT(factor({24, 1}, std::nullopt), ElementsAre(2, 4));
  EXPECT_THAT(factor({25}, std::nullopt), IsEmpty());
  EXPECT_THAT(factor({60}, std::nullopt), IsEmpty());
}

TEST(UnrolledCopy, AreThoseAskedFor) {
  EXPECT_THAT(factor({1, 25}, 8), ElementsAre(8, 8));
  EXPECT_THAT(factor({1}, 1), IsEmpty());
  EXPECT_THAT(factor({}, 2), IsEmpty());
}

}  // namespace
}  // namespace klap::transform
