// Which functions have lanes that may not go on together, and what becomes of the templates' masks there.
#include "transform/text/lanes_apart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assembling.h"
#include "ptx/tree.h"

namespace klap::transform {
namespace {

using testing::HasSubstr;

const std::string kFront = ".version 8.0\n.target sm_80\n.address_size 64\n";

// A kernel with this body, in which a template's lanes come together and the program's own do.
std::string entry(const std::string& name, const std::string& body) {
  return ".visible .entry " + name +
         "(.param .u64 p)\n{\n.reg .pred %p<3>;\n.reg .b32 %r<4>;\nmov.u32 %r1, %tid.x;\n"
         "setp.eq.u32 %p1, %r1, 1;\n" +
         body + "ret;\n}\n";
}
const std::string kTemplateLanes =
    "{ .reg .b32 %klap_r__lanes_together; activemask.b32 %klap_r__lanes_together; mov.b32 %r2, "
    "%klap_r__lanes_together; }\n";
const std::string kOwnLanes = "activemask.b32 %r3;\n";
const std::string kOneWayIn = "$top:\n" + kTemplateLanes + kOwnLanes + "@%p1 bra $top;\n";
const std::string kTwoWaysIn = "@%p1 bra $middle;\n$top:\n" + kTemplateLanes + "$middle:\n" + kOwnLanes +
                               "setp.lt.u32 %p2, %r3, %r2;\n@%p2 bra $top;\n";

std::string changed_by_it(const std::string& text) { return with_lanes_apart(text, "unit"); }

TEST(LanesApart, AreInLoopsWithSeveralWaysIn) {
  EXPECT_FALSE(may_go_apart(ptx::parse(kFront + entry("k", kOneWayIn), "unit")));
  EXPECT_TRUE(may_go_apart(ptx::parse(kFront + entry("k", kTwoWaysIn), "unit")));
}

TEST(LanesApart, WorkWithAllOrAlone) {
  const std::string text = changed_by_it(kFront + entry("k", kTwoWaysIn));
  EXPECT_THAT(text, HasSubstr("setp.eq.u32 %klap_all, %klap_r__lanes_together, 0xffffffff;"));
  EXPECT_THAT(text,
              HasSubstr("selp.b32 %klap_r__lanes_together, %klap_r__lanes_together, %klap_own, %klap_all;"));
  expect_assembles(text);
}

TEST(LanesApart, AreThoseOfTemplatesAlone) {
  EXPECT_THAT(changed_by_it(kFront + entry("k", kTwoWaysIn)), HasSubstr(kOwnLanes));
}

TEST(LanesApart, LeaveOtherFunctionsAsTheyAre) {
  const std::string other = entry("other", kOneWayIn);
  EXPECT_EQ(changed_by_it(kFront + other), kFront + other);
  EXPECT_THAT(changed_by_it(kFront + other + entry("k", kTwoWaysIn)), HasSubstr(other));
}

}  // namespace
}  // namespace klap::transform
