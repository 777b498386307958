// Reads, writes and atomic updates by their roots, and what overlaps.
#include "analysis/facts/memory_effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;
using Kind = MemoryRoot::Kind;

std::string effects(const std::string& body) { return print_memory_effects(*kernel(body).facts); }
// With more before the kernel.
std::string effects(const std::string& before, const std::string& body) {
  const std::string text = kernel_text(body);
  const size_t at = text.find(".visible");
  return print_memory_effects(*Kernel(text.substr(0, at) + before + text.substr(at), "k").facts);
}

const std::string kP = "ld.param.u64 %rd1, [p]; ",
                  kQ = "ld.param.u64 %rd2, [q]; cvta.to.global.u64 %rd3, %rd2; ";

TEST(MemoryEffects, OfParameters) {
  EXPECT_EQ("parameter 0 (global): read\nparameter 1 (global): written\n",
            effects(kP + kQ + "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd3+4], %r1; ret;"));
  EXPECT_EQ("parameter 0: updated\n", effects(kP + "atom.add.u32 %r1, [%rd1], 1; ret;"));
  EXPECT_EQ("parameter 1 (global): read by .nc, updated\n",
            effects(kQ + "ld.global.nc.u32 %r1, [%rd3]; red.global.add.u32 [%rd3], 1; ret;"));
}

TEST(MemoryEffects, ThroughArithmetic) {
  EXPECT_EQ("parameter 0 (global): read\n",
            effects(kP + "ld.param.u32 %r1, [n]; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd1, %rd5; "
                         "ld.global.u32 %r2, [%rd6]; ret;"));
  // Either of two.
  EXPECT_EQ("parameter 0 (global): written\nparameter 1 (global): written\n",
            effects(kP + kQ + "selp.b64 %rd6, %rd1, %rd3, %p1; st.global.u32 [%rd6], %r1; ret;"));
  EXPECT_EQ(
      "parameter 0 (global): written\nparameter 1 (global): written\n",
      effects(kP + kQ +
              "mov.u64 %rd6, %rd1; @%p1 bra L; mov.u64 %rd6, %rd3; L: st.global.u32 [%rd6], %r1; ret;"));
  // Around a loop.
  EXPECT_EQ("parameter 0 (global): written\n",
            effects(kP + "L: st.global.u32 [%rd1], %r1; add.s64 %rd1, %rd1, 4; @%p1 bra L; ret;"));
  // In two halves.
  EXPECT_EQ(
      "parameter 0 (global): written\n",
      effects(kP + "mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd6, {%r1, %r2}; st.global.u32 [%rd6], %r1; ret;"));
}

// A pointer that is passed in two words is as good as any.
TEST(MemoryEffects, OfPointersInTwoWords) {
  const std::string words = kP + "ld.param.u32 %r1, [n]; ld.global.u32 %r2, [%rd1]; cvt.u64.u32 %rd5, %r1; ";
  EXPECT_EQ("unknown (global): written\nparameter 0 (global): read\n",
            effects(words + "mov.b64 %rd6, {%r1, %r2}; st.global.u32 [%rd6], %r1; ret;"));
  EXPECT_EQ(
      "unknown (global): written\nparameter 0 (global): read, written\n",
      effects(words + "mov.u64 %rd6, %rd1; @%p1 bra L; mov.b64 %rd6, {%r1, %r2}; L: add.s64 %rd7, %rd6, 8; "
                      "st.global.u32 [%rd7], %r1; ret;"));
  EXPECT_EQ("unknown (global): written\nparameter 0 (global): read, written\n",
            effects(words + "selp.b64 %rd6, %rd1, %rd5, %p1; st.global.u32 [%rd6], %r1; ret;"));
  // A register may hold the index first, and then the pointer.
  EXPECT_EQ("parameter 0 (global): read, written\n",
            effects(words +
                    "mul.wide.u32 %rd6, %r2, 4; add.s64 %rd6, %rd1, %rd6; st.global.u32 [%rd6], %r1; ret;"));
  // As an index it is no address.
  EXPECT_EQ("parameter 0 (global): read, written\n",
            effects(words + "mov.u64 %rd6, %rd1; @%p1 bra L; add.s64 %rd6, %rd1, %rd5; L: st.global.u32 "
                            "[%rd6], %r1; ret;"));
  EXPECT_EQ("parameter 0 (global): read, written\n",
            effects(words + "mov.u64 %rd7, 0; @%p1 bra L; mov.u64 %rd7, %rd5; L: add.s64 %rd6, %rd1, %rd7; "
                            "st.global.u32 [%rd6], %r1; ret;"));
}

