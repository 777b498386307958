// The assembly in front of the driver's functions (src/shim/operations.S): each argument and the result get
// through, and a stack can be unwound from behind it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace klap::shim {
namespace {

using Function = int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t);

// As many arguments as any function has that takes turns; each has a digit of its own.
int digits(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h,
           uint64_t i, uint64_t j) {
  int number = 0;
  for (const uint64_t digit : {a, b, c, d, e, f, g, h, i}) number = 10 * number + static_cast<int>(digit);
  return number + static_cast<int>(j);
}

int fail(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {
  throw std::runtime_error("in the driver");
}

int wait_for_ever(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                  uint64_t) {
  for (;;) pause();
}

struct Seen {
  Function function = digits;
  uint64_t index = 0, second = 0, ninth = 0;
  int ends = 0;
} seen;

}  // namespace
}  // namespace klap::shim

extern "C" {

extern char klap_shim_operations[];

void* klap_shim_operation_begins(uint64_t index, const uint64_t* registers, const uint64_t* stack) {
  constexpr size_t kIndexOfNinth = 8;
#if defined(__x86_64__)
  constexpr size_t kRegisters = 6;
#else
  constexpr size_t kRegisters = 8;
#endif
  klap::shim::seen.index = index;
  klap::shim::seen.second = registers[1];
  klap::shim::seen.ninth = stack[kIndexOfNinth - kRegisters];
  return reinterpret_cast<void*>(klap::shim::seen.function);
}

void klap_shim_operation_ends() { ++klap::shim::seen.ends; }

}  // extern "C"

namespace klap::shim {
namespace {

int call(size_t entry) {
  const auto function = reinterpret_cast<Function>(klap_shim_operations + 16 * entry);
  return function(1, 2, 3, 4, 5, 6, 7, 8, 9, 1);
}

TEST(Operations, EachEntryHandsOnAllArguments) {
  seen = {};
  for (size_t entry = 0; entry < 256; ++entry) {
    EXPECT_EQ(123456790, call(entry));
    EXPECT_EQ(entry, seen.index);
    EXPECT_EQ(2u, seen.second);
    EXPECT_EQ(9u, seen.ninth);
    EXPECT_EQ(static_cast<int>(entry) + 1, seen.ends);
  }
}

TEST(Operations, AnExceptionPasses) {
  seen = {.function = fail};
  EXPECT_THROW(call(0), std::runtime_error);
  EXPECT_EQ(0, seen.ends);
}

TEST(Operations, AThreadMayBeCancelledBehindIt) {
  seen = {.function = wait_for_ever};
  static bool is_unwound;
  is_unwound = false;
  const auto run = [](void*) -> void* {
    struct Unwound {
      ~Unwound() { is_unwound = true; }
    } const unwound;
    call(0);
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(0, pthread_create(&thread, nullptr, run, nullptr));
  ASSERT_EQ(0, pthread_cancel(thread));
  void* result = nullptr;
  ASSERT_EQ(0, pthread_join(thread, &result));
  EXPECT_EQ(PTHREAD_CANCELED, result);
  EXPECT_TRUE(is_unwound);
}

}  // namespace
}  // namespace klap::shim
