#include "analysis/values/uniformity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace klap::test {
namespace {

using analysis::Uniform;

// The two letters of the instruction that holds `part`: its result, and by whom it is reached.
std::string letters(const Kernel& kernel, const std::string& part) {
  const uint32_t i = kernel.index_of(part);
  return {letter(kernel.values.uniformity.written(i)), letter(kernel.values.uniformity.reached(i))};
}

std::string letters(const std::string& body, const std::string& part) {
  return letters(Kernel(module_with(body)), part);
}

// How uniform register `name` is where the instruction that holds `part` reads it.
char read(const std::string& body, const std::string& part, const std::string& name) {
  const Kernel kernel(module_with(body));
  const uint32_t i = kernel.index_of(part);
  return letter(kernel.values.uniformity.read(i, kernel.register_of(i, name)));
}

TEST(Uniformity, OfSources) {
  EXPECT_EQ("gg", letters("ld.param.u32 %r1, [b]; ret;", "ld.param"));
  EXPECT_EQ("gg", letters("mov.u32 %r1, 7; ret;", "mov"));
  EXPECT_EQ("gg", letters("mov.u32 %r1, %nctaid.x; ret;", "mov"));
  EXPECT_EQ("gg", letters("mov.u32 %r1, %ntid.y; ret;", "mov"));
  EXPECT_EQ("bg", letters("mov.u32 %r1, %ctaid.z; ret;", "mov"));
  EXPECT_EQ("tg", letters("mov.u32 %r1, %tid.x; ret;", "mov"));
  EXPECT_EQ("tg", letters("mov.u32 %r1, %laneid; ret;", "mov"));
  EXPECT_EQ("tg", letters("mov.u32 %r1, %clock; ret;", "mov"));
  EXPECT_EQ("tg", letters("mov.u32 %r1, %warpid; ret;", "mov")) << "may change while the thread runs";
  EXPECT_EQ("gg", letters("mov.u64 %rd1, counter; ret;", "mov"));
  EXPECT_EQ("tg", letters(".local .b8 depot[8]; mov.u64 %rd1, depot; ret;", "mov")) << "each thread's own";
}

TEST(Uniformity, OfArithmetic) {
  const std::string load = "ld.param.u32 %r1, [b]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x;\n";
  EXPECT_EQ("gg", letters(load + "add.s32 %r9, %r1, 3; ret;", "%r9"));
  EXPECT_EQ("bg", letters(load + "mul.lo.s32 %r9, %r1, %r2; ret;", "%r9"));
  EXPECT_EQ("tg", letters(load + "mad.lo.s32 %r9, %r1, %r2, %r3; ret;", "%r9"));
  EXPECT_EQ("gg", letters(load + "sub.s32 %r9, %r3, %r3; ret;", "%r9")) << "what differs cancels";
  EXPECT_EQ("bg", letters(load + "add.s32 %r4, %r3, %r2; sub.s32 %r9, %r4, %r3; ret;", "%r9"));
  EXPECT_EQ("tg", letters(load + "newop.s32 %r9, %r1; ret;", "%r9")) << "an unknown instruction";
}

TEST(Uniformity, OfCarries) {
  const std::string load = "ld.param.u32 %r1, [b]; mov.u32 %r3, %tid.x;\n";
  EXPECT_EQ("gg", letters(load + "add.cc.u32 %r4, %r1, 1; addc.u32 %r9, %r1, 0; ret;", "%r9"));
  EXPECT_EQ("tg", letters(load + "add.cc.u32 %r4, %r3, -1; addc.u32 %r9, %r1, 0; ret;", "%r9"));
  // The sum is the same for all threads, the carry is not.
  EXPECT_EQ("tg",
            letters(load + "sub.cc.u32 %r4, %r3, %r3; add.cc.u32 %r4, %r4, %r3; addc.u32 %r9, %r1, 0; ret;",
                    "%r9"));
  EXPECT_EQ("tg", letters(load + "addc.u32 %r9, %r1, 0; ret;", "%r9")) << "a carry from nowhere";
}

TEST(Uniformity, OfLoads) {
  const std::string load =
      "ld.param.u64 %rd1, [a]; cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;\n";
  const std::string store = "st.global.u32 [%rd2], %r2; ret;";
  EXPECT_EQ("gg", letters(load + "ld.global.u32 %r9, [%rd2+8]; ret;", "%r9")) << "nothing is written";
  for (const char* other : {"bar.sync 0; ", "barrier.sync 0; ", "barrier.cluster.arrive.aligned; ",
                            "movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r4; ",
                            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, "
                            "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}; "}) {
    EXPECT_EQ("gg", letters(load + other + "ld.global.u32 %r9, [%rd2+8]; ret;", "%r9")) << other;
  }
  EXPECT_EQ("tg", letters(load + "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r4}; "
                                 "ld.global.u32 %r9, [%rd2+8]; ret;",
                          "%r9"));
  EXPECT_EQ("tg", letters(load + "ld.global.u32 %r9, [%rd2+8];" + store, "%r9"));
  EXPECT_EQ("gg", letters(load + "ld.global.nc.u32 %r9, [%rd2+8];" + store, "%r9"));
  EXPECT_EQ("tg", letters(load + "ld.global.nc.u32 %r9, [%rd4];" + store, "%r9")) << "an address by thread";
  EXPECT_EQ("gg", letters(load + "ld.const.u32 %r9, [table+4];" + store, "%r9"));
  EXPECT_EQ("tg", letters(load + "ld.volatile.global.u32 %r9, [%rd2]; ret;", "%r9"));
  EXPECT_EQ("tg", letters(load + "ld.u32 %r9, [%rd1]; ret;", "%r9")) << "may be local or shared memory";
  EXPECT_EQ("tg", letters(load + "ld.shared.u32 %r9, [%r2]; ret;", "%r9"));
  EXPECT_EQ("tg",
            letters(load + "ld.global.u32 %r9, [%rd2]; atom.global.add.u32 %r3, [%rd2], 1; ret;", "%r9"));
  EXPECT_EQ("tg", letters(load + "atom.global.add.u32 %r9, [%rd2], 1; ret;", "%r9"));
  EXPECT_EQ("tg", letters(load + "ld.global.u32 %r9, [%rd2]; call.uni unknown; ret;", "%r9"));
  EXPECT_EQ(
      "gg",
      letters("mov.b64 %rd1, s; cvta.param.u64 %rd2, %rd1; ld.u32 %r9, [%rd2+4]; st.u32 [%rd3], %r9; ret;",
              "ld.u32"));
}

TEST(Uniformity, OfWarpOperations) {
  EXPECT_EQ("wg", letters("vote.sync.ballot.b32 %r9, %p1, -1; ret;", "%r9"));
  EXPECT_EQ("wg", letters("redux.sync.add.s32 %r9, %r1, -1; ret;", "%r9"));
  EXPECT_EQ("wg", letters("mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r9|%p1, %r1, 0, 31, -1; ret;", "%r9"));
  EXPECT_EQ("tg", letters("mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r9|%p1, %r1, 0, 7199, -1; ret;", "%r9"))
      << "eight lanes each";
  EXPECT_EQ("tg", letters("mov.u32 %r1, %tid.x; shfl.sync.idx.b32 %r9|%p1, %r1, %r1, 31, -1; ret;", "%r9"));
  EXPECT_EQ("tg", letters("mov.u32 %r1, %tid.x; shfl.sync.bfly.b32 %r9|%p1, %r1, 1, 31, -1; ret;", "%r9"));
  EXPECT_EQ("tg", letters("activemask.b32 %r9; ret;", "%r9")) << "who runs together is not promised";
  EXPECT_EQ("tg", letters("elect.sync %r9|%p1, -1; ret;", "%r9")) << "the predicate differs";
  // Parts of a warp vote apart.
  EXPECT_EQ("tt", letters("mov.u32 %r1, %tid.x; setp.eq.s32 %p2, %r1, 0; @%p2 bra L;\n"
                          "vote.sync.ballot.b32 %r9, %p1, 1; L: ret;",
                          "%r9"));
  EXPECT_EQ("tg", letters("mov.u32 %r1, %tid.x; vote.sync.ballot.b32 %r9, %p1, %r1; ret;", "%r9"));
  EXPECT_EQ("bg", letters("barrier.sync.red.popc.aligned.u32 %r9, 0, %p1; ret;", "%r9"));
  EXPECT_EQ("bg", letters("bar.red.popc.u32 %r9, 0, %p1; ret;", "%r9"));
  EXPECT_EQ("tg", letters("bar.red.popc.u32 %r9, 0, 64, %p1; ret;", "%r9")) << "only 64 threads";
}

const std::string kByThread = "mov.u32 %r1, %tid.x; setp.lt.s32 %p1, %r1, 8;\n";
const std::string kByBlock = "mov.u32 %r1, %ctaid.x; setp.lt.s32 %p1, %r1, 8;\n";
const std::string kByGrid = "ld.param.u32 %r1, [b]; setp.lt.s32 %p1, %r1, 8;\n";

TEST(Uniformity, BranchesDivideTheirRegions) {
  const std::string body = "@%p1 bra L;\nmov.u32 %r9, 1;\nL: mov.u32 %r10, 2; ret;";
  EXPECT_EQ("gt", letters(kByThread + body, "%r9"));
  EXPECT_EQ("gg", letters(kByThread + body, "%r10")) << "all threads come together again";
  EXPECT_EQ("gb", letters(kByBlock + body, "%r9"));
  EXPECT_EQ("gg", letters(kByGrid + body, "%r9"));
}

TEST(Uniformity, EarlyReturnsDivideTheRest) {
  EXPECT_EQ("gt", letters(kByThread + "@%p1 ret;\nmov.u32 %r9, 1; ret;", "%r9"));
  EXPECT_EQ("gt", letters(kByThread + "@%p1 bra L;\nmov.u32 %r9, 1; bra M; L: exit; M: mov.u32 %r8, 1; ret;",
                          "%r9"));
  EXPECT_EQ("gg", letters(kByGrid + "@%p1 ret;\nmov.u32 %r9, 1; ret;", "%r9"));
}

TEST(Uniformity, MergedValuesDependOnTheBranch) {
  const std::string body = "mov.u32 %r5, 1; @%p1 bra L;\nmov.u32 %r5, 2;\nL: add.s32 %r9, %r5, 1; ret;";
  EXPECT_EQ("tg", letters(kByThread + body, "%r9"));
  EXPECT_EQ("bg", letters(kByBlock + body, "%r9"));
  EXPECT_EQ("gg", letters(kByGrid + body, "%r9"));
  // Both arms define.
  const std::string arms =
      "@%p1 bra L;\nmov.u32 %r5, 2; bra M;\nL: mov.u32 %r5, 3;\nM: add.s32 %r9, %r5, 1; ret;";
  EXPECT_EQ("tg", letters(kByThread + arms, "%r9"));
  EXPECT_EQ("gg", letters(kByGrid + arms, "%r9"));
}

TEST(Uniformity, PredicatedDefinitionsAreMerges) {
  const std::string body = "mov.u32 %r5, 1; @%p1 mov.u32 %r5, 2; add.s32 %r9, %r5, 1; ret;";
  EXPECT_EQ("tg", letters(kByThread + body, "%r9"));
  EXPECT_EQ("gg", letters(kByGrid + body, "%r9"));
  EXPECT_EQ("tg", letters(kByThread + "selp.b32 %r9, 1, 2, %p1; ret;", "%r9"));
}

// Inside a region that only some threads enter, values that merge under uniform branches stay uniform: all
// threads that can be there came the same way.
TEST(Uniformity, RegionsDoNotSpoilWhatMergesInside) {
  const std::string inner =
      "ld.param.u32 %r2, [c]; setp.lt.s32 %p2, %r2, 8;\n"
      "mov.u32 %r5, 1; @%p2 bra L;\nmov.u32 %r5, 2;\nL: add.s32 %r9, %r5, 1;\nEND: ret;";
  EXPECT_EQ("gt", letters(kByThread + "@%p1 bra END;\n" + inner, "%r9"));
  EXPECT_EQ("gt", letters(kByThread + "@%p1 ret;\n" + inner, "%r9"));
}

// The region is entered again and again: a value from an earlier round may be of a round in which only some
// threads were there.
TEST(Uniformity, RegionsInLoopsDoSpoilThem) {
  const std::string body =
      "mov.u32 %r5, 1; mov.u32 %r6, 0; ld.param.u32 %r7, [b];\n"
      "LOOP: add.s32 %r20, %r6, %r1; setp.lt.s32 %p3, %r20, 8; @%p3 bra SKIP;\n"
      "add.s32 %r9, %r5, 1; mov.u32 %r5, 2;\n"
      "SKIP: add.s32 %r6, %r6, 1; setp.lt.s32 %p2, %r6, %r7; @%p2 bra LOOP; ret;";
  EXPECT_EQ('t', read(kByThread + body, "add.s32 %r9", "%r5"));
  EXPECT_EQ('g', read(kByThread + body, "add.s32 %r6", "%r6")) << "the loop itself is uniform";
  EXPECT_EQ('g', read(kByGrid + body, "add.s32 %r9", "%r5"));
}

TEST(Uniformity, LoopsThatThreadsLeaveAtDifferentTimes) {
  const auto loop = [](const std::string& bound) {
    return bound +
           "mov.u32 %r6, 0;\nLOOP: add.s32 %r6, %r6, 1; add.s32 %r8, %r6, 5; setp.lt.s32 %p2, %r6, %r1;\n"
           "@%p2 bra LOOP;\nadd.s32 %r9, %r8, 1; add.s32 %r10, %r6, 1; ret;";
  };
  EXPECT_EQ("tg", letters(loop(kByThread), "%r9")) << "of another round for each thread";
  EXPECT_EQ("tg", letters(loop(kByThread), "%r10"));
  EXPECT_EQ("gg", letters(loop(kByGrid), "%r9"));
  EXPECT_EQ("gg", letters(loop(kByGrid), "%r10"));
  EXPECT_EQ("bg", letters(loop(kByBlock), "%r9"));
  EXPECT_EQ('t', letters(loop(kByThread), "add.s32 %r8")[1]) << "the body runs with those that stay";
}

TEST(Uniformity, BreaksCountForLoopsToo) {
  const std::string body =
      "mov.u32 %r6, 0; ld.param.u32 %r7, [c];\n"
      "LOOP: add.s32 %r6, %r6, 1; mov.u32 %r8, %r6; @%p1 bra OUT;\n"
      "setp.lt.s32 %p2, %r6, %r7; @%p2 bra LOOP;\nOUT: add.s32 %r9, %r8, 1; ret;";
  EXPECT_EQ("tg", letters(kByThread + body, "%r9"));
  EXPECT_EQ("gg", letters(kByGrid + body, "%r9"));
}

TEST(Uniformity, CalledFunctionsKnowNothingOfTheirParameters) {
  const Kernel kernel(
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .func f(.param .b32 x) {\n"
      ".reg .b32 %r<4>;\nld.param.u32 %r1, [x];\nmov.u32 %r2, 5;\nret;\n}\n");
  EXPECT_EQ("tg", letters(kernel, "ld.param"));
  EXPECT_EQ("gg", letters(kernel, "mov.u32"));
}

TEST(Uniformity, CallsMayEndThreads) {
  const std::string ends =
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".func ends() { .reg .pred %p<2>; @%p1 exit; ret; }\n.func stays() { ret; }\n"
      ".entry k() {\n.reg .b32 %r<9>;\nmov.u32 %r1, 1;\n";
  EXPECT_EQ("gt", letters(Kernel(ends + "call.uni ends;\nmov.u32 %r2, 1;\nret;\n}\n", "k"), "%r2"));
  EXPECT_EQ("gg", letters(Kernel(ends + "call.uni ends;\nmov.u32 %r2, 1;\nret;\n}\n", "k"), "%r1"));
  EXPECT_EQ("gg", letters(Kernel(ends + "call.uni stays;\nmov.u32 %r2, 1;\nret;\n}\n", "k"), "%r2"));
  EXPECT_EQ("gt", letters(Kernel(ends + "call.uni %r3, ();\nmov.u32 %r2, 1;\nret;\n}\n", "k"), "%r2"));
}

TEST(Uniformity, IsUnknownWithUnknownBranches) {
  EXPECT_EQ("gt", letters("mov.u32 %r1, 1; brx.idx %r1, table_elsewhere; mov.u32 %r2, 3; ret;", "%r2"));
  EXPECT_EQ("tt", letters("mov.u32 %r1, %tid.x; mov.u32 %r5, 1; brx.idx %r1, elsewhere;\n"
                          "mov.u32 %r5, 2; add.s32 %r2, %r5, 1; ret;",
                          "%r2"));
}

TEST(Uniformity, PrintsAnnotatedPtx) {
  const Kernel kernel(
      module_with("mov.u32 %r1, %tid.x;\nsetp.lt.s32 %p1, %r1, 8;\n@%p1 bra L;\nld.param.u32 %r2, [b];\n"
                  "st.global.u32 [%rd1], %r2;\nL: ret;"));
  const std::string text = print_uniformity(kernel.flow, kernel.values.registers, kernel.values.uniformity);
  EXPECT_THAT(text, testing::HasSubstr("/*t g*/ mov.u32 %r1, %tid.x;\n/*t g*/ setp.lt.s32 %p1, %r1, 8;\n"
                                       "/*- g*/ @%p1 bra L;\n/*g t*/ ld.param.u32 %r2, [b];\n"
                                       "/*- t*/ st.global.u32 [%rd1], %r2;\nL: /*- g*/ ret;"));
  // It is still PTX.
  EXPECT_EQ(kernel.flow.instructions().size(),
            Kernel(".version 9.0\n.target sm_90\n.address_size 64\n" + text).flow.instructions().size());
}

}  // namespace
}  // namespace klap::test
