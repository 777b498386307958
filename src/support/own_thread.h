// Heavy work (parsing, analysis, NVRTC, nvJitLink) runs in a thread of our own, never in the program's.
//
// A program's thread may have a small stack, be cancelled, be interrupted by signal handlers, or see another
// thread call exit() meanwhile. The thread here has 64 MiB of stack and blocks signals. The program's thread
// waits for it, as it needs the result. Each piece of work has its own thread, so pieces do not wait for each
// other.
//
// exit() waits for work that is under way, before anything that it uses is destroyed, and lets no more begin.
// A forked child has none of its parent's threads, and begins anew.
#pragma once

#include <functional>

namespace klap {

// Returns when `work` has ended, with its exception if it threw one. Throws Error(Unsupported) if there is no
// thread for it: none can be created, the process is ending, or the caller is loading a library, so that the
// thread would wait for the caller.
void run_in_own_thread(const std::function<void()>& work);

// Returns at once. Work that has not begun when exit() waits does not begin. What it throws is lost. Throws
// Error(Unsupported) if there is no thread for it.
void start_in_own_thread(std::function<void()> work);

// Work that takes long asks now and then. Throws Error(Toolchain) when exit() is waiting for it: no more can
// be compiled, which says nothing about what was to be.
void stop_if_process_ends();
bool process_ends() noexcept;

// True in such a thread.
bool is_own_thread() noexcept;

// Makes exit() wait for work before it runs the exit handlers that are registered so far. Called when a
// library that work uses has been opened or used for the first time.
void wait_first_at_exit();

// True in a child that was forked after the first work began, where locks may be held by threads that do not
// exist.
bool is_forked_from_work() noexcept;

}  // namespace klap
