// Calls: arguments, recursion of lanes at different depths, indirect calls, functions of the machine, the
// stack.
#include <gtest/gtest.h>

#include <cstring>

#include "program.h"

namespace klap::emulator::test {
namespace {

class CallsInEverySchedule : public testing::TestWithParam<ScheduleKind> {};
INSTANTIATE_TEST_SUITE_P(Executor, CallsInEverySchedule, testing::ValuesIn(kAllSchedules), ScheduleName{});

// As nvcc compiles it: arguments and results in .param space.
constexpr const char* kFibonacci = R"(
.func (.param .b32 result) fib(.param .b32 n)
{
.reg .b32 %r<10>; .reg .pred %p<4>;
ld.param.u32 %r1, [n];
setp.lt.u32 %p1, %r1, 2;
@%p1 bra SMALL;
sub.u32 %r2, %r1, 1;
{
.param .b32 a0; .param .b32 r0;
st.param.b32 [a0], %r2;
call.uni (r0), fib, (a0);
ld.param.b32 %r3, [r0];
}
sub.u32 %r2, %r1, 2;
{
.param .b32 a0; .param .b32 r0;
st.param.b32 [a0], %r2;
call.uni (r0), fib, (a0);
ld.param.b32 %r4, [r0];
}
add.u32 %r1, %r3, %r4;
SMALL:
st.param.b32 [result], %r1;
ret;
}
)";

uint32_t fib(uint32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

TEST_P(CallsInEverySchedule, RecursionOnDivergentLanes) {
  Program program(kFibonacci + kernel("f", R"(
and.b32 %r10, %r3, 15;
{
.param .b32 a0; .param .b32 r0;
st.param.b32 [a0], %r10;
call (r0), fib, (a0);
ld.param.b32 %r11, [r0];
}
activemask.b32 %r12;
st.global.u32 [%d4], %r11;
add.u64 %d6, %d1, %d5;
st.global.u32 [%d6], %r12;
)"),
                  with(GetParam(), 2));
  uint64_t masks = program.zeros(64);
  auto values = program.result("f", {1, 1, 1}, {64, 1, 1}, {program.zeros(64), masks}, 64);
  EXPECT_EQ(program.grids[0]->error, "");
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], fib(i & 15)) << i;
  if (GetParam() == ScheduleKind::Fast) {
    EXPECT_EQ(program.words(masks, 1)[0], 0xffffffff);
  }
}

// Lanes call different functions through one call.
TEST_P(CallsInEverySchedule, IndirectCallsOfDifferentFunctions) {
  Program program(R"(
.func (.reg .b32 y) twice(.reg .b32 x) { add.u32 y, x, x; ret; }
.func (.reg .b32 y) square(.reg .b32 x) { mul.lo.u32 y, x, x; ret; }
)" + kernel("f", R"(
proto: .callprototype (.reg .b32 y) _ (.reg .b32 x);
and.b32 %r10, %r4, 1;
setp.eq.u32 %p1, %r10, 0;
mov.u64 %d10, twice;
@%p1 mov.u64 %d10, square;
call (%r11), %d10, (%r4), proto;
st.global.u32 [%d4], %r11;
)"),
                  with(GetParam()));
  auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(32)}, 32);
  EXPECT_EQ(program.grids[0]->error, "");
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], i % 2 == 0 ? i * i : 2 * i);
}

TEST(Calls, OfNoFunctionIsAnError) {
  Program program(kernel("f", R"(
proto: .callprototype _ ();
mov.u64 %d10, 4096;
call %d10, (), proto;
)"));
  program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(1)}, 1);
  EXPECT_NE(program.grids[0]->error.find("call of 0x1000, which is no function"), std::string::npos)
      << program.grids[0]->error;
  EXPECT_EQ(program.grids[0]->error_code, 718);
}

TEST(Calls, EndlessRecursionOverflowsTheStack) {
  Program program(R"(
.func down(.param .b32 n)
{
.local .align 4 .b8 room[100];
.reg .b32 %r<4>;
ld.param.u32 %r1, [n];
st.local.u32 [room], %r1;
{ .param .b32 a0; st.param.b32 [a0], %r1; call.uni down, (a0); }
ret;
}
)" + kernel("f", "{ .param .b32 a0; st.param.b32 [a0], %r4; call.uni down, (a0); }"));
  program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(1)}, 1);
  EXPECT_NE(program.grids[0]->error.find("stack overflow"), std::string::npos) << program.grids[0]->error;
  EXPECT_EQ(program.grids[0]->error_code, 714);
}

