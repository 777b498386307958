// The boundary to the program: nothing is thrown through it, no thread is cancelled behind it, and what fails
// is one line.
#include "support/boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

#include "support/error.h"

namespace klap {
namespace {

using testing::HasSubstr;

// What `work` leaves on standard error, given that it throws.
template <class Work>
std::string line_of(const Work& work) {
  testing::internal::CaptureStderr();
  EXPECT_FALSE(contain("cuHook", "runs unchanged", work));
  return testing::internal::GetCapturedStderr();
}

TEST(Boundary, WhateverIsThrownBecomesOneLine) {
  EXPECT_EQ("klap: warning: cuHook: runs unchanged: out of memory\n",
            line_of([] { throw std::bad_alloc(); }));
  EXPECT_EQ("klap: warning: cuHook: runs unchanged: why\n",
            line_of([] { throw Error(ErrorCode::Driver, "why"); }));
  EXPECT_EQ("klap: warning: cuHook: runs unchanged: other\n",
            line_of([] { throw std::runtime_error("other"); }));
  EXPECT_EQ("klap: warning: cuHook: runs unchanged: unknown exception\n", line_of([] { throw 1; }));
  const std::string cut = line_of([] { throw std::runtime_error(std::string(5000, 'x')); });
  EXPECT_THAT(cut, HasSubstr("runs unchanged: xxxx"));
  EXPECT_TRUE(contain("cuHook", "runs unchanged", [] {}));
}

TEST(Boundary, MarksTheThreadAsInside) {
  EXPECT_FALSE(is_inside());
  contain("cuHook", "runs unchanged", [] { EXPECT_TRUE(is_inside()); });
  EXPECT_FALSE(is_inside());
}

struct Cancelled {
  std::atomic<bool> begun{false}, finished{false}, went_on{false};
};

void* hook_of_a_thread(void* argument) {
  auto& thread = *static_cast<Cancelled*>(argument);
  contain("cuHook", "runs unchanged", [&] {
    thread.begun = true;
    for (int i = 0; i < 20; ++i) usleep(1000);  // a cancellation point
    thread.finished = true;
  });
  pthread_testcancel();
  thread.went_on = true;
  return nullptr;
}

TEST(Boundary, AThreadIsCancelledBehindTheHookAndNotInIt) {
  Cancelled thread;
  pthread_t id{};
  ASSERT_EQ(0, pthread_create(&id, nullptr, hook_of_a_thread, &thread));
  while (!thread.begun) usleep(100);
  ASSERT_EQ(0, pthread_cancel(id));
  void* result = nullptr;
  ASSERT_EQ(0, pthread_join(id, &result));
  EXPECT_EQ(PTHREAD_CANCELED, result);
  EXPECT_TRUE(thread.finished);
  EXPECT_FALSE(thread.went_on);
}

}  // namespace
}  // namespace klap