TEST(MemoryEffects, OfPointersInStructures) {
  const Kernel k(
      ".version 9.0\n.target sm_90\n.address_size 64\n.entry k(.param .align 8 .b8 s[32]) {\n"
      ".reg .b64 %rd<9>; .reg .b32 %r<9>; ld.param.v2.u64 {%rd1, %rd2}, [s+8]; st.global.u32 [%rd2], %r1; "
      "ret; }",
      "k");
  EXPECT_EQ("parameter 0+16 (global): written\n", print_memory_effects(*k.facts));
}

TEST(MemoryEffects, OfVariables) {
  const std::string variables =
      ".global .u32 a;\n.global .u32 b;\n.shared .u32 c;\n.extern .shared .b8 d[];\n.const .u32 e;\n";
  EXPECT_EQ(
      "a (global): read\nb (global): written\nc (shared): updated\ndynamic shared memory (shared): written\n"
      "e (const): read\n",
      effects(variables,
              "ld.global.u32 %r1, [a]; mov.u64 %rd1, b; cvta.global.u64 %rd2, %rd1; st.u32 [%rd2], %r1; "
              "atom.shared.add.u32 %r2, [c], 1; mov.u32 %r3, d; st.shared.u32 [%r3], 1; "
              "ld.const.u32 %r4, [e]; ret;"));
  EXPECT_EQ("local memory: read, written\n",
            effects(".local .align 8 .b8 depot[16]; mov.u64 %rd1, depot; st.local.u32 [%rd1], 1; "
                    "ld.local.u32 %r1, [%rd1+8]; ret;"));
}

TEST(MemoryEffects, OfWhatIsNotKnown) {
  const std::string unknown = "unknown (global): written\n";
  // A pointer from memory, an address without a base, a value made by an atomic.
  EXPECT_EQ(unknown + "parameter 0 (global): read\n",
            effects(kP + "ld.global.u64 %rd5, [%rd1]; st.global.u32 [%rd5], 1; ret;"));
  EXPECT_EQ(unknown, effects("ld.param.u32 %r1, [n]; cvt.u64.u32 %rd5, %r1; st.global.u32 [%rd5], 1; ret;")
                         .replace(0, 0, ""))
      << "an integer of 32 bits is no pointer";
  EXPECT_EQ(unknown + "parameter 0 (global): updated\n",
            effects(kP + "atom.global.exch.b64 %rd5, [%rd1], 0; st.global.u32 [%rd5], 1; ret;"));
  EXPECT_EQ("unknown: read, written, updated\n", effects("frobnicate.u32 %r1, %r2; ret;"));
  EXPECT_EQ("unknown: read, written, updated\n", effects("cp.async.bulk.commit_group; ret;"));
  EXPECT_EQ("unknown: read, written, updated\n",
            effects("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2]; ret;"));
  EXPECT_EQ("unknown: read, written, updated\n", effects("frobnicate.sync.b32 %r1, %r2; ret;"));
  EXPECT_EQ("",
            effects("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2; shfl.sync.idx.b32 %r1, %r2, 0, 31, -1; "
                    "barrier.sync 0; ret;"));
  EXPECT_EQ("unknown: read, written, updated\n", effects(".extern .func away();\n", "call away; ret;"));
  EXPECT_EQ("unknown: read, written, updated\n", effects("t: .callprototype _ (); call %rd1, t; ret;"));
  EXPECT_EQ("unknown: read, written, updated\n", effects(".func f() { call f; ret; }\n", "call f; ret;"))
      << "recursion";
  EXPECT_EQ("unknown (texture): read\n",
            effects("tex.1d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}]; ret;"));
}

