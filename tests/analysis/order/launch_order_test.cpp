// Which launches of a block may overlap: whole verdicts, and near misses of each that is proven.
#include <gtest/gtest.h>

#include "launches.h"

namespace klap::test {
namespace {

const std::string kKeptStore = "kept: st.global.u32 may conflict between launches";

std::string of_argument(const std::string& argument) { return verdict({kOwnWord, argument}); }
std::string of_child(const std::string& child) { return verdict({child}); }

TEST(LaunchOrder, ThreadsOwnWordIsProven) {
  EXPECT_EQ("proven", of_child(kOwnWord));
  EXPECT_EQ("proven", of_child("ld.global.u32 %r4, [%rd3]; add.s32 %r4, %r4, 1; st.global.u32 [%rd3], %r4;"));
  EXPECT_EQ("proven", of_argument("mad.lo.s32 %r4, %r2, 64, %r1;"));
  EXPECT_EQ("proven", of_argument("shl.b32 %r4, %r1, 1;"));
  EXPECT_EQ("proven", of_argument("sub.s32 %r4, %r3, %r1;"));
}

TEST(LaunchOrder, WordsThatTwoThreadsMayShareAreKept) {
  EXPECT_EQ(kKeptStore, of_argument("shr.u32 %r4, %r1, 1;"));
  EXPECT_EQ(kKeptStore, of_argument("and.b32 %r4, %r1, 3;"));
  EXPECT_EQ(kKeptStore, of_argument("min.s32 %r4, %r1, 5;"));
  EXPECT_EQ(kKeptStore, of_argument("mul.lo.s32 %r4, %r1, %r3;"));
  EXPECT_EQ(kKeptStore, of_argument("mov.u32 %r4, %r3;"));
  EXPECT_EQ(kKeptStore, of_argument("mov.u32 %r4, %r2;"));
  EXPECT_EQ(kKeptStore, of_argument("mul.wide.u32 %rd9, %r1, 4; add.s64 %rd9, %rd2, %rd9; "
                                    "cvta.to.global.u64 %rd9, %rd9; ld.global.u32 %r4, [%rd9];"));
}

// Runs `launches` again and again, with a counter in %r9.
Launches in_loop(const std::string& child, const std::string& in_iteration) {
  return {
      child, "mov.u32 %r9, 0; AGAIN:",
      in_iteration + "\n" + launch() + "add.s32 %r9, %r9, 1; setp.lt.s32 %p2, %r9, %r3; @%p2 bra AGAIN;\n"};
}

TEST(LaunchOrder, WordsMustStayApartInEveryRound) {
  EXPECT_EQ(kKeptStore, verdict(in_loop(kOwnWord, "add.s32 %r4, %r1, %r9;")));
  EXPECT_EQ("proven", verdict(in_loop(kOwnWord, "mov.u32 %r4, %r1;")));
  EXPECT_EQ(kKeptStore, verdict(in_loop("st.global.u32 [%rd1], %r1;", "mov.u32 %r4, %r9;")));
  EXPECT_EQ(kKeptStore,
            verdict(in_loop("st.global.u32 [%rd3], %r3;", "mov.u32 %r4, %r1; add.s64 %rd1, %rd1, 4;")));
}

TEST(LaunchOrder, LaunchesAtTwoSitesAreApartToo) {
  const auto two = [](const std::string& second) {
    return verdict({kOwnWord, "mov.u32 %r4, %r1;", launch("0") + second + "\n" + launch("1")}, 0, 1);
  };
  EXPECT_EQ("proven", two(""));
  EXPECT_EQ("proven", two("add.s32 %r4, %r1, 0;"));
  EXPECT_EQ(kKeptStore, two("add.s32 %r4, %r1, 1;"));
  EXPECT_EQ(kKeptStore, two("mul.lo.s32 %r4, %r1, 2;"));
}

TEST(LaunchOrder, KeysMustDiffer) {
  EXPECT_EQ(kKeptStore, of_argument("shl.b32 %r4, %r1, 30;"));
  EXPECT_EQ(kKeptStore, of_argument("mul.lo.s32 %r4, %r1, 1073741824;"));
  EXPECT_EQ(kKeptStore, of_argument("mul.lo.s32 %r4, %r1, 0;"));
  EXPECT_EQ(kKeptStore, of_argument("cvt.u32.u8 %r4, %r1;"));
  EXPECT_EQ(kKeptStore, of_argument("mul.lo.s32 %r4, %r1, %r1;"));
  EXPECT_EQ(kKeptStore, of_argument("mov.u32 %r4, %laneid;"));
  EXPECT_EQ(kKeptStore, of_argument("mov.u32 %r4, %r1; setp.gt.s32 %p1, %r3, 5; @%p1 mov.u32 %r4, 5;"));
  EXPECT_EQ("kept: st.global.u64 may conflict between launches",
            of_child("mov.u64 %rd9, 1; add.s64 %rd9, %rd9, %rd1; st.global.u64 [%rd3], %rd3;"));
}

TEST(LaunchOrder, ThreadsOfSeveralDimensionsShareWords) {
  const Judged judged(Launches{kOwnWord}, {});
  EXPECT_EQ(analysis::Order::Kept, judged.order->of_pair(0, 0).order);
}

TEST(LaunchOrder, RowsMustNotReachIntoEachOther) {
  const auto row = [](const std::string& step) {
    return of_child("mul.wide.s32 %rd5, %r1, " + step +
                    "; add.s64 %rd5, %rd1, %rd5; mul.wide.u32 %rd6, %r3, 4; "
                    "add.s64 %rd5, %rd5, %rd6; st.global.u32 [%rd5], %r3;");
  };
  // Children have 32 threads.
  EXPECT_EQ("proven", row("128"));
  EXPECT_EQ(kKeptStore, row("124"));
}

// The address is the one of p[0] and %rd5 further on.
constexpr char kStoreBehind[] = "add.s64 %rd5, %rd1, %rd5; st.global.u32 [%rd5], %r3; OVER:";

TEST(LaunchOrder, StepsMustNotWrapAround) {
  // Each thread's number times 2^21 fits 32 bits; every eighth one is 0 where it is shifted by 40 more.
  const auto shifted = [](const std::string& by) {
    return verdict({"mul.wide.u32 %rd5, %r1, 4; shl.b64 %rd5, %rd5, " + by + "; " + kStoreBehind,
                    "shl.b32 %r9, %r1, 21; add.s32 %r4, %r9, %r3;"});
  };
  EXPECT_EQ("proven", shifted("8"));
  EXPECT_EQ(kKeptStore, shifted("38"));
}

TEST(LaunchOrder, RowsMustNotWrapAround) {
  const auto shifted = [](const std::string& by) {
    return of_child(
        "setp.ge.u32 %p1, %r3, %r2; @%p1 bra OVER; mul.wide.u32 %rd5, %r1, %r2; shl.b64 %rd5, %rd5, " + by +
        "; mul.wide.u32 %rd6, %r3, 4; add.s64 %rd5, %rd5, %rd6; " + kStoreBehind);
  };
  EXPECT_EQ("proven", shifted("2"));
  EXPECT_EQ(kKeptStore, shifted("38"));
}

TEST(LaunchOrder, OffsetsMustNotWrapAround) {
  // One store is at p[0]. The other one comes to it for thread 16 if the factor is 2^60 - 1.
  const auto by = [](const std::string& factor) {
    return of_child(
        "mov.u32 %r5, 5; mov.u32 %r6, 6; st.global.u32 [%rd1], %r5; cvt.u64.u32 %rd5, %r3; "
        "mul.lo.s64 %rd5, %rd5, " +
        factor +
        "; add.s64 %rd5, %rd1, %rd5; "
        "st.global.u32 [%rd5+16], %r6;");
  };
  EXPECT_EQ("proven", by("4"));
  EXPECT_EQ("kept: st.global.u32 and st.global.u32 may conflict between launches", by("1152921504606846975"));
}

TEST(LaunchOrder, ComparisonsLeaveFewerThreadsOfTheChild) {
  // The child's thread stores at 16 * i + 4 * tid, of which the comparison leaves some.
  const auto behind = [](const std::string& comparison) {
    return of_child(comparison +
                    " bra OVER; mul.wide.s32 %rd5, %r1, 16; add.s64 %rd5, %rd1, %rd5; "
                    "mul.wide.u32 %rd6, %r3, 4; add.s64 %rd5, %rd5, %rd6; st.global.u32 [%rd5], %r3; OVER:");
  };
  for (const char* comparison :
       {"setp.gt.s32 %p1, %r3, 3; @%p1", "setp.ge.u32 %p1, %r3, 4; @%p1", "setp.lt.s32 %p1, %r3, 4; @!%p1",
        "setp.le.s32 %p1, %r3, 3; @!%p1", "setp.lt.s32 %p1, 3, %r3; @%p1", "setp.ne.s32 %p1, %r3, 0; @%p1",
        "setp.eq.s32 %p1, 2, %r3; @!%p1"})
    EXPECT_EQ("proven", behind(comparison)) << comparison;
  for (const char* comparison : {"setp.gt.s32 %p1, %r3, 4; @%p1", "setp.gt.s32 %p1, %r3, 3; @!%p1",
                                 "setp.eq.s32 %p1, %r3, 0; @%p1", "setp.gt.s32 %p1, %r3, %r2; @%p1",
                                 "setp.le.u32 %p1, %r3, -1; @!%p1", "setp.gt.s32 %p1, %r2, 3; @%p1"})
    EXPECT_EQ(kKeptStore, behind(comparison)) << comparison;
  // One way to the store leads past the comparison.
  EXPECT_EQ(kKeptStore, behind("setp.gt.s32 %p2, %r2, 0; @%p2 bra STORE; setp.gt.s32 %p1, %r3, 3; @%p1 bra "
                               "OVER; STORE: setp.eq.s32 %p1, %r2, 9; @%p1"));
}

TEST(LaunchOrder, ReadsAreProven) {
  EXPECT_EQ("proven", of_child("ld.global.u32 %r4, [%rd1]; ld.global.u32 %r5, [%rd2];"));
  EXPECT_EQ("proven", of_child(""));
}

TEST(LaunchOrder, UpdatesThatCommuteAreProven) {
  for (const char* operation : {"add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"})
    EXPECT_EQ("proven", of_child(std::string("red.global.") + operation + " [%rd1], %r3;")) << operation;
  EXPECT_EQ("proven", of_child("atom.global.add.u32 %r4, [%rd1], %r3;"));
  EXPECT_EQ("kept: atom.global.exch.b32 may conflict between launches",
            of_child("atom.global.exch.b32 %r4, [%rd1], %r3;"));
  for (const char* operation : {"inc.u32", "dec.u32"})
    EXPECT_EQ("kept", of_child(std::string("atom.global.") + operation + " %r9, [%rd1], %r3;").substr(0, 4));
  EXPECT_EQ("kept: atom.global.cas.b32 may conflict between launches",
            of_child("atom.global.cas.b32 %r4, [%rd1], 0, %r3;"));
  EXPECT_EQ("kept: atom.global.add.u32 may conflict between launches",
            of_child("atom.global.add.u32 %r4, [%rd1], %r3; st.global.u32 [%rd3], %r4;"));
  EXPECT_EQ("kept: red.global.add.u32 and red.global.max.u32 may conflict between launches",
            of_child("red.global.add.u32 [%rd1], 1; red.global.max.u32 [%rd1], %r3;"));
}

TEST(LaunchOrder, SumsThatRoundAreProvenWhereNothingFixesTheOrder) {
  const std::string sum = "mov.f32 %f1, 0f3F800000; red.global.add.f32 [%rd1], %f1;";
  EXPECT_EQ("proven", of_child(sum));
  const std::string kept = "kept: red.global.add.f32 may conflict between launches";
  EXPECT_EQ(kept, verdict({sum, "mov.u32 %r4, %r1; mov.u32 %r9, 0;",
                           "AGAIN: bar.sync 0; setp.ne.s32 %p1, %r1, %r9; @%p1 bra NEXT;\n" + launch() +
                               "NEXT: add.s32 %r9, %r9, 1; setp.lt.s32 %p2, %r9, %r3; @%p2 bra AGAIN;"}));
  const Launches two = {sum, "mov.u32 %r4, %r1;", launch("0") + "bar.sync 0;\n" + launch("1")};
  EXPECT_EQ("proven", verdict(two, 0, 0));
  EXPECT_EQ(kept, verdict(two, 0, 1));
}

TEST(LaunchOrder, EqualStoresAreProven) {
  EXPECT_EQ("proven", of_child("st.global.u32 [%rd1], 1;"));
  EXPECT_EQ("proven", of_child("mov.u32 %r4, 7; st.global.u32 [%rd1], %r4;"));
  EXPECT_EQ("proven", of_child("st.global.u32 [%rd1], %r2;"));
  EXPECT_EQ(kKeptStore, of_child("st.global.u32 [%rd1], %r1;"));
  EXPECT_EQ(kKeptStore, of_child("st.global.u32 [%rd1], %r3;"));
  EXPECT_EQ("kept: st.global.u32 and st.global.u16 may conflict between launches",
            of_child("mov.u16 %h1, 1; st.global.u32 [%rd1], 1; st.global.u16 [%rd1], %h1;"));
  EXPECT_EQ("kept: st.global.u32 and st.global.u32 may conflict between launches",
            of_child("st.global.u32 [%rd1], 1; st.global.u32 [%rd1], 2;"));
  EXPECT_EQ("kept: ld.global.u32 and st.global.u32 may conflict between launches",
            of_child("ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd1], 1;"));
}

TEST(LaunchOrder, EqualStoresOfValuesThatAreLoaded) {
  const auto loaded = [](const std::string& load, const std::string& more = "") {
    return verdict({"st.global.u32 [%rd1], %r1;", "cvta.to.global.u64 %rd9, %rd2; " + load + more});
  };
  EXPECT_EQ("proven", loaded("ld.global.nc.u32 %r4, [%rd9];"));
  // It may be written meanwhile.
  EXPECT_EQ(kKeptStore, loaded("ld.global.u32 %r4, [%rd9];"));
  EXPECT_EQ(kKeptStore, loaded("ld.volatile.global.u32 %r4, [%rd9];"));
  EXPECT_EQ(kKeptStore, loaded("ld.relaxed.gpu.global.u32 %r4, [%rd9];"));
  EXPECT_EQ(kKeptStore, loaded("atom.global.add.u32 %r4, [%rd9], 1;"));
  EXPECT_EQ(kKeptStore, loaded("ld.global.u32 %r4, [%rd9];", " st.global.u32 [%rd9], %r1;"));
  EXPECT_EQ(kKeptStore, loaded("ld.global.u32 %r4, [%rd9];", " red.global.add.u32 [%rd9], 1;"));
  EXPECT_EQ(kKeptStore, loaded("mov.u32 %r4, %clock;"));
  EXPECT_EQ(kKeptStore, loaded("mov.u32 %r4, %warpid;"));
  EXPECT_EQ(kKeptStore, loaded("mov.u32 %r4, %lanemask_lt;"));
}

TEST(LaunchOrder, DifferentOffsetsAreProven) {
  EXPECT_EQ("proven", of_child("ld.global.u32 %r4, [%rd1+4]; st.global.u32 [%rd1], 1;"));
  EXPECT_EQ("kept: ld.global.u32 and st.global.u32 may conflict between launches",
            of_child("ld.global.u32 %r4, [%rd1+3]; st.global.u32 [%rd1], 1;"));
}

// Whichever threads launch: their numbers are at least 0.
TEST(LaunchOrder, OffsetsInFrontOfAllThreadsAreProven) {
  EXPECT_EQ("proven", of_child("ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd3+4], %r4;"));
  EXPECT_EQ("proven", of_child("ld.global.u32 %r4, [%rd1+4096]; st.global.u32 [%rd3], %r4;"));
  const std::string kept = "kept: ld.global.u32 and st.global.u32 may conflict between launches";
  EXPECT_EQ(kept, of_child("ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd3], %r4;"));
  EXPECT_EQ(kept, of_child("ld.global.u32 %r4, [%rd1+4092]; st.global.u32 [%rd3], %r4;"));
}

TEST(LaunchOrder, TestsBeforeAMinimumBelongToIt) {
  const std::string update = "atom.global.min.s32 %r9, [%rd1], %r3;";
  EXPECT_EQ("proven", of_child("ld.global.u32 %r4, [%rd1]; setp.le.s32 %p1, %r4, %r3; @%p1 bra OVER; " +
                               update + " OVER:"));
  const std::string kept = "kept: ld.global.u32 and atom.global.min.s32 may conflict between launches";
  EXPECT_EQ("proven", of_child("ld.global.u32 %r4, [%rd1]; setp.gt.s32 %p1, %r4, %r3; @%p1 " + update));
  EXPECT_EQ(kept, of_child("ld.global.u32 %r4, [%rd1]; setp.gt.s32 %p1, %r4, %r3; @!%p1 " + update));
  // The operand changes on the way.
  EXPECT_EQ(
      kept,
      of_child("ld.global.u32 %r4, [%rd1]; setp.gt.s32 %p1, %r4, %r3; add.s32 %r3, %r3, 1; @%p1 " + update));
  // Something else depends on it.
  EXPECT_EQ(kept, of_child("ld.global.u32 %r4, [%rd1]; setp.le.s32 %p1, %r4, %r3; @%p1 bra OVER; " + update +
                           " st.global.u32 [%rd4], 1; OVER:"));
  // The update runs where it changes nothing, or in another type, or what is loaded is used.
  EXPECT_EQ(kept, of_child("ld.global.u32 %r4, [%rd1]; setp.ge.s32 %p1, %r4, %r3; @%p1 bra OVER; " + update +
                           " OVER:"));
  EXPECT_EQ(kept, of_child("ld.global.u32 %r4, [%rd1]; setp.le.u32 %p1, %r4, %r3; @%p1 bra OVER; " + update +
                           " OVER:"));
  EXPECT_EQ(kept, of_child("ld.global.u32 %r4, [%rd1]; setp.le.s32 %p1, %r4, %r3; @%p1 bra OVER; " + update +
                           " OVER: st.global.u32 [%rd4], %r4;"));
}

TEST(LaunchOrder, PointersOfParametersMustBeApart) {
  EXPECT_EQ("proven if 0 and 8 are apart", of_child("ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd4], %r4;"));
  EXPECT_EQ("proven if 0 and counter are apart",
            of_child("ld.global.u32 %r4, [%rd1]; st.global.u32 [counter], 1;"));
  // Two variables always are.
  EXPECT_EQ("proven", of_child("ld.global.u32 %r4, [table]; st.global.u32 [counter], 1;"));
}

// Such a pointer may be where one array ends and another begins.
TEST(LaunchOrder, PointersMayStandForWhatIsBelowThem) {
  const auto stored = [](const std::string& address) {
    return of_child("ld.global.u32 %r4, [%rd1]; " + address + " %r4;");
  };
  const std::string from_end = "proven if 0 and 8 from its end are apart";
  EXPECT_EQ(from_end, stored("st.global.u32 [%rd4-4],"));
  EXPECT_EQ(from_end, stored("sub.s64 %rd5, %rd2, %rd32; st.global.u32 [%rd5],"));
  EXPECT_EQ("proven if 0 and 8 from its end (+ 4*p[16:4]) are apart",
            stored("sub.s32 %r5, %r2, %r1; mul.wide.s32 %rd5, %r5, 4; add.s64 %rd5, %rd2, %rd5; "
                   "st.global.u32 [%rd5],"));
  const auto loaded = [](const std::string& index) {
    return of_child(index +
                    " mul.wide.s32 %rd5, %r5, 4; add.s64 %rd5, %rd2, %rd5; ld.global.u32 %r4, [%rd5]; "
                    "st.global.u32 [%rd3], %r4;");
  };
  // What is loaded is an index from the array's begin.
  EXPECT_EQ("proven if 0 and 8 are apart", loaded("ld.global.u32 %r5, [%rd3];"));
  // A number that the host passes may be negative, and lead to another array.
  const std::string only_if = " if 16:4 is not negative", led = " (+ 4*p[16:4])";
  const std::pair<const char*, std::string> upwards[] = {
      {"add.s32 %r5, %r2, %r1;", led},
      {"mul.lo.s32 %r5, %r2, %r3;", ""},
      {"min.s32 %r5, %r2, %r3;", led},
      {"div.s32 %r5, %r2, 3;", " (+ (4*p[16:4])/3)"},
      {"shr.s32 %r5, %r2, 1;", " (+ 2*p[16:4])"},
      {"div.s32 %r6, %r2, 3; add.s32 %r6, %r6, %r2; mul.lo.s32 %r5, %r6, 6;", " (+ 32*p[16:4])"},
      {"mad.lo.s32 %r5, %r2, %r2, 100;", " (+ 400 + 4*p[16:4]*p[16:4])"},
      {"mov.u32 %r5, %r2; LOOP: add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, 9; @%p1 bra LOOP;", led},
      {"mov.u32 %r5, %r2; LOOP: add.s32 %r5, %r5, %r2; setp.lt.s32 %p1, %r5, 9; @%p1 bra LOOP;",
       " (+ 8*p[16:4])"}};
  for (const auto& [index, distances] : upwards)
    EXPECT_EQ("proven if 0 and 8" + distances + " are apart" + only_if, loaded(index)) << index;
  // A mask makes no number negative, and leads on from it.
  EXPECT_EQ("proven if 0 and 8" + led + " are apart",
            loaded("add.s32 %r6, %r2, %r1; and.b32 %r5, %r6, 2147483632;"));
  const std::pair<const char*, std::string> to_both_sides[] = {
      {"mov.u32 %r5, -7; LOOP: add.s32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, 9; @%p1 bra LOOP;", " (+ -24)"},
      {"neg.s32 %r6, %r2; min.s32 %r5, %r6, %r3;", " (+ -4*p[16:4])"},
      {"neg.s32 %r6, %r2; sub.s32 %r5, %r6, %r3;", " (+ -4*p[16:4])"},
      {"mov.u32 %r5, %r2; LOOP: sub.s32 %r5, %r5, 1; setp.gt.s32 %p1, %r5, -9; @%p1 bra LOOP;", led}};
  for (const auto& [index, distances] : to_both_sides)
    EXPECT_EQ("proven if 0 and 8 from its end" + distances + " are apart", loaded(index)) << index;
}

TEST(LaunchOrder, PointersToOneArrayAreNotApart) {
  const auto read_and_written = [](const std::string& pointers, const std::string& child) {
    return verdict({child, "mov.u32 %r4, %r1; " + pointers});
  };
  const std::string kept = "kept: ld.global.u32 and st.global.u32 may conflict between launches";
  const std::string first_word = "ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd4], %r4;";
  const std::string own_words = "ld.global.u32 %r4, [%rd3]; st.global.u32 [%rd4], %r4;";
  EXPECT_EQ(kept, read_and_written("mov.u64 %rd2, %rd1;", first_word));
  EXPECT_EQ(kept, read_and_written("selp.b64 %rd2, %rd1, %rd2, %p1;", first_word));
  EXPECT_EQ("proven", read_and_written("mov.u64 %rd2, %rd1;", own_words));
  EXPECT_EQ(kept, read_and_written("add.s64 %rd2, %rd1, 4;", own_words));
  // A pointer that is loaded may lead anywhere.
  EXPECT_EQ(kept, read_and_written("cvta.to.global.u64 %rd9, %rd2; ld.global.u64 %rd2, [%rd9];", first_word));
  // Each thread's arrays may meet those of others.
  EXPECT_EQ(kKeptStore, read_and_written("mul.wide.u32 %rd9, %r1, 4; sub.s64 %rd1, %rd1, %rd9;", kOwnWord));
}

// p[q[threadIdx.x]] = threadIdx.x
const std::string kScatter =
    "mul.wide.u32 %rd5, %r3, 4; add.s64 %rd5, %rd2, %rd5; ld.global.u32 %r4, [%rd5]; "
    "mul.wide.s32 %rd6, %r4, 4; add.s64 %rd6, %rd1, %rd6; st.global.u32 [%rd6], %r3;";
const std::string kScattered =
    "tolerated if 0 and 8 are apart with several blocks: st.global.u32, at an address that the child loads "
    "from "
    "its input";

TEST(LaunchOrder, AddressesThatAreInputAreTolerated) {
  EXPECT_EQ(kScattered, of_child(kScatter));
  // What the parent writes must be elsewhere.
  EXPECT_EQ(
      "tolerated if 0 and 8 are apart if table and 8 are apart with several blocks: st.global.u32, at an "
      "address that the child loads from its input",
      verdict({kScatter, "mov.u32 %r4, %r1; st.global.u32 [table], %r1;"}));
}

TEST(LaunchOrder, AddressesThatAreNoInputAreKept) {
  // The parent writes what is loaded.
  EXPECT_EQ(kKeptStore, verdict({kScatter,
                                 "mov.u32 %r4, %r1; cvta.to.global.u64 %rd9, %rd2; "
                                 "st.global.u32 [%rd9], %r1;"}));
  // Each block has its own array.
  EXPECT_EQ(kKeptStore, verdict({kScatter,
                                 "mov.u32 %r4, %r1; mul.wide.u32 %rd9, %r2, 256; "
                                 "add.s64 %rd1, %rd1, %rd9;"}));
  // One block alone launches.
  EXPECT_EQ(kKeptStore, verdict({kScatter, "mov.u32 %r4, %r1; setp.ne.s32 %p1, %r2, 2; @%p1 bra OVER;",
                                 launch() + "OVER:\n"}));
  // The child loads from memory that it also writes.
  EXPECT_EQ("kept", of_child(kScatter + "st.global.u32 [%rd4], 1;").substr(0, 4));
  // Where the array is found is input itself.
  EXPECT_EQ("kept: ld.global.u64 and st.global.u32 may conflict between launches",
            of_child("ld.global.u64 %rd6, [%rd2]; st.global.u32 [%rd6], %r3;"));
  // The order is fixed.
  EXPECT_EQ(kKeptStore,
            verdict({kScatter, "mov.u32 %r4, %r1;", launch("0") + "bar.sync 0;\n" + launch("1")}, 0, 1));
}

TEST(LaunchOrder, PlacesThatABlockFindsByItsNumberAreKept) {
  // The argument %r1 of the child is the block's index, unless a test says otherwise; %rd4 is &q[%r1].
  const std::string by_block = "mov.u32 %r4, %r2;", by_thread = "mad.lo.s32 %r4, %r2, 64, %r1;";
  const std::string at_r9 = "mul.wide.s32 %rd6, %r9, 4; add.s64 %rd6, %rd1, %rd6; st.global.u32 [%rd6], %r3;";
  const std::string element =
      "mul.wide.u32 %rd5, %r3, 4; add.s64 %rd5, %rd2, %rd5; ld.global.u32 %r8, [%rd5]; ";
  const std::string first = "ld.global.u32 %r9, [%rd4]; ";
  const std::string chain = first + "mul.wide.s32 %rd5, %r9, 4; add.s64 %rd5, %rd2, %rd5; ";
  EXPECT_EQ(kKeptStore, verdict({first + at_r9, by_block}));
  EXPECT_EQ(kKeptStore, verdict({first + element + "add.s32 %r9, %r9, %r8; " + at_r9, by_block}));
  EXPECT_EQ(kKeptStore, verdict({chain + "ld.global.u32 %r9, [%rd5]; " + at_r9, by_block}));
  EXPECT_EQ(kScattered, verdict({first + at_r9, by_thread}));
  EXPECT_EQ(kScattered, verdict({first + element + "add.s32 %r9, %r9, %r8; " + at_r9, by_thread}));
  // The block's list of elements is no place of its own, nor is one that all blocks find.
  EXPECT_EQ(kScattered, verdict({first +
                                     "add.s32 %r9, %r9, %r3; mul.wide.s32 %rd5, %r9, 4; "
                                     "add.s64 %rd5, %rd2, %rd5; ld.global.u32 %r9, [%rd5]; " +
                                     at_r9,
                                 by_block}));
  EXPECT_EQ(kScattered, verdict({"ld.global.u32 %r9, [%rd2]; " + at_r9, by_block}));
}

TEST(LaunchOrder, GuardsThatMayLeaveOneBlockAreNotTolerated) {
  // %r2 is the block's index, %r7 a thread's in the grid.
  const auto behind = [](const std::string& guard) {
    return verdict(
        {kScatter, "mov.u32 %r4, %r1; mad.lo.s32 %r7, %r2, 64, %r1; " + guard, launch() + "OVER:\n"});
  };
  for (const char* guard :
       {"setp.gt.s32 %p1, %r2, 0; @%p1 bra OVER;", "setp.lt.s32 %p1, %r2, 1; @!%p1 bra OVER;",
        "setp.lt.u32 %p1, %r2, 2; @%p1 bra OVER;", "setp.eq.s32 %p1, %r2, 0; @%p1 bra OVER;",
        "setp.eq.s32 %p1, %r2, 0; selp.b32 %r9, 1, 0, %p1; setp.eq.s32 %p2, %r9, 0; @%p2 bra OVER;",
        "shr.u32 %r9, %r2, 1; setp.ne.s32 %p1, %r9, 0; @%p1 bra OVER;",
        "setp.gt.s32 %p1, %r7, 63; @%p1 bra OVER;", "setp.lt.s32 %p1, 40, %r7; @%p1 bra OVER;",
        "mul.wide.u32 %rd9, %r2, 4; add.s64 %rd9, %rd2, %rd9; ld.global.u32 %r9, [%rd9]; setp.lt.s32 %p1, "
        "%r9, "
        "5; @%p1 bra OVER;",
        "mul.wide.u32 %rd9, %r2, 4; add.s64 %rd9, %rd2, %rd9; ld.global.u32 %r9, [%rd9]; st.shared.u32 [0], "
        "%r9; bar.sync 0; ld.shared.u32 %r10, [0]; setp.ne.s32 %p1, %r10, 1; @%p1 bra OVER;",
        "setp.gt.s32 %p1, %r2, 0; setp.gt.s32 %p2, %r1, 9; or.pred %p1, %p1, %p2; @%p1 bra OVER;",
        "cvta.to.global.u64 %rd9, %rd2; ld.global.u32 %r9, [%rd9]; setp.ne.s32 %p1, %r9, %r2; @%p1 bra "
        "OVER;"})
    EXPECT_EQ(kKeptStore, behind(guard)) << guard;
  for (const char* guard :
       {"setp.gt.s32 %p1, %r1, 0; @%p1 bra OVER;", "setp.gt.s32 %p1, %r2, 4; @%p1 bra OVER;",
        "setp.ge.s32 %p1, %r7, 999; @%p1 bra OVER;", "setp.lt.s32 %p1, 200, %r7; @%p1 bra OVER;",
        "mul.wide.u32 %rd9, %r2, 4; add.s64 %rd9, %rd2, %rd9; ld.global.u32 %r9, [%rd9]; setp.ge.s32 %p1, "
        "%r1, "
        "%r9; @%p1 bra OVER;",
        "mul.wide.u32 %rd9, %r7, 4; add.s64 %rd9, %rd2, %rd9; ld.global.u32 %r9, [%rd9]; setp.ne.s32 %p1, "
        "%r9, "
        "1; @%p1 bra OVER;",
        "cvta.to.global.u64 %rd9, %rd2; ld.global.u32 %r9, [%rd9]; setp.ge.s32 %p1, %r7, %r9; @%p1 bra "
        "OVER;",
        "mov.u64 %rd9, table; mov.u32 %r8, 5; suld.b.1d.b32.trap %r9, [%rd9, {%r8}]; setp.ge.s32 %p1, %r7, "
        "%r9; @%p1 bra OVER;"})
    EXPECT_EQ(kScattered, behind(guard)) << guard;
}

TEST(LaunchOrder, GuardsWithParametersAreTheHosts) {
  // %r3 is the parameter n.
  const auto behind = [](const std::string& guard) {
    const std::string out =
        verdict({kScatter, "mov.u32 %r4, %r1; mad.lo.s32 %r7, %r2, 64, %r1; " + guard, launch() + "OVER:\n"});
    return out.substr(0, out.find(": "));
  };
  const std::string several = "tolerated if 0 and 8 are apart with several blocks below ";
  EXPECT_EQ(several + "p[16:4]", behind("setp.ge.s32 %p1, %r7, %r3; @%p1 bra OVER;"));
  EXPECT_EQ(several + "p[16:4] + 1", behind("setp.gt.s32 %p1, %r7, %r3; @%p1 bra OVER;"));
  EXPECT_EQ(several + "3*p[16:4] - 5",
            behind("mul.lo.s32 %r9, %r3, 3; add.s32 %r7, %r7, 5; setp.ge.s32 %p1, %r7, %r9; @%p1 bra OVER;"));
  EXPECT_EQ(several + "p[16:4]*p[16:4]",
            behind("mul.lo.s32 %r9, %r3, %r3; setp.le.s32 %p1, %r9, %r7; @%p1 bra OVER;"));
  for (const char* guard :
       {"shr.s32 %r9, %r3, 1; setp.ge.s32 %p1, %r7, %r9; @%p1 bra OVER;",
        "shl.b32 %r9, %r7, 1; setp.ge.s32 %p1, %r9, %r3; @%p1 bra OVER;",
        "shr.u32 %r9, %r7, 1; setp.ge.s32 %p1, %r9, %r3; @%p1 bra OVER;",
        "add.s32 %r9, %r3, 64; setp.lt.s32 %p1, %r7, %r3; @%p1 bra OVER; setp.ge.s32 %p2, %r7, %r9; @%p2 bra "
        "OVER;"})
    EXPECT_EQ("kept", behind(guard)) << guard;
}

TEST(LaunchOrder, AccessesForOneBlockAreNotTolerated) {
  // The argument %r1 of the child is the block's index in the parent, and %r2 is n.
  const auto child = [](const std::string& before, const std::string& argument = "mov.u32 %r4, %r2;") {
    return verdict({before + kScatter + "OUT:\n", argument});
  };
  for (const char* before :
       {"setp.ne.s32 %p1, %r1, 2; @%p1 bra OUT;", "setp.ne.s32 %p1, %r1, 2; @%p1 exit;",
        "setp.ge.s32 %p1, %r1, %r2; @%p1 bra OUT;",
        "ld.global.u32 %r9, [%rd4]; setp.ne.s32 %p1, %r1, %r9; @%p1 bra OUT;",
        "setp.ne.s32 %p1, %r1, %r2; selp.b32 %r9, 1, 0, %p1; setp.eq.s32 %p2, %r9, 0; @%p2 bra OUT;",
        "mov.u32 %r9, 0; setp.ne.s32 %p1, %r1, 2; @%p1 bra MEET; mov.u32 %r9, 1; MEET: setp.eq.s32 %p2, %r9, "
        "0; @%p2 bra OUT;",
        "st.shared.u32 [0], %r1; bar.sync 0; ld.shared.u32 %r9, [0]; setp.ne.s32 %p1, %r9, 2; @%p1 bra OUT;",
        "sub.s32 %r9, %r2, %r1; setp.ge.s32 %p1, %r3, %r9; @%p1 bra OUT;",
        "mov.u64 %rd9, %rd1; setp.ne.s32 %p1, %r1, 2; @%p1 bra MEET; add.s64 %rd9, %rd9, 64; MEET: mov.u64 "
        "%rd1, %rd9;"})
    EXPECT_EQ(kKeptStore, child(before)) << before;
  for (const char* before :
       {"setp.ge.s32 %p1, %r3, %r2; @%p1 bra OUT;",
        // The block's element of an array is data, and so is how it compares with others.
        "ld.global.u32 %r9, [%rd4]; setp.ge.s32 %p1, %r3, %r9; @%p1 bra OUT;",
        "ld.global.u32 %r9, [%rd2]; setp.ge.s32 %p1, %r1, %r9; @%p1 bra OUT;",
        "ld.global.u32 %r9, [%rd4]; setp.eq.s32 %p1, %r1, %r9; @%p1 bra OUT;",
        "add.s32 %r9, %r1, %r3; add.s32 %r10, %r1, %r2; setp.ge.s32 %p1, %r9, %r10; @%p1 bra OUT;"})
    EXPECT_EQ(kScattered, child(before)) << before;
  EXPECT_EQ(kScattered, child("setp.ne.s32 %p1, %r1, 2; @%p1 bra OUT;", "mov.u32 %r4, %r1;"));
  // The argument is data that the block finds by its index.
  const auto found = [](const std::string& index) {
    return "mul.wide.u32 %rd9, " + index + ", 4; add.s64 %rd9, %rd2, %rd9; ld.global.u32 %r4, [%rd9];";
  };
  EXPECT_EQ(kKeptStore, child("setp.ne.s32 %p1, %r1, 2; @%p1 bra OUT;", found("%r2")));
  EXPECT_EQ(kScattered, child("setp.ne.s32 %p1, %r1, 2; @%p1 bra OUT;", found("%r1")));
  EXPECT_EQ(kScattered, child("setp.ge.s32 %p1, %r3, %r1; @%p1 bra OUT;", found("%r2")));
  EXPECT_EQ(kScattered,
            child("mov.u32 %r9, %r3; AGAIN: setp.ge.s32 %p1, %r9, %r1; @%p1 bra OUT; add.s32 %r9, %r9, 32; "
                  "setp.lt.s32 %p2, %r9, %r1; @%p2 bra AGAIN;",
                  found("%r2")));
}

// p[slot] = threadIdx.x, with a slot of the counter that `changed` may work on.
std::string slots(const std::string& step, const std::string& changed = "") {
  return "atom.global.add.u32 %r4, [counter], " + step + "; " + changed +
         "mul.wide.u32 %rd5, %r4, 4; add.s64 %rd5, %rd1, %rd5; st.global.u32 [%rd5], %r3;";
}
const std::string kSlotsHandedOut =
    "tolerated if 0 and counter are apart with several blocks: atom.global.add.u32, which hands out slots to "
    "children of all blocks";
const std::string kKeptCounter = "kept: atom.global.add.u32 may conflict between launches";

TEST(LaunchOrder, SlotsOfACounterAreTolerated) {
  EXPECT_EQ(kSlotsHandedOut, of_child(slots("1")));
  EXPECT_EQ(kSlotsHandedOut, of_child(slots("2") + "st.global.u32 [%rd5+4], %r3;"));
  EXPECT_EQ(kSlotsHandedOut, of_child(slots("4", "add.s32 %r4, %r4, 2;")));
}

TEST(LaunchOrder, SlotsThatMeetAreKept) {
  EXPECT_EQ(kKeptCounter, of_child(slots("%r3")));
  EXPECT_EQ(kKeptStore, of_child(slots("1", "and.b32 %r4, %r4, 3; ")));
  EXPECT_EQ(kKeptStore, of_child(slots("1", "add.s32 %r4, %r4, %r3; ")));
  EXPECT_EQ("kept: st.global.u32 and st.global.u32 may conflict between launches",
            of_child(slots("1") + "st.global.u32 [%rd5+4], %r3;"));
  EXPECT_EQ("kept: atom.global.add.u32 and st.global.u32 may conflict between launches",
            of_child(slots("1") + "st.global.u32 [counter], 0;"));
  EXPECT_EQ(kKeptCounter, verdict({slots("1"), "mov.u32 %r4, %r1; setp.ne.s32 %p1, %r2, 2; @%p1 bra OVER;",
                                   launch() + "OVER:\n"}));
}

}  // namespace
}  // namespace klap::test
