// What find_alu finds and refuses, and what an operation may rely on when it runs.
#include <gtest/gtest.h>

#include "emulator/alu/alu.h"
#include "run_case.h"

namespace klap::emulator {
namespace {

std::optional<AluOp> find(const std::string& line) {
  return suite::find_operation(suite::parse_case(line, 0));
}

TEST(FindAlu, RefusesWhatPtxDoesNotHave) {
  for (const char* line : {
           "frobnicate.u32 | 32 | 32 32 | 0 0",
           "ld.u32 | 32 | 64 | 0",
           "add | 32 | 32 32 | 0 0",
           "add.u8 | 16 | 16 16 | 0 0",
           "add.sat.u32 | 32 | 32 32 | 0 0",
           "add.odd.u32 | 32 | 32 32 | 0 0",
           "add.u32.u32 | 32 | 32 32 | 0 0",
           "add.cc.s16 | 16 | 16 16 | 0 0",
           "mul.u32 | 32 | 32 32 | 0 0",
           "mul.wide.u64 | 64 | 64 64 | 0 0",
           "neg.u32 | 32 | 32 | 0",
           "fma.f32 | 32 | 32 32 32 | 0 0 0",
           "div.f32 | 32 | 32 32 | 0 0",
           "add.ftz.f64 | 64 | 64 64 | 0 0",
           "add.sat.bf16 | 16 | 16 16 | 0 0",
           "sin.f32 | 32 | 32 | 0",
           "shl.u32 | 32 | 32 32 | 0 0",
           "setp.lo.s32 | p | 32 32 | 0 0",
           "setp.lt.b32 | p | 32 32 | 0 0",
           "setp.ltu.u32 | p | 32 32 | 0 0",
           "setp.lo.f32 | p | 32 32 | 0 0",
           "setp.u32 | p | 32 32 | 0 0",
           "cvt.f32.f64 | 32 | 64 | 0",
           "cvt.rn.f64.f32 | 64 | 32 | 0",
           "cvt.s32.f32 | 32 | 32 | 0",
           "cvt.rzi.s32.s64 | 32 | 64 | 0",
           "cvt.f32.s32 | 32 | 32 | 0",
           "cvt.ftz.f16.f16 | 16 | 16 | 0",
           "mov.b64 | {8,8,8} | 64 | 0",
       }) {
    EXPECT_FALSE(find(line).has_value()) << line;
  }
}

TEST(FindAlu, SaysHowImmediatesAreRead) {
  const auto shift = find("shl.b64 | 64 | 64 32 | 0 0");
  ASSERT_TRUE(shift.has_value());
  EXPECT_EQ(shift->sources[0].bits, 64);
  EXPECT_EQ(shift->sources[1].bits, 32);
  const auto fma = find("fma.rn.f64 | 64 | 64 64 64 | 0 0 0");
  ASSERT_TRUE(fma.has_value());
  EXPECT_TRUE(fma->sources[2].is_float);
  EXPECT_EQ(fma->sources[2].bits, 64);
  const auto select = find("selp.f32 | 32 | 32 32 p | 0 0 0");
  ASSERT_TRUE(select.has_value());
  EXPECT_TRUE(select->sources[1].is_float);
  EXPECT_EQ(select->sources[2].bits, 1);
  const auto move = find("mov.f64 | 64 | 64 | 0");
  ASSERT_TRUE(move.has_value());
  EXPECT_TRUE(move->sources[0].is_float);
}

struct Warp {
  uint64_t a[2 * kLanes], b[2 * kLanes], c[2 * kLanes], d[2 * kLanes];
  Warp() {
    for (uint32_t i = 0; i < 2 * kLanes; ++i) {
      a[i] = 1000 + i;
      b[i] = i;
      c[i] = i & 1;
      d[i] = 77;
    }
  }
};

// Operates on every lane's own values; a source may be the destination.
TEST(Lanes, EachHasItsOwn) {
  for (const uint32_t mask : {0xffffffffu, 0x80000001u, 0u}) {
    Warp warp;
    AluCall call{};
    call.destinations[0] = warp.a;
    call.sources = {warp.a, warp.b};
    call.mask = mask;
    find("add.u32 | 32 | 32 32 | 0 0")->run(call);
    for (uint32_t i = 0; i < kLanes; ++i) EXPECT_EQ(warp.a[i], 1000 + i + ((mask >> i & 1) != 0 ? i : 0));
  }
}

TEST(Lanes, SourcesAreCutToTheirType) {
  Warp warp;
  for (uint32_t i = 0; i < kLanes; ++i) warp.a[i] = 0xabcd00000000ff80 + i;
  AluCall call{};
  call.destinations[0] = warp.d;
  call.sources[0] = warp.a;
  call.mask = ~0u;
  const auto op = find("cvt.s32.s8 | 32 | 32 | 0");
  call.setting = op->setting;
  op->run(call);
  for (uint32_t i = 0; i < kLanes; ++i) EXPECT_EQ(warp.d[i], 0xffffff80 + i);
}

TEST(Lanes, BitBucketsTakeResults) {
  Warp warp;
  AluCall call{};
  call.sources = {warp.b, warp.a};
  call.mask = ~0u;
  call.destinations = {nullptr, warp.d};
  find("setp.lt.u32 | p+p | 32 32 | 0 0")->run(call);
  for (uint32_t i = 0; i < kLanes; ++i) EXPECT_EQ(warp.d[i], 0u);
  const auto unpack = find_unpack(".b64", 2);
  ASSERT_TRUE(unpack.has_value());
  call.setting = unpack->setting;
  warp.b[3] = 0x500000006;
  unpack->run(call);
  EXPECT_EQ(warp.d[3], 5u);
}

// `mov.b64 {r, s}, r` with the source's own register among the destinations.
TEST(Lanes, UnpackingMayOverwriteItsSource) {
  Warp warp;
  warp.a[0] = 0x1111111122222222;
  AluCall call{};
  const auto unpack = find_unpack(".b64", 2);
  call.setting = unpack->setting;
  call.sources[0] = warp.a;
  call.destinations = {warp.a, warp.d};
  call.mask = 1;
  unpack->run(call);
  EXPECT_EQ(warp.a[0], 0x22222222u);
  EXPECT_EQ(warp.d[0], 0x11111111u);
}

TEST(Lanes, EachHasItsOwnCarry) {
  Warp warp;
  uint64_t carry[kLanes] = {};
  for (uint32_t i = 0; i < kLanes; ++i) warp.a[i] = i % 3 == 0 ? 0xffffffff : 0;
  for (uint64_t& one : warp.b) one = 1;
  AluCall call{};
  call.carry = carry;
  call.sources = {warp.a, warp.b};
  call.destinations[0] = warp.d;
  call.mask = ~0u;
  const auto op = find("add.cc.u32 | 32 cc | 32 32 | 0 0");
  call.setting = op->setting;
  op->run(call);
  for (uint32_t i = 0; i < kLanes; ++i) EXPECT_EQ(carry[i], i % 3 == 0 ? 1u : 0u);
  // addc without .cc reads the carry and leaves it.
  const auto next = find("addc.u32 | 32 | 32 32 cc | 0 0 0");
  call.setting = next->setting;
  next->run(call);
  for (uint32_t i = 0; i < kLanes; ++i) {
    EXPECT_EQ(warp.d[i], 1u);  // 0xffffffff + 1 + 1, and 0 + 1
    EXPECT_EQ(carry[i], i % 3 == 0 ? 1u : 0u);
  }
}

}  // namespace
}  // namespace klap::emulator
