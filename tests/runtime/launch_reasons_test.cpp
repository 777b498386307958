// The reasons for which a launch runs the original.
#include "runtime/launch_reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace klap::runtime {
namespace {

TEST(LaunchReasons, HaveDistinctNamesAndMeanings) {
  std::set<std::string> names;
  for (const LaunchReason& reason : launch_reasons()) {
    EXPECT_TRUE(names.insert(reason.name).second) << reason.name;
    EXPECT_STRNE(reason.meaning, "");
  }
  EXPECT_THAT(names, testing::Contains(reasons::kStreamCapture.name));
}

}  // namespace
}  // namespace klap::runtime
