// Children of so few threads that the one which launches them runs them itself: such a child still comes
// behind those that were launched before it, by its thread or by others that synchronised with it.
#include "order_cells.h"

namespace klap::differential::threshold {

// Children have no thread, ten or forty.
KLAP_SHARED static inline int size_of(const int* given, int launch) { return given[launch] * 10; }

#ifdef __CUDACC__

template <class Access>
__global__ void sized_child(int* cells, int n, int place, int launch) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  Access::run(cells + 4 * i, place, launch);
}
template <class Access>
__device__ __forceinline__ void launch_sized(int* cells, const int* given, int index, int launch) {
  const int n = size_of(given, launch);
  sized_child<Access><<<n / 32 + 1, 32>>>(cells, n, Access::place(cells, given, index), launch);
}

#endif

template <int X>
struct Sized : Parent<X> {
  KLAP_SHARED static int active_of(int launch, int) { return launch * launch % 5 * 10; }
#ifndef __CUDACC__
  static void set(Builder& c) { c.setting("KLAP_THRESHOLD", "12"); }
#endif
};
// A big child, then one of few threads.
struct BigThenSmall : Sized<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
  KLAP_SHARED static int active_of(int launch, int) { return launch == 0 ? 40 : 10; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread < 32) {
      __syncthreads();
      if (thread == 6)
        sized_child<Access><<<1, 32>>>(cells, given[1] * 10, Access::place(cells, given, 1), 1);
    } else {
      if (thread == 37)
        sized_child<Access><<<2, 32>>>(cells, given[2] * 10, Access::place(cells, given, 0), 0);
      __syncthreads();
    }
  }
#endif
};
struct BigThenSmallLane : BigThenSmall {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread == 0) {
      sized_child<Access><<<2, 32>>>(cells, given[2] * 10, Access::place(cells, given, 0), 0);
      __syncwarp(3);
    } else if (thread == 1) {
      __syncwarp(3);
      sized_child<Access><<<1, 32>>>(cells, given[1] * 10, Access::place(cells, given, 1), 1);
    }
  }
#endif
};
struct BigThenSmallInLine : BigThenSmall {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 33) return;
#pragma unroll 1
    for (int turn = 0; turn < 2; ++turn)
      sized_child<Access><<<2, 32>>>(cells, given[2 - turn] * 10, Access::place(cells, given, turn), turn);
  }
#endif
};
struct Turns : Sized<64> {
  static constexpr int kLaunches = 40, kInOrder = 40;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) {
      if (thread == 60 - turn) launch_sized<Access>(cells, given, turn, turn);
      __syncthreads();
    }
  }
#endif
};
struct LaneTurns : Sized<32> {
  static constexpr int kLaunches = 32, kInOrder = 32;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) {
      if (lane == (turn ^ 21)) launch_sized<Access>(cells, given, turn, turn);
      __syncwarp();
    }
  }
#endif
};
struct Loop : Sized<64> {
  static constexpr int kLaunches = 40, kInOrder = 40;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x != 33) return;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) launch_sized<Access>(cells, given, turn, turn);
  }
#endif
};
struct Threads : Sized<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch_sized<Access>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
struct AddsAtRemainder : AddsAtPlace {
  KLAP_SHARED static int place(int*, const int*, int index) { return index % 3; }
};
struct CountsWhoIsAlone : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int) {
    const int found = compare_and_swap(cells, 0, 1);
    reload();
    add(cells + 1, 1 - found);
    exchange(cells, 0);
  }
};
// Words that lie between those that the other children have.
struct ReadsAndWritesNext : AccessToFixedWord {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    cells[1 + launch % 2] = cells[1 + (launch + 1) % 2] * 3 + launch + 1;
  }
};

ORDER_CELL(order_small_barrier_multiply, BigThenSmall, Multiplies,
           "a small child overtakes one before a barrier")
ORDER_CELL(order_small_barrier_last, BigThenSmall, LastOneWins,
           "a small child is written over by an earlier one")
ORDER_CELL(order_small_barrier_read, BigThenSmall, ReadsAndWritesNext, "a small child reads too early")
ORDER_CELL(order_small_lane_multiply, BigThenSmallLane, Multiplies,
           "a lane's small child overtakes another lane's")
ORDER_CELL(order_small_lane_last, BigThenSmallLane, LastOneWins, "a lane's small child is written over")
ORDER_CELL(order_small_lane_read, BigThenSmallLane, ReadsAndWritesNext,
           "a lane's small child reads too early")
ORDER_CELL(order_small_line_last, BigThenSmallInLine, LastOneWins,
           "a thread's small child overtakes its big one")
ORDER_CELL(order_small_line_read, BigThenSmallInLine, ReadsAndWritesNext,
           "a thread's small child reads too early")
ORDER_CELL(order_small_turns_multiply, Turns, Multiplies, "small children in turns overtake big ones")
ORDER_CELL(order_small_turns_last, Turns, LastOneWins, "a small child of a turn is written over")
ORDER_CELL(order_small_lane_turns_last, LaneTurns, LastOneWins,
           "a small child of a lane's turn is written over")
ORDER_CELL(order_small_lane_turns_read, LaneTurns, ReadsAndWritesNext,
           "a small child of a turn reads too early")
ORDER_CELL(order_small_loop_multiply, Loop, Multiplies, "small children of a loop overtake big ones")
ORDER_CELL(order_small_loop_read, Loop, ReadsAndWritesNext, "a small child of a loop reads too early")
ORDER_CELL(order_small_threads_add, Threads, AddsToFixedWord,
           "small and big children lose each other's updates")
ORDER_CELL(order_small_threads_some, Threads, AddsAtRemainder,
           "children of some threads lose each other's updates")
ORDER_CELL(order_small_threads_lock, Threads, CountsWhoIsAlone, "a small child finds the lock of a big one")

}  // namespace klap::differential::threshold
