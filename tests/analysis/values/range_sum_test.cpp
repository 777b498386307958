// Children that sum up a range of elements: which loops are taken for that, and which blocks are shown to add
// up what their threads have found. Loops as compilers write them are in differential/cases/ranges.cu.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "analysis/ranges/block_sum.h"
#include "fixture.h"

namespace klap::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Parts {
  std::string before = "";                                    // in front of the guard
  std::string begin = "mov.u32 %r20, 0;\n";                   // of the sum
  std::string guard = "setp.ge.s32 %p1, %r10, %r5;\n";        // by which threads go around the loop
  std::string body = "add.s32 %r20, %r20, %r7;\n";            // %r7 is the element, %r10 its number
  std::string behind = "red.global.add.u32 [%rd9], %r20;\n";  // the loop
};

// `for (e = b + tid; e < c; e += ntid) body`: %r3 is the thread, %r1 the block size, %r4 and %r5 are b and c.
std::string kernel_of(const Parts& parts) {
  return module_with(
      ".shared .align 4 .b8 of_thread[4096];\n"
      "mov.u32 %r1, %ntid.x; mov.u32 %r3, %tid.x; ld.param.u32 %r4, [b]; ld.param.u32 %r5, [c];\n"
      "ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; ld.param.u64 %rd8, [s]; cvta.to.global.u64 "
      "%rd9, %rd8;\n"
      "add.s32 %r10, %r3, %r4;\n" +
      parts.before + parts.begin + parts.guard +
      "@%p1 bra END;\nLOOP:\nmul.wide.s32 %rd3, %r10, 4; add.s64 %rd4, %rd2, %rd3; ld.global.u32 %r7, "
      "[%rd4];\n" +
      parts.body + "add.s32 %r10, %r10, %r1; setp.lt.s32 %p2, %r10, %r5; @%p2 bra LOOP;\nEND:\n" +
      parts.behind + "ret;");
}

std::string loop_in(const Parts& parts) {
  const Kernel kernel(kernel_of(parts));
  return to_string(analysis::find_range_loop(kernel.values));
}

TEST(RangeLoop, SumsUpByEveryOperationThatCommutes) {
  EXPECT_EQ("yes: add.i32 over p[8] to p[12]", loop_in({}));
  EXPECT_EQ("yes: add.i32 over p[8] to p[12]", loop_in({.body = "mad.lo.s32 %r20, %r7, %r7, %r20;\n"}));
  EXPECT_EQ("yes: add.f32 over p[8] to p[12]",
            loop_in({.begin = "mov.f32 %f1, 0f00000000;\n",
                     .body = "cvt.rn.f32.s32 %f2, %r7; fma.rn.f32 %f1, %f2, %f2, %f1;\n",
                     .behind = "red.global.add.f32 [%rd9], %f1;\n"}));
  EXPECT_EQ("yes: max.s32 over p[8] to p[12]",
            loop_in({.begin = "mov.u32 %r20, -7;\n", .body = "max.s32 %r20, %r20, %r7;\n"}));
  EXPECT_EQ("yes: add.i32 over p[8] to p[12]",
            loop_in({.body = "setp.gt.s32 %p3, %r7, 5; @%p3 add.s32 %r20, %r20, 1;\n"}));
}

// The only load of the loop, which reads so many bytes of each element's place.
size_t loads_in_a_row(const std::string& step, const std::string& load) {
  std::string text = kernel_of({.body = "add.s32 %r20, %r20, %r10;\n"});
  const std::string before =
      "mul.wide.s32 %rd3, %r10, 4; add.s64 %rd4, %rd2, %rd3; ld.global.u32 %r7, [%rd4];";
  const size_t at = text.find(before.substr(0, 20));
  const size_t behind = text.find(";\n", text.find("ld.global", at));
  const Kernel kernel(text.replace(at, behind - at, step + " add.s64 %rd4, %rd2, %rd3; " + load));
  const analysis::RangeLoop loop = analysis::find_range_loop(kernel.values);
  EXPECT_EQ("", loop.why_not);
  EXPECT_EQ(1u, loop.loads.size());
  return loop.loads_in_a_row.size();
}
TEST(RangeLoop, KnowsLoadsInARow) {
  EXPECT_EQ(1u, loads_in_a_row("mul.wide.s32 %rd3, %r10, 4;", "ld.global.u32 %r7, [%rd4]"));
  EXPECT_EQ(1u, loads_in_a_row("mul.wide.s32 %rd3, %r10, 2;", "ld.global.u16 %r7, [%rd4]"));
  EXPECT_EQ(0u, loads_in_a_row("mul.wide.s32 %rd3, %r10, 8;", "ld.global.u32 %r7, [%rd4]")) << "with gaps";
  EXPECT_EQ(0u, loads_in_a_row("mul.wide.s32 %rd3, %r10, 2;", "ld.global.u32 %r7, [%rd4]")) << "twice";
  EXPECT_EQ(0u, loads_in_a_row("mov.u64 %rd3, 20;", "ld.global.u32 %r7, [%rd4]")) << "all the same";
  EXPECT_EQ(0u,
            loads_in_a_row("and.b32 %r8, %r10, 15; mul.wide.u32 %rd3, %r8, 4;", "ld.global.u32 %r7, [%rd4]"))
      << "again and again";
}

