// Launches of different threads of a block that flags, locks and counters order: in shared and in global
// memory, with volatile accesses and fences, with atomic operations, and with releases and acquires.
#include "order_cells.h"

namespace klap::differential::flags {

#ifdef __CUDACC__
// The parent's flags stand behind the cells that children use; the last thread sets them back.
constexpr int kFlag = 500;
__device__ inline volatile int* flag_of(int* cells) { return cells + kFlag; }
#endif

// One thread says that it has launched, and a thread of another warp waits for that.
struct VolatileSharedFlag : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ volatile int flag;
    const int thread = threadIdx.x;
    if (thread == 0) flag = 0;
    __syncthreads();
    if (thread == 40) {
      launch<Access>(cells, given, 0, 0);
      __threadfence_block();
      flag = 1;
    }
    if (thread == 0) {
      while (flag == 0) {
      }
      __threadfence_block();
      launch<Access>(cells, given, 1, 1);
    }
  }
#endif
};
struct AtomicSharedFlag : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int flag;
    const int thread = threadIdx.x;
    if (thread == 0) flag = 0;
    __syncthreads();
    if (thread == 40) {
      launch_other<Access>(cells, given, 0, 0);
      __threadfence_block();
      atomicExch(&flag, 1);
    }
    if (thread == 0) {
      while (atomicAdd(&flag, 0) == 0) {
      }
      __threadfence_block();
      launch<Access>(cells, given, 1, 1);
    }
  }
#endif
};
// Each warp waits for its turn, from the last one to the first.
struct SharedTurns : Parent<256> {
  static constexpr int kLaunches = 8, kInOrder = 8;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ volatile int next;
    if (threadIdx.x == 0) next = 0;
    __syncthreads();
    if (threadIdx.x % 32 != 0) return;
    const int turn = 7 - static_cast<int>(threadIdx.x) / 32;
    while (next != turn) {
    }
    __threadfence_block();
    launch<Access>(cells, given, turn, turn);
    __threadfence_block();
    next = turn + 1;
  }
#endif
};
// The thread that has the lock takes the next number and launches.
struct SharedLock : Parent<256> {
  static constexpr int kLaunches = 8, kInOrder = 8;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int lock;
    __shared__ volatile int next;
    if (threadIdx.x == 0) lock = next = 0;
    __syncthreads();
    if (threadIdx.x % 32 != 3) return;
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence_block();
    const int turn = next;
    next = turn + 1;
    launch<Access>(cells, given, turn, turn);
    __threadfence_block();
    atomicExch(&lock, 0);
  }
#endif
};
// Nobody waits: of all threads that have launched, the last one to say so launches once more.
struct LastBySharedCounter : Parent<64> {
  static constexpr int kLaunches = 65, kInOrder = 65;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int done;
    const int thread = threadIdx.x;
    if (thread == 0) done = 0;
    __syncthreads();
    launch<Access>(cells, given, thread, thread);
    __threadfence_block();
    const int before = atomicAdd(&done, 1);
    __threadfence_block();
    if (before == 63) launch_other<Access>(cells, given, 64, 64);
  }
#endif
};
struct LastByGlobalCounter : Parent<64> {
  static constexpr int kLaunches = 65, kInOrder = 65;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    launch<Access>(cells, given, thread, thread);
    __threadfence();
    if (atomicAdd(cells + kFlag, 1) != 63) return;
    __threadfence();
    *flag_of(cells) = 0;
    launch_other<Access>(cells, given, 64, 64);
  }
#endif
};
// The first to come launches first; a barrier or flag it is not, but the number says that somebody was
// before.
struct LastOfPair : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x % 32 != 0) return;
    if (threadIdx.x == 0) launch<Access>(cells, given, 0, 0);
    __threadfence();
    const int before = atomicExch(cells + kFlag + threadIdx.x / 32, 1);
    if (threadIdx.x == 0) return;
    while (atomicCAS(cells + kFlag, 1, 0) == before) {
    }
    __threadfence();
    *(flag_of(cells) + 1) = 0;
    launch<Access>(cells, given, 1, 1);
  }
#endif
};
struct GlobalFlag : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread == 40) {
      launch<Access>(cells, given, 0, 0);
      __threadfence();
      *flag_of(cells) = 1;
    }
    if (thread == 0) {
      while (*flag_of(cells) == 0) {
      }
      __threadfence();
      *flag_of(cells) = 0;
      launch_other<Access>(cells, given, 1, 1);
    }
  }
#endif
};
struct ReleaseAndAcquire : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    if (thread == 40) {
      launch<Access>(cells, given, 0, 0);
      asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(__cvta_generic_to_global(cells + kFlag))
                   : "memory");
    }
    if (thread == 0) {
      int seen = 0;
      while (seen == 0) {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                     : "=r"(seen)
                     : "l"(__cvta_generic_to_global(cells + kFlag))
                     : "memory");
      }
      *flag_of(cells) = 0;
      launch<Access>(cells, given, 1, 1);
    }
  }
#endif
};
// Turns of warps, counted in global memory.
struct GlobalTurns : Parent<192> {
  static constexpr int kLaunches = 6, kInOrder = 6;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    if (threadIdx.x % 32 != 0) return;
    const int turn = 5 - static_cast<int>(threadIdx.x) / 32;
    while (*flag_of(cells) != turn) {
    }
    __threadfence();
    launch<Access>(cells, given, turn, turn);
    __threadfence();
    *flag_of(cells) = turn < 5 ? turn + 1 : 0;
  }
