// A child sees all that a thread of the parent stored before it synchronised with the one that launches, and
// what the children of earlier launches wrote.
#include "order_cells.h"

namespace klap::differential::stores {

constexpr int kStored = 300;  // words that the parent stores
constexpr unsigned kAll = 0xffffffffU;
KLAP_SHARED static inline int stored_of(int turn) { return 7 * turn + 11; }

struct Hands : Parent<64> {
  static constexpr int kLaunches = 1, kInOrder = 1;
  KLAP_SHARED static void run_before(int* cells) { cells[kStored] = stored_of(0); }
};
struct HandsInTurns : Parent<64> {
  static constexpr int kLaunches = 16, kInOrder = 16;
  KLAP_SHARED static void run_before(int* cells) {
    for (int turn = 0; turn < kLaunches; ++turn) cells[kStored + turn] = stored_of(turn);
  }
};
struct ByBarrier : Hands {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x == 40) cells[kStored] = stored_of(0);
    __syncthreads();
    if (threadIdx.x == 3) launch<Access>(cells, given, 0, 0);
  }
#endif
};
struct ByWarpBarrier : Hands {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread == 0) {
      __syncwarp(3);
      launch<Access>(cells, given, 0, 0);
    } else if (thread == 1) {
      cells[kStored] = stored_of(0);
      __syncwarp(3);
    }
  }
#endif
};
struct BySharedFlag : Hands {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ volatile int flag;
    const int thread = threadIdx.x;
    if (thread == 0) flag = 0;
    __syncthreads();
    if (thread == 40) {
      cells[kStored] = stored_of(0);
      __threadfence_block();
      flag = 1;
    }
    if (thread == 0) {
      while (flag == 0) {
      }
      __threadfence_block();
      launch<Access>(cells, given, 0, 0);
    }
  }
#endif
};
struct BySharedCounter : Hands {
  KLAP_SHARED static void run_before(int* cells) {
    for (int thread = 0; thread < 64; ++thread) cells[kStored + thread] = stored_of(thread);
  }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int done;
    const int thread = threadIdx.x;
    if (thread == 0) done = 0;
    __syncthreads();
    cells[kStored + thread] = stored_of(thread);
    __threadfence();
    const int before = atomicAdd(&done, 1);
    __threadfence();
    if (before == 63) launch<Access>(cells, given, 0, 0);
  }
#endif
};
struct ByRelease : Hands {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread == 40) {
      cells[kStored] = stored_of(0);
      asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(__cvta_generic_to_global(cells + 400))
                   : "memory");
    }
    if (thread == 0) {
      int seen = 0;
      while (seen == 0) {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(__cvta_generic_to_global(cells + 400))
                     : "memory");
      }
      cells[400] = 0;
      launch<Access>(cells, given, 0, 0);
    }
  }
#endif
};
// Each turn another thread stores, and another one launches.
struct InTurns : HandsInTurns {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) {
      if (thread == 63 - turn) cells[kStored + turn] = stored_of(turn);
      __syncthreads();
      if (thread == turn) launch<Access>(cells, given, turn, turn);
      __syncthreads();
    }
  }
#endif
};
struct InLaneTurns : HandsInTurns {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread >= 32) return;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) {
      if (thread == 31 - turn) cells[kStored + turn] = stored_of(turn);
      __syncwarp();
      if (thread == turn) launch<Access>(cells, given, turn, turn);
      __syncwarp();
    }
  }
#endif
};
// The argument is what was handed over, too.
struct ByShuffle : HandsInTurns {
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread >= 32) return;
#pragma unroll 1
    for (int turn = 0; turn < kLaunches; ++turn) {
      if (thread == 31 - turn) cells[kStored + turn] = stored_of(turn);
      __syncwarp();
      const int handed = __shfl_sync(kAll, turn + given[0], 31 - turn);
      if (thread == handed) launch<Access>(cells, given, handed, handed);
    }
  }
#endif
};

struct ReadsStored : Access {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    cells[launch] = cells[kStored + launch] * 2 + 1;
  }
};
struct SumsStored : Access {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    int sum = 0;
    for (int i = 0; i < 64; ++i) sum += cells[kStored + i];
    cells[launch] = sum;
  }
};
struct ChainsStored : Access {
  KLAP_SHARED static void run(int* cells, int, int launch) {
    cells[launch + 1] = cells[launch] * 3 + cells[kStored + launch];
  }
};

ORDER_CELL(order_stored_barrier, ByBarrier, ReadsStored, "what was stored before a barrier is not seen")
ORDER_CELL(order_stored_lanes, ByWarpBarrier, ReadsStored,
           "what was stored before a warp barrier is not seen")
ORDER_CELL(order_stored_flag, BySharedFlag, ReadsStored, "what was stored before a shared flag is not seen")
ORDER_CELL(order_stored_counter, BySharedCounter, SumsStored, "what was stored before a counter is not seen")
ORDER_CELL(order_stored_release, ByRelease, ReadsStored, "what was stored before a release is not seen")
ORDER_CELL(order_stored_turns, InTurns, ReadsStored, "what was stored in a turn is not seen")
ORDER_CELL(order_stored_turns_chain, InTurns, ChainsStored,
           "a turn's child misses the store or the last child")
ORDER_CELL(order_stored_lane_turns, InLaneTurns, ReadsStored, "what was stored in a lane's turn is not seen")
ORDER_CELL(order_stored_lane_chain, InLaneTurns, ChainsStored,
           "a lane's child misses the store or the last child")
ORDER_CELL(order_stored_shuffle, ByShuffle, ReadsStored, "what was stored before a shuffle is not seen")
ORDER_CELL(order_stored_shuffle_chain, ByShuffle, ChainsStored, "a child misses the store or the last child")

}  // namespace klap::differential::stores
