// Constant expressions and literals, as operands have them.
#include <bit>

#include "decode_fixture.h"

namespace klap::emulator {
namespace {

using testing::HasSubstr;

uint64_t operand_bits(const std::string& instruction) {
  const Linked linked({kernel(instruction)});
  const Function& f = linked.function("k");
  if (!f.unsupported.empty() || f.code.empty()) {
    ADD_FAILURE() << f.unsupported;
    return 0;
  }
  const Instruction& i = f.code.at(0);
  EXPECT_EQ(i.sources[i.source_count - 1].from, Operand::From::Constant);
  const size_t first = size_t{i.sources[i.source_count - 1].index} * kLanes;
  for (size_t lane = 0; lane < kLanes; ++lane) EXPECT_EQ(f.constants[first + lane], f.constants[first]);
  return f.constants[first];
}
uint64_t word(const std::string& text) { return operand_bits("mov.u32 %r1, " + text + ";"); }
uint64_t wide(const std::string& text) { return operand_bits("mov.u64 %rd1, " + text + ";"); }

TEST(Constants, IntegersInAllBases) {
  EXPECT_EQ(word("10"), 10u);
  EXPECT_EQ(word("0x1F"), 31u);
  EXPECT_EQ(word("017"), 15u);
  EXPECT_EQ(word("0b101"), 5u);
  EXPECT_EQ(word("7U"), 7u);
  EXPECT_EQ(word("WARP_SZ"), 32u);
}

TEST(Constants, AreCutToTheOperand) {
  EXPECT_EQ(word("-1"), 0xffffffffu);
  EXPECT_EQ(word("0x1ffffffff"), 0xffffffffu);
  EXPECT_EQ(wide("-1"), ~0ull);
  EXPECT_EQ(operand_bits("mov.u16 %h1, -2;"), 0xfffeu);
  EXPECT_EQ(operand_bits("shl.b64 %rd1, %rd2, 3;"), 3u);
}

TEST(Constants, ExpressionsWithPrecedence) {
  EXPECT_EQ(word("3+4*2"), 11u);
  EXPECT_EQ(word("(3+4)*2"), 14u);
  EXPECT_EQ(word("1<<4|3"), 19u);
  EXPECT_EQ(word("0xff&~0xf"), 0xf0u);
  EXPECT_EQ(word("10-3-2"), 5u);
  EXPECT_EQ(word("17 % 5"), 2u);
  EXPECT_EQ(word("-16>>2"), 0xfffffffcu);
  EXPECT_EQ(word("!0"), 1u);
}

TEST(Constants, FloatingPoint) {
  EXPECT_EQ(operand_bits("mov.f32 %f1, 0f3f800000;"), 0x3f800000u);
  EXPECT_EQ(operand_bits("mov.f32 %f1, 0F3F800000;"), 0x3f800000u);
  EXPECT_EQ(operand_bits("mov.f64 %fd1, 0d3ff8000000000000;"), 0x3ff8000000000000u);
  EXPECT_EQ(operand_bits("mov.f32 %f1, 1.5;"), std::bit_cast<uint32_t>(1.5f));
  EXPECT_EQ(operand_bits("mov.f32 %f1, -2.5e-3;"), std::bit_cast<uint32_t>(-2.5e-3f));
  EXPECT_EQ(operand_bits("mov.f64 %fd1, 0.1;"), std::bit_cast<uint64_t>(0.1));
  EXPECT_EQ(operand_bits("mov.f64 %fd1, 0f3fc00000;"), std::bit_cast<uint64_t>(1.5));
  EXPECT_EQ(operand_bits("mov.f32 %f1, 0d3ff8000000000000;"), std::bit_cast<uint32_t>(1.5f));
  EXPECT_EQ(operand_bits("mov.b32 %r1, 0fBF800000;"), 0xbf800000u);
  EXPECT_EQ(operand_bits("fma.rn.f64 %fd1, %fd2, %fd3, -0d3ff0000000000000;"), 0xbff0000000000000u);
}

TEST(Constants, AreKeptOnce) {
  const Linked linked({kernel("add.s32 %r1, %r2, 7; add.s32 %r3, %r1, 7; add.s32 %r4, %r3, 8;")});
  EXPECT_EQ(linked.function("k").constants.size(), 2 * kLanes);
}

TEST(Constants, OfAnotherKindAreRefusedAsPtxasDoes) {
  for (const char* wrong : {"mov.f32 %f1, 0;", "st.f32 [%rd1], 1;", "mov.u32 %r1, 0d3ff8000000000000;",
                            "mov.u32 %r1, 5/0;", "mov.u32 %r1, (3;"}) {
    EXPECT_THAT(link_failure({kernel(wrong)}, ErrorCode::Parse), HasSubstr("a.ptx:8:")) << wrong;
  }
}

}  // namespace
}  // namespace klap::emulator
