// Work in a thread of our own: its stack and signals, what comes back, and who waits for it when a process
// ends or forks. Ends of processes are tried in child processes.
#include "support/own_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/boundary.h"

namespace klap {
namespace {

// The exit code of a child process, 128 + N when signal N ended it.
template <class Body>
int in_process(const Body& body) {
  const pid_t process = fork();
  if (process == 0) {
    alarm(30);
    body();
    exit(99);
  }
  int status = 0;
  EXPECT_EQ(process, waitpid(process, &status, 0));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Uses 8 MiB of stack in small steps.
int deep(int left) {
  volatile char step[1024];
  step[0] = static_cast<char>(left);
  return left == 0 ? 0 : step[0] + deep(left - 1);
}

TEST(OwnThread, HasAFullStackAndBlocksSignals) {
  pthread_t other{};
  run_in_own_thread([&] {
    other = pthread_self();
    deep(32 << 10);
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    for (const int signal : {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD, SIGPROF, SIGRTMIN})
      EXPECT_EQ(1, sigismember(&blocked, signal)) << signal;
    EXPECT_EQ(0, sigismember(&blocked, SIGSEGV)) << "the program's handler may provide the memory";
    EXPECT_TRUE(is_inside());
  });
  EXPECT_EQ(0, pthread_equal(other, pthread_self()));
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(0, sigismember(&blocked, SIGUSR1)) << "the caller's are as they were";
}

TEST(OwnThread, ExceptionsComeBack) {
  EXPECT_THROW(run_in_own_thread([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_THROW(run_in_own_thread([] { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(OwnThread, ThreadsDoNotWaitForEachOther) {
  std::atomic<int> at_once{0};
  const auto meet = [&] {
    run_in_own_thread([&] {
      ++at_once;
      while (at_once < 8) std::this_thread::yield();
    });
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(meet);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(8, at_once);
}

// An object that is destroyed at exit, and must be there as long as work uses it.
struct Used {
  ~Used() { alive = false; }
  std::atomic<bool> alive{true};
};

[[noreturn]] void exit_while_work_uses_an_object() {
  static std::atomic<bool> begun{false};
  std::thread([] {
    run_in_own_thread([] {
      static Used used;
      wait_first_at_exit();
      begun = true;
      for (int i = 0; i < 100; ++i) {
        usleep(1000);
        if (!used.alive) _exit(1);
      }
    });
    usleep(10'000'000);
  }).detach();
  while (!begun) std::this_thread::yield();
  exit(0);
}

TEST(OwnThread, ExitWaitsForWork) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(0, in_process([] { exit_while_work_uses_an_object(); }));
}

TEST(OwnThread, WorkIsToldThatTheProcessEnds) {
  EXPECT_EQ(0, in_process([] {
              static std::atomic<bool> begun{false};
              std::thread([] {
                try {
                  run_in_own_thread([] {
                    for (begun = true;; usleep(1000)) stop_if_process_ends();
                  });
                } catch (const std::exception&) {
                }
                usleep(10'000'000);
              }).detach();
              while (!begun) std::this_thread::yield();
              exit(0);
            }));
}

TEST(OwnThread, WorkThatNobodyWaitsForIsDone) {
  std::atomic<bool> done{false};
  start_in_own_thread([&] {
    EXPECT_TRUE(is_own_thread());
    done = true;
  });
  while (!done) std::this_thread::yield();
  start_in_own_thread([] { throw std::runtime_error("nobody learns of it"); });
}

TEST(OwnThread, ExitWaitsForWorkThatNobodyWaitsFor) {
  EXPECT_EQ(0, in_process([] {
              static std::atomic<bool> begun{false};
              start_in_own_thread([] {
                static Used used;
                wait_first_at_exit();
                for (begun = true; !process_ends(); usleep(1000)) {
                }
                usleep(20'000);
                if (!used.alive) _exit(1);
              });
              while (!begun) std::this_thread::yield();
              exit(0);
            }));
}

TEST(OwnThread, NoWorkBeginsWhileTheProcessEnds) {
  EXPECT_EQ(5, in_process([] {
              std::atexit([] {
                try {
                  run_in_own_thread([] {});
                } catch (const std::exception&) {
                  _exit(5);
                }
              });
              run_in_own_thread([] { wait_first_at_exit(); });
              exit(0);
            }));
}

void exit_in_handler(int) { exit(3); }

TEST(OwnThread, ASignalHandlerMayCallExitInTheThreadThatWaits) {
  EXPECT_EQ(3, in_process([] {
              signal(SIGUSR1, exit_in_handler);
              const pthread_t waiting = pthread_self();
              run_in_own_thread([&] {
                pthread_kill(waiting, SIGUSR1);
                usleep(50'000);
              });
            }));
}

void fork_in_handler(int) {
  if (fork() != 0) return;
  // The child goes on where its parent waits.
}

TEST(OwnThread, AChildForkedByTheThreadThatWaitsDoesNotWait) {
  EXPECT_EQ(7, in_process([] {
              signal(SIGUSR1, fork_in_handler);
              const pid_t parent = getpid();
              const pthread_t waiting = pthread_self();
              bool threw = false;
              try {
                run_in_own_thread([&] {
                  pthread_kill(waiting, SIGUSR1);
                  usleep(50'000);
                });
              } catch (const std::exception&) {
                threw = true;
              }
              if (getpid() != parent) _exit(threw ? 7 : 1);
              int status = 0;
              if (waitpid(-1, &status, 0) < 0 || threw) _exit(2);
              _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
            }));
}

TEST(OwnThread, AForkedChildBeginsAnewAndEnds) {
  std::atomic<bool> go_on{true}, begun{false};
  std::thread busy([&] {
    run_in_own_thread([&] {
      begun = true;
      while (go_on) usleep(1000);
    });
  });
  while (!begun) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(4, in_process([] {
                int value = 0;
                run_in_own_thread([&] { value = 4; });
                exit(value);
              }));
  }
  go_on = false;
  busy.join();
}

}  // namespace
}  // namespace klap
