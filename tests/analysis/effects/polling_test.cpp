// Loops that wait by ordinary loads, whatever way their result takes, and loops that look alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/effects/waiting.h"
#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;

struct Case {
  const char* name;
  std::string body;
};

constexpr char kItems[] =
    ".func (.param .b32 r) reads(.param .b64 p) { .reg .b32 %r<9>; .reg .b64 %rd<9>; "
    "ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; st.param.b32 [r], %r1; ret; }\n"
    ".func (.param .b32 r) passes(.param .b32 v) { .reg .b32 %r<9>; "
    "ld.param.u32 %r1, [v]; st.param.b32 [r], %r1; ret; }\n"
    ".global .align 4 .u32 scratch;\n";

bool waits(const std::string& body, WaitsFor whom = WaitsFor::Anybody) {
  std::string text = kernel_text(
      ".local .align 8 .b8 depot[16]; .shared .align 4 .u32 word; .shared .align 4 .b8 words[64]; "
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; " +
      body);
  text.insert(text.find(".visible"), kItems);
  const Kernel k(text, "k");
  return Waiting(k.module, k.facts->flow, k.facts->data, whom).find().has_value();
}

// What reads %r9 of [%rd1] anew, in front of a test of it.
std::string until(const std::string& read, const std::string& more = "") {
  return "L: " + read + " " + more + " setp.eq.s32 %p1, %r9, 0; @%p1 bra L; ret;";
}

TEST(Polling, ByEveryFormOfLoad) {
  const std::vector<std::string> reads = {
      "ld.u32 %r9, [%rd1];",
      "ld.global.u32 %r9, [%rd1+8];",
      "ld.global.cg.u32 %r9, [%rd1];",
      "ld.global.ca.u32 %r9, [%rd1];",
      "ld.global.cv.u32 %r9, [%rd1];",
      "ld.volatile.global.u32 %r9, [%rd1];",
      "ld.relaxed.gpu.global.u32 %r9, [%rd1];",
      "ld.acquire.sys.global.u32 %r9, [%rd1];",
      "ld.global.v2.u32 {%r8, %r9}, [%rd1];",
      "atom.global.or.b32 %r9, [%rd1], 0;",
      "atom.global.add.u32 %r9, [%rd1], 0;",
      "atom.global.and.b32 %r9, [%rd1], -1;",
      "atom.global.max.u32 %r9, [%rd1], 0;",
      "atom.global.cas.b32 %r9, [%rd1], 0, 0;",
      "atom.global.exch.b32 %r9, [%rd1], 0;",
      "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r9, [%rd4];",
      "ld.param.u64 %rd5, [p]; cvta.to.global.u64 %rd6, %rd5; ld.global.u32 %r9, [%rd6];",
      "ld.global.u64 %rd5, [%rd1]; ld.global.u32 %r9, [%rd5];",
      "ld.global.u32 %r8, [scratch]; and.b32 %r9, %r8, 1;",
      "@%p3 ld.global.u32 %r9, [%rd1];",
  };
  for (const std::string& read : reads) EXPECT_TRUE(waits(until(read))) << read;
}