TEST(RangeLoop, ComparesWithoutSignsToo) {
  std::string text = kernel_of({.guard = "setp.ge.u32 %p1, %r10, %r5;\n"});
  const std::string end = "setp.lt.s32 %p2";
  const Kernel kernel(text.replace(text.find(end), end.size(), "setp.lt.u32 %p2"));
  EXPECT_EQ("yes: add.i32 over p[8] to p[12]", to_string(analysis::find_range_loop(kernel.values)));
}

// `for (e = tid; e < c; ...)`: %r10 is only the thread's number then.
TEST(RangeLoop, CountsFromZero) {
  const auto counted = [](const std::string& body) {
    std::string text = kernel_of({.body = body});
    const std::string from = "add.s32 %r10, %r3, %r4;";
    const Kernel kernel(text.replace(text.find(from), from.size(), "mov.u32 %r10, %r3;"));
    return to_string(analysis::find_range_loop(kernel.values));
  };
  EXPECT_EQ("yes: add.i32 over 0 to p[12]", counted("add.s32 %r20, %r20, %r7;\n"));
  EXPECT_EQ("yes: add.i32 over 0 to p[12]", counted("mad.lo.s32 %r20, %r10, %r7, %r20;\n"))
      << "by the element";
  EXPECT_EQ("yes: add.i32 over 0 to p[12]", counted("mad.lo.s32 %r20, %r4, %r7, %r20;\n"))
      << "b is an argument";
  EXPECT_THAT(counted("mad.lo.s32 %r20, %r3, %r7, %r20;\n"), HasSubstr("uses more than its element"));
}

// What stands before the loop is run once more behind it, for the thread's own number.
TEST(RangeLoop, RunsOnlyWhatGivesTheSameAgain) {
  const auto may_run_again = [](const std::string& before, const std::string& behind = "") {
    const Kernel kernel(kernel_of({.before = "", .begin = "mov.u32 %r20, 0;\n" + before, .behind = behind}));
    const analysis::RangeLoop loop = analysis::find_range_loop(kernel.values);
    EXPECT_TRUE(loop.yes()) << loop.why_not;
    return higher_threads(kernel.values, loop).has_value();
  };
  EXPECT_TRUE(may_run_again(""));
  EXPECT_TRUE(may_run_again("shl.b32 %r21, %r3, 2; add.s32 %r22, %r21, 4;\n"));
  EXPECT_FALSE(may_run_again("mov.u32 %r21, %r20;\n")) << "the sum has another value then";
  EXPECT_TRUE(may_run_again("add.s32 %r21, %r10, 4;\n")) << "the counter begins again, too";
  EXPECT_FALSE(may_run_again("{ .reg .b32 %r3; mov.u32 %r3, 5; }\n")) << "another register of the same name";
}

