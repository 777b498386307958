// Whether the parameters of a kernel alone decide how many launches it leads to.
#include "analysis/counts/fixed_launches.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launches.h"

namespace klap::test {
namespace {

using analysis::FunctionFacts;

// The child launches what `grandchild` is the text of.
bool is_fixed(const std::string& launches, const std::string& grandchild = "") {
  const Kernel parent(text_of({.child = grandchild, .launches = launches}), "parent");
  const FunctionFacts child(parent.module, *parent.module.find_function("child"));
  return analysis::has_fixed_launches(*parent.facts, [&](const FunctionFacts& from) {
    return std::vector<const FunctionFacts*>(from.sites.size(), &child);
  });
}
bool is_fixed_if(const std::string& condition) {
  return is_fixed(condition + "\n@%p1 bra END;\n" + launch() + "END:\n");
}
// As often as %r9 says, which `count` computes.
bool is_fixed_times(const std::string& count) {
  return is_fixed(count + "\nmov.u32 %r8, 0;\nL:\n" + launch() +
                  "add.s32 %r8, %r8, 1;\nsetp.lt.s32 %p1, %r8, %r9;\n@%p1 bra L;\n");
}

TEST(FixedLaunches, DependOnParametersAndPlaces) {
  EXPECT_TRUE(is_fixed(launch()));
  EXPECT_TRUE(is_fixed_if("setp.gt.s32 %p1, %r1, %r3;")) << "%tid and a parameter";
  EXPECT_TRUE(is_fixed_if("mad.lo.s32 %r9, %r2, 32, %r1; setp.gt.s32 %p1, %r9, %r3;"));
  EXPECT_TRUE(is_fixed_times("mov.u32 %r9, %r3;"));
  EXPECT_TRUE(is_fixed_times("mov.u32 %r9, %ntid.x;"));
}

TEST(FixedLaunches, DoNotDependOnAnythingElse) {
  EXPECT_FALSE(is_fixed_if("ld.global.u32 %r9, [%rd1]; setp.gt.s32 %p1, %r9, 0;"));
  EXPECT_FALSE(is_fixed_if("ld.const.u32 %r9, [table]; setp.gt.s32 %p1, %r9, 0;")) << "the host may write it";
  EXPECT_FALSE(is_fixed_if("atom.global.add.u32 %r9, [%rd1], 1; setp.gt.s32 %p1, %r9, 0;"));
  EXPECT_FALSE(is_fixed_if("mov.u32 %r9, %clock; setp.gt.s32 %p1, %r9, 0;"));
  EXPECT_FALSE(is_fixed_if("mov.u32 %r9, %smid; setp.gt.s32 %p1, %r9, 0;"));
  EXPECT_FALSE(is_fixed_if("vote.sync.any.pred %p1, %p2, 0xffffffff;"));
  EXPECT_FALSE(is_fixed_times("ld.global.u32 %r9, [%rd1];"));
}

TEST(FixedLaunches, SeeWhatConditionsDecide) {
  const std::string load = "ld.global.u32 %r9, [%rd1]; setp.gt.s32 %p2, %r9, 0;\n";
  EXPECT_FALSE(is_fixed_if(load + "@%p2 bra M;\nmov.u32 %r10, 1;\nbra N;\nM:\nmov.u32 %r10, 0;\nN:\n"
                                  "setp.gt.s32 %p1, %r10, 0;"))
      << "written on either side of an open branch";
  EXPECT_FALSE(is_fixed_if(load + "mov.u32 %r10, 0;\n@%p2 mov.u32 %r10, 1;\nsetp.gt.s32 %p1, %r10, 0;"));
  EXPECT_FALSE(is_fixed_if(load + "selp.b32 %r10, 1, 0, %p2; setp.gt.s32 %p1, %r10, 0;"));
  EXPECT_FALSE(is_fixed(load + "@%p2 exit;\n" + launch())) << "some threads leave before";
  EXPECT_FALSE(is_fixed(load + "@%p2 bra L;\nmov.u32 %r11, 5;\nL:\n@%p2 bra M;\n" + launch() + "M:\n"));
  // An open condition that decides something else is in no one's way.
  EXPECT_TRUE(is_fixed(load + "@%p2 bra M;\nst.global.u32 [%rd1], 7;\nM:\n" + launch()));
}

// Calls a function that gets `operands` as words of 4 bytes behind the address in %rd9. %r9 is its error.
std::string call(const std::string& function, const std::vector<std::string>& operands = {}) {
  std::string text = "{\n.param .b64 param0;\nst.param.b64 [param0+0], %rd9;\n", names = "param0";
  for (size_t i = 1; i <= operands.size(); ++i) {
    const std::string name = "param" + std::to_string(i);
    text += ".param .b32 " + name + ";\nst.param.b32 [" + name + "+0], " + operands[i - 1] + ";\n";
    names += ", " + name;
  }
  return text + ".param .b32 retval0;\ncall.uni (retval0), " + function + ", (" + names +
         ");\nld.param.b32 %r9, [retval0+0];\n}\n";
}
constexpr char kAskForError[] =
    "{\n.param .b32 retval0;\ncall.uni (retval0), __cudaCDP2PeekAtLastError, ();\n"
    "ld.param.b32 %r9, [retval0+0];\n}\n";
constexpr char kLocal[] = ".local .align 4 .b8 place[8];\nmov.u64 %rd8, place;\ncvta.local.u64 %rd9, %rd8;\n";
constexpr char kOpen[] = "ld.global.u32 %r10, [%rd1];\n";
constexpr char kIfNone[] = "setp.ne.s32 %p1, %r9, 0;\n@%p1 bra END;\n";

TEST(FixedLaunches, KnowWhichCallsFail) {
  const std::string second = kAskForError + (kIfNone + launch("1")) + "END:\n";
  EXPECT_TRUE(is_fixed(launch() + second));
  const std::string open_grid =
      std::regex_replace(launch(), std::regex(R"(\[param1\+0\], 1)"), "[param1+0], %r10");
  EXPECT_FALSE(is_fixed(kOpen + open_grid + second)) << "a grid may be empty";
  EXPECT_TRUE(is_fixed(kOpen + open_grid)) << "though nothing comes of it";
  EXPECT_FALSE(is_fixed("mov.u64 %rd9, 64;\n" + call("malloc") + launch() + second)) << "another call";
}

TEST(FixedLaunches, KnowWhatCallsAnswer) {
  const std::string device = kLocal + call("__cudaCDP2GetDevice");
  const std::string branch = kIfNone + launch() + "END:\n";
  EXPECT_TRUE(is_fixed(device + branch)) << "its error";
  EXPECT_TRUE(is_fixed(device + "ld.local.u32 %r9, [%rd8];\n" + branch)) << "its answer";
  const auto attribute = [&](const std::string& which) {
    return kLocal + call("__cudaCDP2DeviceGetAttribute", {which, "0"}) + "ld.local.u32 %r9, [%rd8];\n" +
           branch;
  };
  EXPECT_TRUE(is_fixed(attribute("16")));
  EXPECT_TRUE(is_fixed(attribute("%r3"))) << "a parameter";
  EXPECT_FALSE(is_fixed(kOpen + attribute("%r10")));
  EXPECT_FALSE(is_fixed(kOpen + ("setp.ne.s32 %p2, %r10, 0;\n@%p2 bra L;\n" + device) + "L:\n" +
                        "ld.local.u32 %r9, [%rd8];\n" + branch))
      << "not all launches ask";
}

TEST(FixedLaunches, KnowLocalMemory) {
  const auto after = [](const std::string& stores) {
    return is_fixed(std::string(kOpen) + kLocal + stores + "ld.local.u32 %r9, [%rd8];\n" + kIfNone +
                    launch() + "END:\n");
  };
  EXPECT_TRUE(after("st.local.u32 [%rd8], %r3;\n"));
  EXPECT_TRUE(after("st.u32 [%rd9], %r3;\n")) << "by its generic address";
  EXPECT_TRUE(after("st.local.u32 [%rd8], %r3;\nst.global.u32 [%rd1], %r10;\n")) << "other memory is open";
  EXPECT_FALSE(after("st.local.u32 [%rd8], %r10;\n"));
  EXPECT_FALSE(after("st.local.u32 [%rd8], %r3;\nst.local.u32 [%rd8+4], %r10;\n")) << "part of it is open";
  EXPECT_FALSE(after("setp.ne.s32 %p2, %r10, 0;\n@%p2 st.local.u32 [%rd8], %r3;\n"));
  EXPECT_FALSE(after("ld.global.u64 %rd10, [%rd2];\nst.u32 [%rd10], %r3;\n")) << "may go anywhere";
  EXPECT_FALSE(after("atom.add.u32 %r11, [%rd9], 1;\n"));
}

// The parent passes a, b, %r4 and n; the child launches if %r1, which is i, or %r2, which is m, says so.
TEST(FixedLaunches, FollowParametersToChildrenThatLaunch) {
  const auto child = [](const std::string& reg) {
    return "setp.gt.s32 %p1, " + reg + ", 0;\n@%p1 bra END;\nmov.u32 %r4, 1;\n" + launch("1") + "END:\n";
  };
  EXPECT_TRUE(is_fixed(launch(), child("%r1"))) << "threadIdx.x, and 1 from the child itself";
  EXPECT_TRUE(is_fixed(launch(), child("%r2"))) << "n, and threadIdx.x of the child";
}

TEST(FixedLaunches, FollowOpenParameters) {
  const std::string child =
      "setp.gt.s32 %p1, %r1, 0;\n@%p1 bra END;\nmov.u32 %r4, 1;\n" + launch("1") + "END:\n";
  EXPECT_FALSE(is_fixed("ld.global.u32 %r4, [%rd1];\n" + launch(), child));
  EXPECT_TRUE(is_fixed("ld.global.u32 %r4, [%rd1];\n" + launch())) << "which launches nothing";
  const std::string several =
      std::regex_replace(launch(), std::regex(R"(\[param1\+0\], 1)"), "[param1+0], %r9");
  EXPECT_TRUE(is_fixed("mov.u32 %r9, 7;\n" + several, child));
  EXPECT_FALSE(is_fixed("ld.global.u32 %r9, [%rd1];\n" + several, child)) << "so many blocks launch";
  EXPECT_TRUE(is_fixed("ld.global.u32 %r9, [%rd1];\n" + several));
}

// The parameters of the parent are a, b and n: 8, 8 and 4 bytes.
TEST(FixedLaunches, NameWordsThatDecideNothing) {
  using Words = std::vector<uint32_t>;
  const auto words = [](const std::string& launches) {
    const Kernel parent(text_of({.launches = launches}), "parent");
    const auto none = [](const FunctionFacts&) { return std::vector<const FunctionFacts*>(); };
    return analysis::words_without_effect_on_launches(*parent.facts, none);
  };
  EXPECT_EQ((Words{0, 8}), words(launch()));
  EXPECT_EQ((Words{0, 8}), words("setp.gt.s32 %p1, %r1, %r3;\n@%p1 bra END;\n" + launch() + "END:\n"));
  const auto unless = [&](const std::string& condition) {
    return words(condition + "\n@%p1 bra END;\n" + launch() + "END:\n");
  };
  EXPECT_EQ((Words{0, 8}), unless("setp.eq.s64 %p1, %rd1, 0;")) << "no address of memory is null";
  EXPECT_EQ((Words{0, 8}), unless("mul.wide.u32 %rd5, %r2, 4; add.s64 %rd6, %rd1, %rd5;\n"
                                  "setp.eq.s64 %p1, %rd6, 0;"));
  EXPECT_EQ((Words{8}), unless("setp.ne.s32 %p2, %r1, 0; @%p2 setp.eq.s64 %p1, %rd1, 0;"))
      << "in some threads";
  EXPECT_EQ((Words{8}), unless("setp.eq.s64 %p1, %rd1, 64;"));
  EXPECT_EQ((Words{8}), unless("and.b64 %rd5, %rd1, 15; setp.eq.s64 %p1, %rd5, 0;")) << "its alignment";
  EXPECT_EQ((Words{0, 8}), unless("add.s64 %rd5, %rd1, 255; and.b64 %rd6, %rd5, -256;\n"
                                  "setp.eq.s64 %p1, %rd6, 0;"))
      << "aligned";
  EXPECT_EQ((Words{8}), unless("mov.b64 {%r9, %r10}, %rd1; setp.eq.s32 %p1, %r9, 0;")) << "half of it";
  EXPECT_EQ((Words{8}), unless("ld.param.v2.u32 {%r9, %r10}, [a]; setp.eq.s32 %p1, %r9, 0;"));
  EXPECT_EQ((Words{8}), unless("shr.u64 %rd5, %rd1, 32; setp.eq.s64 %p1, %rd5, 0;"));
  EXPECT_EQ((Words{8}), unless("setp.lt.s64 %p1, %rd1, 0;"));
  EXPECT_EQ((Words{}), unless("setp.eq.s64 %p1, %rd1, %rd2;")) << "are they the same?";
}

TEST(FixedLaunches, NameBytesThatAreNotRead) {
  const auto unread = [](const std::string& body) {
    const Kernel kernel(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry parent(.param .align 8 .b8 "
        "a[24], .param .u32 n)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\n" +
            body + "ret;\n}\n",
        "parent");
    std::vector<std::pair<uint32_t, uint32_t>> found;
    for (const auto& [offset, bytes] : analysis::unread_parameter_bytes(*kernel.facts))
      found.emplace_back(offset, bytes);
    return found;
  };
  using Bytes = std::vector<std::pair<uint32_t, uint32_t>>;
  EXPECT_EQ((Bytes{{0, 24}, {24, 4}}), unread(""));
  EXPECT_EQ((Bytes{{20, 4}}),
            unread("ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [a+8]; ld.param.u32 %r1, [a+16];\n"
                   "ld.param.u32 %r2, [n];\n"))
      << "the padding of a structure";
  EXPECT_EQ((Bytes{{16, 8}}), unread("ld.param.v2.u64 {%rd1, %rd2}, [a]; ld.param.u32 %r2, [n];\n"));
  EXPECT_EQ((Bytes{{24, 4}}), unread("mov.b64 %rd1, a;\nld.param.u32 %r1, [%rd1+20];\n")) << "any of them";
}

}  // namespace
}  // namespace klap::test
