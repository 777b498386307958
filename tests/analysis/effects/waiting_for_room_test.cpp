// Loops that launch again while a launch is refused are told from loops that go on as without a refusal.
#include "analysis/effects/waiting_for_room.h"

#include <gtest/gtest.h>

#include "kernel.h"

namespace klap::analysis {
namespace {

constexpr char kDeclarations[] =
    ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 a, .param .align 4 .b8 b[12], "
    ".param .align 4 .b8 c[12], .param .b32 d);\n"
    ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);\n"
    ".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"
    ".visible .entry child(.param .u32 i) { ret; }\n"
    ".func (.param .b32 r) same(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; st.param.b32 [r], %x; "
    "ret; }\n"
    ".func last_if_none(.param .b32 a) { .reg .b32 %x; .reg .pred %q; ld.param.b32 %x, [a];\n"
    "setp.eq.s32 %q, %x, 0; @%q exit; ret; }\n"
    ".shared .align 4 .b32 word;\n";

constexpr char kAsk[] =
    "{ .param .b64 a; st.param.b64 [a], %rd2; .param .align 4 .b8 b[12]; st.param.b32 [b], 1;\n"
    "st.param.b32 [b+4], 1; st.param.b32 [b+8], 1; .param .align 4 .b8 c[12]; st.param.b32 [c], 1;\n"
    "st.param.b32 [c+4], 1; st.param.b32 [c+8], 1; .param .b32 d; st.param.b32 [d], 0;\n"
    ".param .b64 r; call (r), __cudaCDP2GetParameterBufferV2, (a, b, c, d); ld.param.b64 %rd5, [r]; }\n";
constexpr char kLaunch[] =
    "{ .param .b64 a; st.param.b64 [a], %rd5; .param .b64 b; st.param.b64 [b], 0;\n"
    ".param .b32 r; call (r), __cudaCDP2LaunchDeviceV2, (a, b); ld.param.b32 %r8, [r]; }\n";
constexpr char kQuery[] = "{ .param .b32 r; call (r), __cudaCDP2GetLastError, (); ld.param.b32 %r9, [r]; }\n";

// A loop of n launches, and what stands behind each launch.
std::string loop(const std::string& behind, const std::string& where_null = "$launched") {
  std::string text = test::kernel_text(
      ".local .align 8 .b8 frame[16];\nld.param.u64 %rd1, [p]; ld.param.u32 %r2, [n]; mov.u64 %rd2, child;\n"
      "mov.u32 %r1, 0;\n$again:\n" +
      std::string(kAsk) + "setp.eq.s64 %p1, %rd5, 0;\n@%p1 bra " + where_null + ";\nst.u32 [%rd5], %r1;\n" +
      kLaunch + "$launched:\n" + kQuery + "setp.eq.s32 %p3, %r9, 0;\n" + behind +
      "\nadd.s32 %r1, %r1, 1;\nsetp.lt.s32 %p2, %r1, %r2;\n@%p2 bra $again;\n$end: ret;");
  return text.insert(text.find(".visible"), kDeclarations);
}

bool waits(const std::string& text) {
  const test::Kernel kernel(text, "k");
  const FunctionFacts& facts = *kernel.facts;
  EXPECT_EQ(1u, facts.sites.size());
  return !waits_for_room_at({kernel.module, facts.function, facts.flow, facts.data}, *facts.sites[0].get_call)
              .empty();
}

TEST(WaitingForRoom, IsNoLoopThatGoesOnAsWithoutARefusal) {
  for (const char* behind : {
           "",
           // Counts refused launches.
           "@%p3 bra $counted;\nred.global.add.u32 [%rd1], 1;\n$counted:",
           "@!%p3 red.global.add.u32 [%rd1], 1;",
           "@%p3 bra $good;\nst.global.u32 [%rd1], 1;\nbra $both;\n$good:\nst.global.u32 [%rd1], 2;\n$both:",
           // Ends with the first error of several.
           "selp.b32 %r10, %r9, %r8, %p3;\nsetp.ne.s32 %p4, %r10, 0;\n@%p4 bra $end;",
           // Keeps the error.
           "st.global.u32 [%rd1], %r9;",
           "selp.b32 %r5, %r9, %r8, %p3;",
           // Ends with the first error, of the launch or of the thread.
           "@!%p3 bra $end;",
           "setp.ne.s32 %p4, %r9, 0;\n@%p4 bra $end;",
           "setp.ne.s32 %p4, %r8, 0;\n@%p4 bra $end;",
           "setp.lt.s32 %p4, %r1, 9;\nand.pred %p5, %p3, %p4;\n@!%p5 bra $end;",
           "setp.ne.s32 %p4, %r8, 0;\nsetp.ne.s32 %p6, %r9, 0;\nor.pred %p5, %p6, %p4;\n@%p5 bra $end;",
           // Goes on by memory that nothing else tells of a refusal.
           "@!%p3 red.global.add.u32 [%rd1], 1;\nld.shared.u32 %r5, [word];\nsetp.eq.s32 %p4, %r5, 9;\n"
           "@%p4 bra $end;",
       }) {
    EXPECT_FALSE(waits(loop(behind))) << behind;
  }
  EXPECT_FALSE(waits(loop("", "$end")));
}

TEST(WaitingForRoom, IsALoopThatARefusalMayProlong) {
  for (const char* behind : {
           // Goes on for one error, or until there is none.
           "setp.eq.s32 %p4, %r9, 69;\n@%p4 bra $again;",
           "setp.ne.s32 %p4, %r9, 69;\n@%p4 bra $end;",
           "@%p3 bra $end;",
           "@!%p3 bra $again;",
           "@%p3 ret;",
           "setp.eq.s32 %p4, %r8, 0;\n@%p4 bra $end;",
           "setp.gt.s32 %p4, %r9, 0;\n@%p4 bra $end;",
           "setp.lt.s32 %p4, %r1, 9;\nor.pred %p5, %p3, %p4;\n@!%p5 bra $end;",
           "setp.eq.s32 %p4, %r9, 9;\nand.pred %p5, %p3, %p4;\n@!%p5 bra $end;",
           "setp.ne.s32 %p4, %r8, 0;\nand.pred %p5, %p3, %p4;\n@!%p5 bra $end;",
           "setp.lt.s32 %p4, %r1, 9;\nxor.pred %p5, %p3, %p4;\n@!%p5 bra $end;",
           // Counts successful launches only.
           "@%p3 bra $counted;\nsub.s32 %r1, %r1, 1;\n$counted:",
           "@!%p3 sub.s32 %r1, %r1, 1;",
           "selp.b32 %r5, 0, 1, %p3;\nsub.s32 %r1, %r1, %r5;",
           // Counts in memory.
           "@%p3 red.global.add.u32 [%rd1], 1;\nld.global.u32 %r5, [%rd1];\nsetp.eq.s32 %p4, %r5, 9;\n"
           "@%p4 bra $end;",
           "@%p3 bra $not;\nst.global.u32 [%rd1], 1;\n$not:\nld.u32 %r5, [%rd1];\nsetp.eq.s32 %p4, %r5, 0;\n"
           "@%p4 bra $end;",
           "st.local.u32 [frame], %r9;\nld.local.u32 %r5, [frame];\nsetp.eq.s32 %p4, %r5, 0;\n@%p4 bra $end;",
           "st.shared.u32 [word], %r9;\nbar.sync 0;\nld.shared.u32 %r5, [word];\nsetp.eq.s32 %p4, %r5, 0;\n"
           "@%p4 bra $end;",
           // Asks other threads, or a function.
           "vote.sync.all.pred %p4, %p3, -1;\n@%p4 bra $end;",
           "{ .param .b32 a; st.param.b32 [a], %r9; .param .b32 r; call (r), same, (a);\n"
           "ld.param.b32 %r5, [r]; }\nsetp.eq.s32 %p4, %r5, 0;\n@%p4 bra $end;",
           "{ .param .b32 a; st.param.b32 [a], %r9; call last_if_none, (a); }",
           // A way that has a loop, or ends the thread.
           "@%p3 bra $on;\n$wait:\nadd.s32 %r5, %r5, 1;\nsetp.lt.s32 %p4, %r5, 9;\n@%p4 bra $wait;\n$on:",
           "@!%p3 bra $on;\ntrap;\n$on:",
       }) {
    EXPECT_TRUE(waits(loop(behind))) << behind;
  }
  EXPECT_TRUE(waits(loop("", "$again")));
}

}  // namespace
}  // namespace klap::analysis