TEST(RangeLoop, LeavesSumsOfAnotherForm) {
  EXPECT_THAT(loop_in({.begin = "mov.u32 %r20, 1;\n"}), HasSubstr("mov.u32 does not begin a sum"));
  EXPECT_THAT(loop_in({.begin = "mov.u32 %r20, %r3;\n"}), HasSubstr("does not begin a sum"));
  EXPECT_THAT(loop_in({.body = "sub.s32 %r20, %r20, %r7;\n"}),
              HasSubstr("carries %r20 to the next iteration"));
  EXPECT_THAT(loop_in({.body = "add.s32 %r20, %r20, %r20;\n"}), HasSubstr("carries %r20"));
  EXPECT_THAT(loop_in({.body = "add.s32 %r20, %r20, %r7; max.s32 %r20, %r20, %r7;\n"}),
              HasSubstr("carries %r20"));
  EXPECT_THAT(loop_in({.body = "add.s32 %r21, %r20, %r7; xor.b32 %r22, %r20, %r7; mov.u32 %r20, %r21;\n"}),
              HasSubstr("carries %r20"));
  EXPECT_THAT(loop_in({.body = "add.f32.rz %f1, %f1, %f2;\n"}), StartsWith("no: "));
}

TEST(RangeLoop, LeavesIterationsThatKnowMoreThanTheirElement) {
  const auto adding = [](const std::string& value) {
    return Parts{.body = value + " add.s32 %r20, %r20, %r8;\n"};
  };
  EXPECT_THAT(loop_in(adding("sub.s32 %r8, %r10, %r4;")), HasSubstr("uses more than its element"));
  EXPECT_THAT(loop_in(adding("mul.lo.s32 %r8, %r7, %r3;")), HasSubstr("uses more than its element"));
  EXPECT_THAT(loop_in(adding("mul.lo.s32 %r8, %r7, %r1;")), HasSubstr("uses more than its element"));
  EXPECT_THAT(loop_in(adding("mul.lo.s32 %r8, %r7, %r5;")), HasSubstr("uses an end of the range"));
  EXPECT_THAT(loop_in(adding("mov.u32 %r8, %ctaid.y; mul.lo.s32 %r8, %r8, %r7;")), StartsWith("yes"))
      << "it is 0";
  EXPECT_THAT(loop_in({.before = "cvt.rn.f32.s32 %f3, %r5;\n",
                       .body = "cvt.rzi.s32.f32 %r8, %f3; add.s32 %r20, %r20, %r8;\n"}),
              HasSubstr("uses an end of the range"));
  EXPECT_EQ("yes: add.i32 over p[8] to p[12]", loop_in(adding("mul.lo.s32 %r8, %r10, %r7;")));
  for (const char* const place : {"%laneid", "%warpid", "%clock", "%lanemask_lt", "%smid"}) {
    const std::string read = std::string("mov.u32 %r8, ") + place + ";";
    EXPECT_THAT(loop_in(adding(read)), StartsWith("no: ")) << place;
    EXPECT_THAT(loop_in({.before = read + "\n", .body = "add.s32 %r20, %r20, %r8;\n"}), StartsWith("no: "))
        << place;
  }
}

TEST(RangeLoop, LeavesIterationsThatDoMore) {
  EXPECT_THAT(loop_in({.body = "st.global.u32 [%rd4], %r7; add.s32 %r20, %r20, %r7;\n"}),
              HasSubstr("does more than compute"));
  EXPECT_THAT(loop_in({.body = "ld.volatile.global.u32 %r8, [%rd4]; add.s32 %r20, %r20, %r8;\n"}),
              HasSubstr("is no plain load of global memory"));
  EXPECT_THAT(loop_in({.body = "ld.shared.u32 %r8, [of_thread]; add.s32 %r20, %r20, %r8;\n"}),
              HasSubstr("is no plain load of global memory"));
  EXPECT_THAT(loop_in({.before = "st.shared.u32 [of_thread], %r3;\n"}), HasSubstr("stands before the loop"));
  EXPECT_THAT(loop_in({.behind = "red.global.add.u32 [%rd9], %r10;\n"}),
              HasSubstr("leaves %r10 behind the loop"));
}

TEST(RangeLoop, LeavesOtherWaysIntoTheLoop) {
  EXPECT_THAT(loop_in({.guard = "setp.hs.u32 %p1, %r10, %r5;\n"}), HasSubstr("do not end by its guard"))
      << "the loop's own comparison has signs";
  EXPECT_THAT(loop_in({.guard = "setp.hi.u32 %p1, %r10, %r5;\n"}), HasSubstr("not an element of a range"));
  EXPECT_THAT(loop_in({.guard = "setp.gt.s32 %p1, %r10, %r5;\n"}), StartsWith("no: "));
  EXPECT_THAT(loop_in({.guard = "setp.ge.s32 %p1, %r3, %r5;\n"}), HasSubstr("do not end by its guard"));
}

