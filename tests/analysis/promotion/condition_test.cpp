// When the next link is known to exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chain.h"

namespace klap::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The line about the condition and those about its counters, where `test` sets %p2, which must be false, and
// x steps by `step`.
std::string condition(const std::string& test, const std::string& step = "1", Changes changes = {}) {
  changes.emplace_back("add.s32 %r6, %r2, 1;", "add.s32 %r6, %r2, " + step + ";");
  changes.emplace_back("setp.ge.s32 %p2, %r6, %r1;", test);
  const std::string text = chain(changes);
  std::string out;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    for (const char* head : {"  condition: ", "  counter: "}) {
      if (line.starts_with(head)) out += line.substr(std::string(head).size()) + "\n";
    }
    if (line.starts_with("left")) out += line;
  }
  return out;
}

TEST(Condition, CountsUp) {
  EXPECT_EQ("counted: p[20] + 1, which goes up by 1, is compared with p[16]\n%r6 rises by 1 (s32)\n",
            condition("setp.ge.s32 %p2, %r6, %r1;"));
  EXPECT_THAT(condition("setp.ge.u32 %p2, %r6, %r1;"), HasSubstr("%r6 rises by 1 (u32)\n"));
  EXPECT_THAT(condition("setp.hs.u32 %p2, %r2, %r1;"), HasSubstr("%r2 rises by 1 (u32)\n"));
  // The other way round.
  EXPECT_THAT(condition("setp.le.s32 %p2, %r1, %r6;"), HasSubstr("%r6 rises by 1 (s32)\n"));
  EXPECT_THAT(condition("setp.gt.s32 %p5, %r1, %r6; not.pred %p2, %p5;"),
              HasSubstr("%r6 rises by 1 (s32)\n"));
  // A multiple of what steps; a bound that is computed.
  EXPECT_THAT(condition("mul.lo.s32 %r21, %r2, 4; shr.u32 %r22, %r1, 2; setp.ge.s32 %p2, %r21, %r22;"),
              HasSubstr("%r21 rises by 4 (s32)\n"));
}

TEST(Condition, CountsDown) {
  EXPECT_EQ("counted: p[20], which goes down by 1, is compared with 1\n%r2 falls by 1 (s32)\n",
            condition("setp.lt.s32 %p2, %r2, 1;", "-1"));
  EXPECT_THAT(condition("setp.le.s32 %p2, %r6, %r1;", "-1"), HasSubstr("%r6 falls by 1 (s32)\n"));
  EXPECT_THAT(condition("setp.lt.s32 %p2, %r2, 8;", "-8"), HasSubstr("%r2 falls by 8 (s32)\n"));
}

TEST(Condition, CountsUntilEqual) {
  EXPECT_THAT(condition("setp.eq.s32 %p2, %r2, 0;", "-1"), HasSubstr("%r2 falls by 1 (u32)\n"));
  EXPECT_THAT(condition("setp.eq.s32 %p2, %r2, %r1;", "-1"), HasSubstr("%r2 - %r1 falls by 1 (u32)\n"));
  EXPECT_THAT(condition("setp.eq.s32 %p2, %r6, %r1;", "1"), HasSubstr("%r1 - %r6 falls by 1 (u32)\n"));
  // A step of two may miss it.
  EXPECT_THAT(condition("setp.eq.s32 %p2, %r2, 0;", "-2"), HasSubstr("available: setp.eq.s32 (line 27:"));
}

// A step that may lead across the bound and the end of the range at once.
TEST(Condition, MayNotCrossTheEndOfTheRange) {
  EXPECT_THAT(condition("setp.ge.s32 %p2, %r6, %r1;", "512"), HasSubstr("available: setp.ge.s32 (line 27:"));
  EXPECT_THAT(condition("shr.u32 %r21, %r1, 10; setp.ge.s32 %p2, %r6, %r21;", "512"),
              HasSubstr("%r6 rises by 512 (s32)\n"));
  EXPECT_THAT(condition("setp.ge.s32 %p2, %r6, 2147483136;", "512"), HasSubstr("counted"));  // MAX - 511
  EXPECT_THAT(condition("setp.ge.s32 %p2, %r6, 2147483137;", "512"), HasSubstr("available"));
  EXPECT_THAT(condition("setp.ge.u32 %p2, %r6, -512;", "512"), HasSubstr("counted"));
  EXPECT_THAT(condition("setp.ge.u32 %p2, %r6, -511;", "512"), HasSubstr("available"));
  EXPECT_THAT(condition("setp.lt.u32 %p2, %r2, 511;", "-512"), HasSubstr("available"));
  EXPECT_THAT(condition("setp.lt.u32 %p2, %r2, 512;", "-512"), HasSubstr("counted"));
}

