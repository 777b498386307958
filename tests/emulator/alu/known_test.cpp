// Results that the PTX manual states or implies, independent of any recording. The lines are the suite's.
#include <gtest/gtest.h>

#include "run_case.h"

namespace suite {
namespace {

void check(std::initializer_list<const char*> lines) {
  for (const char* line : lines) {
    const Case each = parse_case(line, 0);
    try {
      const std::vector<Value> got = run_case(each);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(print_value(got[i], 128), print_value(each.results[i], 128)) << line << ", result " << i;
      }
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Known, Integers) {
  check({
      "add.s16 | 16 | 16 16 | 7fff 0001 | 8000",
      "add.sat.s32 | 32 | 32 32 | 7fffffff 00000001 | 7fffffff",
      "sub.sat.s32 | 32 | 32 32 | 80000000 00000001 | 80000000",
      "mul.hi.s32 | 32 | 32 32 | ffffffff 00000002 | ffffffff",
      "mul.hi.u32 | 32 | 32 32 | ffffffff 00000002 | 00000001",
      "mul.wide.s16 | 32 | 16 16 | ffff 0002 | fffffffe",
      "mul.wide.u32 | 64 | 32 32 | ffffffff ffffffff | fffffffe00000001",
      "mad.wide.s32 | 64 | 32 32 64 | ffffffff 00000003 0000000000000001 | fffffffffffffffe",
      "mul24.lo.s32 | 32 | 32 32 | 00ffffff 00000002 | fffffffe",
      "mul24.hi.u32 | 32 | 32 32 | ffffffff 00ffffff | fffffe00",
      "sad.s32 | 32 | 32 32 32 | 80000000 7fffffff 00000001 | 00000000",
      "div.s32 | 32 | 32 32 | fffffff9 00000002 | fffffffd",
      "rem.s32 | 32 | 32 32 | fffffff9 00000002 | ffffffff",
      "div.s32 | 32 | 32 32 | 80000000 ffffffff | 80000000",
      "abs.s16 | 16 | 16 | 8000 | 8000",
      "min.relu.s32 | 32 | 32 32 | fffffff0 00000005 | 00000000",
      "dp4a.s32.u32 | 32 | 32 32 32 | ff010203 02030405 00000000 | 00000018",
      "dp2a.hi.u32.u32 | 32 | 32 32 32 | 00010002 03040506 00000001 | 0000000c",
  });
}

TEST(Known, Carries) {
  check({
      "add.cc.u32 | 32 cc | 32 32 | ffffffff 00000001 | 00000000 1",
      "addc.cc.u32 | 32 cc | 32 32 cc | ffffffff 00000000 1 | 00000000 1",
      "addc.u32 | 32 | 32 32 cc | 00000001 00000001 1 | 00000003",
      "sub.cc.u32 | 32 cc | 32 32 | 00000000 00000001 | ffffffff 0",
      "subc.cc.u32 | 32 cc | 32 32 cc | 00000000 ffffffff 1 | 00000001 0",
      "subc.cc.u32 | 32 cc | 32 32 cc | 00000000 ffffffff 0 | 00000000 0",
      "subc.cc.u64 | 64 cc | 64 64 cc | 5 4 0 | 0 1",
      "mad.hi.cc.s32 | 32 cc | 32 32 32 | ffffffff 00000001 00000001 | 00000000 1",
      "madc.lo.cc.u32 | 32 cc | 32 32 32 cc | ffffffff ffffffff ffffffff 1 | 00000001 1",
  });
}

TEST(Known, BitsAndBytes) {
  check({
      "shl.b32 | 32 | 32 32 | 00000001 00000020 | 00000000",
      "shr.s32 | 32 | 32 32 | 80000000 ffffffff | ffffffff",
      "shr.s16 | 16 | 16 32 | 8000 0000000f | ffff",
      "shr.u64 | 64 | 64 32 | 8000000000000000 0000003f | 0000000000000001",
      "shf.l.wrap.b32 | 32 | 32 32 32 | 80000000 00000001 00000021 | 00000003",
      "shf.l.clamp.b32 | 32 | 32 32 32 | 80000000 00000001 00000021 | 80000000",
      "shf.r.clamp.b32 | 32 | 32 32 32 | 80000000 00000001 00000040 | 00000001",
      "bfe.s32 | 32 | 32 32 32 | 00000080 00000004 00000004 | fffffff8",
      "bfe.s32 | 32 | 32 32 32 | 80000000 00000020 00000004 | ffffffff",
      "bfe.u64 | 64 | 64 32 32 | 123456789abcdef0 00000024 00000008 | 0000000000000067",
      "bfi.b32 | 32 | 32 32 32 32 | 000000ff 00000000 0000001c 00000008 | f0000000",
      "bfind.u32 | 32 | 32 | 00000000 | ffffffff",
      "bfind.s32 | 32 | 32 | fffffff0 | 00000003",
      "bfind.shiftamt.u64 | 32 | 64 | 0000000000000001 | 0000003f",
      "fns.b32 | 32 | 32 32 32 | 000000f0 00000005 00000002 | 00000006",
      "fns.b32 | 32 | 32 32 32 | 000000f0 00000005 fffffffe | 00000004",
      "prmt.b32 | 32 | 32 32 32 | 33221100 77665544 00007531 | 77553311",
      "prmt.b32 | 32 | 32 32 32 | 00800000 00000000 0000a2a2 | ff80ff80",
      "prmt.b32.f4e | 32 | 32 32 32 | 33221100 77665544 00000001 | 44332211",
      "prmt.b32.b4e | 32 | 32 32 32 | 33221100 77665544 00000001 | 66770011",
      "prmt.b32.rc16 | 32 | 32 32 32 | 33221100 77665544 00000001 | 33223322",
      "lop3.b32 | 32 | 32 32 32 imm | 0000ffff 00ff00ff 0f0f0f0f 1a | 0f0ff000",
      "lop3.or.b32 | 32+p | 32 32 32 imm p | 0 0 0 80 0 | 0 0",
      "lop3.and.b32 | 32+p | 32 32 32 imm p | 0 0 0 01 1 | ffffffff 1",
      "bmsk.clamp.b32 | 32 | 32 32 | 00000004 00000008 | 00000ff0",
      "bmsk.wrap.b32 | 32 | 32 32 | 00000020 00000021 | 00000001",
      "bmsk.clamp.b32 | 32 | 32 32 | 00000020 00000001 | 00000000",
      "szext.clamp.s32 | 32 | 32 32 | 00000080 00000008 | ffffff80",
      "szext.wrap.u32 | 32 | 32 32 | ffffffff 00000024 | 0000000f",
      "brev.b64 | 64 | 64 | 0000000000000001 | 8000000000000000",
      "cnot.b16 | 16 | 16 | 0000 | 0001",
  });
}

TEST(Known, Floats) {
  check({
      "add.f32 | 32 | 32 32 | 7f800000 ff800000 | 7fffffff",
      "add.rz.f32 | 32 | 32 32 | 3f800000 33800001 | 3f800000",
      "add.rp.f32 | 32 | 32 32 | 3f800000 00000001 | 3f800001",
      "add.rm.f32 | 32 | 32 32 | 3f800000 bf800000 | 80000000",
      "add.ftz.f32 | 32 | 32 32 | 00000001 80000001 | 00000000",
      "mul.rz.f32 | 32 | 32 32 | 7f7fffff 7f7fffff | 7f7fffff",
      "mul.sat.f32 | 32 | 32 32 | 40000000 40000000 | 3f800000",
      "mul.sat.f32 | 32 | 32 32 | 7fc00000 40000000 | 00000000",
      "fma.rn.f32 | 32 | 32 32 32 | 3f800001 3f800001 bf800002 | 28800000",
      "fma.rn.f32 | 32 | 32 32 32 | 7f800000 00000000 3f800000 | 7fffffff",
      "div.rn.f32 | 32 | 32 32 | 3f800000 80000000 | ff800000",
      "div.approx.f32 | 32 | 32 32 | 3f800000 7f000000 | 00000000",
      "div.approx.f32 | 32 | 32 32 | ff800000 7f000000 | 7fffffff",
      "sqrt.rn.f32 | 32 | 32 | 80000000 | 80000000",
      "sqrt.rn.f64 | 64 | 64 | 4000000000000000 | 3ff6a09e667f3bcd",
      "sqrt.rm.f64 | 64 | 64 | 4000000000000000 | 3ff6a09e667f3bcc",
      "rsqrt.approx.f32 | 32 | 32 | 80000000 | ff800000",
      "lg2.approx.ftz.f32 | 32 | 32 | 00000001 | ff800000",
      "ex2.approx.f32 | 32 | 32 | ff800000 | 00000000",
      "rcp.approx.ftz.f64 | 64 | 64 | 0000000000000001 | 7ff0000000000000",
      "min.f32 | 32 | 32 32 | 00000000 80000000 | 80000000",
      "max.f32 | 32 | 32 32 | 7fc00000 bf800000 | bf800000",
      "max.NaN.f32 | 32 | 32 32 | 7fc00000 bf800000 | 7fffffff",
      "min.xorsign.abs.f32 | 32 | 32 32 | bf800000 40000000 | bf800000",
      "copysign.f32 | 32 | 32 32 | bf800000 40000000 | c0000000",
      "testp.subnormal.f32 | p | 32 | 807fffff | 1",
      "testp.notanumber.f64 | p | 64 | 7ff0000000000000 | 0",
      "add.f16 | 16 | 16 16 | 7bff 7bff | 7c00",
      "add.f16 | 16 | 16 16 | 3c00 1000 | 3c00",
      "add.sat.f16x2 | 32 | 32 32 | 3c00bc00 3c003800 | 3c000000",
      "fma.rn.relu.bf16 | 16 | 16 16 16 | bf80 3f80 0000 | 0000",
      "mul.ftz.f16 | 16 | 16 16 | 0400 3800 | 0000",
      "max.NaN.bf16 | 16 | 16 16 | 7fc0 3f80 | 7fff",
      "ex2.approx.f16 | 16 | 16 | 4000 | 4400",
  });
}

TEST(Known, Comparisons) {
  check({
      "setp.lt.s32 | p | 32 32 | ffffffff 00000000 | 1",
      "setp.lo.u32 | p | 32 32 | ffffffff 00000000 | 0",
      "setp.ne.f32 | p | 32 32 | 7fc00000 7fc00000 | 0",
      "setp.neu.f32 | p | 32 32 | 7fc00000 3f800000 | 1",
      "setp.nan.f64 | p | 64 64 | 7ff8000000000000 0000000000000000 | 1",
      "setp.eq.ftz.f32 | p | 32 32 | 00000001 80000001 | 1",
      "setp.lt.and.s32 | p+p | 32 32 !p | 00000001 00000002 0 | 1 0",
      "setp.lt.and.f32 | p+p | 32 32 p | 7fc00000 00000000 1 | 0 1",
      "setp.eq.xor.u16 | p | 16 16 p | 0001 0001 1 | 0",
      "setp.gt.f16x2 | p+p | 32 32 | 3c004000 3e003e00 | 1 0",
      "set.gt.u32.s32 | 32 | 32 32 | 00000001 ffffffff | ffffffff",
      "set.le.f32.f32 | 32 | 32 32 | 3f800000 3f800000 | 3f800000",
      "set.eq.f16x2.f16x2 | 32 | 32 32 | 00003c00 80003c01 | 3c000000",
      "selp.f32 | 32 | 32 32 p | 3f800000 00000000 1 | 3f800000",
      "slct.s32.f32 | 32 | 32 32 32 | 00000001 00000002 7fc00000 | 00000002",
      "slct.u64.s32 | 64 | 64 64 32 | 1 2 80000000 | 2",
      "slct.ftz.u32.f32 | 32 | 32 32 32 | 00000001 00000002 80000001 | 00000001",
  });
}

TEST(Known, Conversions) {
  check({
      "cvt.s32.s8 | 64 | 32 | 00000180 | ffffffffffffff80",
      "cvt.s8.s32 | 32 | 32 | 00000180 | ffffff80",
      "cvt.u8.u32 | 32 | 32 | 00000180 | 00000080",
      "cvt.sat.u8.s32 | 32 | 32 | ffffffff | 00000000",
      "cvt.sat.s8.u32 | 16 | 32 | ffffffff | 007f",
      "cvt.sat.s64.u64 | 64 | 64 | ffffffffffffffff | 7fffffffffffffff",
      "cvt.rni.s32.f32 | 32 | 32 | 40200000 | 00000002",
      "cvt.rpi.u32.f32 | 32 | 32 | bf000000 | 00000000",
      "cvt.rzi.u32.f32 | 32 | 32 | 7f7fffff | ffffffff",
      "cvt.rzi.s32.f32 | 32 | 32 | 7fc00000 | 00000000",
      "cvt.rzi.s64.f32 | 64 | 32 | 7fc00000 | 8000000000000000",
      "cvt.rmi.s16.f64 | 32 | 64 | bfe0000000000000 | ffffffff",
      "cvt.rn.f32.u64 | 32 | 64 | ffffffffffffffff | 5f800000",
      "cvt.rz.f32.u64 | 32 | 64 | ffffffffffffffff | 5f7fffff",
      "cvt.rp.f32.s32 | 32 | 32 | 01000001 | 4b800001",
      "cvt.rn.f16.u64 | 16 | 64 | 8000000000000001 | 7c00",
      "cvt.rp.bf16.u64 | 16 | 64 | 8000000000000001 | 5f01",
      "cvt.rn.f16.f32 | 16 | 32 | 477ff000 | 7c00",
      "cvt.rz.f16.f32 | 16 | 32 | 477ff000 | 7bff",
      "cvt.rp.f16.f64 | 16 | 64 | 0000000000000001 | 0001",
      "cvt.rn.relu.bf16.f32 | 16 | 32 | bf800000 | 0000",
      "cvt.f32.f16 | 32 | 16 | 0001 | 33800000",
      "cvt.f32.bf16 | 32 | 16 | 0001 | 00010000",
      "cvt.rni.f32.f32 | 32 | 32 | bf000000 | 80000000",
      "cvt.sat.f32.f32 | 32 | 32 | 7fc00000 | 00000000",
      "cvt.ftz.f64.f32 | 64 | 32 | 80000001 | 8000000000000000",
      "cvt.rna.tf32.f32 | 32 | 32 | 3f801000 | 3f802000",
      "cvt.rn.tf32.f32 | 32 | 32 | 3f801000 | 3f800000",
      "cvt.rn.f16x2.f32 | 32 | 32 32 | 3f800000 c0000000 | 3c00c000",
      "cvt.rn.satfinite.e4m3x2.f32 | 16 | 32 32 | 43e80001 ffc00000 | 7e7f",
      "cvt.rn.satfinite.e5m2x2.f32 | 16 | 32 32 | 7f800000 3f800000 | 7b3c",
      "cvt.rn.f16x2.e4m3x2 | 32 | 16 | 7f38 | 7fff3c00",
      "cvt.pack.sat.s16.s32 | 32 | 32 32 | 00008000 ffffffff | 7fffffff",
      "cvt.pack.sat.u8.s32.b32 | 32 | 32 32 32 | 00000100 ffffffff 12345678 | 5678ff00",
  });
}

TEST(Known, Moves) {
  check({
      "mov.f32 | 32 | 32 | 7f800001 | 7f800001",
      "mov.b64 | 64 | {32,32} | 89abcdef 01234567 | 0123456789abcdef",
      "mov.b64 | {16,16,16,16} | 64 | 0123456789abcdef | cdef 89ab 4567 0123",
      "mov.b32 | 32 | {16,16} | 1234 abcd | abcd1234",
      "mov.b128 | 128 | {64,64} | 1 2 | 00000000000000020000000000000001",
      "mov.b128 | {64,64} | 128 | 00000000000000020000000000000001 | 1 2",
      "not.pred | p | !p | 1 | 1",
  });
}

}  // namespace
}  // namespace suite