// ---- blocks ----

// What is said of a block of so many threads.
std::string block_of(uint32_t threads, const std::string& behind) {
  const Kernel kernel(kernel_of({.behind = behind}));
  const analysis::RangeLoop loop = analysis::find_range_loop(kernel.values);
  EXPECT_TRUE(loop.yes()) << loop.why_not;
  const analysis::BlockSum block = run_block(kernel.values, loop, threads);
  std::string text = block.why_not;
  for (const analysis::BlockAddition& addition : block.additions)
    text += addition.operation + " to " + to_string(addition.address) + "; ";
  return text;
}

// A step of a sum over lanes.
std::string lanes(uint32_t distance) {
  return "shfl.sync.down.b32 %r21|%p3, %r20, " + std::to_string(distance) +
         ", 31, -1; add.s32 %r20, %r20, %r21;\n";
}
const std::string kFirstAdds =
    "setp.ne.s32 %p4, %r3, 0; @%p4 bra OUT; red.global.add.u32 [%rd9], %r20;\nOUT:\n";
const std::string kOwnPlace = "shl.b32 %r30, %r3, 2; mov.u32 %r31, of_thread; add.s32 %r32, %r31, %r30;\n";

TEST(BlockSum, ThreadsMayAddEachTheirOwn) {
  EXPECT_EQ("add.i32 to global(p[16:8]); ", block_of(96, "red.global.add.u32 [%rd9], %r20;\n"));
  EXPECT_EQ("add.i32 to global(p[16:8]); ", block_of(32, "atom.global.add.u32 %r40, [%rd9], %r20;\n"));
}

TEST(BlockSum, FollowsShufflesForTheBlocksThatTheySuit) {
  const std::string all = lanes(16) + lanes(8) + lanes(4) + lanes(2) + lanes(1);
  EXPECT_EQ("add.i32 to global(p[16:8]); ", block_of(32, all + kFirstAdds));
  EXPECT_EQ("blocks of 64 threads do not add up all of their threads' sums", block_of(64, all + kFirstAdds));
  EXPECT_EQ("blocks of 32 threads do not add up all of their threads' sums",
            block_of(32, lanes(16) + lanes(4) + lanes(2) + lanes(1) + kFirstAdds));
  EXPECT_EQ("blocks of 32 threads do not add up all of their threads' sums",
            block_of(32, all + "red.global.add.u32 [%rd9], %r20;\n"))
      << "several lanes have the sum, or parts of it";
}

TEST(BlockSum, FollowsSharedMemoryThroughBarriers) {
  const std::string put = kOwnPlace + "st.shared.u32 [%r32], %r20;\n";
  const std::string take =
      "setp.ge.s32 %p5, %r3, 16; @%p5 bra LESS; ld.shared.u32 %r33, [%r32+64];\n"
      "add.s32 %r20, %r20, %r33;\nLESS:\n";
  const std::string rest = lanes(8) + lanes(4) + lanes(2) + lanes(1) + kFirstAdds;
  EXPECT_EQ("add.i32 to global(p[16:8]); ", block_of(32, put + "bar.sync 0;\n" + take + rest));
  EXPECT_EQ("add.i32 to global(p[16:8]); ", block_of(32, put + "bar.warp.sync -1;\n" + take + rest));
  EXPECT_THAT(block_of(32, put + take + rest), HasSubstr("what no thread has written"));
  EXPECT_THAT(block_of(32, "st.shared.u32 [of_thread], %r20;\n" + kFirstAdds),
              HasSubstr("meets another thread's access without a barrier between"));
  EXPECT_THAT(block_of(32, kOwnPlace + "st.shared.u32 [%r32+4080], %r20;\n" + kFirstAdds),
              HasSubstr("reaches beyond its variable"));
}

