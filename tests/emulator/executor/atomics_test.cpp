// Atomic operations, each against the same operation done one after another.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "program.h"

namespace klap::emulator::test {
namespace {

struct AtomicCase {
  const char* name;
  const char* op;  // "add.u32"
  uint32_t start;
  std::function<uint32_t(uint32_t old, uint32_t operand)> model;
};

void PrintTo(const AtomicCase& one, std::ostream* out) { *out << one.op; }

int32_t as_signed(uint32_t x) { return static_cast<int32_t>(x); }

class Atomics : public testing::TestWithParam<AtomicCase> {};
INSTANTIATE_TEST_SUITE_P(
    Executor, Atomics,
    testing::Values(
        AtomicCase{"add", "add.u32", 5, [](uint32_t a, uint32_t b) { return a + b; }},
        AtomicCase{"and", "and.b32", 0xffffffff, [](uint32_t a, uint32_t b) { return a & b; }},
        AtomicCase{"or", "or.b32", 0, [](uint32_t a, uint32_t b) { return a | b; }},
        AtomicCase{"xor", "xor.b32", 77, [](uint32_t a, uint32_t b) { return a ^ b; }},
        AtomicCase{"exch", "exch.b32", 9, [](uint32_t, uint32_t b) { return b; }},
        AtomicCase{"minu", "min.u32", 0xffffffff, [](uint32_t a, uint32_t b) { return std::min(a, b); }},
        AtomicCase{"mins", "min.s32", 100,
                   [](uint32_t a, uint32_t b) { return as_signed(a) < as_signed(b) ? a : b; }},
        AtomicCase{"maxs", "max.s32", 0x80000000,
                   [](uint32_t a, uint32_t b) { return as_signed(a) > as_signed(b) ? a : b; }},
        AtomicCase{"inc", "inc.u32", 3, [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }},
        AtomicCase{"dec", "dec.u32", 3, [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; }},
        AtomicCase{"addf", "add.f32", 0x3f800000,
                   [](uint32_t a, uint32_t b) {
                     return std::bit_cast<uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
                   }}),
    [](const auto& one) { return one.param.name; });

// Every lane's operand is 7 * lane - 60, and the lanes go one after another in the fast schedule.
std::string one_atomic(const std::string& space, const std::string& op) {
  bool is_float = op.ends_with("f32");
  std::string prepare = "mad.lo.u32 %r10, %r4, 7, -60;\n";
  if (is_float) prepare += "cvt.rn.f32.s32 %f1, %r10;\n";
  if (space == "shared") prepare += "mov.u64 %d1, s;\nst.shared.u32 [s], START;\n";
  std::string atom = "atom." + space + "." + op;
  std::string run =
      is_float ? atom + " %f2, [%d1], %f1;\nmov.b32 %r11, %f2;\n" : atom + " %r11, [%d1], %r10;\n";
  return prepare + run + "st.global.u32 [%d4], %r11;\nsetp.ne.u32 %p1, %r4, 31;\n@%p1 ret;\nld." + space +
         ".u32 %r13, [%d1];\nst.global.u32 [%d0+128], %r13;\n";
}

TEST_P(Atomics, FollowTheModel) {
  for (const std::string space : {"global", "shared"}) {
    std::string body = one_atomic(space, GetParam().op);
    if (size_t at = body.find("START"); at != std::string::npos)
      body.replace(at, 5, std::to_string(GetParam().start));
    Program program(".shared .align 4 .b8 s[4];\n" + kernel("f", body));
    auto values = program.result("f", {1, 1, 1}, {32, 1, 1},
                                 {program.zeros(33), program.buffer({GetParam().start})}, 33);
    EXPECT_EQ(program.grids[0]->error, "");
    uint32_t memory = GetParam().start;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(values[lane], memory) << lane;
      uint32_t operand = 7 * lane - 60;
      if (body.find("f32") != std::string::npos)
        operand = std::bit_cast<uint32_t>(static_cast<float>(as_signed(operand)));
      memory = GetParam().model(memory, operand);
    }
    EXPECT_EQ(values[32], memory);
  }
}

TEST(AtomicsWide, SixtyFourBitsAndWider) {
  Program program(kernel("f", R"(
cvt.u64.u32 %d10, %r4;
shl.b64 %d10, %d10, 33;
red.global.add.u64 [%d0], %d10;
atom.global.max.s64 %d11, [%d0+8], %d10;
neg.s64 %d12, %d10;
red.global.min.s64 [%d0+16], %d12;
cvt.rn.f64.u32 %g1, %r4;
atom.global.add.f64 %g2, [%d0+24], %g1;
atom.global.cas.b16 %h1, [%d0+32], 0, 7;
st.global.u64 [%d0+40], 5;
)"));
  auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(16)}, 16);
  EXPECT_EQ(program.grids[0]->error, "");
  auto wide = [&](size_t i) { return values[2 * i] | static_cast<uint64_t>(values[2 * i + 1]) << 32; };
  EXPECT_EQ(wide(0), 496ull << 33);
  EXPECT_EQ(wide(1), 31ull << 33);
  EXPECT_EQ(wide(2), static_cast<uint64_t>(-(31ll << 33)));
  EXPECT_EQ(std::bit_cast<double>(wide(3)), 496.0);
  EXPECT_EQ(values[8], 7);
}

TEST(AtomicsWide, PackedHalves) {
  Program program(kernel("f", R"(
mov.b32 %r10, 0x3c004000;
red.global.add.noftz.f16x2 [%d0], %r10;
mov.b32 %r11, 0x3f803f80;
red.global.add.noftz.bf16x2 [%d0+4], %r11;
)"));
  auto values = program.result("f", {1, 1, 1}, {4, 1, 1}, {program.zeros(2)}, 2);
  EXPECT_EQ(program.grids[0]->error, "");
  EXPECT_EQ(values[0], 0x44004800);  // 4 and 8
  EXPECT_EQ(values[1], 0x40804080);  // 4 and 4
}

// A lock per warp taken by one lane after another; and all lanes of all blocks add under it.
TEST(AtomicsWide, ALockKeepsEverybodyElseOut) {
  for (ScheduleKind kind : kAllSchedules) {
    Program program(kernel("f", R"(
TRY:
atom.global.cas.b32 %r10, [%d1], 0, 1;
setp.ne.u32 %p1, %r10, 0;
@%p1 bra TRY;
ld.volatile.global.u32 %r11, [%d0];
add.u32 %r11, %r11, 1;
st.volatile.global.u32 [%d0], %r11;
membar.gl;
atom.global.exch.b32 %r10, [%d1], 0;
)"),
                    with(kind, 11));
    auto values = program.result("f", {3, 1, 1}, {48, 1, 1}, {program.zeros(1), program.zeros(1)}, 1);
    EXPECT_EQ(program.grids[0]->error, "");
    EXPECT_EQ(values[0], 144) << to_string(kind);
  }
}

}  // namespace
}  // namespace klap::emulator::test
