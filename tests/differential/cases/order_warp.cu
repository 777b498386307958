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
// The code of the second launch may stand before that of the first: each of two lanes is in its own branch.
struct LanesInBranches : Parent<32> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    if (lane == 0) {
      __syncwarp(3);
      launch_other<Access>(cells, given, 1, 1);
    } else if (lane == 1) {
      launch<Access>(cells, given, 0, 0);
      __syncwarp(3);
    }
  }
#endif
};
struct LanesInOtherBranches : Parent<32> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    if (lane == 0) {
      launch<Access>(cells, given, 0, 0);
      __syncwarp(3);
    } else if (lane == 1) {
      __syncwarp(3);
      launch_other<Access>(cells, given, 1, 1);
    }
  }
#endif
};
// Two kernels in turns, each turn by another lane.
struct AlternatingLanes : Parent<32> {
  static constexpr int kLaunches = 32, kInOrder = 32;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 32; turn += 2) {
      if (lane == turn) launch<Access>(cells, given, turn, turn);
      __syncwarp();
      if (lane == (turn ^ 9)) launch_other<Access>(cells, given, turn + 1, turn + 1);
      __syncwarp();
    }
  }
#endif
};
// In several warps at once, each warp in words of its own.
struct LaneTurnsOfWarps : Parent<128> {
  static constexpr int kLaunches = 64, kInOrder = 16;
  KLAP_SHARED static int index_of(int launch) { return launch / 16; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll 1
    for (int turn = 0; turn < 16; ++turn) {
      if (lane == (turn ^ 5)) launch<Access>(cells, given, warp, warp * 16 + turn);
      __syncwarp();
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
ORDER_CELL(order_lane_branches_multiply, LanesInBranches, Multiplies,
           "lanes are ordered as their code stands")
ORDER_CELL(order_lane_branches_last, LanesInBranches, LastOneWins, "the lane whose code is last writes last")
ORDER_CELL(order_lane_branches_read, LanesInBranches, ReadsWhatWasWritten, "a lane's child reads too early")
ORDER_CELL(order_lane_branches_write, LanesInBranches, WritesWhatWasRead, "a lane's child writes too early")
ORDER_CELL(order_other_lanes_last, LanesInOtherBranches, LastOneWins, "two lanes' barrier orders no launches")
ORDER_CELL(order_other_lanes_swap, LanesInOtherBranches, Swaps,
           "children of two lanes compare in another order")
ORDER_CELL(order_other_lanes_append, LanesInOtherBranches, Appends, "children of two lanes change places")
ORDER_CELL(order_alternating_lanes_append, AlternatingLanes, Appends,
           "lanes' children of two kernels change places")
ORDER_CELL(order_alternating_lanes_read, AlternatingLanes, ReadsWhatWasWritten,
           "a lane reads before the other site")
ORDER_CELL(order_alternating_lanes_wide, AlternatingLanes, Wide<LastOneWins>,
           "wide children of lanes are mixed")
ORDER_CELL(order_warps_turns_multiply, LaneTurnsOfWarps, MultipliesAtPlace,
           "turns of several warps are mixed")

}  // namespace klap::differential::warp
