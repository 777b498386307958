// Barriers between launches. A store stands for the launch: only its place counts.
#include "analysis/synchronisation/barriers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;
using testing::HasSubstr;

Finding between(const std::string& text, const char* a = "st.global.u32", const char* b = "st.global.u32") {
  const Kernel k(text, "k");
  return barrier_between(*k.facts, k.find(a), k.find(b));
}
Answer at_one_site(const std::string& body) { return between(kernel_text(body)).answer; }
// From a launch at `st.global.u16` to one at `st.global.u64`.
Answer at_two_sites(const std::string& body) {
  return between(kernel_text(body), "st.global.u16", "st.global.u64").answer;
}

const std::string kLaunch = "st.global.u32 [%rd1], %r1; ";
const std::string kByThread = "mov.u32 %r9, %tid.x; setp.lt.u32 %p1, %r9, 7; ";
const std::string kByBlock = "ld.param.u32 %r9, [n]; setp.lt.u32 %p1, %r9, 7; ";
const std::string kByMemory = "ld.global.u32 %r9, [%rd1]; setp.lt.u32 %p1, %r9, 7; ";

TEST(Barriers, NoneAtAll) { EXPECT_EQ(Answer::No, at_one_site(kLaunch + "ret;")); }

TEST(Barriers, OnEveryPathBeforeAndAfter) {
  EXPECT_EQ(Answer::No, at_one_site("bar.sync 0; " + kLaunch + "bar.sync 0; ret;"));
  EXPECT_EQ(Answer::No,
            at_one_site("bar.sync 0; " + kByThread + "@%p1 bra E; " + kLaunch + "E: bar.sync 0; ret;"));
}

TEST(Barriers, OnSomePathsOnly) {
  const std::string some = "@%p1 bra L; bar.sync 0; L: " + kLaunch + "bar.sync 0; ret;";
  EXPECT_EQ(Answer::Yes, at_one_site(kByThread + some));
  EXPECT_EQ(Answer::No, at_one_site(kByBlock + some));
  EXPECT_EQ(Answer::Unknown, at_one_site(kByMemory + some));
  // A thread that ends lets the barrier complete as well.
  const std::string ends = "@%p1 bra L; bar.sync 0; L: " + kLaunch + "ret;";
  EXPECT_EQ(Answer::Yes, at_one_site(kByThread + ends));
  EXPECT_EQ(Answer::Yes, at_one_site(kByThread + "@%p1 bar.sync 0; " + kLaunch + "ret;"));
}

TEST(Barriers, OfDifferentNumbersAreCountedApart) {
  const std::string either = "@%p1 bra L; bar.sync 0; bra M; L: bar.sync ";
  EXPECT_EQ(Answer::No,
            at_one_site(kByThread + either + "0; M: " + kLaunch + "bar.sync 0; bar.sync 1; ret;"));
  EXPECT_EQ(Answer::Yes,
            at_one_site(kByThread + either + "1; M: " + kLaunch + "bar.sync 0; bar.sync 1; ret;"));
}

TEST(Barriers, InLoops) {
  const std::string loop =
      "mov.u32 %r2, 0; L: bar.sync 0; add.u32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, %r3; @%p4 bra L; " +
      kLaunch + "bar.sync 0; ret;";
  EXPECT_EQ(Answer::No, at_one_site("ld.param.u32 %r3, [n]; " + loop));
  EXPECT_EQ(Answer::Yes, at_one_site("mov.u32 %r3, %tid.x; " + loop));
  EXPECT_EQ(Answer::Unknown, at_one_site("ld.global.u32 %r3, [%rd1]; " + loop));
  // That threads divided before does not matter, unless they come with bounds of their own.
  const std::string divided = kByThread + "ld.param.u32 %r3, [n]; @%p1 bra M; ";
  EXPECT_EQ(Answer::No, at_one_site(divided + "mov.u32 %r4, 1; M: " + loop));
  EXPECT_NE(Answer::No, at_one_site(divided + "mov.u32 %r3, 1; M: " + loop));
  // As in a reduction: threads divide in each round, and meet again before the barrier.
  const std::string reduction =
      "K: @%p1 bra M; mov.u32 %r4, 1; M: bar.sync 0; shr.u32 %r3, %r3, 1; setp.ne.u32 %p4, %r3, 0; @%p4 bra "
      "K; ";
  EXPECT_EQ(Answer::No, at_one_site(kByThread + "mov.u32 %r3, %ntid.x; " + reduction + kLaunch + "ret;"));
  EXPECT_NE(Answer::No, at_one_site(kByThread + "mov.u32 %r3, %tid.x; " + reduction + kLaunch + "ret;"));
  EXPECT_EQ(Answer::Yes, at_one_site("L: bar.sync 0; " + kLaunch + "@%p1 bra L; ret;")) << "the launch too";
}

