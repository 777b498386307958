#include "support/own_thread.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "support/boundary.h"
#include "support/error.h"

namespace klap {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr size_t kStackBytes = size_t{64} << 20;
constexpr seconds kLoaderPatience{2};
constexpr seconds kExitPatience{60};

using Word = std::atomic<uint32_t>;
static_assert(sizeof(Word) == sizeof(uint32_t), "the kernel compares it");

// Waits until `word` has another value than `value`. Unlike a condition variable this holds no lock, so a
// signal handler may call exit() in a thread that waits. It is no cancellation point.
void wait_while(Word& word, uint32_t value, nanoseconds patience) {
  const auto whole = std::chrono::duration_cast<seconds>(patience);
  const timespec timeout{static_cast<time_t>(whole.count()), static_cast<long>((patience - whole).count())};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &timeout, nullptr, 0);
}

void wake_all(Word& word) { syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

// All of these outlive every destructor.
constinit Word under_way{0};  // threads that exit() has to wait for
constinit std::atomic<bool> ending{false};
constinit std::atomic<uint32_t> forks{0};  // between the first process and this one
pthread_key_t last_key;
thread_local bool in_own_thread = false;

#ifdef __SANITIZE_THREAD__
// The sanitizer gives way to others as well, and nothing of the thread may come behind it.
constexpr int kDestructorRounds = PTHREAD_DESTRUCTOR_ITERATIONS - 1;
#else
constexpr int kDestructorRounds = PTHREAD_DESTRUCTOR_ITERATIONS;
#endif

enum State : uint32_t { kStarting, kRunning, kAbandoned, kEnded };

// One piece of work, owned by the thread that waits, if one does, and the one that runs it.
struct Job {
  Job(std::function<void()> to_do, int all_owners) : work(std::move(to_do)), owners(all_owners) {}
  const std::function<void()> work;
  Word state{kStarting};
  std::atomic<int> owners;
  std::exception_ptr failure;
  int destructor_rounds = kDestructorRounds;
};

void release(Job* job) {
  if (job->owners.fetch_sub(1) == 1) delete job;
}

void leave() {
  under_way.fetch_sub(1);
  wake_all(under_way);
}

void finish(Job* job) {
  job->state.store(kEnded);
  wake_all(job->state);
  release(job);
  leave();
}

// Runs last in the thread. Destructors of thread-local objects come before those of keys, and this one gives
// way to the others for as many rounds as there are. Behind it exit() may destroy the objects that they use.
void finish_at_thread_end(void* value) {
  auto* const job = static_cast<Job*>(value);
  if (--job->destructor_rounds > 0 && pthread_setspecific(last_key, job) == 0) return;
  finish(job);
}

// Waits until no thread holds the loader's lock, which the work will need.
void wait_for_the_loader() {
  Dl_info info{};
  (void)dladdr(reinterpret_cast<const void*>(&under_way), &info);
}

void* run_job(void* argument) {
  auto* const job = static_cast<Job*>(argument);
  // Cancelling is off here, as everywhere behind the boundary (boundary.h).
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  wait_for_the_loader();
  uint32_t expected = kStarting;
  if (!job->state.compare_exchange_strong(expected, kRunning)) {
    release(job);
    return nullptr;
  }
  wake_all(job->state);
  in_own_thread = true;
  const bool ends_last = pthread_setspecific(last_key, job) == 0;
  {
    const Inside inside;
    try {
      job->work();
    } catch (...) {
      job->failure = std::current_exception();
    }
  }
  if (!ends_last) finish(job);
  return nullptr;
}

void wait_at_exit() {
  ending.store(true);
  if (in_own_thread) return;  // which cannot wait for itself
  const auto deadline = steady_clock::now() + kExitPatience;
  for (uint32_t count = under_way.load(); count != 0; count = under_way.load()) {
    const auto left = deadline - steady_clock::now();
    if (left <= nanoseconds(0))
      return report_failure("exit", "does not wait any longer", "a module is still being compiled");
    wait_while(under_way, count, left);
  }
}

void exit_handler() { contain("exit", "does not wait for compilations", wait_at_exit); }

void after_fork() {
  forks.fetch_add(1);
  under_way.store(0);
}

[[noreturn]] void refuse(const char* why) { throw Error(ErrorCode::Unsupported, why); }

void prepare_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (pthread_key_create(&last_key, finish_at_thread_end) != 0) refuse("there is no thread-specific key");
    if (pthread_atfork(nullptr, nullptr, after_fork) != 0) throw std::bad_alloc();
    if (std::atexit(exit_handler) != 0) refuse("the process has too many exit handlers");
  });
}