TEST(BlockSum, LeavesWhatItDoesNotKnow) {
  EXPECT_THAT(block_of(32, "red.global.add.u32 [%rd9], 1;\n"),
              HasSubstr("adds something else than the sums"));
  EXPECT_THAT(block_of(32, "mul.lo.s32 %r20, %r20, 3; red.global.add.u32 [%rd9], %r20;\n"),
              HasSubstr("adds something else than the sums"));
  EXPECT_THAT(block_of(32, "red.global.max.s32 [%rd9], %r20;\n"),
              HasSubstr("adds something else than the sums"));
  EXPECT_THAT(block_of(32, "atom.global.add.u32 %r40, [%rd9], %r20; st.shared.u32 [of_thread], %r40;\n"),
              HasSubstr("returns what memory held before"));
  EXPECT_THAT(block_of(32, "st.global.u32 [%rd9], %r20;\n"), HasSubstr("stands outside the loop"));
  EXPECT_THAT(block_of(32, "ld.global.u32 %r40, [%rd9];\n"), HasSubstr("stands outside the loop"));
  EXPECT_THAT(
      block_of(32, "setp.eq.s32 %p4, %r20, 0; @%p4 bra OUT; red.global.add.u32 [%rd9], %r20;\nOUT:\n"),
      HasSubstr("goes by a value that is not known"));
  EXPECT_THAT(
      block_of(32, "mul.wide.s32 %rd5, %r4, 4; add.s64 %rd6, %rd9, %rd5; red.global.add.u32 [%rd6], %r20;\n"),
      HasSubstr("has an address that is not known"));
  EXPECT_THAT(
      block_of(32, "mul.wide.s32 %rd5, %r3, 4; add.s64 %rd6, %rd9, %rd5; red.global.add.u32 [%rd6], %r20;\n"),
      HasSubstr("do not add up all of their threads' sums"));
  EXPECT_THAT(block_of(64, "setp.ge.s32 %p4, %r3, 32; @%p4 bra OUT; bar.sync 0;\nOUT:\n"),
              HasSubstr("wait for each other in a way that is not known"));
  for (const char* const other : {"activemask.b32 %r40;", "trap;", "nanosleep.u32 20;",
                                  "prefetch.global.L2 [%rd9];", "vote.sync.any.pred %p4, %p1, -1;"})
    EXPECT_THAT(block_of(32, std::string(other) + " red.global.add.u32 [%rd9], %r20;\n"),
                HasSubstr("is not known"))
        << other;
  EXPECT_THAT(block_of(32, "mov.u32 %r40, %smid; red.global.add.u32 [%rd9], %r20;\n"), HasSubstr("%smid"));
  EXPECT_THAT(block_of(32, "bar.sync 1, 32;\n"), HasSubstr("is for some of the threads"));
  EXPECT_EQ("its last warp is not full", block_of(48, ""));
  EXPECT_EQ("it adds its sum to no memory", block_of(32, ""));
}

// ---- blocks whose parts are joined ----

// The thread and the effects a block of so many threads has; conditions are assumed as given.
std::string end_of(uint32_t threads, const std::string& behind, bool knows_range = false,
                   const analysis::AssumedConditions& assumed = {}) {
  const Kernel kernel(kernel_of({.behind = behind}));
  const analysis::RangeLoop loop = analysis::find_range_loop(kernel.values);
  EXPECT_TRUE(loop.yes()) << loop.why_not;
  analysis::OpaqueValues values;
  const analysis::EndOfBlock end =
      run_block_to_end(kernel.values, loop, {threads, knows_range, assumed}, values);
  if (!end.why_not.empty()) return end.why_not;
  if (end.undecided) return "? " + *end.undecided;
  std::string text = end.is_rounded ? "rounded, " : "";
  text += "thread " + std::to_string(end.thread) + ": ";
  for (const std::string& effect : end.effects) text += effect + "; ";
  // The numbers of values and numbers depend on what other threads compute.
  return std::regex_replace(text, std::regex("\\b([nv])[0-9]+"), "$1");
}

const std::string kAllLanes = lanes(16) + lanes(8) + lanes(4) + lanes(2) + lanes(1);
std::string first_does(const std::string& what) {
  return kAllLanes + "setp.ne.s32 %p4, %r3, 0; @%p4 bra OUT; " + what + "\nOUT:\n";
}