TEST(Barriers, BetweenTwoSites) {
  const std::string first = "st.global.u16 [%rd1], %r1; ", second = "st.global.u64 [%rd1], %rd2; ";
  EXPECT_EQ(Answer::Yes, at_two_sites(first + "bar.sync 0; " + second + "ret;"));
  EXPECT_EQ(Answer::No, at_two_sites("bar.sync 0; " + first + second + "bar.sync 0; ret;"));
  EXPECT_EQ(Answer::No, at_two_sites(second + "bar.sync 0; " + first + "ret;")) << "the other way round";
  EXPECT_EQ(Answer::Yes, at_two_sites(kByThread + "@%p1 bra L; " + first +
                                      "bar.sync 0; bra E; L: bar.sync 0; " + second + "E: ret;"));
  // Behind as many barriers, however many these are; and behind one more, on another way or on the same.
  const std::string iterations =
      kByThread +
      "ld.param.u32 %r3, [n]; K: bar.sync 0; shr.u32 %r3, %r3, 1; setp.ne.u32 %p4, %r3, 0; @%p4 bra K; ";
  EXPECT_EQ(Answer::No,
            at_two_sites(iterations + "@%p1 bra L; " + first + "bra E; L: " + second + "E: ret;"));
  EXPECT_EQ(Answer::Yes, at_two_sites(iterations + "@%p1 bra L; " + first +
                                      "bar.sync 0; bra E; L: bar.sync 0; " + second + "E: ret;"));
  EXPECT_EQ(Answer::Yes, at_two_sites(iterations + first + "bar.sync 0; " + second + "ret;"));
  EXPECT_EQ(Answer::Yes,
            at_two_sites(iterations + "@%p1 bra L; " + first + "bar.sync 0; L: " + second + "ret;"));
  EXPECT_EQ(Answer::Yes, at_two_sites("L: " + first + "bar.sync 0; " + second + "@%p1 bra L; ret;"));
}

TEST(Barriers, OfClustersMayBeSplit) {
  const std::string arrive = "barrier.cluster.arrive.aligned; ", wait = "barrier.cluster.wait.aligned; ";
  EXPECT_EQ(Answer::No, at_one_site(arrive + wait + kLaunch + "ret;"));
  EXPECT_EQ(Answer::No, at_one_site(arrive + kLaunch + wait + "ret;"));
  EXPECT_EQ(Answer::Yes, at_one_site(kByThread + "@%p1 bra L; " + arrive + wait + "L: " + kLaunch + "ret;"));
}

TEST(Barriers, ThatCannotBeCountedAreUnknown) {
  const std::string counted = "bar.sync 1, 64; ";
  EXPECT_EQ(Answer::Unknown, at_one_site(counted + kLaunch + counted + "ret;"));
  EXPECT_EQ(Answer::No, at_one_site(counted + kLaunch + "ret;")) << "nobody can arrive after launching";
  EXPECT_EQ(Answer::No, at_one_site(kLaunch + counted + "ret;"));
  EXPECT_EQ(Answer::Unknown, at_one_site("bar.sync %r5; " + kLaunch + "ret;"));
  EXPECT_EQ(Answer::No, at_one_site(kLaunch + "bar.sync %r5; ret;"));
  EXPECT_EQ(Answer::Unknown,
            at_one_site("mbarrier.arrive.shared.b64 %rd5, [%rd1]; " + kLaunch +
                        "L: mbarrier.test_wait.shared.b64 %p1, [%rd1], %rd5; @%p1 bra L; ret;"));
  EXPECT_EQ(Answer::Unknown, at_one_site("bar.sync 0; brx.idx %r1, unknown_list; " + kLaunch + "ret;"));
}

TEST(Barriers, InCalledFunctions) {
  const auto calling = [](const std::string& callee, const std::string& body) {
    return between(".version 9.0\n.target sm_90\n.address_size 64\n.extern .func away();\n.func f() { " +
                   callee + " ret; }\n" + kernel_text(body).substr(kernel_text("").find(".visible")))
        .answer;
  };
  EXPECT_EQ(Answer::Unknown, calling("bar.sync 0;", "call f; " + kLaunch + "ret;"));
  EXPECT_EQ(Answer::No, calling("bar.sync 0;", kLaunch + "call f; ret;"));
  EXPECT_EQ(Answer::No, calling("membar.gl;", "call f; " + kLaunch + "call f; ret;"));
  EXPECT_EQ(Answer::Unknown, calling("call away;", "call f; " + kLaunch + "ret;"));
  EXPECT_EQ(Answer::Unknown, calling("", "call away; " + kLaunch + "ret;"));
}

TEST(Barriers, AreNamedWithTheirPlace) {
  const Finding finding =
      between(kernel_text(kByThread + "@%p1 bra L;\nbar.sync 0;\nL: " + kLaunch + "ret;"));
  EXPECT_EQ("yes: how often bar.sync (line 7:1) runs before the launch depends on the decision at line 6:52",
            to_text(finding));
}

}  // namespace
}  // namespace klap::test
