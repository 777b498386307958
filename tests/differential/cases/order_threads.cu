// Launches of one thread, in a line and in loops, and of several threads in loops: those of a thread run in
// its order, those of different threads do not overlap.
#include "order_cells.h"

namespace klap::differential::threads {

struct Line : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 35) return;
    launch<Access>(cells, given, 0, 0);
    launch<Access>(cells, given, 1, 1);
  }
#endif
};
struct LineOfTwoKernels : Parent<64> {
  static constexpr int kLaunches = 3, kInOrder = 3;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 35) return;
    launch_other<Access>(cells, given, 0, 0);
    launch<Access>(cells, given, 1, 1);
    launch_other<Access>(cells, given, 2, 2);
  }
#endif
};
struct Loop : Parent<64> {
  static constexpr int kLaunches = 20, kInOrder = 20;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 35) return;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) launch<Access>(cells, given, turn, turn);
  }
#endif
};
struct LoopOfTwoKernels : Parent<64> {
  static constexpr int kLaunches = 20, kInOrder = 20;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 35) return;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; turn += 2) {
      launch<Access>(cells, given, turn, turn);
      launch_other<Access>(cells, given, turn + 1, turn + 1);
    }
  }
#endif
};
// A kernel by what the thread reads.
struct LoopOfEither : Parent<64> {
  static constexpr int kLaunches = 20, kInOrder = 20;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 35) return;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) {
      if (given[turn] > 1)
        launch<Access>(cells, given, turn, turn);
      else
        launch_other<Access>(cells, given, turn, turn);
    }
  }
#endif
};
// Several threads, each with four launches.
struct Lines : Parent<32> {
  static constexpr int kLaunches = 128, kInOrder = 4;
  KLAP_SHARED static int index_of(int launch) { return launch / 4; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    launch<Access>(cells, given, thread, 4 * thread);
    launch_other<Access>(cells, given, thread, 4 * thread + 1);
    launch<Access>(cells, given, thread, 4 * thread + 2);
    launch_other<Access>(cells, given, thread, 4 * thread + 3);
  }
#endif
};
struct Loops : Parent<32> {
  static constexpr int kLaunches = 128, kInOrder = 4;
  KLAP_SHARED static int index_of(int launch) { return launch / 4; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 4; ++turn) launch<Access>(cells, given, thread, 4 * thread + turn);
  }
#endif
};
// The loop's counter tells a thread's launches apart, but every thread counts alike.
struct LoopsByTurn : Parent<32> {
  static constexpr int kLaunches = 128, kInOrder = 4;
  KLAP_SHARED static int index_of(int launch) { return launch % 4; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 4; ++turn) launch<Access>(cells, given, turn, 4 * thread + turn);
  }
#endif
};
// The turns of a thread are told apart by a stride, which meets the next thread's.
struct LoopsThatMeet : Parent<32> {
  static constexpr int kLaunches = 128, kInOrder = 4;
  KLAP_SHARED static int index_of(int launch) { return 2 * (launch / 4) + launch % 4; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 4; ++turn) launch<Access>(cells, given, 2 * thread + turn, 4 * thread + turn);
  }
#endif
};
// A grid-stride loop: the turns of all threads are told apart.
struct StridedLoops : Parent<32> {
  static constexpr int kLaunches = 128, kInOrder = 4;
  KLAP_SHARED static int index_of(int launch) { return launch / 4 + 32 * (launch % 4); }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 4; ++turn) launch<Access>(cells, given, thread + 32 * turn, 4 * thread + turn);
  }
#endif
};
// The stride is less than the block, so that turns of some threads meet.
struct ShortStrides : Parent<32> {
  static constexpr int kLaunches = 128, kInOrder = 4;
  KLAP_SHARED static int index_of(int launch) { return launch / 4 + 16 * (launch % 4); }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x, stride = static_cast<int>(blockDim.x) / 2;
#pragma unroll 1
    for (int i = thread, turn = 0; i < thread + 4 * stride; i += stride, ++turn)
      launch<Access>(cells, given, i, 4 * thread + turn);
  }
#endif
};
// The second launch of a thread touches what the first launch of the next thread touches.
struct ShiftedLines : Parent<32> {
  static constexpr int kLaunches = 64, kInOrder = 2;
  KLAP_SHARED static int index_of(int launch) { return launch / 2 + launch % 2; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    launch<Access>(cells, given, thread, 2 * thread);
    launch<Access>(cells, given, thread + 1, 2 * thread + 1);
  }
#endif
};

