// Launches of different threads of a block that block barriers order: at two sites, at one site in a loop,
// and with the barriers that count or vote.
#include "order_cells.h"

namespace klap::differential::barriers {

// A barrier between two sites, whose launching threads are of two warps.
struct TwoSites : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x == 40) launch<Access>(cells, given, 0, 0);
    __syncthreads();
    if (threadIdx.x == 3) launch<Access>(cells, given, 1, 1);
  }
#endif
};
// One thread after the other launches at one site: a barrier is in the loop.
struct TurnsInLoop : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 64;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) {
      if (thread == kLaunches - 1 - turn) launch<Access>(cells, given, turn, turn);
      __syncthreads();
    }
  }
#endif
};
// The condition by which the sites are told apart is a barrier's vote.
struct VotingBarrier : Parent<96> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread == 70) launch<Access>(cells, given, 0, 0);
    const int votes = __syncthreads_count(thread < 7);
    if (thread == votes) launch<Access>(cells, given, 1, 1);
  }
#endif
};
// A barrier of two warps of three.
struct NamedBarrier : Parent<96> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread < 32) return;
    if (thread == 70) launch<Access>(cells, given, 0, 0);
    asm volatile("bar.sync 3, 64;" ::: "memory");
    if (thread == 33) launch<Access>(cells, given, 1, 1);
  }
#endif
};
// One warp arrives and goes on, the other one waits.
struct ArrivingBarrier : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread < 32) {
      if (thread == 9) launch<Access>(cells, given, 0, 0);
      __syncwarp();
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 2, 64;" ::: "memory");
      if (thread == 40) launch<Access>(cells, given, 1, 1);
    }
  }
#endif
};
// One site, which some threads reach before the barrier and others behind it.
struct OneSiteTwice : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread >= 32) __syncthreads();
    if (thread % 32 == 7) launch<Access>(cells, given, thread / 32, thread / 32);
    if (thread < 32) __syncthreads();
  }
#endif
};
// All threads launch before the barrier, each into a word of its own, and one launches behind it.
struct ManyThenOne : Parent<64> {
  static constexpr int kLaunches = 65, kInOrder = 65;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    launch<Access>(cells, given, thread, thread);
    __syncthreads();
    if (thread == 0) launch<Access>(cells, given, 64, 64);
  }
#endif
};
// The last launch sums what the others wrote.
struct FillsAndSums : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    if (place < 64) {
      cells[place] = launch * 3 + 1;
      return;
    }
    int sum = 0;
    for (int i = 0; i < 64; ++i) sum += cells[i];
    cells[place] = sum;
  }
};

ORDER_CELL(order_barrier_multiply, TwoSites, Multiplies, "the child behind a barrier updates first")
ORDER_CELL(order_barrier_last, TwoSites, LastOneWins, "the child before a barrier writes last")
ORDER_CELL(order_barrier_read, TwoSites, ReadsWhatWasWritten, "the child behind a barrier reads too early")
ORDER_CELL(order_barrier_write, TwoSites, WritesWhatWasRead, "the child behind a barrier writes too early")
ORDER_CELL(order_barrier_append, TwoSites, Appends, "the child behind a barrier appends first")
ORDER_CELL(order_barrier_exchange, TwoSites, Exchanges, "the child behind a barrier exchanges first")
ORDER_CELL(order_barrier_swap, TwoSites, Swaps, "the child behind a barrier compares first")
ORDER_CELL(order_barrier_tear, TwoSites, TearsScratch,
           "children on both sides of a barrier share scratch words")
ORDER_CELL(order_turns_multiply, TurnsInLoop, Multiplies, "turns that barriers order update in another order")
ORDER_CELL(order_turns_last, TurnsInLoop, LastOneWins, "another turn than the last one writes last")
ORDER_CELL(order_turns_read, TurnsInLoop, ReadsWhatWasWritten, "a turn reads before the one before it writes")
ORDER_CELL(order_turns_write, TurnsInLoop, WritesWhatWasRead, "a turn writes before the one before it reads")
ORDER_CELL(order_turns_append, TurnsInLoop, Appends, "turns append in another order")
ORDER_CELL(order_turns_exchange, TurnsInLoop, Exchanges, "turns exchange in another order")
ORDER_CELL(order_turns_floats, TurnsInLoop, AddsFloats, "turns add floats atomically in another order")
ORDER_CELL(order_voting_multiply, VotingBarrier, Multiplies, "a barrier that counts does not order launches")
ORDER_CELL(order_voting_last, VotingBarrier, LastOneWins,
           "the child before a barrier that counts writes last")
ORDER_CELL(order_named_multiply, NamedBarrier, Multiplies, "a barrier of some warps does not order launches")
ORDER_CELL(order_named_read, NamedBarrier, ReadsWhatWasWritten,
           "the child behind a named barrier reads early")
ORDER_CELL(order_arriving_last, ArrivingBarrier, LastOneWins, "an arrival does not order launches")
ORDER_CELL(order_arriving_write, ArrivingBarrier, WritesWhatWasRead,
           "the child of who waits writes too early")
ORDER_CELL(order_site_twice_multiply, OneSiteTwice, Multiplies,
           "a site before and behind a barrier is unordered")
ORDER_CELL(order_site_twice_exchange, OneSiteTwice, Exchanges, "exchanges around a barrier change places")
ORDER_CELL(order_many_then_sum, ManyThenOne, FillsAndSums, "the child behind a barrier sums too early")

}  // namespace klap::differential::barriers
