// Which kernels are chains, and why others are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain.h"

namespace klap::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The reason, and the sentence.
struct Left {
  std::string reason, detail;
};
Left left(const Changes& changes) {
  const Kernel k = chain_kernel(changes);
  const analysis::ChainVerdict verdict = judge_promotion(*k.facts, false);
  if (!verdict.rejection) return {};
  EXPECT_EQ(nullptr, verdict.facts);
  return {to_string(verdict.rejection->reason), verdict.rejection->detail};
}

TEST(Recognition, TheWholeChain) {
  EXPECT_EQ(
      "a chain of blocks of 64x1x1, 0 bytes of shared memory\n"
      "  offset 0, 8 bytes: unchanged\n"
      "  offset 8, 8 bytes: unchanged\n"
      "  offset 16, 4 bytes: unchanged\n"
      "  offset 20, 4 bytes: stepped by 1\n"
      "  offset 24, 4 bytes: postponed, carried by add.s32 of %r5\n"
      "  condition: counted: p[20] + 1, which goes up by 1, is compared with p[16]\n"
      "  tests: not %p3; 7 instructions\n"
      "  counter: %r6 rises by 1 (s32)\n"
      "  overlap: up to line 29:6: threads go different ways from bra (line 29:6)\n"
      "  moved: ld.param.u32 %r3, [sum]; (line 16:1)\n"
      "  look-back\n",
      chain({}));
}

TEST(Recognition, NothingOfOtherKernels) {
  EXPECT_EQ("", analysis::print_promotion(*kernel("ret;").facts));
  const Left other = left({{"mov.u64 %rd10, k;", "mov.u64 %rd10, other;"},
                           {".visible .entry k", ".visible .entry other() { ret; }\n.visible .entry k"}});
  EXPECT_EQ("chain-form", other.reason);
  EXPECT_EQ("it does not launch itself", other.detail);
}

// A second launch behind the first.
std::string with_second_launch() {
  const std::string text = chain_text({});
  const size_t begin = text.find("mov.u64 %rd10"), end = text.find("DONE:");
  std::string again = text.substr(begin, end - begin);
  for (const auto& [old, now] :
       Changes{{"%rd11", "%rd12"}, {"%r7", "%r17"}, {"%r8", "%r18"}, {"%p4", "%p5"}}) {
    for (size_t at = 0; (at = again.find(old, at)) != std::string::npos; at += now.size())
      again.replace(at, old.size(), now);
  }
  return text.substr(0, end) + again + text.substr(end);
}

TEST(Recognition, OneSite) {
  const Kernel k(with_second_launch(), "k");
  EXPECT_THAT(
      analysis::print_promotion(*k.facts),
      StartsWith("left (several-sites): it launches itself (line 45:1) and launches elsewhere (line 80:1)"));
}

TEST(Recognition, AGridOfOneBlock) {
  const Left two = left({{"[param1+4], 1", "[param1+4], 2"}});
  EXPECT_EQ("chain-form", two.reason);
  EXPECT_EQ("its grid is not one block: 2 in dimension y", two.detail);
  EXPECT_EQ("its grid is not one block: %r1 in dimension x",
            left({{"[param1+0], 1", "[param1+0], %r1"}}).detail);
  // The same by a register.
  EXPECT_THAT(chain({{"[param1+0], 1", "[param1+0], %r20"}, {"mov.u32 %r4", "mov.u32 %r20, 1; mov.u32 %r4"}}),
              StartsWith("a chain"));
}

TEST(Recognition, ConstantBlockAndSharedMemory) {
  EXPECT_EQ("block-not-constant", left({{"[param2+0], 64", "[param2+0], %r1"}}).reason);
  EXPECT_EQ("block-not-constant", left({{"[param2+0], 64", "[param2+0], %r20"},
                                        {"mov.u32 %r4", "mov.u32 %r20, %ntid.x; mov.u32 %r4"}})
                                      .reason);
  EXPECT_EQ("block-refused", left({{"[param2+0], 64", "[param2+0], 2048"}}).reason);
  EXPECT_EQ("dynamic-shared-memory", left({{"[param3+0], 0", "[param3+0], %r1"}}).reason);
  EXPECT_THAT(chain({{"[param3+0], 0", "[param3+0], 128"}}),
              StartsWith("a chain of blocks of 64x1x1, 128 bytes"));
}

