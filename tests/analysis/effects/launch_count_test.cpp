// How often one thread launches into one stream, and how often a thread can run an instruction.
#include "analysis/counts/launch_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;
using testing::HasSubstr;

// Counts the stores of a body.
std::string stores(const std::string& body) {
  const Kernel k = kernel(body);
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < k.facts->flow.instructions().size(); ++i) {
    if (k.module.is(k.facts->flow.instructions()[i].statement->head, "st")) found.push_back(i);
  }
  return to_text(count_runs(*k.facts, found));
}
const std::string kStore = "st.global.u32 [%rd1], %r1; ";

TEST(LaunchCount, OnStraightPaths) {
  EXPECT_EQ("never", stores("ret;"));
  EXPECT_EQ("once", stores(kStore + "ret;"));
  EXPECT_EQ("at most 2", stores(kStore + kStore + "ret;"));
  EXPECT_EQ("once", stores("@%p1 bra L; " + kStore + "ret; L: " + kStore + "ret;"))
      << "one branch or the other";
  EXPECT_EQ("at most 2", stores("@%p1 bra L; " + kStore + "L: " + kStore + "ret;"));
}

std::string counted(const std::string& init, const std::string& step, const std::string& test,
                    const std::string& branch = "@%p1 bra L;") {
  return stores("mov.u32 %r2, " + init + "; L: " + kStore + "add.s32 %r2, %r2, " + step + "; setp." + test +
                "; " + branch + " ret;");
}

TEST(LaunchCount, InCountedLoops) {
  EXPECT_EQ("at most 4", counted("0", "1", "lt.s32 %p1, %r2, 4"));
  EXPECT_EQ("at most 4", counted("4", "-1", "ne.s32 %p1, %r2, 0"));
  EXPECT_EQ("at most 4", counted("0", "3", "le.u32 %p1, %r2, 9"));
  EXPECT_EQ("at most 4", counted("0", "1", "ge.s32 %p1, %r2, 4", "@!%p1 bra L;"));
  EXPECT_EQ("at most 4", counted("-4", "1", "lt.s32 %p1, %r2, 0"));
}

TEST(LaunchCount, InOtherLoopsIsUnbounded) {
  EXPECT_THAT(stores("L: " + kStore + "@%p1 bra L; ret;"), HasSubstr("unbounded: in a loop (line 6:4)"));
  const std::string cases[] = {
      counted("0", "1", "lt.s32 %p1, %r2, %r9"),  // bound not constant
      counted("%r9", "1", "lt.s32 %p1, %r2, 4"),  // start not constant
      counted("0", "%r9", "lt.s32 %p1, %r2, 4"),  // step not constant
      counted("0", "3", "ne.s32 %p1, %r2, 4"),    // never equal
      counted("0", "1", "lt.s32 %p1, %r2, 900000"),
      counted("0", "1", "lt.s32 %p2, %r2, 4"),  // another predicate decides
      stores("mov.u32 %r2, 0; L: " + kStore +
             "@%p3 add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 4; @%p1 bra L; ret;"),
      stores("mov.u32 %r2, 0; L: " + kStore +
             "add.s32 %r2, %r2, 1; @%p3 mov.u32 %r2, 0; setp.lt.s32 %p1, %r2, 4; "
             "@%p1 bra L; ret;"),
      stores("mov.u32 %r2, 0; L: " + kStore +
             "@%p3 bra L; add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 4; @%p1 bra L; ret;"),
      stores("mov.u32 %r2, 0; L: " + kStore +
             "@%p3 bra M; add.s32 %r2, %r2, 1; M: setp.lt.s32 %p1, %r2, 4; @%p1 bra L; ret;"),
      stores("@%p4 mov.u32 %r2, 0; L: " + kStore +
             "add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 4; @%p1 bra L; ret;"),
      // The outer loop does not set the counter back, so the inner one may start anywhere.
      stores("mov.u32 %r2, 0; O: L: " + kStore +
             "add.s32 %r2, %r2, 1; setp.ne.s32 %p1, %r2, 4; @%p1 bra L; "
             "mov.u32 %r5, 1; add.s32 %r3, %r3, 1; setp.lt.s32 %p2, %r3, 4; @%p2 bra O; ret;"),
  };
  for (const std::string& text : cases) EXPECT_THAT(text, HasSubstr("unbounded: in a loop"));
}