TEST(Polling, WhateverWayTheResultTakes) {
  const Case cases[] = {
      {"local memory",
       until("ld.global.u32 %r8, [%rd1]; st.local.u32 [depot], %r8; ld.local.u32 %r9, [depot];")},
      {"an atomic's result in local memory",
       until("atom.global.or.b32 %r8, [%rd1], 0; st.local.u32 [depot], %r8; ld.local.u32 %r9, [depot];")},
      {"global memory",
       until("ld.global.u32 %r8, [%rd1]; st.global.u32 [%rd2], %r8; ld.global.u32 %r9, [%rd2];")},
      {"an atomic's result in global memory",
       until("atom.global.or.b32 %r8, [%rd1], 0; st.global.u32 [%rd2], %r8; ld.global.u32 %r9, [%rd2];")},
      {"shared memory", until("ld.global.u32 %r8, [%rd1]; st.shared.u32 [word], %r8; bar.sync 0; "
                              "ld.shared.u32 %r9, [word]; bar.sync 0;")},
      {"a function that reads", until("{ .param .b64 a; .param .b32 v; st.param.b64 [a], %rd1; "
                                      "call (v), reads, (a); ld.param.b32 %r9, [v]; }")},
      {"a function that passes it on",
       until("ld.global.u32 %r8, [%rd1]; { .param .b32 a; .param .b32 v; st.param.b32 [a], %r8; "
             "call (v), passes, (a); ld.param.b32 %r9, [v]; }")},
      {"an atomic's result in a function",
       until("atom.global.or.b32 %r8, [%rd1], 0; { .param .b32 a; .param .b32 v; st.param.b32 [a], %r8; "
             "call (v), passes, (a); ld.param.b32 %r9, [v]; }")},
      {"a collecting register",
       "mov.u32 %r9, 0; " + until("ld.global.u32 %r8, [%rd1]; or.b32 %r9, %r9, %r8;")},
      {"a choice",
       "mov.u32 %r9, 0; " + until("ld.global.u32 %r8, [%rd1]; setp.eq.s32 %p2, %r8, 0; @%p2 bra S; "
                                  "mov.u32 %r9, 1; S:")},
      {"a predicated move", "mov.u32 %r9, 0; " + until("ld.global.u32 %r8, [%rd1]; setp.ne.s32 %p2, %r8, 0; "
                                                       "@%p2 mov.u32 %r9, 1;")},
      {"a vote",
       "L: ld.global.u32 %r9, [%rd1]; setp.ne.s32 %p1, %r9, 0; vote.sync.all.pred %p2, %p1, -1; "
       "@!%p2 bra L; ret;"},
      {"flags of all blocks",
       "L: mov.u32 %r9, 1; mov.u32 %r7, 0; I: mul.wide.u32 %rd3, %r7, 4; "
       "add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r8, [%rd4]; and.b32 %r9, %r9, %r8; "
       "add.s32 %r7, %r7, 1; setp.lt.s32 %p2, %r7, 64; @%p2 bra I; "
       "setp.eq.s32 %p1, %r9, 0; @%p1 bra L; ret;"},
      {"beside a counter", until("ld.global.u32 %r9, [%rd1];", "add.s32 %r7, %r7, 1;")},
      {"beside what it counts in memory", until("ld.global.u32 %r9, [%rd1];",
                                                "ld.global.u32 %r7, [%rd2]; add.s32 %r7, %r7, 1; "
                                                "st.global.u32 [%rd2], %r7;")},
      {"a lock bit in front of a swap",
       "L: ld.global.u32 %r9, [%rd1]; and.b32 %r8, %r9, 1; setp.eq.s32 %p1, %r8, 1; @%p1 bra L; "
       "or.b32 %r7, %r9, 1; atom.global.cas.b32 %r6, [%rd1], %r9, %r7; setp.ne.s32 %p2, %r6, %r9; @%p2 bra "
       "L; "
       "ret;"},
      {"a swap of what is there for itself",
       "L: ld.global.u32 %r8, [%rd1]; atom.global.cas.b32 %r9, [%rd1], %r8, %r8; setp.eq.s32 %p1, %r9, 0; "
       "@%p1 bra L; ret;"},
      {"a swap that is asked for something else",
       "L: ld.global.u32 %r8, [%rd1]; add.s32 %r7, %r8, 1; atom.global.cas.b32 %r9, [%rd1], %r8, %r7; "
       "setp.eq.s32 %p1, %r9, 0; @%p1 bra L; ret;"},
      {"the word in memory that the block has", until("ld.shared.u32 %r9, [word];")},
  };
  for (const Case& c : cases) EXPECT_TRUE(waits(c.body)) << c.name;
}

TEST(Polling, IsNoneOfThese) {
  const Case cases[] = {
      {"a stride to a bound in memory",
       "L: ld.global.u32 %r9, [%rd1]; setp.ge.s32 %p1, %r1, %r9; @%p1 bra E; mul.wide.u32 %rd3, %r1, 4; "
       "add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r9; add.s32 %r1, %r1, 32; bra L; E: ret;"},
      {"a list", "L: ld.global.u64 %rd1, [%rd1]; setp.ne.s64 %p1, %rd1, 0; @%p1 bra L; ret;"},
      {"a search", until("add.s64 %rd1, %rd1, 4; ld.global.u32 %r9, [%rd1];")},
      {"a bisection",
       "mov.u32 %r2, 0; mov.u32 %r3, 64; L: add.s32 %r4, %r2, %r3; shr.u32 %r4, %r4, 1; "
       "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r9, [%rd4]; "
       "setp.lt.u32 %p2, %r9, %r1; @%p2 mov.u32 %r2, %r4; @!%p2 mov.u32 %r3, %r4; "
       "setp.lt.u32 %p1, %r2, %r3; @%p1 bra L; ret;"},
      {"a bound beside a flag", until("ld.global.u32 %r9, [%rd1];",
                                      "add.s32 %r7, %r7, 1; setp.gt.s32 %p2, "
                                      "%r7, 99; @%p2 ret;")},
      {"a time-out", until("ld.global.u32 %r9, [%rd1];",
                           "mov.u64 %rd7, %clock64; setp.gt.u64 %p2, %rd7, %rd8; "
                           "@%p2 ret;")},
      {"a counter in memory",
       "L: ld.global.u32 %r9, [%rd1]; add.s32 %r9, %r9, 1; st.global.u32 [%rd1], %r9; "
       "setp.lt.s32 %p1, %r9, 99; @%p1 bra L; ret;"},
      {"a counter in local memory",
       "L: ld.local.u32 %r9, [depot]; add.s32 %r9, %r9, 1; st.local.u32 [depot], %r9; ld.global.u32 %r8, "
       "[%rd1]; "
       "setp.lt.s32 %p1, %r9, %r8; @%p1 bra L; ret;"},
      {"rounds until nothing changes",
       "L: bar.sync 0; st.shared.u32 [word], 0; bar.sync 0; ld.global.u32 %r2, [%rd1]; ld.global.u32 %r3, "
       "[%rd1+4]; add.s32 %r4, %r2, 1; setp.ge.s32 %p2, %r4, %r3; @%p2 bra S; st.global.u32 [%rd1+4], %r4; "
       "st.shared.u32 [word], 1; S: bar.sync 0; ld.shared.u32 %r9, [word]; setp.ne.s32 %p1, %r9, 0; @%p1 bra "
       "L; ret;"},
      {"tiles that an atomic deals out",
       "L: red.global.add.u32 [%rd1], 1; ld.global.u32 %r9, [%rd1]; setp.lt.s32 %p1, %r9, 99; @%p1 bra L; "
       "ret;"},
      {"a sum by retried swaps",
       "ld.global.u32 %r8, [%rd1]; L: add.s32 %r7, %r8, 1; mov.u32 %r6, %r8; atom.global.cas.b32 %r8, "
       "[%rd1], "
       "%r6, %r7; setp.ne.s32 %p1, %r8, %r6; @%p1 bra L; ret;"},
      {"a load that decides nothing",
       "L: ld.global.u32 %r9, [%rd1]; st.global.u32 [%rd2], %r9; add.s32 %r7, %r7, 1; setp.lt.s32 %p1, %r7, "
       "9; "
       "@%p1 bra L; ret;"},
      {"no loop", "ld.global.u32 %r9, [%rd1]; setp.eq.s32 %p1, %r9, 0; @%p1 bra L; L: ret;"},
      {"a constant", until("ld.param.u32 %r9, [n];")},
  };
  for (const Case& c : cases) EXPECT_FALSE(waits(c.body)) << c.name;
}

