// Where kernels that poll get a wait: in front of looks by which a loop may stay for a child, and nowhere
// else.
#include "transform/suspension/poll_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ptx/tree.h"

namespace klap::transform {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kUnitHead =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b32 r) cudaLaunchDeviceV2\n(.param .b64 a, .param .b64 b)\n;\n";
const std::string kPollRegisters = ".reg .b32 %r<10>;\n.reg .b64 %rd<10>;\n.reg .pred %p<4>;\n";
const std::string kOneLaunch =
    "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd8; st.param.b64 [b], 0;\n"
    "call.uni (r), cudaLaunchDeviceV2, (a, b); ld.param.b32 %r9, [r]; }\n";
const std::string kAddedWait = "call.uni (retval0), __klap_wait_at_poll, (); } ";

std::string polling_kernel(const std::string& body, const std::string& outside = "") {
  return kUnitHead + outside + ".visible .entry k(.param .u64 p)\n{\n" + kPollRegisters +
         "ld.param.u64 %rd1, [p];\n" + body + "ret;\n}\n";
}

// A loop that ends once the register is not 0.
std::string until(const std::string& looks) {
  return "$again:\n" + looks + "setp.eq.s32 %p1, %r1, 0;\n@%p1 bra $again;\n";
}

// The unit with its waits; empty if it gets none.
std::string with_waits(const std::string& text) {
  return with_waits_at_polls(ptx::parse(text, "unit")).value_or("");
}
size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(PollWaits, StandInFrontOfLooks) {
  for (const std::string look :
       {"ld.volatile.global.u32 %r1, [%rd1];\n", "ld.relaxed.gpu.global.u32 %r1, [%rd1];\n",
        "ld.acquire.gpu.u32 %r1, [%rd1];\n", "ld.global.u32 %r1, [%rd1];\n",
        "atom.global.add.u32 %r1, [%rd1], 0;\n", "atom.global.cas.b32 %r1, [%rd1], 7, 0;\n"}) {
    const std::string text = with_waits(polling_kernel(kOneLaunch + until(look)));
    EXPECT_THAT(text, HasSubstr(kAddedWait + look)) << look;
    EXPECT_EQ(count(text, kAddedWait), 1u) << look;
  }
}

// One stop lets others run, and each costs time.
TEST(PollWaits, AreOneALoop) {
  const std::string look = "ld.volatile.global.u32 %r1, [%rd1];\n";
  const std::string text =
      with_waits(polling_kernel(kOneLaunch + until("nanosleep.u32 20;\n" + look + "membar.gl;\n")));
  EXPECT_THAT(text, HasSubstr(kAddedWait + look));
  EXPECT_EQ(count(text, kAddedWait), 1u);
}

TEST(PollWaits, AreInEachOfSeveralLoops) {
  const std::string look = "ld.volatile.global.u32 %r1, [%rd1];\n";
  std::string second = until(look);
  for (size_t at = 0; (at = second.find("$again", at)) != std::string::npos; at += 7)
    second.insert(at + 6, "2");
  EXPECT_EQ(count(with_waits(polling_kernel(kOneLaunch + until(look) + second)), kAddedWait), 2u);
}

TEST(PollWaits, StandBeforeTheScopeOfALook) {
  const std::string scope = "{ .reg .u32 %x; ld.acquire.gpu.u32 %x, [%rd1]; mov.u32 %r1, %x; }\n";
  EXPECT_THAT(with_waits(polling_kernel(kOneLaunch + until(scope))), HasSubstr(kAddedWait + scope));
}

TEST(PollWaits, AreInFunctionsOfKernelsThatLaunch) {
  const std::string function = ".func look(.param .b64 q)\n{\n" + kPollRegisters +
                               "ld.param.u64 %rd1, [q];\n" + until("ld.volatile.global.u32 %r1, [%rd1];\n") +
                               "ret;\n}\n";
  const std::string call = "{ .param .b64 a; st.param.b64 [a], %rd1; call.uni look, (a); }\n";
  EXPECT_EQ(count(with_waits(polling_kernel(kOneLaunch + call, function)), kAddedWait), 1u);
  EXPECT_EQ(with_waits(polling_kernel(call, function)), "")
      << "a kernel without children waits for other blocks";
}

// Threads of a block run together, launch or not, and a loop that counts waits for nobody.
TEST(PollWaits, AreNowhereElse) {
  const std::string shared = until("ld.volatile.shared.u32 %r1, [%rd1];\n");
  EXPECT_EQ(with_waits(polling_kernel(kOneLaunch + shared)), "");
  const std::string once = "ld.volatile.global.u32 %r1, [%rd1];\n";
  EXPECT_EQ(with_waits(polling_kernel(kOneLaunch + once)), "");
  const std::string row =
      "mov.u32 %r2, 0;\n$next:\nld.global.u32 %r1, [%rd1];\nadd.s64 %rd1, %rd1, 4;\n"
      "add.s32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 9;\n@%p1 bra $next;\n";
  EXPECT_EQ(with_waits(polling_kernel(kOneLaunch + row)), "");
  EXPECT_EQ(with_waits(polling_kernel(until(once))), "") << "it has no children";
}

TEST(PollWaits, LeaveLinesWhereTheyAre) {
  const std::string before = polling_kernel(kOneLaunch + until("ld.volatile.global.u32 %r1, [%rd1];\n"));
  EXPECT_EQ(count(with_waits(before), "\n"), count(before, "\n"));
  EXPECT_THAT(with_waits(before), Not(HasSubstr("\n\n.extern")));
}

}  // namespace
}  // namespace klap::transform
