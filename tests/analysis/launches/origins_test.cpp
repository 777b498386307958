// Where values come from, including those of which nothing can be said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace klap::analysis {
namespace {

std::string origin(const std::string& body, const std::string& operand, const std::string& before = "") {
  const Parsed p(kernel(body, before));
  return print(origins_of(p.query(), operand), p.facts->function);
}

TEST(Origins, FollowCopies) {
  EXPECT_EQ("the constant 5", origin("", "5"));
  EXPECT_EQ("the constant 18446744073709551615", origin("mov.u64 %rd1, -1;\n", "%rd1"));
  EXPECT_EQ("the constant 5", origin("mov.u64 %rd1, 5;\nmov.b64 %rd2, %rd1;\n", "%rd2"));
  EXPECT_EQ("the address of table", origin("mov.u64 %rd1, table;\ncvta.global.u64 %rd2, %rd1;\n", "%rd2"));
  EXPECT_EQ("argument 1 of parent (8 bytes)", origin("ld.param.u64 %rd1, [p];\n", "%rd1"));
  EXPECT_EQ("argument 2 of parent (4 bytes)", origin("ld.param.u32 %r1, [n];\n", "%r1"));
  EXPECT_EQ("%tid.x", origin("mov.u32 %r1, %tid.x;\n", "%r1"));
}

TEST(Origins, GatherEveryDefinitionAndBothSidesOfASelection) {
  EXPECT_EQ("the constant 3 or the constant 4", origin("selp.b64 %rd1, 3, 4, %p1;\n", "%rd1"));
  EXPECT_EQ("the constant 3 or the constant 4",
            origin("mov.u64 %rd1, 3;\n@%p1 bra L;\nmov.u64 %rd1, 4;\nL:\n", "%rd1"));
  EXPECT_EQ("the constant 3 or the constant 4", origin("mov.u64 %rd1, 3;\n@%p1 mov.u64 %rd1, 4;\n", "%rd1"));
  EXPECT_EQ("the constant 3", origin("mov.u64 %rd1, 3;\n@%p1 mov.u64 %rd1, 3;\n", "%rd1"));
  // A copy around a loop ends.
  EXPECT_EQ("the constant 3",
            origin("mov.u64 %rd1, 3;\nL:\nmov.u64 %rd2, %rd1;\nmov.u64 %rd1, %rd2;\n@%p1 bra L;\n", "%rd1"));
}

TEST(Origins, NameWhatTheyDoNotFollow) {
  EXPECT_EQ("computed by add.s64 (line 11:1)", origin("add.s64 %rd1, %rd2, 8;\n", "%rd1"));
  EXPECT_EQ("loaded from global memory (line 11:1)", origin("ld.global.u64 %rd1, [%rd2];\n", "%rd1"));
  EXPECT_EQ("loaded from shared memory (line 11:1)", origin("ld.shared.u64 %rd1, [%rd2];\n", "%rd1"));
  EXPECT_EQ("loaded from generic memory (line 11:1)", origin("ld.u64 %rd1, [%rd2];\n", "%rd1"));
  EXPECT_EQ("loaded from param memory (line 11:1)", origin("ld.param.u64 %rd1, [%rd2];\n", "%rd1"));
  EXPECT_EQ("%rd1, which nothing writes", origin("", "%rd1"));
  const std::string call = "{\n.param .b64 ret;\ncall.uni (ret), F, ();\nld.param.b64 %rd1, [ret+0];\n}\n";
  const std::string declaration = ".extern .func (.param .b64 r) f();\n";
  EXPECT_EQ("the result of f (line 14:1)", origin(replaced(call, "F", "f"), "%rd1", declaration));
  EXPECT_EQ("the result of an indirect call (line 13:1)", origin(replaced(call, "F", "%rd9"), "%rd1"));
}

}  // namespace
}  // namespace klap::analysis