// A child cannot write the shared memory of its parent's block, so nobody waits there for children.
TEST(Polling, OfSharedMemoryIsNotForChildren) {
  for (const std::string read :
       {"ld.shared.u32 %r9, [word];", "ld.volatile.shared.u32 %r9, [word];",
        "atom.shared.or.b32 %r9, [word], 0;", "ld.relaxed.cta.shared.u32 %r9, [word];"}) {
    EXPECT_TRUE(waits(until(read), WaitsFor::Anybody)) << read;
    EXPECT_FALSE(waits(until(read), WaitsFor::OtherBlocks)) << read;
    EXPECT_FALSE(waits(until(read), WaitsFor::Children)) << read;
  }
  const std::string relayed =
      "ld.global.u32 %r8, [%rd1]; st.shared.u32 [word], %r8; ld.shared.u32 %r9, [word];";
  EXPECT_TRUE(waits(until(relayed), WaitsFor::Children)) << "global memory decides";
  EXPECT_TRUE(waits(until(relayed), WaitsFor::OtherBlocks)) << "global memory decides";
  EXPECT_TRUE(waits(until("ld.volatile.u32 %r9, [%rd1];"), WaitsFor::Children)) << "it may be any";
}

// A search that appends what it finds to a list, by generic addresses. Whether the list is in shared memory
// depends on what the kernel's own code names.
TEST(Polling, NotByTheSharedMemoryOfAnotherKernel) {
  const std::string search =
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.u64 %rd3, [%rd1]; mov.u32 %r1, 0; "
      "L: atom.global.cas.b32 %r2, [%rd2], -1, %r1; setp.ne.s32 %p1, %r2, -1; @%p1 bra N; st.u32 [%rd1+8], "
      "%r1; "
      "N: add.s32 %r1, %r1, 1; ld.global.u32 %r3, [%rd3]; setp.lt.s32 %p2, %r1, %r3; @%p2 bra L; ret;";
  const auto found = [](const std::string& text) {
    const Kernel k(text, "k");
    return Waiting(k.module, k.facts->flow, k.facts->data, WaitsFor::Anybody).find().has_value();
  };
  const auto with_kernel = [&](const std::string& body, const std::string& other) {
    std::string text = kernel_text(body);
    text.insert(text.find(".visible"), ".shared .align 4 .b8 list[64];\n");
    return text + other;
  };
  const std::string other = ".visible .entry o() { .reg .b32 %r<2>; ld.shared.u32 %r1, [list]; ret; }\n";
  EXPECT_FALSE(found(with_kernel(search, other)));
  EXPECT_TRUE(found(with_kernel("mov.u64 %rd4, list; " + search, other)));
  EXPECT_TRUE(found(with_kernel("ld.shared.u32 %r9, [0]; " + search, other)));
  // A function that is called may have some, and one of another unit may return an address there.
  const std::string function = ".func f() { .reg .b32 %r<2>; ld.shared.u32 %r1, [list]; ret; }\n";
  const auto with_function = [&](const std::string& body, const std::string& before) {
    std::string text = with_kernel(body, other);
    return text.insert(text.find(".visible"), before);
  };
  EXPECT_FALSE(found(with_function(search, function)));
  EXPECT_TRUE(found(with_function("call f; " + search, function)));
  EXPECT_TRUE(found(with_function("mov.u64 %rd5, f; " + search, function)));
  EXPECT_TRUE(found(with_function("proto: .callprototype _ (); call %rd3, proto; " + search, function)));
  EXPECT_TRUE(found(with_function("call f; " + search, ".extern .func f();\n")));
}

}  // namespace
}  // namespace klap::test