// `x <= n` with n the greatest value has no end; what comes then matters only where another test could end
// it.
TEST(Condition, UpToAndWithTheBound) {
  EXPECT_THAT(condition("setp.gt.s32 %p2, %r6, %r1;"), HasSubstr("%r6 rises by 1 (s32)\n"));
  EXPECT_THAT(condition("setp.gt.s32 %p5, %r6, %r1; setp.eq.s32 %p6, %r6, 5; or.pred %p2, %p5, %p6;"),
              HasSubstr("available: setp.gt.s32 (line 27:"));
  EXPECT_THAT(condition("setp.gt.s32 %p5, %r6, 100; setp.eq.s32 %p6, %r6, 5; or.pred %p2, %p5, %p6;"),
              AllOf(HasSubstr("counted"), HasSubstr("%r6 rises by 1 (s32)\n5 - %r6 falls by 1 (u32)\n")));
}

TEST(Condition, InTheWrongDirection) {
  for (const char* test :
       {"setp.lt.s32 %p2, %r6, %r1;", "setp.le.s32 %p2, %r6, %r1;", "setp.ne.s32 %p2, %r6, %r1;"})
    EXPECT_THAT(condition(test), HasSubstr("available: setp.")) << test;
  EXPECT_THAT(condition("setp.ge.s32 %p2, %r6, %r1;", "-1"), HasSubstr("may hold again after it did not"));
}

TEST(Condition, OfSeveralTests) {
  // Both must hold; one of them is the same for all links.
  EXPECT_THAT(condition("setp.ge.s32 %p5, %r6, %r1; setp.eq.s64 %p6, %rd1, 0; or.pred %p2, %p5, %p6;"),
              HasSubstr("counted"));
  EXPECT_THAT(
      condition(
          "setp.lt.s32 %p5, %r6, %r1; setp.lt.s32 %p6, %r6, 100; and.pred %p7, %p5, %p6; not.pred %p2, %p7;"),
      HasSubstr("%r6 rises by 1 (s32)\n%r6 rises by 1 (s32)\n"));
  // Either.
  EXPECT_THAT(condition("setp.ge.s32 %p5, %r6, %r1; setp.ge.s32 %p6, %r6, 100; and.pred %p2, %p5, %p6;"),
              HasSubstr("available: and.pred (line 27:"));
  EXPECT_THAT(condition("setp.eq.s64 %p2, %rd1, 0;"),
              HasSubstr("counted: the tests are the same for all links"));
}

TEST(Condition, OfBranches) {
  const std::string text =
      chain({{"or.pred %p3, %p1, %p2;\n@%p3 bra DONE;", "@%p1 bra DONE; @!%p2 bra GO; bra DONE; GO:"}});
  EXPECT_THAT(text,
              AllOf(HasSubstr("condition: counted"), HasSubstr("tests: not %p1, not %p2; 6 instructions\n")));
  // By threads that leave.
  EXPECT_THAT(
      chain({{"or.pred %p3, %p1, %p2;\n@%p3 bra DONE;", "@%p1 ret; @%p2 exit;"}, {"bar.sync 0;", ""}}),
      HasSubstr("tests: not %p1, not %p2;"));
  // A branch that comes together again does not matter.
  EXPECT_THAT(
      chain({{"bar.sync 0;",
              "setp.gt.s32 %p8, %r5, 0; @%p8 bra OVER; st.shared.u32 [room], %r5; OVER: bar.sync 0;"}}),
      HasSubstr("tests: not %p3;"));
}

