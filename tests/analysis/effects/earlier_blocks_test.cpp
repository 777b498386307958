// Which kernels wait only for blocks whose turn comes before their own, and what stands against it.
#include "analysis/executed/earlier_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "kernel.h"

namespace klap::test {
namespace {

using analysis::BlockOrder;
using testing::HasSubstr;

// The parts of a scan in one pass: a block's turn in %r1, its thread in %r2, where it publishes (%rd3), where
// it begins to poll (%rd4), and the loop.
struct Scan {
  std::string turn = "mov.u32 %r1, %ctaid.x;";
  std::string own = "mul.wide.s32 %rd8, %r1, 8; add.s64 %rd3, %rd1, %rd8;";
  std::string publish = "st.relaxed.gpu.global.u64 [%rd3], %rd9;";
  std::string from = "add.s32 %r5, %r1, -1; mul.wide.s32 %rd8, %r5, 8; add.s64 %rd4, %rd1, %rd8;";
  std::string poll =
      "$again: ld.relaxed.gpu.global.u64 %rd7, [%rd4]; setp.eq.s64 %p1, %rd7, 0; @%p1 bra $again;";
  std::string behind = {};
};

std::string text_of(const Scan& scan) {
  return kernel_text(
      ".shared .align 4 .b32 word;\n"
      "ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; ld.param.u64 %rd2, [q];\n"
      "cvta.to.global.u64 %rd2, %rd2; ld.param.u32 %r3, [n]; mov.u32 %r2, %tid.x; mov.u64 %rd9, 5;\n" +
      scan.turn + "\n" + scan.own + "\n" + scan.publish + "\n" + scan.from + "\n" + scan.poll + "\n" +
      scan.behind + "\n$end: ret;");
}

// "any order", "by rows", "by columns", or what stands against it, without the places.
std::string verdict_of(const Scan& scan) {
  const Kernel kernel(text_of(scan), "k");
  const analysis::EarlierBlocks found = analysis::waits_for_earlier_blocks(*kernel.facts);
  if (!found.shown && found.why_not.empty()) return "waits otherwise";
  if (!found.shown) return std::regex_replace(found.why_not, std::regex(R"( \(line \d+:\d+\))"), "");
  return found.order == BlockOrder::Any    ? "any order"
         : found.order == BlockOrder::Rows ? "by rows"
                                           : "by columns";
}

constexpr char kTicket[] =
    "setp.ne.s32 %p5, %r2, 0; @%p5 bra $taken; atom.global.add.u32 %r9, [%rd2], 1; st.shared.u32 [word], "
    "%r9;\n"
    "$taken: bar.sync 0; ld.shared.u32 %r1, [word];";
// Goes back by one block at a time until the top bit says that it holds all before.
constexpr char kGoesBack[] =
    "$again: ld.relaxed.gpu.global.u64 %rd7, [%rd4]; setp.eq.s64 %p1, %rd7, 0; @%p1 bra $again;\n"
    "setp.lt.s64 %p2, %rd7, 0; @%p2 bra $end; add.s64 %rd4, %rd4, -8; bra $again;";

TEST(EarlierBlocks, AreWaitedForByTheBlocksNumber) {
  EXPECT_EQ("by columns", verdict_of({}));
  EXPECT_EQ("by columns", verdict_of({.poll = kGoesBack}));
  EXPECT_EQ("by columns", verdict_of({.turn = "mov.u32 %r4, %ctaid.x; add.s32 %r1, %r4, %r3;"}));
  EXPECT_EQ("by columns",
            verdict_of({.turn = "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %nctaid.y; mov.u32 %r6, %ctaid.y;\n"
                                "mad.lo.s32 %r1, %r4, %r5, %r6;"}));
  EXPECT_EQ("by rows",
            verdict_of({.turn = "mov.u32 %r4, %ctaid.y; mov.u32 %r5, %nctaid.x; mov.u32 %r6, %ctaid.x;\n"
                                "mad.lo.s32 %r1, %r4, %r5, %r6;"}));
}

TEST(EarlierBlocks, AreWaitedForByATicket) {
  EXPECT_EQ("any order", verdict_of({.turn = kTicket}));
  EXPECT_EQ("any order", verdict_of({.turn = kTicket, .poll = kGoesBack}));
  EXPECT_EQ("any order", verdict_of({.turn = "atom.global.add.u32 %r1, [%rd2], 1;"}));
  const std::string other = "does not go by the block's number";
  EXPECT_THAT(verdict_of({.turn = "atom.global.add.u32 %r1, [%rd2], %r3;"}), HasSubstr(other));
  EXPECT_THAT(verdict_of({.turn = "atom.global.max.u32 %r1, [%rd2], 1;"}), HasSubstr(other));
  EXPECT_THAT(verdict_of({.turn = "ld.shared.u32 %r1, [word];"}), HasSubstr(other));
  // Another value may have been put there.
  EXPECT_THAT(verdict_of({.turn = std::string("st.shared.u32 [word], %r3; ") + kTicket}), HasSubstr(other));
  EXPECT_THAT(verdict_of({.turn = std::regex_replace(std::string(kTicket), std::regex("bar.sync 0; "), "")}),
              HasSubstr(other));
}

TEST(EarlierBlocks, AreWaitedForByEachThread) {
  const std::string by_thread =
      "mad.lo.s32 %r6, %r1, 256, %r2; mul.wide.s32 %rd8, %r6, 8; add.s64 %rd3, %rd1, %rd8;";
  const std::string before =
      "mad.lo.s32 %r6, %r1, 256, %r2; add.s32 %r6, %r6, -256; mul.wide.s32 %rd8, %r6, 8; add.s64 %rd4, %rd1, "
      "%rd8;";
  const std::string guard = "setp.gt.s32 %p7, %r2, 255; @%p7 bra $end;\n";
  EXPECT_EQ("by columns",
            verdict_of({.turn = guard + "mov.u32 %r1, %ctaid.x;", .own = by_thread, .from = before}));
  // A thread of 256 or more may read what a thread of its own block writes, or of a later one.
  EXPECT_THAT(verdict_of({.own = by_thread, .from = before}), HasSubstr("a later block may write"));
  const std::string less = std::regex_replace(guard, std::regex("255"), "256");
  EXPECT_THAT(verdict_of({.turn = less + "mov.u32 %r1, %ctaid.x;", .own = by_thread, .from = before}),
              HasSubstr("a later block may write"));
}

TEST(EarlierBlocks, AreNotTheOnlyOnes) {
  const std::string later =
      "a later block may write what ld.relaxed.gpu.global.u64 reads, by st.relaxed.gpu.global.u64";
  EXPECT_EQ(later, verdict_of({.from = "mov.u64 %rd4, %rd3;"}));
  EXPECT_EQ(later, verdict_of({.from = "add.s64 %rd4, %rd3, 8;"}));
  // Half of what it reads is its own.
  EXPECT_EQ(later, verdict_of({.from = "add.s64 %rd4, %rd3, -4;"}));
  EXPECT_EQ(later, verdict_of({.publish = "st.relaxed.gpu.global.u64 [%rd3+-8], %rd9;"}));
  EXPECT_EQ(later, verdict_of({.publish = "st.relaxed.gpu.global.u64 [%rd1], %rd9;"}));
  const std::string goes_on = std::regex_replace(std::string(kGoesBack), std::regex("-8"), "8");
  EXPECT_THAT(verdict_of({.poll = goes_on}), HasSubstr("may read anything"));
  EXPECT_THAT(verdict_of({.from = "ld.global.u64 %rd4, [%rd2];"}),
              HasSubstr("does not go by the block's number"));
  EXPECT_THAT(verdict_of({.from = "ld.global.s32 %rd8, [%rd2]; add.s64 %rd4, %rd3, %rd8;"}),
              HasSubstr("may read anything"));
  EXPECT_THAT(verdict_of({.from = "mov.u64 %rd4, %rd2;"}), HasSubstr("does not go by the block's number"));
}

TEST(EarlierBlocks, AreWrittenByTheKernelItself) {
  EXPECT_THAT(verdict_of({.publish = ""}), HasSubstr("no block writes"));
  EXPECT_THAT(verdict_of({.publish = "st.global.u64 [%rd3], %rd9;"}), HasSubstr("no block writes"));
  EXPECT_EQ("by columns", verdict_of({.publish = "atom.global.exch.b64 %rd6, [%rd3], %rd9;"}));
  EXPECT_EQ("by columns", verdict_of({.publish = "red.global.add.u64 [%rd3], %rd9;"}));
  // An address that nothing is known of may be anywhere.
  EXPECT_THAT(verdict_of({.behind = "ld.global.u64 %rd8, [%rd2]; st.volatile.global.u64 [%rd8], %rd9;"}),
              HasSubstr("may write what"));
  EXPECT_EQ("by columns", verdict_of({.behind = "st.volatile.global.u64 [%rd2], %rd9;"}));
}

TEST(EarlierBlocks, OneOfThemMayBeNamed) {
  const std::string first =
      "setp.ne.s32 %p3, %r1, 0; @%p3 bra $others; st.relaxed.gpu.global.u64 [%rd1], %rd9; bra $end;\n";
  EXPECT_EQ("by columns",
            verdict_of({.publish = first + "$others: st.relaxed.gpu.global.u64 [%rd3], %rd9;"}));
  const std::string last = std::regex_replace(first, std::regex("%r1, 0"), "%r1, %r3");
  EXPECT_THAT(verdict_of({.publish = last + "$others: st.relaxed.gpu.global.u64 [%rd3], %rd9;"}),
              HasSubstr("a later block may write"));
}

TEST(EarlierBlocks, AreNotWhatALockWaitsFor) {
  EXPECT_EQ("waits otherwise", verdict_of({.behind = "$lock: atom.global.cas.b32 %r7, [%rd2], 0, 1;\n"
                                                     "setp.ne.s32 %p4, %r7, 0; @%p4 bra $lock;"}));
  EXPECT_EQ(
      "waits otherwise",
      verdict_of({.poll = "$again: ld.global.u64 %rd7, [%rd4]; setp.eq.s64 %p1, %rd7, 0; @%p1 bra $again;"}));
  // A fence or a pause in such a loop changes nothing.
  EXPECT_EQ("by columns",
            verdict_of({.poll = "$again: membar.gl; nanosleep.u32 100;\n"
                                "ld.relaxed.gpu.global.u64 %rd7, [%rd4]; setp.eq.s64 %p1, %rd7, 0;\n"
                                "@%p1 bra $again;"}));
}

}  // namespace
}  // namespace klap::test