TEST(EndOfBlock, OneThreadDoesAnythingWithCompleteSums) {
  EXPECT_EQ("thread 0: st.global.u32 s0 n[0]; ", end_of(32, first_does("st.global.u32 [%rd9], %r20;")));
  EXPECT_EQ("thread 0: st.global.u32 v n[4]; ",
            end_of(32, first_does("mad.lo.s32 %r40, %r20, %r20, 7; st.global.u32 [%rd9+4], %r40;")));
  EXPECT_EQ("thread 0: atom.global.exch.b32 s0 n[0]; st.global.u32 v n[8]; ",
            end_of(32, first_does("atom.global.exch.b32 %r40, [%rd9], %r20; st.global.u32 [%rd9+8], %r40;")))
      << "what memory held before";
  EXPECT_EQ("thread 0: ", end_of(32, "")) << "nothing";
}

TEST(EndOfBlock, LoadsAreToldApartByTheirPlace) {
  EXPECT_EQ("thread 0: st.global.u32 v n[0]; ",
            end_of(32, first_does("ld.global.u32 %r40, [%rd9]; ld.global.u32 %r41, [%rd9]; add.s32 %r42, "
                                  "%r40, %r41; st.global.u32 [%rd9], %r42;")))
      << "another kernel may write between them";
  EXPECT_EQ("thread 0: st.global.u64 v v[0]; ",
            end_of(32, first_does("ld.global.u64 %rd5, [%rd9]; st.global.u64 [%rd5], %rd5;")));
  const std::string of_lane_5 =
      "mul.wide.s32 %rd5, %r3, 4; add.s64 %rd6, %rd9, %rd5; ld.global.u32 %r40, [%rd6];\n"
      "shfl.sync.idx.b32 %r41|%p3, %r40, 5, 31, -1;\n";
  EXPECT_THAT(end_of(32, of_lane_5 + first_does("st.global.u32 [%rd9], %r41;")),
              HasSubstr("writes what is not known"));
}

TEST(EndOfBlock, LeavesSumsThatAreNotComplete) {
  EXPECT_THAT(end_of(64, first_does("st.global.u32 [%rd9], %r20;")), HasSubstr("writes what is not known"));
  EXPECT_THAT(end_of(32, "setp.ne.s32 %p4, %r3, 0; @%p4 bra OUT; st.global.u32 [%rd9], %r20;\nOUT:\n"),
              HasSubstr("writes what is not known"));
  EXPECT_THAT(end_of(32, first_does("add.s32 %r40, %r20, %r20; st.global.u32 [%rd9], %r40;")),
              HasSubstr("writes what is not known"));
  EXPECT_THAT(end_of(32, first_does("mul.wide.s32 %rd5, %r20, 4; add.s64 %rd6, %rd9, %rd5; "
                                    "st.global.u32 [%rd6], %r20;")),
              StartsWith("thread 0: "))
      << "an address may depend on it";
}

TEST(EndOfBlock, LeavesWhatSeveralThreadsDo) {
  EXPECT_EQ("several of its threads write to memory", end_of(32, "st.global.u32 [%rd9], %r3;\n"));
  for (const char* const other :
       {"activemask.b32 %r40;", "trap;", "mov.u32 %r40, %clock;", "st.local.u32 [%rd9], %r20;",
        "st.global.v2.u32 [%rd9], {%r20, %r20};", "ld.global.v2.u32 {%r40, %r41}, [%rd9];",
        "ld.volatile.global.u32 %r40, [%rd9];", "atom.add.u32 %r40, [%rd9], %r20;", "st.u32 [%rd9], %r20;"})
    EXPECT_THAT(end_of(32, first_does(other)), Not(StartsWith("thread"))) << other;
}

TEST(EndOfBlock, KnowsTheRangeIfItIsReadAgain) {
  const std::string mean =
      first_does("sub.s32 %r40, %r5, %r4; div.s32 %r41, %r20, %r40; st.global.u32 [%rd9], %r41;");
  EXPECT_THAT(end_of(32, mean), HasSubstr("writes what is not known"));
  EXPECT_EQ("thread 0: st.global.u32 v n[0]; ", end_of(32, mean, true));
}

TEST(EndOfBlock, RunsBothWaysOfACondition) {
  const std::string text =
      first_does("setp.gt.s32 %p5, %r20, 9; @%p5 bra MORE; bra OUT;\nMORE:\nst.global.u32 [%rd9], %r20;");
  EXPECT_EQ("? v0", end_of(32, text));
  EXPECT_EQ("thread 0: st.global.u32 s0 n[0]; ", end_of(32, text, false, {{"v0", true}}));
  EXPECT_EQ("thread 0: ", end_of(32, text, false, {{"v0", false}}));
  EXPECT_EQ("thread 0: st.global.u32 v n[0]; ",
            end_of(32, first_does("setp.gt.s32 %p5, %r20, 9; selp.b32 %r40, %r20, 5, %p5; "
                                  "st.global.u32 [%rd9], %r40;")));
}

