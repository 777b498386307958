// Which blocks of one warp can share a block of the consumer, and what the remark says of the others. The
// forms that golden files do not have are here.
#include "analysis/legality/warp_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ptx/tree.h"

namespace klap::analysis {
namespace {

using testing::HasSubstr;

// What is said of a kernel with that body, in a module with those declarations in front of it.
std::string why_not(const std::string& declarations, const std::string& body) {
  const ptx::Module module = ptx::parse(".version 8.0\n.target sm_90\n.address_size 64\n" + declarations +
                                            "\n.visible .entry child()\n{\n" + body + "\nret;\n}\n",
                                        "fixture");
  return judge_warp_block(module, *module.find_function("child"), {32, 1, 1}).why_not;
}

TEST(WarpBlock, TakesVariablesAndPlainBarriersOfItsOwn) {
  EXPECT_EQ("", why_not("", ".reg .b32 %r<2>;\n.shared .align 4 .b8 s[128];\nmov.u32 %r1, s;\nbar.sync 0;"));
}

// nvcc declares the variables of inlined functions there.
TEST(WarpBlock, TakesVariablesOfTheUnit) {
  EXPECT_EQ("",
            why_not(".weak .shared .align 4 .b8 s[128];", ".reg .b32 %r<2>;\nmov.u32 %r1, s;\nbar.sync 0;"));
}

TEST(WarpBlock, SaysWhatItDoesNotKnow) {
  EXPECT_THAT(
      why_not(".extern .shared .align 4 .b8 s[];", ".reg .b32 %r<2>;\nld.shared.u32 %r1, [s];\nbar.sync 0;"),
      testing::AnyOf(HasSubstr("s is declared outside the child in another form"), HasSubstr("(line")));
  EXPECT_THAT(why_not(".shared .v4 .f32 s;", ".reg .b32 %r<2>;\nmov.u32 %r1, s;\nbar.sync 0;"),
              HasSubstr("s is declared outside the child in another form"));
  EXPECT_THAT(why_not("", ".reg .b32 %r<2>;\n.shared .align 4 .b8 s[128];\nadd.u32 %r1, s, 4;\nbar.sync 0;"),
              HasSubstr("s is used in another form"));
  EXPECT_THAT(
      why_not(".func f()\n{\n.reg .b32 %r<2>;\n.shared .align 4 .b8 t[4];\nmov.u32 %r1, t;\nret;\n}\n",
              "call.uni f, ();"),
      HasSubstr("in a called function"));
}

}  // namespace
}  // namespace klap::analysis
