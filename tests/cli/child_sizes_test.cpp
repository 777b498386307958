// The sizes of children as klap-ptx tune reads and tells them.
#include "klap_ptx/tune/child_sizes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace klap::tool {
namespace {

using nlohmann::json;

std::vector<ChildSizes> sizes_of(const char* bins) {
  return child_sizes(json::parse(std::string(R"({"child_sizes": [{"parent": "p", "child": "_Z5childPi",
      "counted": "blocks of 64 threads", "sizes": )") +
                                 bins + "}]}"));
}

TEST(ChildSizes, AreTold) {
  const auto sizes = sizes_of(R"([{"up_to": 1, "children": 50}, {"up_to": 3, "children": 39},
                                  {"up_to": 7, "children": 2}, {"up_to": 127, "children": 9}])");
  ASSERT_EQ(sizes.size(), 1);
  EXPECT_EQ(sizes[0].parent, "p");
  EXPECT_EQ(
      to_string(sizes[0]),
      "100 launches of child(int*): half have up to 1 blocks of 64 threads, nine of ten up to 7, the largest "
      "up to 127");
}

TEST(ChildSizes, OfTheLastBinHaveNoEnd) {
  const auto sizes = sizes_of(R"([{"up_to": 1, "children": 1}, {"up_to": null, "children": 5}])");
  EXPECT_EQ(
      to_string(sizes[0]),
      "6 launches of child(int*): half have 65536 or more blocks of 64 threads, nine of ten 65536 or more, "
      "the largest 65536 or more");
}

TEST(ChildSizes, OfChildrenThatWereNeverLaunchedAreLeftOut) {
  EXPECT_TRUE(sizes_of("[]").empty());
  EXPECT_TRUE(child_sizes(json::object()).empty());
  EXPECT_TRUE(child_sizes(json{{"child_sizes", nullptr}}).empty());
}

}  // namespace
}  // namespace klap::tool