TEST(Condition, AtTheLaunch) {
  EXPECT_THAT(condition("setp.ge.s32 %p2, %r5, %r1;"),
              HasSubstr("at the launch: what bra tests (line 29:6) is more than parameters and constants"));
  EXPECT_THAT(
      condition("setp.ge.s32 %p2, %r3, %r1;"),
      HasSubstr(
          "at the launch: what bra tests (line 29:6) needs an argument that is not known before the launch"));
  EXPECT_THAT(
      chain({{"@%p3 bra DONE;",
              "@!%p3 bra GO; setp.eq.s32 %p8, %r5, 7; @!%p8 bra DONE; @%p1 bra DONE; GO: @%p1 bra DONE;"}}),
      HasSubstr("at the launch: several ways lead to the launch, by bra (line 29:"));
  EXPECT_THAT(chain({{"@%p3 bra DONE;",
                      "AGAIN: @!%p3 bra GO; add.s32 %r30, %r30, 1; setp.lt.s32 %p8, %r30, 7; @%p8 bra AGAIN; "
                      "bra DONE; GO: @%p1 bra DONE;"}}),
              HasSubstr("at the launch: a loop decides about the launch"));
}

TEST(Condition, OfMultipliedAndAvailableArguments) {
  EXPECT_THAT(condition("setp.ge.s32 %p2, %r2, %r1;", "0",
                        {{"st.u32 [%rd11+20], %r6;", "shl.b32 %r21, %r2, 1; st.u32 [%rd11+20], %r21;"}}),
              HasSubstr("available: setp.ge.s32 (line 27:"));
  EXPECT_THAT(condition("setp.ge.s32 %p2, %r6, %r1;", "1",
                        {{"st.u32 [%rd11+16], %r1;", "shr.u32 %r21, %r1, 1; st.u32 [%rd11+16], %r21;"}}),
              HasSubstr("available: the argument at offset 16 is computed from link to link"));
}

TEST(Condition, OfFloatingPoint) {
  EXPECT_THAT(condition("cvt.rn.f32.s32 %f1, %r6; cvt.rn.f32.s32 %f2, %r1; setp.ge.f32 %p2, %f1, %f2;"),
              HasSubstr("available: setp.ge.f32 (line 27:"));
}

// Widened before the comparison: the sum may wrap around where it is narrow.
TEST(Condition, OfWidenedValues) {
  EXPECT_THAT(condition("cvt.s64.s32 %rd20, %r6; cvt.s64.s32 %rd21, %r1; setp.ge.s64 %p2, %rd20, %rd21;"),
              HasSubstr("available: setp.ge.s64 (line 27:"));
}

// What the counters of the comparisons above mean, link by link: a chain is walked in bytes, natively and by
// the rule of ChainCounter.
TEST(Condition, CountersAreExact) {
  const auto native = [](int x, int n, int step) {
    std::vector<bool> exists = {true};  // link 0
    for (int k = 0; k < 600; ++k) {
      const auto v = static_cast<int8_t>(x + k * step);
      exists.push_back(exists.back() && (step > 0 ? v < n : v > n));
    }
    return exists;
  };
  for (int x = -128; x < 128; ++x) {
    for (int n = -128; n < 128; ++n) {
      for (const int step : {1, -1}) {
        const std::vector<bool> expected = native(x, n, step);
        for (int k = 0; k < 600; ++k) {
          const auto v = static_cast<int8_t>(x + k * step);
          const auto first = static_cast<int8_t>(v - k * step);
          const bool in_range = k <= 255 && (step > 0 ? first <= v : v <= first);
          ASSERT_EQ(expected[k + 1], (step > 0 ? v < n : v > n) && in_range) << x << " " << n << " " << k;
        }
      }
    }
  }
}

// The same of `v != n`.
TEST(Condition, CountersUntilEqualAreExact) {
  for (int x = 0; x < 256; ++x) {
    for (int n = 0; n < 256; ++n) {
      for (const int step : {1, -1}) {
        bool exists = true;
        for (int k = 0; k < 600; ++k) {
          const auto v = static_cast<uint8_t>(x + k * step);
          exists = exists && v != n;
          const auto u = static_cast<uint8_t>(step > 0 ? n - v : v - n);
          const auto first = static_cast<uint8_t>(u + k);
          ASSERT_EQ(exists, v != n && k <= 255 && u <= first) << x << " " << n << " " << k;
        }
      }
    }
  }
}

}  // namespace
}  // namespace klap::test
