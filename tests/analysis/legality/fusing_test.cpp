// Which parents can be their own consumers, and in which of them blocks may have more threads than the
// program asked for.
#include "analysis/optimise/fusing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ptx/tree.h"

namespace klap::analysis {
namespace {

using testing::HasSubstr;

constexpr char kHead[] = ".version 8.0\n.target sm_90\n.address_size 64\n";
constexpr char kPlain[] = ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n";

ptx::Module module_of(const std::string& declarations, const std::string& parent, const std::string& child,
                      const std::string& attributes = "") {
  return ptx::parse(kHead + declarations + "\n.visible .entry child(.param .u64 q)\n{\n" + kPlain + child +
                        "\nret;\n}\n.visible .entry parent(.param .u64 p)\n" + attributes + "\n{\n" + kPlain +
                        parent + "\nret;\n}\n",
                    "fixture");
}

// What stands against a parent with that body and children with the other one; empty if nothing does.
std::string why_not_one(const std::string& parent, const std::string& child = "", uint32_t shared_bytes = 0,
                        const std::string& declarations = "") {
  const ptx::Module module = module_of(declarations, parent, child);
  const FunctionFacts facts(module, *module.find_function("parent"));
  return why_not_fused(facts, {{*module.find_function("child"), shared_bytes}}).value_or("");
}

// Of what a parent with that body may have more: "threads", "blocks", both, or nothing.
std::string more(const std::string& parent, const std::string& attributes = "",
                 const std::string& declarations = "") {
  const ptx::Module module = module_of(declarations, parent, "", attributes);
  const MoreThanAsked may = may_have_more(FunctionFacts(module, *module.find_function("parent")));
  return std::string(may.threads ? "threads" : "") + (may.threads && may.blocks ? " and " : "") +
         (may.blocks ? "blocks" : "");
}

constexpr char kGuard[] = "mov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 40;\n@%p1 ret;\n";

TEST(Fusing, TakesParentsWhoseThreadsEndEarly) {
  EXPECT_EQ("", why_not_one(""));
  EXPECT_EQ("", why_not_one(kGuard));
  EXPECT_EQ("", why_not_one("bar.sync 0;"));
  EXPECT_EQ("", why_not_one("bar.sync 0;\n" + std::string(kGuard))) << "the barrier is over by then";
}

TEST(Fusing, LeavesParentsInWhichOthersHaveStillToMeet) {
  EXPECT_THAT(why_not_one(kGuard + std::string("bar.sync 0;")), HasSubstr("while others have still to meet"));
  EXPECT_THAT(why_not_one(kGuard + std::string("bar.warp.sync 0xffffffff;")), HasSubstr("still to meet"));
  EXPECT_THAT(why_not_one("bar.sync 1, 64;"), HasSubstr("cannot be told"));
  EXPECT_THAT(why_not_one("call.uni f, ();", "", 0, ".func f()\n{\nexit;\n}\n"), HasSubstr("may exit"));
}

TEST(Fusing, LeavesReadsThatAreNotCoherent) {
  constexpr char kRead[] = "ld.param.u64 %rd1, [q];\nld.global.nc.u32 %r1, [%rd1];\n";
  EXPECT_EQ("", why_not_one("", kRead)) << "it is rewritten";
  EXPECT_THAT(why_not_one("", "call.uni f, ();", 0,
                          ".func f()\n{\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\nld.global.nc.u32 %r1, "
                          "[%rd1];\nret;\n}\n"),
              HasSubstr("in a way that is not coherent"));
  EXPECT_THAT(why_not_one("", "tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];"),
              HasSubstr("not coherent"));
  EXPECT_THAT(why_not_one("tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];"), HasSubstr("it has tex"));
  EXPECT_THAT(why_not_one("griddepcontrol.wait;"), HasSubstr("not known"));
}

TEST(Fusing, LeavesWhatDoesNotFit) {
  constexpr char kShared[] =
      ".shared .align 4 .b8 %s[30000];\nmov.u32 %%r1, %s;\nst.shared.u32 [%%r1], %%r2;";
  const auto with = [&](const char* name) {
    char text[256];
    std::snprintf(text, sizeof text, kShared, name, name);
    return std::string(text);
  };
  EXPECT_EQ("", why_not_one(with("a")));
  EXPECT_EQ("", why_not_one(with("a"), "", 19000));
  EXPECT_THAT(why_not_one(with("a"), "", 20000), HasSubstr("bytes of shared memory"));
  EXPECT_THAT(why_not_one(with("a"), with("b")), HasSubstr("bytes of shared memory"));
  EXPECT_EQ("", why_not_one("mov.u32 %r1, %dynamic_smem_size;"));
  EXPECT_THAT(why_not_one("mov.u32 %r1, %dynamic_smem_size;", "", 16),
              HasSubstr("asks how much shared memory"));
  EXPECT_THAT(why_not_one("mov.u32 %r1, %total_smem_size;"), HasSubstr("asks how much shared memory"))
      << "the children's variables are a part of it";
  EXPECT_THAT(why_not_one("", "mov.u32 %r1, %total_smem_size;", 16),
              HasSubstr("asks how much shared memory"));
  EXPECT_THAT(why_not_one("", "mov.u32 %r1, %dynamic_smem_size;"), HasSubstr("asks how much shared memory"))
      << "the parent may have some";
}

TEST(Fusing, GrowsWhereNobodyNotices) {
  constexpr char kBoth[] = "threads and blocks";
  EXPECT_EQ(kBoth, more(kGuard));
  EXPECT_EQ(kBoth, more("mov.u32 %r1, %ntid.x;\nmov.u32 %r2, %ntid.y;\ncvt.u64.u32 %rd1, %ntid.z;"));
  EXPECT_EQ(kBoth, more("mov.u32 %r1, %nctaid.x;\nmov.u32 %r2, %nctaid.y;\nmov.u32 %r3, %nctaid.z;"));
  EXPECT_EQ("blocks", more("bar.sync 0;"));
  EXPECT_EQ("blocks", more("bar.warp.sync 0xffffffff;"));
  EXPECT_EQ("blocks", more("add.u32 %r1, %r2, %ntid.y;")) << "it reads the rows in another form";
  EXPECT_EQ("threads", more("add.u32 %r1, %r2, %nctaid.z;"));
  EXPECT_EQ("", more("mov.u32 %r1, %nwarpid;"));
  EXPECT_EQ("blocks", more("", ".reqntid 32, 1, 1"));
  EXPECT_EQ(kBoth, more("", ".maxntid 32, 1, 1")) << "the driver says what is too large";
  const auto called = [](const std::string& name) {
    return ".func f()\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, " + name + ";\nret;\n}\n";
  };
  EXPECT_EQ("blocks", more("call.uni f, ();", "", called("%ntid.y")));
  EXPECT_EQ("threads", more("call.uni f, ();", "", called("%nctaid.x")));
  EXPECT_EQ(kBoth, more("call.uni f, ();", "", called("%tid.y")));
}

}  // namespace
}  // namespace klap::analysis