TEST(Recognition, OneThread) {
  const Left all = left({{"or.pred %p3, %p1, %p2;", "mov.pred %p3, %p2;"}});
  EXPECT_EQ("chain-form", all.reason);
  EXPECT_EQ("several threads of the block may launch", all.detail);
  // One of each row.
  EXPECT_EQ(all.detail, left({{"[param2+4], 1", "[param2+4], 2"}}).detail);
  // One of a warp.
  EXPECT_EQ(all.detail,
            left({{"setp.ne.s32 %p1, %r4, 0;", "and.b32 %r20, %r4, 31; setp.ne.s32 %p1, %r20, 0;"}}).detail);
  // The last one; all of a block of one thread.
  EXPECT_THAT(chain({{"setp.ne.s32 %p1, %r4, 0;", "setp.ne.s32 %p1, %r4, 63;"}}), StartsWith("a chain"));
  EXPECT_THAT(chain({{"or.pred %p3, %p1, %p2;", "mov.pred %p3, %p2;"},
                     {"[param2+0], 64", "[param2+0], 1"},
                     {"bar.sync 0;", ""}}),
              StartsWith("a chain of blocks of 1x1x1"));
}

TEST(Recognition, NotInALoop) {
  EXPECT_EQ("site-in-loop", left({{"add.s32 %r6, %r2, 1;", "AGAIN: add.s32 %r6, %r2, 1;"},
                                  {"DONE:", "@%p5 bra AGAIN; DONE:"}})
                                .reason);
}

TEST(Recognition, Streams) {
  const auto stream = [](const std::string& value) {
    return Changes{{"[param1+0], 0", "[param1+0], " + value}};
  };
  EXPECT_THAT(chain(stream("2")), StartsWith("a chain"));  // per-thread
  EXPECT_THAT(chain(stream("4")), StartsWith("a chain"));  // fire-and-forget
  const Left tail = left(stream("3"));
  EXPECT_EQ("stream-unsupported", tail.reason);
  EXPECT_THAT(tail.detail, StartsWith("the stream is "));
  EXPECT_EQ("stream-unsupported", left(stream("%rd1")).reason);
}

// The order of the NULL stream says nothing of a chain: what keeps aggregation from it does not matter.
TEST(Recognition, OrderOfTheNullStreamIsNoQuestion) {
  // Barriers in rounds of unknown number, and an update of memory that all links share.
  EXPECT_THAT(
      chain({{"bar.sync 0;",
              "AGAIN: bar.sync 0; add.s32 %r21, %r21, 1; setp.lt.s32 %p6, %r21, %r1; @%p6 bra AGAIN;"},
             {"st.global.u32 [%rd7], %r9;",
              "ld.global.u32 %r20, [%rd4]; add.s32 %r20, %r20, 1; st.global.u32 [%rd4], %r20;"}}),
      StartsWith("a chain"));
}

TEST(Recognition, OtherCalls) {
  EXPECT_EQ("parent-calls-unknown",
            left({{".global", ".extern .func other();\n.global"}, {"bar.sync 0;", "call other;"}}).reason);
  EXPECT_EQ("not-understood",
            left({{"st.u32 [%rd11+24], %r7;", "st.u32 [%rd11+24], %r7; st.u64 [%rd2], %rd11;"}}).reason);
}

TEST(Recognition, WhatNoResidentBlockCanKeep) {
  EXPECT_EQ("child-texture",
            left({{".global", ".global .texref tex0;\n.global"},
                  {"bar.sync 0;", "tex.1d.v4.u32.s32 {%r20, %r21, %r22, %r23}, [tex0, {%r4}];"}})
                .reason);
  EXPECT_EQ("child-special-register",
            left({{"mov.u32 %r4, %tid.x;", "mov.u32 %r4, %tid.x; mov.u64 %rd20, %gridid;"}}).reason);
  EXPECT_EQ("child-instruction", left({{"bar.sync 0;", "cp.async.wait_all;"}}).reason);
  EXPECT_EQ("child-calls-unknown",
            left({{".visible", ".func f(.param .b32 z) { .reg .b32 %a; mov.u32 %a, %tid.x; ret; }\n.visible"},
                  {"bar.sync 0;", "{ .param .b32 z; st.param.b32 [z], 0; call f, (z); }"}})
                .reason);
}

