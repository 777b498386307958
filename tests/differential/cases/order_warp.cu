// Launches of lanes of a warp that warp barriers, shuffles and votes order, in code where lanes have parted.
#include "order_cells.h"

namespace klap::differential::warp {

constexpr unsigned kAll = 0xffffffffU;

struct WarpBarrier : Parent<32> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x == 9) launch<Access>(cells, given, 0, 0);
    __syncwarp();
    if (threadIdx.x == 4) launch<Access>(cells, given, 1, 1);
  }
#endif
};
// Two lanes of a branch that the others do not take.
struct PairBarrier : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread > 1) return;
    if (thread == 0) launch<Access>(cells, given, 0, 0);
    __syncwarp(3);
    if (thread == 1) launch<Access>(cells, given, 1, 1);
  }
#endif
};
// Each lane in its turn, at one site.
struct LaneTurns : Parent<32> {
  static constexpr int kLaunches = 32, kInOrder = 32;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 32; ++turn) {
      if (lane == (turn ^ 21)) launch<Access>(cells, given, turn, turn);
      __syncwarp();
    }
  }
#endif
};
// A lane's launch is behind what another lane hands it after its own.
struct Shuffle : Parent<32> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    if (lane == 20) launch<Access>(cells, given, 0, 0);
    const int handed = __shfl_sync(kAll, lane + given[0], 20);
    if (lane == handed - 17) launch<Access>(cells, given, 1, 1);
  }
#endif
};
struct ShuffleTurns : Parent<32> {
  static constexpr int kLaunches = 31, kInOrder = 31;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    int turn = given[0];
#pragma unroll 1
    while (turn < kLaunches) {
      if (lane == turn) launch<Access>(cells, given, turn, turn);
      turn = 1 + __shfl_sync(kAll, turn, turn);
    }
  }
#endif
};
struct Vote : Parent<32> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    if (lane == 20) launch<Access>(cells, given, 0, 0);
    const unsigned votes = __ballot_sync(kAll, lane >= given[2]);
    if (lane + 1 == __ffs(static_cast<int>(votes))) launch<Access>(cells, given, 1, 1);
  }
#endif
};
// The lowest lane that still wants to launch is found by votes.
struct VoteTurns : Parent<32> {
  static constexpr int kLaunches = 16, kInOrder = 16;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    bool wants = lane % 2 == 1;
    int turn = 0;
#pragma unroll 1
    while (const unsigned votes = __ballot_sync(kAll, wants)) {
      if (lane + 1 == __ffs(static_cast<int>(votes))) {
        launch<Access>(cells, given, turn, turn);
        wants = false;
      }
      ++turn;
    }
  }
#endif
};
// Lanes that ask whether all have the same value.
struct Match : Parent<32> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    if (lane == 1) launch<Access>(cells, given, 0, 0);
    const unsigned alike = __match_any_sync(kAll, lane / 8);
    if (alike == 0xff0000U && lane == 16) launch<Access>(cells, given, 1, 1);
  }
#endif
};
struct Reduction : Parent<32> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    if (lane == 30) launch<Access>(cells, given, 0, 0);
    const int least = __reduce_min_sync(kAll, lane ^ 3);
    if ((lane ^ 3) == least) launch<Access>(cells, given, 1, 1);
  }
#endif
};

ORDER_CELL(order_warp_barrier_multiply, WarpBarrier, Multiplies, "a warp barrier does not order launches")
ORDER_CELL(order_warp_barrier_last, WarpBarrier, LastOneWins, "the child before a warp barrier writes last")
ORDER_CELL(order_warp_barrier_read, WarpBarrier, ReadsWhatWasWritten, "a child reads before a warp barrier")
ORDER_CELL(order_warp_barrier_write, WarpBarrier, WritesWhatWasRead, "a child writes before a warp barrier")
ORDER_CELL(order_pair_multiply, PairBarrier, Multiplies, "a barrier of two lanes does not order launches")
ORDER_CELL(order_pair_last, PairBarrier, LastOneWins, "the child before a barrier of two lanes writes last")
ORDER_CELL(order_pair_read, PairBarrier, ReadsWhatWasWritten, "a child reads before a barrier of two lanes")
ORDER_CELL(order_pair_exchange, PairBarrier, Exchanges,
           "exchanges around a barrier of two lanes change places")
ORDER_CELL(order_pair_append, PairBarrier, Appends, "appends around a barrier of two lanes change places")
ORDER_CELL(order_lane_turns_multiply, LaneTurns, Multiplies, "lanes that launch in turns are not ordered")
ORDER_CELL(order_lane_turns_append, LaneTurns, Appends, "lanes that launch in turns append in another order")
ORDER_CELL(order_lane_turns_floats, LaneTurns, AddsFloats, "lanes that launch in turns round differently")
ORDER_CELL(order_shuffle_multiply, Shuffle, Multiplies, "a shuffle does not order launches")
ORDER_CELL(order_shuffle_last, Shuffle, LastOneWins, "the child before a shuffle writes last")
ORDER_CELL(order_shuffle_turns_read, ShuffleTurns, ReadsWhatWasWritten, "a child reads before a shuffle")
ORDER_CELL(order_shuffle_turns_swap, ShuffleTurns, Swaps, "children around shuffles compare in another order")
ORDER_CELL(order_vote_last, Vote, LastOneWins, "the child before a vote writes last")
ORDER_CELL(order_vote_write, Vote, WritesWhatWasRead, "the child behind a vote writes too early")
ORDER_CELL(order_vote_turns_multiply, VoteTurns, Multiplies, "launches in the order of votes change places")
ORDER_CELL(order_vote_turns_append, VoteTurns, Appends,
           "children in the order of votes append in another one")
ORDER_CELL(order_match_multiply, Match, Multiplies, "lanes that are compared do not order launches")
ORDER_CELL(order_reduction_last, Reduction, LastOneWins, "a reduction of a warp does not order launches")

}  // namespace klap::differential::warp