// Locals of every frame keep their own values, below and above a call.
TEST_P(CallsInEverySchedule, FramesDoNotOverlap) {
  Program program(R"(
.func (.param .b32 result) sum(.param .b32 n)
{
.local .align 4 .b8 mine[4];
.reg .b32 %r<10>; .reg .b64 %d<4>; .reg .pred %p<4>;
ld.param.u32 %r1, [n];
mov.u64 %d1, mine;
cvta.local.u64 %d2, %d1;
st.u32 [%d2], %r1;
mov.u32 %r3, 0;
setp.eq.u32 %p1, %r1, 0;
@%p1 bra END;
sub.u32 %r2, %r1, 1;
{ .param .b32 a0; .param .b32 r0; st.param.b32 [a0], %r2; call.uni (r0), sum, (a0); ld.param.b32 %r3, [r0]; }
END:
ld.local.u32 %r4, [mine];
add.u32 %r3, %r3, %r4;
st.param.b32 [result], %r3;
ret;
}
)" + kernel("f", R"(
mul.lo.u32 %r10, %r4, 30;
{ .param .b32 a0; .param .b32 r0; st.param.b32 [a0], %r10; call (r0), sum, (a0); ld.param.b32 %r11, [r0]; }
st.global.u32 [%d4], %r11;
)"),
                  with(GetParam()));
  auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(32)}, 32);
  EXPECT_EQ(program.grids[0]->error, "");
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], 30 * i * (30 * i + 1) / 2);
}

constexpr const char* kMalloc = ".extern .func (.param .b64 p) malloc(.param .b64 n);\n";

TEST(Calls, OfTheMachineGoThreadByThread) {
  Program program(kMalloc + kernel("f", R"(
setp.lt.u32 %p1, %r4, 4;
@!%p1 ret;
cvt.u64.u32 %d10, %r4;
{ .param .b64 a0; .param .b64 r0; st.param.b64 [a0], %d10; call.uni (r0), malloc, (a0); ld.param.b64 %d11, [r0]; }
cvt.u32.u64 %r10, %d11;
st.global.u32 [%d4], %r10;
)"));
  std::vector<uint32_t> threads;
  program.on_call = [&](const ThreadCall& call) {
    uint64_t argument = 0;
    ASSERT_EQ(call.arguments.size(), 8u);
    std::memcpy(&argument, call.arguments.data(), 8);
    EXPECT_EQ(argument, call.thread_index[0]);
    EXPECT_EQ(call.place.function->name, "f");
    threads.push_back(call.thread_index[0]);
    uint64_t result = 100 + argument;
    std::memcpy(call.result.data(), &result, 8);
  };
  auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(32)}, 32);
  EXPECT_EQ(program.grids[0]->error, "");
  EXPECT_EQ(threads, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(std::vector(values.begin(), values.begin() + 5), (std::vector<uint32_t>{100, 101, 102, 103, 0}));
}

// The machine reads a thread's own memory by generic addresses.
TEST(Calls, OfTheMachineReachTheThreadsMemory) {
  Program program(kMalloc + std::string(".shared .align 8 .b8 s[16];\n") + kernel("f", R"(
.local .align 8 .b8 room[16];
mov.u64 %d12, room;
st.local.u32 [room+4], 1234;
mov.u64 %d14, s;
st.shared.u32 [s+4], 4321;
cvta.local.u64 %d13, %d12;
setp.eq.u32 %p1, %r4, 1;
@%p1 cvta.shared.u64 %d13, %d14;
{ .param .b64 a0; .param .b64 r0; st.param.b64 [a0], %d13; call.uni (r0), malloc, (a0); ld.param.b64 %d11, [r0]; }
ld.u32 %r10, [%d13+8];
st.global.u32 [%d4], %r10;
)"));
  program.on_call = [&](const ThreadCall& call) {
    uint64_t address = 0;
    std::memcpy(&address, call.arguments.data(), 8);
    std::array<uint32_t, 2> read{};
    program.executor.read(call, address, std::as_writable_bytes(std::span(read)));
    uint32_t value = read[1] + call.thread_index[0];
    program.executor.write(call, address + 8, std::as_bytes(std::span(&value, 1)));
  };
  auto values = program.result("f", {1, 1, 1}, {2, 1, 1}, {program.zeros(2)}, 2);
  EXPECT_EQ(program.grids[0]->error, "");
  EXPECT_EQ(values, (std::vector<uint32_t>{1234, 4322}));
}

TEST(Calls, AllocaGrowsTheStackOfOneCall) {
  Program program(kernel("f", R"(
mov.u32 %r10, 0;
add.u32 %r11, %r4, 1;
mul.wide.u32 %d10, %r11, 16;
AGAIN:
stacksave.u64 %d11;
alloca.u64 %d12, %d10;
st.local.u32 [%d12], %r4;
ld.local.u32 %r12, [%d12];
stackrestore.u64 %d11;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p1, %r10, 5000;
@%p1 bra AGAIN;
st.global.u32 [%d4], %r12;
)"));
  auto values = program.result("f", {1, 1, 1}, {32, 1, 1}, {program.zeros(32)}, 32);
  EXPECT_EQ(program.grids[0]->error, "");
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(values[i], i);
}

}  // namespace
}  // namespace klap::emulator::test