// The program's handlers for faults stay in force: the image may lie in memory that they provide.
sigset_t blocked_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&set, fault);
  return set;
}

int start_thread(Job* job) {
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error != 0) return error;
  error = pthread_attr_setstacksize(&attributes, kStackBytes);
  if (error == 0) error = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const sigset_t blocked = blocked_signals();
  sigset_t before;
  pthread_t thread{};
  if (error == 0) {
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    error = pthread_create(&thread, &attributes, run_job, job);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  pthread_attr_destroy(&attributes);
  return error;
}

// False if the thread still waits for the loader's lock. Then it is told not to begin.
bool wait_for_begin(Job& job) {
  const auto deadline = steady_clock::now() + kLoaderPatience;
  while (job.state.load() == kStarting) {
    const auto left = deadline - steady_clock::now();
    uint32_t expected = kStarting;
    if (left <= nanoseconds(0)) return !job.state.compare_exchange_strong(expected, kAbandoned);
    wait_while(job.state, kStarting, left);
  }
  return true;
}

// Gives up in a child that a signal handler of this thread has forked.
void wait_for_end(Job& job, uint32_t generation) {
  for (uint32_t state = job.state.load(); state != kEnded; state = job.state.load()) {
    if (forks.load() != generation) refuse("the process was forked meanwhile");
    wait_while(job.state, state, seconds(3600));
  }
}

// Counts a thread for exit() to wait for, unless it does so already.
void enter() {
  under_way.fetch_add(1);
  if (!ending.load()) return;
  leave();
  refuse("the process is ending");
}

// The job is the thread's from now on.
Job* start(std::unique_ptr<Job> job) {
  enter();
  if (const int error = start_thread(job.get()); error != 0) {
    leave();
    throw Error(ErrorCode::Unsupported, std::string("no thread can be created: ") + std::strerror(error));
  }
  return job.release();
}

}  // namespace

void start_in_own_thread(std::function<void()> work) {
  prepare_process();
  start(std::make_unique<Job>(
      [to_do = std::move(work)] {
        if (!ending.load()) to_do();
      },
      1));
}

void run_in_own_thread(const std::function<void()>& work) {
  prepare_process();
  const uint32_t generation = forks.load();
  Job* const job = start(std::make_unique<Job>(std::cref(work), 2));
  if (!wait_for_begin(*job)) {
    release(job);
    leave();
    refuse("nothing can be compiled while this thread loads a library");
  }
  wait_for_end(*job, generation);
  // It is this thread's alone from now on, whichever of the two is the last one to release the job.
  const std::exception_ptr failure = std::exchange(job->failure, nullptr);
  release(job);
  if (failure) std::rethrow_exception(failure);
}

bool process_ends() noexcept { return ending.load(std::memory_order_relaxed); }

void stop_if_process_ends() {
  if (process_ends()) throw Error(ErrorCode::Toolchain, "the process is ending");
}

void wait_first_at_exit() {
  if (!in_own_thread) return;
  in_own_thread = false;  // the preload library drops handlers that our own thread registers
  (void)std::atexit(exit_handler);
  in_own_thread = true;
}

// Sanitizers ask by way of the preload library while they begin.
[[gnu::no_sanitize("address", "undefined", "thread")]] bool is_own_thread() noexcept { return in_own_thread; }

bool is_forked_from_work() noexcept { return forks.load(std::memory_order_relaxed) != 0; }

}  // namespace klap