TEST(MemoryEffects, OfCallees) {
  const std::string callee =
      ".func f(.param .b64 a, .param .b64 b) { .reg .b64 %rd<9>; .reg .b32 %r<9>; .local .u32 own;\n"
      "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.u32 %r1, [%rd2]; st.u32 [%rd1], %r1; st.local.u32 "
      "[own], 1; ret; }\n";
  const auto calling = [&](const std::string& first, const std::string& second) {
    return effects(callee, kP + kQ + "{ .param .b64 x; .param .b64 y; st.param.b64 [x], " + first +
                               "; st.param.b64 [y], " + second + "; call f, (x, y); } ret;");
  };
  EXPECT_EQ("parameter 0: written\nparameter 1: read\n", calling("%rd1", "%rd2"));
  EXPECT_EQ("parameter 0: read\nparameter 1: written\n", calling("%rd2", "%rd1"));
  EXPECT_EQ("unknown: written\nparameter 0: read\n", calling("%rd20", "%rd1"));
}

TEST(MemoryEffects, OfLaunches) {
  const Kernel k(fixture("streams.ptx"), "_Z3onePi");
  EXPECT_EQ("local memory: read, written\nlaunch arguments: written\n", print_memory_effects(*k.facts));
}

MemoryRoot parameter(uint32_t index, const char* space = "") {
  return {Kind::Parameter, index, 0, "", space};
}
MemoryRoot symbol(const char* name, const char* space) { return {Kind::Symbol, 0, 0, name, space}; }

TEST(MemoryOverlap, IsExcludedOnlyWhereShown) {
  const MemoryRoot unknown;
  EXPECT_TRUE(may_overlap(parameter(0), parameter(1))) << "distinct parameters may hold the same pointer";
  EXPECT_TRUE(may_overlap(parameter(0), symbol("a", "global")));
  EXPECT_TRUE(may_overlap(parameter(0, "global"), unknown));
  EXPECT_TRUE(may_overlap(symbol("a", "global"), symbol("a", "global")));
  EXPECT_TRUE(may_overlap(unknown, symbol("a", "shared")));
  EXPECT_FALSE(may_overlap(symbol("a", "global"), symbol("b", "global")));
  EXPECT_FALSE(may_overlap(parameter(0, "global"), symbol("a", "shared")));
  EXPECT_FALSE(may_overlap(parameter(0, "shared"), parameter(1, "global")));
  EXPECT_FALSE(may_overlap({Kind::LaunchBuffer, 0, 0, "", ""}, parameter(0)));
}

TEST(MemoryOverlap, UsesDeclaredSpaces) {
  const Kernel k(
      ".version 9.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 .ptr .shared .align 16 s, "
      ".param .u64 .ptr .align 4 g) {\n.reg .b64 %rd<9>; .reg .b32 %r<9>; ld.param.u64 %rd1, [s]; "
      "ld.param.u64 %rd2, [g]; st.u32 [%rd1], 1; st.u32 [%rd2], 1; ret; }",
      "k");
  EXPECT_EQ("parameter 0 (shared): written\nparameter 1: written\n", print_memory_effects(*k.facts));
}

TEST(MemoryChange, FollowsFromOverlapAndNc) {
  const auto changes = [](const std::string& body, const MemoryRoot& root) {
    return MemoryEffects(*kernel(body).facts).may_change(root);
  };
  const std::string write_p = kP + kQ + "st.global.u32 [%rd1], 1; ";
  EXPECT_TRUE(changes(write_p + "ld.global.u32 %r1, [%rd3]; ret;", parameter(1, "global")))
      << "may be the same memory";
  EXPECT_FALSE(changes(write_p + "ld.global.nc.u32 %r1, [%rd3]; ret;", parameter(1, "global")));
  EXPECT_TRUE(changes(write_p + "ld.global.nc.u32 %r1, [%rd3]; ld.global.u32 %r2, [%rd3]; ret;",
                      parameter(1, "global")));
  EXPECT_FALSE(changes(kP + "ld.global.u32 %r1, [%rd1]; ret;", parameter(0, "global")))
      << "nothing is written";
  EXPECT_FALSE(changes("st.shared.u32 [%r1], 1; ret;", parameter(0, "global")));
  EXPECT_TRUE(changes("st.u32 [%rd9], 1; ret;", parameter(0, "global")));
}

}  // namespace
}  // namespace klap::test