TEST(LaunchCount, InNestedLoops) {
  // Three rounds of four, and once more for what may stand before the outer loop's first test.
  EXPECT_EQ("at most 16", stores("mov.u32 %r3, 0; O: mov.u32 %r2, 0; L: " + kStore +
                                 "add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 4; @%p1 bra L; "
                                 "add.s32 %r3, %r3, 1; setp.lt.s32 %p2, %r3, 3; @%p2 bra O; ret;"));
}

TEST(LaunchCount, OfUnknownBranchesIsUnknown) {
  EXPECT_THAT(stores("brx.idx %r1, unknown_list; " + kStore + "ret;"), HasSubstr("unknown: a branch"));
}

TEST(LaunchCount, ByStream) {
  const auto print = [](const std::string& text, const char* name) {
    return print_launch_counts(*Kernel(text, name).facts);
  };
  const std::string text = fixture("streams.ptx");
  EXPECT_EQ("launches of one thread into stream created: once\n", print(text, "_Z3onePi"));
  EXPECT_THAT(print(text, "_Z4manyPii"), HasSubstr("stream created: unbounded: in a loop (line "));
  EXPECT_EQ("launches of one thread into stream unknown: once\n", print(text, "_Z4condPii"));
}

// Two launches one after the other; `%rdX` is the stream of the second.
std::string two_launches(const std::string& second) {
  std::string text = fixture("streams.ptx");
  const size_t kernel = text.find(".visible .entry _Z3onePi"), end = text.find("// .globl", kernel);
  std::string body = text.substr(kernel, end - kernel);
  const size_t from = body.find("{ // callseq 1, 0"), to = body.find("$L__BB1_2:");
  std::string again = body.substr(from, to - from);
  for (size_t at = 0; (at = again.find("$L__BB1_2", at)) != std::string::npos; at += 10)
    again.insert(at + 9, "x");
  for (size_t at = 0; (at = again.find("%rd3", at)) != std::string::npos; at += 4)
    again.replace(at, 4, "%rd0");
  const std::string stream = "[param1+0], %rd2;";
  again.replace(again.find(stream), stream.size(), "[param1+0], " + second + ";");
  body.insert(to + 10, "\n" + again + "$L__BB1_2x:\n");
  return text.substr(0, kernel) + body + text.substr(end);
}

TEST(LaunchCount, TellsStreamsApart) {
  EXPECT_EQ("launches of one thread into stream created: at most 2\n",
            print_launch_counts(*Kernel(two_launches("%rd2"), "_Z3onePi").facts));
  EXPECT_EQ(
      "launches of one thread into stream created: once\nlaunches of one thread into stream NULL: once\n",
      print_launch_counts(*Kernel(two_launches("0"), "_Z3onePi").facts));
  // A register of unknown origin may hold either.
  EXPECT_EQ(
      "launches of one thread into stream created: at most 2\n"
      "launches of one thread into stream unknown: at most 2\n",
      print_launch_counts(*Kernel(two_launches("%rd4"), "_Z3onePi").facts));
}

TEST(LaunchCount, OfLaunchesInCalledFunctionsIsUnknown) {
  std::string text = fixture("streams.ptx");
  const size_t at = text.find(".visible .entry _Z3onePi");
  text.insert(at, ".extern .func away();\n.func f() { call away; ret; }\n");
  const size_t body = text.find("mov.u64 \t%SPL, __local_depot1;");
  text.insert(body, "call f;\n");
  EXPECT_THAT(print_launch_counts(*Kernel(text, "_Z3onePi").facts),
              HasSubstr("unknown: call of another unit (away)"));
}

}  // namespace
}  // namespace klap::test
