// Whose turn it is to enqueue work in a stream, among the program's host threads.
//
// A rewritten launch is several operations, a parent and its consumers, where the program asked for one. If
// another thread enqueued a copy between them, that copy would see the parent's work without its children's.
// So other threads wait for a moment before they enqueue anything that could come between. They do not wait
// for work in other streams.
//
// Nobody waits for ever. Some calls take long because they wait for the GPU, such as a copy into ordinary
// memory, and the GPU may wait for the very thread that launches. So a launch waits 20 ms for calls, for each
// once. Calls and other launches wait a second for a launch, which the driver may keep waiting, once. Both
// times are much longer than a thread is kept from its processor. After them the order is left open, as it
// was before.
#pragma once

#include <cuda.h>

namespace klap::runtime {

// The argument of begin_operation() for a call that concerns all streams.
inline const CUstream kAllStreams = reinterpret_cast<CUstream>(~uintptr_t{0});
// Its argument for a call that concerns the legacy streams of several contexts.
inline const CUstream kAllLegacyStreams = reinterpret_cast<CUstream>(~uintptr_t{2});

// The calling thread is about to call the driver, which enqueues something in `stream`. Null is the
// current context's legacy stream. end_operation() follows in the same thread; alone it does nothing.
void begin_operation(CUstream stream) noexcept;
void end_operation() noexcept;

// Both, for an operation that klap_jit enqueues in place of the program.
class Operation {
 public:
  explicit Operation(CUstream stream) noexcept { begin_operation(stream); }
  ~Operation() { end_operation(); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
};

// The calling thread is about to wait for `stream`, or to look whether it is done.
void before_wait(CUstream stream) noexcept;

// The calling thread enqueues a parent and its consumers in `stream`. The stream is blocking if it waits for
// the legacy stream, and that one for it.
class WholeLaunch {
 public:
  WholeLaunch(CUstream stream, bool is_blocking) noexcept;
  ~WholeLaunch();
  WholeLaunch(const WholeLaunch&) = delete;
  WholeLaunch& operator=(const WholeLaunch&) = delete;

 private:
  bool is_entered_ = false;
};

}  // namespace klap::runtime