#endif
};
// Lanes of one warp, which go on by themselves.
struct LanesByFlag : Parent<32> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ volatile int flag;
    const int lane = threadIdx.x;
    if (lane == 0) flag = 0;
    __syncwarp();
    if (lane == 1) {
      launch<Access>(cells, given, 0, 0);
      __threadfence_block();
      flag = 1;
    } else if (lane == 0) {
      while (flag == 0) {
      }
      __threadfence_block();
      launch_other<Access>(cells, given, 1, 1);
    }
  }
#endif
};
// The flag that is handed over is the argument, too.
struct ArgumentIsTheFlag : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int handed;
    const int thread = threadIdx.x;
    if (thread == 0) handed = 0;
    __syncthreads();
    if (thread == 40) {
      launch<Access>(cells, given, 0, 0);
      __threadfence_block();
      atomicAdd(&handed, 1);
    }
    if (thread == 0) {
      int number = 0;
      while ((number = atomicMax(&handed, 0)) == 0) {
      }
      __threadfence_block();
      launch<Access>(cells, given, number, number);
    }
  }
#endif
};

// The last launch writes over what the others wrote.
struct FillsAndClears : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    if (place < 64) {
      cells[place] = launch + 1;
    } else {
      for (int i = 0; i < 64; i += 3) cells[i] = -1;
    }
  }
};

ORDER_CELL(order_volatile_flag_multiply, VolatileSharedFlag, Multiplies,
           "a volatile shared flag orders nothing")
ORDER_CELL(order_volatile_flag_last, VolatileSharedFlag, LastOneWins,
           "who waits for a shared flag writes first")
ORDER_CELL(order_volatile_flag_append, VolatileSharedFlag, Appends,
           "who waits for a shared flag appends first")
ORDER_CELL(order_atomic_flag_last, AtomicSharedFlag, LastOneWins, "an atomic shared flag orders nothing")
ORDER_CELL(order_atomic_flag_read, AtomicSharedFlag, ReadsWhatWasWritten,
           "who waits for a shared flag reads early")
ORDER_CELL(order_atomic_flag_write, AtomicSharedFlag, WritesWhatWasRead,
           "who waits for a flag writes too early")
ORDER_CELL(order_shared_turns_multiply, SharedTurns, Multiplies, "turns by a shared counter are mixed")
ORDER_CELL(order_shared_turns_append, SharedTurns, Appends,
           "turns by a shared counter append in another order")
ORDER_CELL(order_shared_turns_exchange, SharedTurns, Exchanges,
           "turns by a shared counter exchange otherwise")
ORDER_CELL(order_lock_append, SharedLock, Appends, "launches under a lock change places")
ORDER_CELL(order_lock_last, SharedLock, LastOneWins,
           "another launch under a lock than the last one writes last")
ORDER_CELL(order_lock_floats, SharedLock, AddsFloats, "launches under a lock round differently")
ORDER_CELL(order_last_by_shared_sum, LastBySharedCounter, FillsAndSums,
           "the last thread's child sums too early")
ORDER_CELL(order_last_by_shared_clear, LastBySharedCounter, FillsAndClears,
           "the last thread's child clears early")
ORDER_CELL(order_last_by_global_sum, LastByGlobalCounter, FillsAndSums,
           "the last thread's child reads too early")
ORDER_CELL(order_last_by_global_clear, LastByGlobalCounter, FillsAndClears,
           "the last thread's child writes early")
ORDER_CELL(order_exchanged_flag_last, LastOfPair, LastOneWins, "a flag that is exchanged orders nothing")
ORDER_CELL(order_exchanged_flag_append, LastOfPair, Appends, "who waits for an exchange appends first")
ORDER_CELL(order_global_flag_multiply, GlobalFlag, Multiplies, "a global flag between fences orders nothing")
ORDER_CELL(order_global_flag_last, GlobalFlag, LastOneWins, "who waits for a global flag writes first")
ORDER_CELL(order_global_flag_swap, GlobalFlag, Swaps, "who waits for a global flag compares first")
ORDER_CELL(order_release_multiply, ReleaseAndAcquire, Multiplies, "a release orders nothing")
ORDER_CELL(order_release_read, ReleaseAndAcquire, ReadsWhatWasWritten, "who acquires reads too early")
ORDER_CELL(order_global_turns_multiply, GlobalTurns, Multiplies, "turns by a global counter are mixed")
ORDER_CELL(order_global_turns_append, GlobalTurns, Appends,
           "turns by a global counter append in another order")
ORDER_CELL(order_lanes_flag_last, LanesByFlag, LastOneWins, "a flag between lanes of a warp orders nothing")
ORDER_CELL(order_lanes_flag_exchange, LanesByFlag, Exchanges, "lanes that a flag orders exchange otherwise")
ORDER_CELL(order_argument_flag_append, ArgumentIsTheFlag, Appends,
           "an argument that is a flag orders nothing")
ORDER_CELL(order_argument_flag_last, ArgumentIsTheFlag, LastOneWins,
           "who waits for its argument writes first")

}  // namespace klap::differential::flags