TEST(Recognition, LoadsPastTheCoherentCaches) {
  // The code generator changes the kernel's own; those of what it calls stay.
  EXPECT_THAT(chain({{"ld.global.u32 %r5", "ld.global.nc.u32 %r5"}}), StartsWith("a chain"));
  const Left called = left({{".visible",
                             ".func f(.param .b64 z) { .reg .b64 %a; .reg .b32 %b; ld.param.b64 %a, [z]; "
                             "ld.global.nc.u32 %b, [%a]; ret; }\n.visible"},
                            {"bar.sync 0;", "{ .param .b64 z; st.param.b64 [z], %rd1; call f, (z); }"}});
  EXPECT_EQ("chain-form", called.reason);
  EXPECT_THAT(called.detail, HasSubstr("f, called by it, reads past the coherent caches (line "));
}

TEST(Recognition, EarlyExits) {
  // Nobody waits for those who left.
  EXPECT_THAT(chain({{"bar.sync 0;", ""},
                     {"mov.u32 %r4, %tid.x;", "mov.u32 %r4, %tid.x; setp.gt.s32 %p9, %r4, %r1; @%p9 ret;"}}),
              StartsWith("a chain"));
  const Left barrier =
      left({{"mov.u32 %r4, %tid.x;", "mov.u32 %r4, %tid.x; setp.gt.s32 %p9, %r4, %r1; @%p9 ret;"}});
  EXPECT_EQ("child-barrier", barrier.reason);
  EXPECT_THAT(barrier.detail, HasSubstr("threads may exit by the decision at line "));
  // Whole warps may leave a consumer's block, but not a link's.
  EXPECT_EQ(
      "child-barrier",
      left({{"mov.u32 %r4, %tid.x;", "mov.u32 %r4, %tid.x; setp.ge.u32 %p9, %r4, 32; @%p9 ret;"}}).reason);
  EXPECT_EQ("child-warp-sync",
            left({{"mov.u32 %r4, %tid.x;", "mov.u32 %r4, %tid.x; setp.gt.s32 %p9, %r4, %r1; @%p9 ret;"},
                  {"bar.sync 0;", "bar.warp.sync -1;"}})
                .reason);
}

TEST(Recognition, Waiting) {
  EXPECT_EQ("parent-waits", left({{"add.s32 %r9, %r3, %r5;",
                                   "WAIT: ld.volatile.global.u32 %r20, [%rd4]; setp.ne.s32 %p9, %r20, 0; "
                                   "@%p9 bra WAIT; add.s32 %r9, %r3, %r5;"}})
                                .reason);
}

TEST(Recognition, ParametersThatAreNotPassedOn) {
  const Left none = left({{"st.u32 [%rd11+16], %r1;", ""}});
  EXPECT_EQ("argument-mismatch", none.reason);
  EXPECT_EQ(
      "the kernel reads 4 bytes at offset 16 of its parameters (line 14:1), which the launch does not pass "
      "in one piece",
      none.detail);
  EXPECT_EQ("sum is a parameter of the kernel and something else in its body",
            left({{"bar.sync 0;", "{ .param .b32 sum; st.param.b32 [sum], 0; } bar.sync 0;"}}).detail);
  EXPECT_EQ("the kernel reads beyond one of its parameters",
            left({{"ld.param.u32 %r3, [sum];", "ld.param.u32 %r3, [sum+4];"}}).detail);
  EXPECT_EQ("two arguments for offset 20 (line 54:25)",
            left({{"st.u32 [%rd11+20], %r6;", "st.u32 [%rd11+20], %r6; st.u32 [%rd11+20], %r1;"}}).detail);
  // Nobody reads the last one.
  EXPECT_THAT(chain({{"ld.param.u32 %r3, [sum];", "mov.u32 %r3, 0;"}, {"st.u32 [%rd11+24], %r7;", ""}}),
              StartsWith("a chain"));
  // In two pieces: as long as they do not change.
  const Changes pieces = {
      {"st.u64 [%rd11+8], %rd2;",
       "ld.param.u32 %r30, [q]; ld.param.u32 %r31, [q+4]; st.u32 [%rd11+8], %r30; st.u32 [%rd11+12], %r31;"}};
  EXPECT_THAT(chain(pieces), HasSubstr("offset 12, 4 bytes: unchanged"));
  Changes changed = pieces;
  changed.emplace_back("st.u32 [%rd11+12], %r31;", "st.u32 [%rd11+12], %r1;");
  EXPECT_EQ("argument-mismatch", left(changed).reason);
}

}  // namespace
}  // namespace klap::test
