// Loads and stores in all spaces, and what happens to wrong addresses.
#include <gtest/gtest.h>

#include "program.h"

namespace klap::emulator::test {
namespace {

// The checks of `order` send accesses another way: both must do the same.
class MemoryAccess : public testing::TestWithParam<bool> {
 protected:
  std::vector<uint32_t> run(const std::string& text, uint32_t threads, size_t count,
                            const std::vector<uint32_t>& input = {}) {
    ExecutorOptions options;
    options.order.detect_races = GetParam();
    Program program(text, options);
    uint64_t in = program.buffer(input.empty() ? std::vector<uint32_t>(16) : input);
    auto values = program.result("f", {1, 1, 1}, {threads, 1, 1}, {program.zeros(count), in}, count);
    EXPECT_EQ(program.grids[0]->error, "");
    EXPECT_EQ(program.findings, std::vector<std::string>{});
    return values;
  }
};
INSTANTIATE_TEST_SUITE_P(Executor, MemoryAccess, testing::Bool(),
                         [](const auto& one) { return one.param ? "ordered" : "plain"; });

TEST_P(MemoryAccess, ExtendsAndCuts) {
  auto values = run(kernel("f", R"(
ld.global.s8 %r10, [%d1];
st.global.u32 [%d0], %r10;
ld.global.u8 %r10, [%d1];
st.global.u32 [%d0+4], %r10;
ld.global.s16 %r10, [%d1+2];
st.global.u32 [%d0+8], %r10;
ld.global.u16 %r10, [%d1+2];
st.global.u32 [%d0+12], %r10;
ld.global.s32 %d10, [%d1+4];
shr.u64 %d10, %d10, 32;
st.global.u64 [%d0+16], %d10;
ld.global.s8 %h1, [%d1];
st.global.u16 [%d0+24], %h1;
st.global.u8 [%d0+26], %r10;
)"),
                    1, 7, {0x876500fe, 0x80000000});
  EXPECT_EQ(values[0], 0xfffffffe);
  EXPECT_EQ(values[1], 0xfe);
  EXPECT_EQ(values[2], 0xffff8765);
  EXPECT_EQ(values[3], 0x8765);
  EXPECT_EQ(values[4], 0xffffffff);
  EXPECT_EQ(values[5], 0);
  EXPECT_EQ(values[6], 0x0065fffe);
}

TEST_P(MemoryAccess, Vectors) {
  auto values = run(kernel("f", R"(
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d1];
st.global.v2.u32 [%d0], {%r13, %r12};
ld.global.v2.u64 {%d10, %d11}, [%d1];
st.global.v2.u64 [%d0+16], {%d11, %d10};
ld.global.v4.u8 {%r20, %r21, %r22, %r23}, [%d1+4];
st.global.v4.u8 [%d0+8], {%r23, %r22, %r21, %r20};
)"),
                    1, 8, {1, 0x05040302, 3, 4});
  EXPECT_EQ(values, (std::vector<uint32_t>{4, 3, 0x02030405, 0, 3, 4, 1, 0x05040302}));
}

TEST_P(MemoryAccess, EverySpaceIsReachedGenerically) {
  auto values =
      run(".shared .align 4 .b8 s[256];\n.const .align 4 .b32 k[2] = {70, 71};\n.global .align 4 .b32 g = "
          "80;\n" +
              kernel("f", R"(
.local .align 4 .b8 room[8];
mov.u64 %d10, s;
cvta.shared.u64 %d11, %d10;
mov.u64 %d12, room;
cvta.local.u64 %d13, %d12;
mov.u64 %d14, k;
cvta.const.u64 %d15, %d14;
mov.u64 %d16, g;
cvta.global.u64 %d17, %d16;
setp.eq.u32 %p1, %r0, 0;
st.u32 [%d13+4], 90;
@%p1 st.u32 [%d11], 60;
bar.sync 0;
ld.shared.u32 %r10, [s];
ld.local.u32 %r11, [room+4];
ld.u32 %r12, [%d15+4];
ld.u32 %r13, [%d17];
ld.u32 %r14, [%d11];
mul.lo.u32 %r10, %r10, 1000;
add.u32 %r10, %r10, %r11;
mul.lo.u32 %r12, %r12, 1000;
add.u32 %r12, %r12, %r13;
isspacep.shared %p2, %d11;
isspacep.local %p3, %d13;
isspacep.global %p4, %d17;
isspacep.global %p5, %d11;
isspacep.const %p6, %d15;
selp.u32 %r15, 1, 0, %p2;
selp.u32 %r16, 2, 0, %p3;
selp.u32 %r17, 4, 0, %p4;
selp.u32 %r18, 8, 0, %p5;
selp.u32 %r19, 16, 0, %p6;
or.b32 %r15, %r15, %r16;
or.b32 %r15, %r15, %r17;
or.b32 %r15, %r15, %r18;
or.b32 %r15, %r15, %r19;
cvta.to.shared.u64 %d20, %d11;
ld.shared.u32 %r20, [%d20];
setp.eq.u32 %p1, %r0, 1;
@!%p1 ret;
st.global.u32 [%d0], %r10;
st.global.u32 [%d0+4], %r12;
st.global.u32 [%d0+8], %r15;
st.global.u32 [%d0+12], %r20;
)"),
          64, 4);
  EXPECT_EQ(values, (std::vector<uint32_t>{60090, 71080, 1 + 2 + 4 + 16, 60}));
}

TEST_P(MemoryAccess, DynamicSharedMemoryFollowsTheStatic) {
  ExecutorOptions options;
  options.order.detect_races = GetParam();
  Program program(".shared .align 4 .b8 s[256];\n.extern .shared .align 4 .b8 x[];\n" + kernel("f", R"(
mov.u32 %r10, x;
mad.lo.u32 %r10, %r0, 4, %r10;
st.shared.u32 [%r10], %r0;
bar.sync 0;
xor.b32 %r11, %r0, 63;
mov.u32 %r10, x;
mad.lo.u32 %r10, %r11, 4, %r10;
ld.shared.u32 %r12, [%r10];
st.global.u32 [%d4], %r12;
)"),
                  options);
  uint64_t out = program.zeros(64);
  program.start("f", {1, 1, 1}, {64, 1, 1}, {out}, 256);
  EXPECT_EQ(program.run(), Executor::Outcome::Idle);
  EXPECT_EQ(program.grids[0]->error, "");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(program.words(out, 64)[i], 63 - i);
}

// As in a loop whose index starts below zero.
TEST_P(MemoryAccess, OffsetsOf32BitsWrap) {
  auto values = run(".shared .align 4 .b8 s[16];\n" + kernel("f", R"(
mov.u32 %r10, -4;
st.shared.u32 [%r10+8], 55;
ld.shared.u32 %r11, [s+4];
st.global.u32 [%d0], %r11;
)"),
                    1, 1);
  EXPECT_EQ(values[0], 55);
}

// ---- wrong addresses ----

struct WrongAccess {
  const char* name;
  const char* body;
  int code;
  const char* text;
};

class WrongAddress : public testing::TestWithParam<WrongAccess> {};
INSTANTIATE_TEST_SUITE_P(
    Executor, WrongAddress,
    testing::Values(
        WrongAccess{"PastTheEnd", "add.u64 %d10, %d0, 128;\nld.global.u32 %r10, [%d10];", 700,
                    "illegal address"},
        WrongAccess{"PastTheEndByAVector", "ld.global.v2.u64 {%d10, %d11}, [%d0+120];", 716, "misaligned"},
        WrongAccess{"Null", "mov.u64 %d10, 0;\nst.u32 [%d10], 1;", 700, "illegal address 0x0"},
        WrongAccess{"OtherProcessMemory", "mov.u64 %d10, 0x7fff00000000;\nst.u32 [%d10], 1;", 700, "illegal"},
        WrongAccess{"Misaligned", "ld.global.u32 %r10, [%d0+2];", 716, "misaligned address: 4 bytes"},
        WrongAccess{"SharedPastTheEnd", "mov.u32 %r10, 16;\nst.shared.u32 [%r10], 1;", 700,
                    "offset 0x10 of the block's shared memory of 16 bytes"},
        WrongAccess{"LocalPastTheEnd", "mov.u64 %d10, 4096;\nst.local.u32 [%d10], 1;", 700,
                    "the thread's stack"},
        WrongAccess{"ParametersAreNotWritten",
                    "mov.u64 %d10, a;\ncvta.param.u64 %d11, %d10;\nst.u32 [%d11], 1;", 700,
                    "cannot be written"},
        WrongAccess{"AtomicOnLocal",
                    "mov.u64 %d10, room;\ncvta.local.u64 %d11, %d10;\natom.add.u32 %r10, [%d11], 1;", 717,
                    "local"},
        WrongAccess{"AFunctionIsNoData", "mov.u64 %d10, g;\nld.u32 %r10, [%d10];", 700, "illegal address"},
        WrongAccess{"Trap", "trap;", 719, "trap"}),
    [](const auto& one) { return one.param.name; });

TEST_P(WrongAddress, EndsTheGrid) {
  const WrongAccess& wrong = GetParam();
  Program program(".shared .align 4 .b8 s[16];\n.func g() { ret; }\n" +
                  kernel("f",
                         ".local .align 8 .b8 room[32];\nst.local.u32 [room], 0;\nst.shared.u32 [s], 0;\n"
                         "setp.ne.u32 %p1, %r3, 37;\n@%p1 bra FINE;\n" +
                             std::string(wrong.body) + "\nFINE:\nst.global.u32 [%d0], 5;\n"));
  uint64_t out = program.zeros(32);
  program.start("f", {4, 1, 1}, {32, 1, 1}, {out});
  EXPECT_EQ(program.run(), Executor::Outcome::Idle);
  const Grid& grid = *program.grids[0];
  EXPECT_EQ(grid.error_code, wrong.code);
  EXPECT_NE(grid.error.find(wrong.text), std::string::npos) << grid.error;
  EXPECT_NE(grid.error.find("kernel f, block (1, 0, 0), thread (5, 0, 0), test.ptx:"), std::string::npos)
      << grid.error;
  EXPECT_EQ(program.finished_grids, std::vector<uint64_t>{1});
}

TEST(WrongAddress, FreedMemoryIsNotFound) {
  Program program(kernel("f", "st.global.u32 [%d0], 1;"));
  uint64_t out = program.zeros(1);
  program.memory.free(out, Owner::Host);
  program.start("f", {1, 1, 1}, {1, 1, 1}, {out});
  program.run();
  EXPECT_NE(program.grids[0]->error.find("free"), std::string::npos) << program.grids[0]->error;
}

TEST(WrongAddress, WithoutBoundsOnlyTheProcessIsProtected) {
  ExecutorOptions options;
  options.check_bounds = false;
  Program program(
      kernel("f", "ld.global.u32 %r10, [%d0+128];\nmov.u64 %d10, 64;\nld.global.u32 %r10, [%d10];"), options);
  uint64_t out = program.zeros(32);
  program.start("f", {1, 1, 1}, {1, 1, 1}, {out});
  program.run();
  EXPECT_NE(program.grids[0]->error.find("illegal address 0x40"), std::string::npos)
      << program.grids[0]->error;
}

// Another grid does not suffer.
TEST(WrongAddress, OtherGridsGoOn) {
  for (ScheduleKind kind : kAllSchedules) {
    Program program(kernel("bad", "trap;") + kernel("good", "st.global.u32 [%d4], 3;"), with(kind));
    uint64_t out = program.zeros(640);
    program.start("bad", {100, 1, 1}, {64, 1, 1}, {});
    program.start("good", {10, 1, 1}, {64, 1, 1}, {out});
    EXPECT_EQ(program.run(), Executor::Outcome::Idle);
    EXPECT_NE(program.grids[0]->error, "");
    EXPECT_EQ(program.grids[1]->error, "");
    EXPECT_EQ(program.words(out, 640), std::vector<uint32_t>(640, 3));
  }
}

}  // namespace
}  // namespace klap::emulator::test
