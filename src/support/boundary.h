// The boundary around all code that the C library or the program calls: hooks, look-ups, exit handlers and
// destructors of threads.
//
// Behind it nothing is thrown at the caller, whatever fails, and the thread cannot be cancelled. A failure is
// one line in the log, which needs no memory.
#pragma once

#include <pthread.h>

#include <exception>
#include <new>

namespace klap {

// True while this thread runs code of klap_jit. Libraries that klap_jit calls may come back to a hook, which
// then only forwards.
bool is_inside() noexcept;

// Marks the calling thread as inside for the scope.
class Inside {
 public:
  Inside() noexcept;
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// "WHERE: CONSEQUENCE: WHY" at level warning. A process that fails all the time says so a limited number of
// times.
void report_failure(const char* where, const char* consequence, const char* why) noexcept;

// Runs `work`; false if it threw, which is then reported.
template <class Work>
bool try_or_report(const char* where, const char* consequence, const Work& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    report_failure(where, consequence, "out of memory");
  } catch (const std::exception& error) {
    report_failure(where, consequence, error.what());
  } catch (...) {
    report_failure(where, consequence, "unknown exception");
  }
  return false;
}

// Does so for a caller outside klap_jit. It is not noexcept: a thread that is cancelled meanwhile ends when
// its cancellability comes back, by unwinding through the caller.
template <class Work>
bool contain(const char* where, const char* consequence, const Work& work) {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  bool done = false;
  {
    const Inside inside;
    done = try_or_report(where, consequence, work);
  }
  pthread_setcancelstate(before, nullptr);
  return done;
}

}  // namespace klap