// A sum of floating-point numbers that one thread adds has the same last bits in each run.
TEST(BlockSum, KnowsFixedBits) {
  const auto has_fixed_bits = [](const std::string& begin, const std::string& body,
                                 const std::string& behind) {
    const Kernel kernel(kernel_of({.begin = begin, .body = body, .behind = behind}));
    const analysis::BlockSum sum = run_block(kernel.values, analysis::find_range_loop(kernel.values), 32);
    EXPECT_EQ("", sum.why_not);
    return sum.has_fixed_bits;
  };
  const std::string zero = "mov.f32 %f1, 0f00000000;\n",
                    add = "cvt.rn.f32.s32 %f2, %r7; add.f32 %f1, %f1, %f2;\n";
  std::string shuffles, of_integers;
  for (const int distance : {16, 8, 4, 2, 1}) {
    const std::string how = ", " + std::to_string(distance) + ", 31, -1; ";
    shuffles += "mov.b32 %r21, %f1; shfl.sync.bfly.b32 %r22|%p3, %r21" + how +
                "mov.b32 %f2, %r22; add.f32 %f1, %f1, %f2;\n";
    of_integers += "shfl.sync.bfly.b32 %r22|%p3, %r20" + how + "add.s32 %r20, %r20, %r22;\n";
  }
  const std::string by_one = "setp.ne.s32 %p4, %r3, 0; @%p4 bra OUT; ";
  EXPECT_TRUE(has_fixed_bits(zero, add, shuffles + by_one + "red.global.add.f32 [%rd9], %f1;\nOUT:\n"));
  EXPECT_FALSE(has_fixed_bits(zero, add, "red.global.add.f32 [%rd9], %f1;\n")) << "by each thread";
  EXPECT_FALSE(has_fixed_bits("mov.u32 %r20, 0;\n", "add.s32 %r20, %r20, %r7;\n",
                              of_integers + by_one + "red.global.add.u32 [%rd9], %r20;\nOUT:\n"));
}

TEST(EndOfBlock, SaysWhereTheOrderOfAdditionsShows) {
  const auto end = [](const std::string& behind) {
    std::string shuffles;
    for (const int distance : {16, 8, 4, 2, 1}) {
      shuffles += "mov.b32 %r21, %f1; shfl.sync.bfly.b32 %r22|%p3, %r21, " + std::to_string(distance) +
                  ", 31, -1; mov.b32 %f2, %r22; add.f32 %f1, %f1, %f2;\n";
    }
    const Kernel kernel(
        kernel_of({.begin = "mov.f32 %f1, 0f00000000;\n",
                   .body = "cvt.rn.f32.s32 %f2, %r7; add.f32 %f1, %f1, %f2;\n",
                   .behind = shuffles + "setp.ne.s32 %p4, %r3, 0; @%p4 bra OUT; " + behind + "\nOUT:\n"}));
    const analysis::RangeLoop loop = analysis::find_range_loop(kernel.values);
    EXPECT_TRUE(loop.yes()) << loop.why_not;
    analysis::OpaqueValues values;
    const auto found = run_block_to_end(kernel.values, loop, {32}, values);
    EXPECT_EQ("", found.why_not);
    return found.is_rounded;
  };
  EXPECT_TRUE(end("st.global.f32 [%rd9], %f1;"));
  EXPECT_TRUE(end("mul.f32 %f3, %f1, %f1; st.global.f32 [%rd9], %f3;"));
  EXPECT_TRUE(end("mul.f32 %f3, %f1, %f1; red.global.add.f32 [%rd9], %f3;")) << "once in each child";
  EXPECT_TRUE(end("atom.global.add.f32 %f3, [%rd9], %f1; st.global.f32 [%rd9+4], %f3;"));
  EXPECT_TRUE(end("cvt.rzi.s32.f32 %r40, %f1; red.global.add.u32 [%rd9], %r40;"));
  EXPECT_FALSE(end("st.global.u32 [%rd9], 4;")) << "it is not the sum";
}

}  // namespace
}  // namespace klap::test
