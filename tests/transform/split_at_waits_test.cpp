// Kernels that are split where they wait: what is kept, what is computed again, and which kernels are
// refused. Whether split kernels do what they should is for the differential cases (older_waits.cu).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assembling.h"
#include "ptx/tree.h"
#include "transform/runtime_calls/newer_runtime.h"
#include "transform/suspension/split_unit.h"

namespace klap::transform {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kLaunch =
    "{ .param .b64 a; .param .align 4 .b8 b[12]; .param .align 4 .b8 c[12]; .param .b32 d; .param .b64 r;\n"
    "st.param.b64 [a], %rd9; st.param.b32 [b], 1; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;\n"
    "st.param.b32 [c], 1; st.param.b32 [c+4], 1; st.param.b32 [c+8], 1; st.param.b32 [d], 0;\n"
    "call.uni (r), cudaGetParameterBufferV2, (a, b, c, d); ld.param.b64 %rd8, [r]; }\n"
    "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd8; st.param.b64 [b], 0;\n"
    "call.uni (r), cudaLaunchDeviceV2, (a, b); ld.param.b32 %r9, [r]; }\n";
const std::string kWait =
    "{ .param .b32 w; call.uni (w), cudaDeviceSynchronize, (); ld.param.b32 %r8, [w]; }\n";
const std::string kUse = "st.global.u32 [%rd1], %r1;\n";

// A unit with a kernel that has this body, behind `outside`.
std::string unit(const std::string& body, const std::string& outside = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".extern .func (.param .b32 r) cudaDeviceSynchronize\n()\n;\n"
         ".extern .func (.param .b64 r) cudaGetParameterBufferV2\n(.param .b64 a, .param .align 4 .b8 b[12], "
         ".param .align 4 .b8 c[12], .param .b32 d)\n;\n"
         ".extern .func (.param .b32 r) cudaLaunchDeviceV2\n(.param .b64 a, .param .b64 b)\n;\n" +
         outside +
         ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n.reg .pred %p<4>;\n"
         "mov.u64 %rd9, k;\n" +
         body + "ret;\n}\n";
}

SplitUnit split(const std::string& body, const std::string& outside = "") {
  auto made = split_at_waits(ptx::parse(unit(body, outside), "unit"));
  EXPECT_TRUE(made.has_value());
  return made ? std::move(*made) : SplitUnit{};
}

// Why the kernel cannot be split.
std::string problem(const std::string& body, const std::string& outside = "") {
  return split(body, outside).problem;
}

// The text in version 2, which ptxas must take.
std::string assembled_text(const std::string& body, const std::string& outside = "") {
  const SplitUnit made = split(body, outside);
  EXPECT_EQ("", made.problem);
  const auto text = in_newer_runtime(ptx::parse(made.text, "unit"));
  EXPECT_TRUE(text.has_value());
  if (!text) return "";
  expect_assembles(*text);
  return *text;
}

TEST(SplitAtWaits, IsForWaitsThatMatter) {
  EXPECT_FALSE(split_at_waits(ptx::parse(unit(kLaunch + kWait), "unit")).has_value());
  EXPECT_TRUE(split_at_waits(ptx::parse(unit(kLaunch + kWait + kUse), "unit")).has_value());
}

TEST(SplitAtWaits, KeepsWhatLivesOn) {
  const std::string loads = "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\n";
  const SplitUnit made = split(loads + kLaunch + kWait + kUse);
  ASSERT_EQ("", made.problem);
  ASSERT_EQ(1u, made.waits.size());
  EXPECT_EQ("k", made.waits[0].kernel);
  EXPECT_EQ(8u, made.waits[0].bytes_per_thread) << "the loaded value; the parameter is read again";
  EXPECT_THAT(assembled_text(loads + kLaunch + kWait + kUse), HasSubstr("k$klap_resumed"));
}

TEST(SplitAtWaits, KeepsRegistersOfAllKinds) {
  const std::string body =
      ".reg .b16 %rs<2>;\n.reg .f32 %f<2>;\n.reg .f64 %fd<2>;\nld.param.u64 %rd1, [p];\n"
      "ld.global.u16 %rs1, [%rd1];\nld.global.f32 %f1, [%rd1+4];\nld.global.f64 %fd1, [%rd1+8];\n"
      "ld.global.u32 %r1, [%rd1+16];\nld.global.u64 %rd2, [%rd1+24];\nsetp.ne.u32 %p1, %r1, 0;\n";
  const std::string uses =
      "st.global.u16 [%rd1], %rs1;\nst.global.f32 [%rd1+4], %f1;\nst.global.f64 [%rd1+8], %fd1;\n"
      "@%p1 st.global.u32 [%rd1+16], %r1;\nst.global.u64 [%rd1+24], %rd2;\n";
  EXPECT_EQ(48u, split(body + kLaunch + kWait + uses).waits.at(0).bytes_per_thread);
  assembled_text(body + kLaunch + kWait + uses);
}

TEST(SplitAtWaits, KeepsVariables) {
  const std::string body =
      ".local .align 8 .b8 own[24];\n.shared .align 4 .b8 shared[10];\nld.param.u64 %rd1, [p];\n"
      "ld.global.u32 %r1, [%rd1];\nmov.u64 %rd2, own;\ncvt.u64.u32 %rd3, %r1;\nadd.s64 %rd4, %rd2, %rd3;\n"
      "st.local.u32 [%rd4], %r1;\nst.shared.u32 [shared], %r1;\n";
  const std::string uses =
      "ld.local.u32 %r2, [%rd4];\nld.shared.u32 %r3, [shared];\nst.global.u32 [%rd1], %r2;\n";
  EXPECT_EQ(32u, split(body + kLaunch + kWait + uses).waits.at(0).bytes_per_thread)
      << "the array and the distance of the address from its begin";
  assembled_text(body + kLaunch + kWait + uses);
  EXPECT_EQ(8u, split(body + kLaunch + kWait + kUse).waits.at(0).bytes_per_thread)
      << "nobody looks at the array any more";
  EXPECT_EQ(
      32u, split("$again:\n" + body + kLaunch + kWait + uses + "bra $again;\n").waits.at(0).bytes_per_thread);
}

// Behind it may lie bytes that are another variable's, or nobody's.
TEST(SplitAtWaits, KeepsNoByteBehindAVariable) {
  const std::string text = assembled_text(
      ".shared .align 4 .b8 flags[2];\nld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\n"
      "st.shared.u8 [flags], %r1;\n" +
      kLaunch + kWait + "ld.shared.u8 %r2, [flags];\nst.global.u32 [%rd1], %r2;\n");
  EXPECT_THAT(text, HasSubstr("ld.shared.b16"));
  EXPECT_THAT(text, Not(HasSubstr("ld.shared.b32")));
}

TEST(SplitAtWaits, MakesBarriersPlacesToStop) {
  const std::string body =
      "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n$again:\n@%p1 bra "
      "$other;\n" +
      kLaunch + kWait + "$other:\nbar.sync 0;\nbar.red.popc.u32 %r2, 0, %p1;\n" +
      "bar.red.and.pred %p2, 0, !%p1;\nbarrier.sync 0;\n@%p2 st.global.u32 [%rd1], %r2;\n";
  const std::string in_loop = assembled_text(body + "@%p2 bra $again;\n");
  EXPECT_THAT(in_loop, Not(HasSubstr("bar.red")));
  EXPECT_THAT(in_loop, HasSubstr("$klap_w_at_4"));
  const std::string once = assembled_text(body);
  EXPECT_THAT(once, HasSubstr("$klap_w_at_1"));
  EXPECT_THAT(once, Not(HasSubstr("$klap_w_at_2"))) << "who waits has passed one barrier less";
}

// The launch in front of the wait is nothing that the second half comes to.
TEST(SplitAtWaits, LeavesNoCodeThatNobodyComesTo) {
  const auto launches = [](const std::string& body) {
    const std::string text = assembled_text(body);
    const size_t second = text.rfind(".entry");
    size_t count = 0;
    for (size_t at = text.find("LaunchDeviceV2, (", second); at != std::string::npos;
         at = text.find("LaunchDeviceV2, (", at + 1))
      ++count;
    return count;
  };
  const std::string load = "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n";
  EXPECT_EQ(0u, launches(load + kLaunch + kWait + kUse));
  EXPECT_EQ(1u, launches(load + kLaunch + kWait + kLaunch + kUse));
  EXPECT_EQ(2u, launches(load + "$again:\n" + kLaunch + kWait + "@%p1 bra $again;\n" + kUse))
      << "its own and the one by which it stops";
}

// Otherwise the thread looks whether anything has been launched.
TEST(SplitAtWaits, StopsWithoutALookWhereEachWayHasLaunched) {
  const std::string load = "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n";
  const auto looks = [](const std::string& body) {
    return split(body).text.find("ld.relaxed.cta.shared.u32 %klap_w_pending") != std::string::npos;
  };
  EXPECT_FALSE(looks(load + kLaunch + kWait + kUse));
  EXPECT_FALSE(looks(load + "$again:\n" + kLaunch + kWait + "@%p1 bra $again;\n" + kUse));
  EXPECT_TRUE(looks(load + "@%p1 bra $other;\n" + kLaunch + "$other:\n" + kWait + kUse));
  EXPECT_TRUE(looks(load + kLaunch + "$again:\n" + kWait + "@%p1 bra $again;\n" + kUse)) << "the second time";
  EXPECT_FALSE(looks(load + kLaunch + "bar.sync 0;\n" + kWait + kUse)) << "nobody stops at the barrier";
  EXPECT_TRUE(looks(load + kLaunch + "@%p1 bra $other;\nbar.sync 0;\n$other:\n" + kWait + kUse))
      << "where it stopped at the barrier";
}

// The word for its result is written behind each wait that may have no frame.
TEST(SplitAtWaits, ReturnsAnErrorWhereThereIsNoFrame) {
  const std::string load = "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n";
  const auto fails_at = [](const std::string& body) {
    const std::string text = assembled_text(body);
    size_t count = 0;
    for (size_t at = text.find(", 68;"); at != std::string::npos; at = text.find(", 68;", at + 1)) ++count;
    return count;
  };
  const std::string tells = "st.global.u32 [%rd1], %r8;\n";
  EXPECT_EQ(1u, fails_at(load + kLaunch + kWait + tells)) << "the second half has a frame";
  EXPECT_EQ(2u, fails_at(load + kLaunch + kWait + tells + kLaunch + kWait + tells));
  EXPECT_EQ(1u,
            fails_at(load + "$again:\n" + kLaunch + kWait + "setp.ne.u32 %p2, %r8, 0;\n@%p2 bra $again;\n"));
  EXPECT_EQ(1u, fails_at(load + kLaunch + kWait + kUse + kLaunch + kWait + tells))
      << "the first one is ignored";
}

// The program would take the error for success.
TEST(SplitAtWaits, FailsWhereNobodyLooksAtTheResult) {
  const std::string load = "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\n";
  const auto fails = [&](const std::string& behind, const std::string& outside = "") {
    return split(load + kLaunch + kWait + behind + kUse, outside).text.find(", 68;") == std::string::npos;
  };
  EXPECT_TRUE(fails(""));
  EXPECT_TRUE(fails("mov.u32 %r8, 1;\nst.global.u32 [%rd1], %r8;\n")) << "another value";
  EXPECT_TRUE(fails("add.u32 %r7, %r8, 1;\nmov.u32 %r6, %r7;\n")) << "nobody looks at what is computed of it";
  EXPECT_FALSE(fails("add.u32 %r7, %r8, 1;\nst.global.u32 [%rd1], %r7;\n"));
  const std::string asking = ".extern .func (.param .b32 r) cudaGetLastError\n()\n;\n";
  const std::string ask = "{ .param .b32 w; call.uni (w), cudaGetLastError, (); ld.param.b32 %r7, [w]; }\n";
  EXPECT_TRUE(fails("st.global.u32 [%rd1], %r8;\n" + ask, asking)) << "it would be the last error, too";
}

// Threads at a barrier come to it once more, and their votes do not count twice.
TEST(SplitAtWaits, ComesToBarriersAgainWhereThereIsNoFrame) {
  const std::string text = assembled_text(
      "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra $other;\n" +
      kLaunch + kWait + "st.global.u32 [%rd1], %r8;\n$other:\nbar.red.popc.u32 %r2, 0, %p1;\n" +
      "st.global.u32 [%rd1], %r2;\n");
  EXPECT_THAT(text, HasSubstr("$klap_w_again_1:"));
  EXPECT_THAT(text, HasSubstr("selp.u32 %klap_w_b, -1, 0, %p1;"));
  EXPECT_THAT(text, HasSubstr("bra.uni $klap_w_again_1;"));
  EXPECT_THAT(text, HasSubstr("bra $klap_w_wait;")) << "and so do those that have ended";
}

TEST(SplitAtWaits, CopiesAndFillsAreLaunches) {
  const std::string declared =
      ".extern .func (.param .b32 r) cudaMemsetAsync\n(.param .b64 a, .param .b32 b, .param .b64 c, .param "
      ".b64 d)\n;\n";
  const auto fill = [](const std::string& to, const std::string& stream) {
    return "{ .param .b64 a; .param .b32 b; .param .b64 c; .param .b64 d; .param .b32 r; st.param.b64 [a], " +
           to + "; st.param.b32 [b], 0; st.param.b64 [c], 8; st.param.b64 [d], " + stream +
           "; call.uni (r), cudaMemsetAsync, (a, b, c, d); ld.param.b32 %r9, [r]; }\n";
  };
  EXPECT_EQ("", problem(kLaunch + kWait + fill("%rd1", "0") + kWait + kUse, declared));
  EXPECT_EQ("", problem(kLaunch + kWait + fill("%rd1", "%rd3") + kWait + kUse, declared));
  EXPECT_THAT(problem(".local .align 8 .b8 own[8];\nmov.u64 %rd2, own;\n" + fill("%rd2", "0") + kWait + kUse,
                      declared),
              HasSubstr("an address of a local or shared variable is passed to a function"));
}

TEST(SplitAtWaits, InlinesFunctionsThatWait) {
  const std::string function =
      ".func waits(.param .b64 q)\n{\n.reg .b32 %r<10>;\n.reg .b64 %rd<10>;\nld.param.b64 %rd1, "
      "[q];\nmov.u64 %rd9, 0;\n" +
      kLaunch + kWait + "ld.global.u32 %r1, [%rd1];\n" + kUse + "ret;\n}\n";
  const std::string call = "{ .param .b64 q; st.param.b64 [q], %rd1; call.uni waits, (q); }\n";
  EXPECT_THAT(assembled_text("ld.param.u64 %rd1, [p];\n" + call + call + kUse, function),
              Not(HasSubstr("call.uni waits")));
}

TEST(SplitAtWaits, RefusesThreadsThatMeetOtherwise) {
  EXPECT_THAT(problem(kLaunch + kWait + "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;\n" + kUse),
              HasSubstr("k: 'shfl.sync.idx.b32' of several threads (line "));
  EXPECT_THAT(problem(kLaunch + kWait + "bar.warp.sync -1;\n"),
              HasSubstr("'bar.warp.sync' of several threads"));
  EXPECT_THAT(problem(kLaunch + kWait + "bar.sync 1;\n"), HasSubstr("a barrier of some threads"));
  EXPECT_THAT(problem(kLaunch + kWait + "bar.sync 0, 64;\n"), HasSubstr("a barrier of some threads"));
  EXPECT_THAT(problem(kLaunch + kWait + "bar.arrive 0, 64;\n"), HasSubstr("of several threads"));
  EXPECT_THAT(problem(kLaunch + kWait + "@%p1 bar.sync 0;\n"), HasSubstr("a place to stop is predicated"));
  EXPECT_THAT(problem(kLaunch + kWait + "cp.async.wait_all;\n"), HasSubstr("'cp.async.wait_all'"));
}

TEST(SplitAtWaits, RefusesWhatCannotGoOn) {
  EXPECT_THAT(problem(kLaunch + kWait + "call.uni unknown, ();\n", ".extern .func unknown\n()\n;\n"),
              HasSubstr("a call of unknown"));
  EXPECT_THAT(problem(kLaunch + kWait + "brx.idx %r1, $targets;\n$targets: .branchtargets $a;\n$a:\n" + kUse),
              HasSubstr("'brx.idx' of several threads"));
  EXPECT_THAT(problem("{\n" + kLaunch + kWait + "}\n" + kUse), HasSubstr("a wait in a nested scope"));
  EXPECT_THAT(problem("{\n.shared .b32 hidden;\nst.shared.u32 [hidden], 1;\n}\n" + kLaunch + kWait + kUse),
              HasSubstr("a variable is declared in a nested scope"));
}

// The grid in which a kernel goes on has one block, and its place is not the one that the program means.
TEST(SplitAtWaits, InlinesFunctionsThatAskForTheirPlace) {
  const auto place = [](const std::string& more) {
    return ".func (.param .b32 r) place\n()\n{\n.reg .b32 %r<3>;\nmov.u32 %r1, %ctaid.x;\n" + more +
           "st.param.b32 [r], %r1;\nret;\n}\n";
  };
  const std::string call = "{ .param .b32 r; call.uni (r), place, (); ld.param.b32 %r1, [r]; }\n";
  EXPECT_THAT(assembled_text(kLaunch + kWait + call + kUse, place("")),
              Not(HasSubstr("call.uni (r), place")));
  EXPECT_THAT(problem(kLaunch + kWait + call + kUse,
                      place("{ .param .b32 r; call.uni (r), place, (); ld.param.b32 %r2, [r]; }\n")),
              HasSubstr("a call of place"))
      << "it calls itself";
}

// Their launches would be left, and with them the whole program.
TEST(SplitAtWaits, DropsFunctionsThatLaunchAndAreInlined) {
  const std::string launches =
      ".entry k(.param .u64 p);\n.func launches\n()\n{\n.reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n"
      "mov.u64 %rd9, k;\n" +
      kLaunch + "ret;\n}\n";
  const std::string body = "{ call.uni launches, (); }\n" + kLaunch + kWait + kUse;
  EXPECT_THAT(split(body, launches).waiting_functions, testing::ElementsAre("launches"));
  EXPECT_THAT(split(body, launches).text, Not(HasSubstr("launches")));
  EXPECT_THAT(split(kLaunch + kWait + kUse, launches).waiting_functions, testing::IsEmpty()) << "of nobody";
}

TEST(SplitAtWaits, RefusesOtherForms) {
  EXPECT_THAT(problem(kLaunch + kWait + "$proto: .callprototype _ ();\ncall %rd2, (), $proto;\n"),
              HasSubstr("a call through a register"));
  EXPECT_THAT(problem(kLaunch + kWait + "{\nst.global.u32 [%rd1], %r1;\nbar.sync 0;\n}\n"),
              HasSubstr("code in front of a barrier in its scope"));
  EXPECT_THAT(problem(".shared .v2 .b32 pair;\nst.shared.u32 [pair], 1;\n" + kLaunch + kWait + kUse),
              HasSubstr("a variable is declared in another form"));
  EXPECT_THAT(problem(".reg .v2 .b32 %v;\nmov.b32 %v.x, %r1;\nmov.b32 %v.y, %r2;\n" + kLaunch + kWait +
                      "st.global.v2.b32 [%rd1], %v;\n"),
              HasSubstr("%v of another form is needed later"));
}

// The executor's streams live until they are destroyed, and the handle is a number like others.
TEST(SplitAtWaits, StreamsLiveOn) {
  const std::string declared = ".extern .func (.param .b32 r) cudaStreamDestroy\n(.param .b64 a)\n;\n";
  const std::string destroy =
      "{ .param .b64 a; .param .b32 r; st.param.b64 [a], %rd2; call.uni (r), cudaStreamDestroy, (a); }\n";
  EXPECT_EQ("", problem(kLaunch + kWait + destroy + kUse, declared));
  EXPECT_EQ("", problem(kLaunch + destroy + kWait + kUse, declared));
}

// A free says that it comes behind a wait, if it does so on each way from a launch.
TEST(SplitAtWaits, SaysWhatIsFreedBehindWaits) {
  const std::string declared = ".extern .func free\n(.param .b64 a)\n;\n";
  const std::string free = "{ .param .b64 a; st.param.b64 [a], %rd2; call.uni free, (a); }\n";
  const auto says = [&](const std::string& body) {
    return assembled_text(body, declared).find("mov.u32 %klap_w_complete, 1; {") != std::string::npos;
  };
  EXPECT_TRUE(says(kLaunch + kWait + free + kUse));
  EXPECT_TRUE(says(free + kLaunch + kWait + kUse)) << "nothing has been launched";
  EXPECT_FALSE(says(kLaunch + free + kWait + kUse));
  EXPECT_FALSE(says(kLaunch + "@%p1 bra $on;\n" + kWait + "$on:\n" + free + kUse));
  EXPECT_FALSE(says("$again:\n" + free + kWait + kLaunch + "@%p1 bra $again;\n" + kUse));
  EXPECT_TRUE(says("$again:\n" + kLaunch + kWait + free + "@%p1 bra $again;\n" + kUse));
}

// Lanes may meet where a barrier keeps them from meeting one that waits.
TEST(SplitAtWaits, LanesMeetAwayFromWaits) {
  const std::string barrier = "bar.sync 0;\n";
  for (const std::string meet :
       {"shfl.sync.down.b32 %r1, %r2, 16, 31, -1", "vote.sync.any.pred %p1, %p2, -1",
        "match.any.sync.b32 %r1, %r2, -1", "redux.sync.add.s32 %r1, %r2, -1", "bar.warp.sync -1"}) {
    EXPECT_EQ("", problem(meet + ";\n" + barrier + kLaunch + kWait + kUse)) << meet;
    EXPECT_EQ("", problem(kLaunch + kWait + barrier + meet + ";\n" + kUse)) << meet;
    for (const std::string& body :
         {meet + ";\n" + kLaunch + kWait + kUse, kLaunch + kWait + meet + ";\n" + barrier + kUse,
          "$again:\n" + meet + ";\n" + barrier + kLaunch + kWait + "@%p1 bra $again;\n" + kUse})
      EXPECT_THAT(problem(body), HasSubstr("' of several threads")) << body;
  }
}

TEST(SplitAtWaits, RefusesTailLaunches) {
  std::string tail = kLaunch;
  tail.replace(tail.find("st.param.b64 [b], 0"), 19, "st.param.b64 [b], 3");
  EXPECT_THAT(problem(tail + kLaunch + kWait + kUse), HasSubstr("a launch may be a tail launch"));
}

TEST(SplitAtWaits, RefusesAddressesThatNobodyCorrects) {
  const std::string own = ".local .align 8 .b8 own[8];\n.local .align 8 .b8 other[8];\nmov.u64 %rd2, own;\n";
  EXPECT_THAT(problem(own + "st.global.u64 [%rd1], %rd2;\n" + kLaunch + kWait + kUse),
              HasSubstr("an address of a local or shared variable is stored in memory"));
  EXPECT_THAT(problem(own + "xor.b64 %rd3, %rd2, 5;\n" + kLaunch + kWait + kUse),
              HasSubstr("an address of a local or shared variable is computed with"));
  EXPECT_THAT(
      problem(own + "mov.u64 %rd3, other;\nsetp.eq.u32 %p1, %r1, 0;\nselp.b64 %rd4, %rd2, %rd3, %p1;\n" +
              kLaunch + kWait + "st.local.u32 [%rd4], 1;\n"),
      HasSubstr("%rd4 may be an address of several variables"));
  const std::string takes =
      ".func takes(.param .b64 q)\n{\n.reg .b64 %rd<2>;\nld.param.b64 %rd1, [q];\nst.u64 [%rd1], "
      "%rd1;\nret;\n}\n";
  EXPECT_THAT(problem(own + "{ .param .b64 q; st.param.b64 [q], %rd2; call.uni takes, (q); }\n" + kLaunch +
                          kWait + kUse,
                      takes),
              HasSubstr("an address of a local or shared variable is passed to a function"));
}

}  // namespace
}  // namespace klap::transform
