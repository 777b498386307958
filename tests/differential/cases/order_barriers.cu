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
// The code of the second launch may stand before that of the first: each of two warps has its own barrier.
struct BarrierInBranches : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread < 32) {
      __syncthreads();
      if (thread == 6) launch_other<Access>(cells, given, 1, 1);
    } else {
      if (thread == 37) launch<Access>(cells, given, 0, 0);
      __syncthreads();
    }
  }
#endif
};
struct BarrierInOtherBranches : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread < 32) {
      if (thread == 6) launch<Access>(cells, given, 0, 0);
      __syncthreads();
    } else {
      __syncthreads();
      if (thread == 37) launch_other<Access>(cells, given, 1, 1);
    }
  }
#endif
};
// Two kernels in turns, each turn by another thread.
struct AlternatingSites : Parent<64> {
  static constexpr int kLaunches = 24, kInOrder = 24;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; turn += 2) {
      if (thread == turn * 5 % 64) launch<Access>(cells, given, turn, turn);
      __syncthreads();
      if (thread == turn * 7 % 64) launch_other<Access>(cells, given, turn + 1, turn + 1);
      __syncthreads();
    }
  }
#endif
};
// All threads launch in each turn, and what they read was written in the turn before by another thread's
// child.
struct Sweeps : Parent<32> {
  static constexpr int kLaunches = 128, kInOrder = 128;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 4; ++turn) {
      launch<Access>(cells, given, 32 * turn + thread, 32 * turn + thread);
      __syncthreads();
    }
  }
#endif
};
// A turn reads one of two arrays and writes the other; they are exchanged after each turn.
struct AddsNeighbours : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    const int* const from = cells + (place & 32);
    int* const to = cells + (~place & 32);
    to[place & 31] = from[place & 31] + 2 * from[(place + 1) & 31] + launch + 1;
  }
};
// Several blocks, each with an order of its own.
struct TwoSitesOfBlocks : Parent<64, 1, 1, 5> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x == 40) launch<Access>(cells, given, 0, 0);
    __syncthreads();
    if (threadIdx.x == 3) launch_other<Access>(cells, given, 1, 1);
  }
#endif
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
ORDER_CELL(order_branches_multiply, BarrierInBranches, Multiplies,
           "launches are ordered as their code stands")
ORDER_CELL(order_branches_last, BarrierInBranches, LastOneWins, "the child whose code is last writes last")
ORDER_CELL(order_branches_read, BarrierInBranches, ReadsWhatWasWritten,
           "the child whose code is first reads first")
ORDER_CELL(order_branches_append, BarrierInBranches, Appends, "the child whose code is first appends first")
ORDER_CELL(order_branches_wide, BarrierInBranches, Wide<LastOneWins>,
           "a wide child whose code is last writes last")
ORDER_CELL(order_other_branches_last, BarrierInOtherBranches, LastOneWins,
           "two warps' barrier orders no launches")
ORDER_CELL(order_other_branches_exchange, BarrierInOtherBranches, Exchanges,
           "exchanges of two warps change places")
ORDER_CELL(order_other_branches_write, BarrierInOtherBranches, WritesWhatWasRead, "a child writes too early")
ORDER_CELL(order_alternating_multiply, AlternatingSites, Multiplies,
           "one kernel's children run before the other's")
ORDER_CELL(order_alternating_read, AlternatingSites, ReadsWhatWasWritten,
           "a child reads before the other site's")
ORDER_CELL(order_alternating_append, AlternatingSites, Appends,
           "two kernels' children append in another order")
ORDER_CELL(order_alternating_floats, AlternatingSites, AddsFloats, "two kernels' children round differently")
ORDER_CELL(order_alternating_wide, AlternatingSites, Wide<Multiplies>,
           "wide children of two kernels are mixed")
ORDER_CELL(order_sweeps, Sweeps, AddsNeighbours, "a child reads its neighbours of another turn")
ORDER_CELL(order_blocks_barrier_last, TwoSitesOfBlocks, LastOneWins,
           "a barrier of several blocks orders nothing")
ORDER_CELL(order_blocks_barrier_append, TwoSitesOfBlocks, Appends, "appends of several blocks change places")

}  // namespace klap::differential::barriers
