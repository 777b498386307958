// Copies, the heap, printf, assertions and queries, as compiled programs use them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "program.h"

namespace klap::emulator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Services, CopiesAreInStreamOrder) {
  for (const bool checks : {false, true}) {
    for (const MachineOptions& options : many_options(checks, 3)) {
      SCOPED_TRACE(describe(options));
      constexpr int kCount = 37;
      Program program("services", options);
      int* a = program.allocate<int>(kCount + 1);
      int* b = program.allocate<int>(kCount + 1, 77);
      int* c = program.allocate<int>(kCount + 1, 77);
      program.launch("copies", {1, 1, 1}, {1, 1, 1}, a, b, c, kCount);
      ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
      EXPECT_EQ(b[0], 0);
      EXPECT_EQ(b[1], -1);
      EXPECT_EQ(b[2], 0x00ffffff & -1);
      for (int i = 3; i < kCount; ++i) EXPECT_EQ(b[i], i);
      for (int i = 0; i < kCount; ++i) EXPECT_EQ(c[i], i + 1);
      EXPECT_EQ(b[kCount], 77);
      EXPECT_EQ(c[kCount], 77);
      EXPECT_THAT(program.findings, IsEmpty());
    }
  }
}

TEST(Services, BoxesOfTwoAndThreeDimensions) {
  for (const MachineOptions& options : many_options(true, 1)) {
    Program program("services", options);
    char* from = program.allocate<char>(64);
    char* to = program.allocate<char>(64, '.');
    for (int i = 0; i < 64; ++i) from[i] = static_cast<char>('A' + i % 26);
    program.machine.order().initialised(reinterpret_cast<uint64_t>(from), 64);
    program.launch("boxes", {1, 1, 1}, {1, 1, 1}, to, from);
    ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
    // Rows ABC, IJK, QRS, YZA, GHI; two of them partly set. The box begins at row 2, byte 1: RS, ZA.
    EXPECT_EQ(std::string(to, 40), "zzC.zzK.QRS.YZA.GHI.............RS..ZA..") << describe(options);
  }
}

TEST(Services, ABadCopyIsAnIllegalAddress) {
  Program program("services");
  char* buffer = program.allocate<char>(64);
  program.launch("bad_copy", {1, 1, 1}, {1, 1, 1}, buffer, buffer);
  EXPECT_EQ(program.machine.synchronise_all(), 700);
  EXPECT_THAT(program.machine.error_text(), HasSubstr("cudaMemcpyAsync"));
}

TEST(Services, LocalMemoryCannotBeCopied) {
  Program program("services");
  char* to = program.allocate<char>(8);
  int* code = program.allocate<int>(1, -1);
  program.launch("local_copy", {1, 1, 1}, {1, 1, 1}, to, code);
  ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
  EXPECT_EQ(*code, 1);
}

TEST(Services, TheHeapIsAsLargeAsItWasMade) {
  MachineOptions options;
  options.heap_bytes = 64 << 10;
  Program program("services", options);
  auto* got = program.allocate<unsigned>(1);
  auto* wrong = program.allocate<unsigned>(1, 99);
  const auto run = [&](unsigned bytes) {
    program.launch("use_heap", {1, 1, 1}, {1, 1, 1}, bytes, got, wrong);
    EXPECT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
    EXPECT_EQ(*wrong, 0u);
    return *got;
  };
  const unsigned pieces = run(1000);
  EXPECT_GT(pieces, 60u);
  EXPECT_LE(pieces, 65u);
  EXPECT_EQ(run(1000), pieces);  // all was freed
  EXPECT_EQ(program.machine.heap_allocations(), 2 * pieces) << "freed or not";
  EXPECT_EQ(program.machine.heap_used(), 0U);
  EXPECT_EQ(run(100 << 10), 0u);
  EXPECT_EQ(program.machine.heap_allocations(), 2 * pieces) << "refused";
  program.machine.set_heap_bytes(128 << 10);
  EXPECT_EQ(run(1000), 2 * pieces);
}

TEST(Services, TheRuntimesHeap) {
  Program program("services");
  int* codes = program.allocate<int>(5, -1);
  int* value = program.allocate<int>(1);
  program.launch("runtime_heap", {1, 1, 1}, {1, 1, 1}, codes, value);
  ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
  EXPECT_THAT(std::vector<int>(codes, codes + 5), ElementsAre(0, 0, 2, 2, 0));
  EXPECT_EQ(*value, 5);
}

TEST(Services, FreeingTwiceIsFound) {
  Program program("services");
  program.launch("free_twice", {1, 1, 1}, {1, 1, 1});
  EXPECT_EQ(program.machine.synchronise_all(), 719);
  EXPECT_THAT(program.machine.error_text(), HasSubstr("free_twice"));
  EXPECT_THAT(program.machine.error_text(), HasSubstr("free of"));
}

// Freeing is a write to all of it: what others did with it must have happened before.
TEST(Services, FreeingWhatIsInUseIsARace) {
  for (const bool ordered : {true, false}) {
    MachineOptions options;
    options.executor.order.detect_races = true;
    Program program("services", options);
    program.launch("free_beside_write", {1, 1, 1}, {2, 1, 1}, int{ordered});
    ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
    ASSERT_EQ(program.findings.size(), ordered ? 0 : 1);
    EXPECT_THAT(program.findings, testing::Each(HasSubstr("data race on 4 bytes")));
  }
}

TEST(Services, Printf) {
  Program program("services");
  char* name = program.allocate<char>(8);
  std::strcpy(name, "me");
  program.launch("say", {1, 1, 1}, {2, 1, 1}, name);
  ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
  EXPECT_EQ(program.printed,
            "me: block 0 of 1,  0.00 -1099511627776 0x10\nme: block 0 of 1,  0.12 -1099511627776 0x10\n");
}

TEST(Services, Assertions) {
  Program program("services");
  program.launch("expect_small", {2, 1, 1}, {4, 1, 1}, 2);
  ASSERT_EQ(program.machine.synchronise_all(), 0);
  EXPECT_EQ(program.printed, "");
  program.launch("expect_small", {1, 1, 1}, {1, 1, 1}, 3);
  EXPECT_EQ(program.machine.synchronise_all(), 710);
  EXPECT_THAT(program.printed, HasSubstr("services.cu:"));
  EXPECT_THAT(program.printed, HasSubstr("block: [0,0,0], thread: [0,0,0] Assertion `n < 3` failed.\n"));
  EXPECT_THAT(program.machine.error_text(), HasSubstr("Assertion `n < 3` failed"));
}

TEST(Services, Queries) {
  MachineOptions options;
  options.pending_launches = 345;
  options.heap_bytes = 1 << 16;
  options.executor.device.multiprocessors = 7;
  Program program("services", options);
  int* out = program.allocate<int>(32, -1);
  program.launch("queries", {1, 1, 1}, {1, 1, 1}, out);
  ASSERT_EQ(program.machine.synchronise_all(), 0) << program.machine.error_text();
  const int fit =
      static_cast<int>(Executor::occupancy(options.executor.device, *program.function("queries"), 128, 0));
  EXPECT_GT(fit, 0);
  EXPECT_THAT(std::vector<int>(out, out + 20),
              ElementsAre(0, 0, 0, 1, 0, 7, 101, -1, 101, 0, 345, 0, 1 << 16, 0, 128, 1023, 0, fit, 1, 1));
}

}  // namespace
}  // namespace klap::emulator