struct ExchangesAtPlace : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    cells[128 + launch] = exchange(cells + place, launch + 1);
  }
};
// Each turn reads what the one before it has read and written.
struct CarriesOn : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    int* const own = cells + 4 * place;
    own[(launch + 1) % 4] = own[launch % 4] + launch + 1;
  }
};

ORDER_CELL(order_line_multiply, Line, Multiplies, "a thread's second launch updates first")
ORDER_CELL(order_line_last, Line, LastOneWins, "a thread's first launch writes last")
ORDER_CELL(order_line_write, Line, WritesWhatWasRead, "a thread's second launch writes too early")
ORDER_CELL(order_line_append, Line, Appends, "a thread's second launch appends first")
ORDER_CELL(order_line_kernels_read, LineOfTwoKernels, ReadsWhatWasWritten,
           "a thread's launch reads too early")
ORDER_CELL(order_line_kernels_exchange, LineOfTwoKernels, Exchanges, "a thread's launches exchange otherwise")
ORDER_CELL(order_line_kernels_wide, LineOfTwoKernels, Wide<Multiplies>, "a thread's wide launches are mixed")
ORDER_CELL(order_loop_multiply, Loop, Multiplies, "launches in a loop update in another order")
ORDER_CELL(order_loop_append, Loop, Appends, "launches in a loop append in another order")
ORDER_CELL(order_loop_floats, Loop, AddsFloats, "launches in a loop round differently")
ORDER_CELL(order_loop_read, Loop, ReadsWhatWasWritten, "a launch in a loop reads too early")
ORDER_CELL(order_loop_wide, Loop, Wide<LastOneWins>, "another launch of a loop than the last one writes last")
ORDER_CELL(order_loop_kernels_append, LoopOfTwoKernels, Appends, "two kernels in a loop change places")
ORDER_CELL(order_loop_kernels_multiply, LoopOfTwoKernels, Multiplies, "two kernels in a loop are mixed")
ORDER_CELL(order_loop_either_append, LoopOfEither, Appends, "one of two kernels by turn appends too early")
ORDER_CELL(order_loop_either_last, LoopOfEither, LastOneWins, "one of two kernels by turn writes too early")
ORDER_CELL(order_lines_add, Lines, AddsToFixedWord, "launches of threads with several lose updates")
ORDER_CELL(order_lines_own, Lines, MultipliesAtPlace, "a thread's launches update its word in another order")
ORDER_CELL(order_lines_exchange, Lines, ExchangesAtPlace, "a thread's launches exchange in another order")
ORDER_CELL(order_lines_lock, Lines, FindsLockFree, "a child finds the lock of another kernel's")
ORDER_CELL(order_loops_add, Loops, AddsToFixedWord, "launches in loops of several threads lose updates")
ORDER_CELL(order_loops_tear, Loops, TearsScratch, "launches in loops of several threads share scratch words")
ORDER_CELL(order_loops_append, Loops, AppendsTwo, "entries of launches in several threads' loops are mixed")
ORDER_CELL(order_loops_take, Loops, TakesAndPutsBack, "a launch in a loop finds what another's has taken")
ORDER_CELL(order_loops_own, Loops, MultipliesAtPlace, "launches of a thread's loop update in another order")
ORDER_CELL(order_loops_last, Loops, LastAtPlace,
           "another launch of a thread's loop than the last one writes last")
ORDER_CELL(order_loops_exchange, Loops, ExchangesAtPlace, "launches of a thread's loop exchange otherwise")
ORDER_CELL(order_loops_carry, Loops, CarriesOn, "a launch of a thread's loop reads too early")
ORDER_CELL(order_loops_by_turn, LoopsByTurn, AddsAtPlace,
           "a loop's counter is taken to differ between threads")
ORDER_CELL(order_loops_that_meet, LoopsThatMeet, AddsAtPlace,
           "turns that meet the next thread's lose updates")
ORDER_CELL(order_strided_loops, StridedLoops, AddsAtPlace, "turns of a strided loop lose updates")
ORDER_CELL(order_strided_loops_add, StridedLoops, AddsToFixedWord, "a strided loop's launches lose updates")
ORDER_CELL(order_short_strides, ShortStrides, AddsAtPlace, "turns of too short a stride lose updates")
ORDER_CELL(order_shifted_lines, ShiftedLines, AddsAtPlace, "a launch and the next thread's lose updates")

}  // namespace klap::differential::threads
