// Thread-instructions a second on one core: an arithmetic loop, a loop over memory and a divergent loop, with
// all checks off and with each of them on.
#include <benchmark/benchmark.h>

#include "program.h"

namespace klap::emulator::test {
namespace {

constexpr const char* kArithmetic = R"(
mov.u32 %r10, 0;
mov.u32 %r11, %r3;
LOOP:
mad.lo.u32 %r11, %r11, 1664525, 1013904223;
shr.u32 %r12, %r11, 16;
xor.b32 %r11, %r11, %r12;
cvt.rn.f32.u32 %f1, %r12;
fma.rn.f32 %f2, %f1, %f1, %f2;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p1, %r10, 500;
@%p1 bra LOOP;
cvt.rzi.u32.f32 %r12, %f2;
add.u32 %r11, %r11, %r12;
st.global.u32 [%d4], %r11;
)";

// A copy with a stride of the grid, as most kernels go over memory.
constexpr const char* kMemory = R"(
mov.u64 %d6, %d4;
add.u64 %d7, %d1, %d5;
mov.u32 %r10, 0;
LOOP:
ld.global.u32 %r11, [%d7];
add.u32 %r11, %r11, 1;
st.global.u32 [%d6], %r11;
add.u64 %d6, %d6, 4096;
add.u64 %d7, %d7, 4096;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p1, %r10, 500;
@%p1 bra LOOP;
)";

// Every lane goes round as often as its number says, with a branch inside.
constexpr const char* kDivergent = R"(
mov.u32 %r11, %r3;
mul.lo.u32 %r13, %r4, 30;
LOOP:
mad.lo.u32 %r11, %r11, 1664525, 1013904223;
and.b32 %r12, %r11, 65536;
setp.eq.u32 %p1, %r12, 0;
@%p1 bra EVEN;
add.u32 %r11, %r11, 3;
bra NEXT;
EVEN:
shr.u32 %r11, %r11, 1;
NEXT:
sub.u32 %r13, %r13, 1;
setp.gt.s32 %p2, %r13, 0;
@%p2 bra LOOP;
st.global.u32 [%d4], %r11;
)";

ExecutorOptions no_checks() {
  ExecutorOptions options;
  options.check_bounds = false;
  return options;
}

struct Checks {
  const char* name;
  ExecutorOptions options;
};

std::vector<Checks> all_checks() {
  std::vector<Checks> all{{"none", no_checks()}, {"bounds", ExecutorOptions{}}};
  Checks weak{"weak_memory", no_checks()}, races{"races", no_checks()},
      uninitialised{"uninitialised", no_checks()};
  weak.options.order.weak_memory = true;
  races.options.order.detect_races = true;
  uninitialised.options.order.detect_uninitialised = true;
  Checks everything{"everything", ExecutorOptions{}};
  everything.options.order = {.weak_memory = true, .detect_races = true, .detect_uninitialised = true};
  Checks random{"random_schedule", no_checks()};
  random.options.schedule = ScheduleKind::Random;
  for (const Checks& one : {weak, races, uninitialised, everything, random}) all.push_back(one);
  return all;
}

// The argument is a number of all_checks().
void measure(benchmark::State& state, const char* body) {
  const Checks checks = all_checks()[static_cast<size_t>(state.range(0))];
  const ExecutorOptions& options = checks.options;
  state.SetLabel(checks.name);
  constexpr uint32_t kBlocks = 4, kThreads = 256, kWords = kBlocks * kThreads * 501;
  Program program(kernel("f", body), options);
  uint64_t out = program.zeros(kWords), in = program.zeros(kWords);
  uint64_t steps = 0;
  while (state.KeepRunning()) {
    uint64_t before = program.executor.steps();
    program.start("f", {kBlocks, 1, 1}, {kThreads, 1, 1}, {out, in});
    if (program.run() != Executor::Outcome::Idle || !program.grids.back()->error.empty()) {
      state.SkipWithError("the kernel did not end well");
      return;
    }
    if (options.order.any()) program.order.synchronise_all();
    steps += program.executor.steps() - before;
  }
  state.counters["thread_instructions"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsRate);
}

void arithmetic(benchmark::State& state) { measure(state, kArithmetic); }
void memory(benchmark::State& state) { measure(state, kMemory); }
void divergent(benchmark::State& state) { measure(state, kDivergent); }
BENCHMARK(arithmetic)->DenseRange(0, 6);
BENCHMARK(memory)->DenseRange(0, 6);
BENCHMARK(divergent)->DenseRange(0, 6);

}  // namespace
}  // namespace klap::emulator::test

BENCHMARK_MAIN();
