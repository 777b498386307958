#include "analysis/launches/pointer_arguments.h"

#include <gtest/gtest.h>

#include "kernel.h"

namespace klap::test {
namespace {

// "0..4 8..16", or "lost".
std::string reach(const std::string& body, size_t parameter = 0) {
  const ptx::Module module = ptx::parse(
      ".version 9.0\n.target sm_90\n.address_size 64\n.func f(.param .b64 a, .param .b64 b) {\n"
      ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\nld.param.u64 %rd1, [a];\n" +
          body + "\nret;\n}\n",
      "test");
  const auto found = analysis::reach_of_argument(module, "f", parameter);
  if (!found) return "lost";
  std::string text;
  for (const analysis::Reach& r : *found)
    text += (text.empty() ? "" : " ") + std::to_string(r.first) + ".." + std::to_string(r.last);
  return text;
}

TEST(PassedAddress, ReachesWhatIsAccessed) {
  EXPECT_EQ("", reach(""));
  EXPECT_EQ("", reach("ld.param.u64 %rd2, [b]; st.u32 [%rd2], 1;")) << "another parameter's";
  EXPECT_EQ("0..4", reach("st.u32 [%rd1], 1;"));
  EXPECT_EQ("8..24", reach("ld.v2.u64 {%rd2, %rd3}, [%rd1+8];"));
  EXPECT_EQ("-4..0", reach("atom.add.u32 %r1, [%rd1+-4], 1;"));
  EXPECT_EQ("0..4", reach("red.add.u32 [%rd1], 1;"));
  EXPECT_EQ("12..13", reach("add.s64 %rd2, %rd1, 8; mov.u64 %rd3, %rd2; st.u8 [%rd3+4], %r1;"));
  EXPECT_EQ("0..4", reach("cvta.to.local.u64 %rd2, %rd1; st.local.u32 [%rd2], 1;"));
  EXPECT_EQ("0..4", reach("setp.eq.s64 %p1, %rd1, 0;\n@%p1 st.u32 [%rd1], 1;"));
}

TEST(PassedAddress, IsLostWhereItGoesElsewhere) {
  EXPECT_EQ("lost", reach("st.u64 [%rd1], %rd1;"));
  EXPECT_EQ("lost", reach("ld.param.u64 %rd2, [b]; st.u64 [%rd2], %rd1;"));
  EXPECT_EQ("lost", reach("cvt.u64.u32 %rd3, %r1; add.s64 %rd2, %rd1, %rd3; st.u32 [%rd2], 1;"));
  EXPECT_EQ("lost", reach("L: st.u32 [%rd1], 1; add.s64 %rd1, %rd1, 4; bra L;"));
  EXPECT_EQ("lost", reach("mov.u64 %rd2, %rd1;\nL: st.u32 [%rd2], 1; add.s64 %rd2, %rd2, 4; bra L;"));
  EXPECT_EQ("lost", reach("mul.lo.s64 %rd2, %rd1, 2;"));
  EXPECT_EQ("lost", reach("selp.b64 %rd2, %rd1, %rd3, %p1;"));
  EXPECT_EQ("lost", reach("mov.b64 {%r1, %r2}, %rd1;"));
  EXPECT_EQ("lost", reach("{ .param .b64 x; st.param.b64 [x], %rd1; call f, (x, x); }"));
  EXPECT_EQ("lost", reach("mov.u64 %rd2, a;")) << "where the parameter is";
  EXPECT_EQ("lost", reach("ld.param.u32 %r1, [a+4];")) << "a part of it";
  EXPECT_EQ("lost", reach("", 2)) << "no such parameter";
}

TEST(PassedAddress, OfTheDeviceRuntime) {
  const ptx::Module module = ptx::parse(
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".extern .func (.param .b32 r) g(.param .b64 a);\n",
      "test");
  const auto allocated = analysis::reach_of_argument(module, "__cudaCDP2Malloc", 0);
  ASSERT_TRUE(allocated && allocated->size() == 1);
  EXPECT_EQ(0, allocated->front().first);
  EXPECT_EQ(8, allocated->front().last);
  EXPECT_FALSE(analysis::reach_of_argument(module, "__cudaCDP2Malloc", 1));
  EXPECT_FALSE(analysis::reach_of_argument(module, "__cudaCDP2Free", 0));
  EXPECT_FALSE(analysis::reach_of_argument(module, "__cudaCDP2GetDevice", 0));
  EXPECT_FALSE(analysis::reach_of_argument(module, "g", 0)) << "defined elsewhere";
}

}  // namespace
}  // namespace klap::test
