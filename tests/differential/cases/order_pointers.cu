// Ways in which a child comes to the address of what it accesses, and in which the parent comes to the
// argument: through functions, local arrays, stored pointers, structures, aliased arguments, module
// variables, shared memory and shuffles. The accesses, of several widths and kinds, are in
// pointer_accesses.h.
#include "pointer_accesses.h"

namespace klap::differential::pointers {

#ifdef __CUDACC__
constexpr unsigned kAll = 0xffffffffU;
#endif

// ---- relations: one without order, one with a barrier, and ways of the argument ----

struct Together : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    launch<Access>(cells, given, threadIdx.x, threadIdx.x);
  }
#endif
};
// Two warps with a barrier in each one's branch.
struct Ordered : Parent<64> {
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
// Lanes in turns, for more than two launches.
struct InTurns : Parent<32> {
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
struct ThroughShared : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 2; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int indices[64];
    const int thread = threadIdx.x;
    indices[thread] = thread;
    __syncthreads();
    launch<Access>(cells, given, indices[thread / 2], thread);
  }
#endif
};
struct ThroughLocal : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch % 4 < 2 ? launch : launch / 16; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    volatile int indices[4];
    indices[0] = thread;
    indices[1] = thread;
    indices[2] = thread / 16;
    indices[3] = thread / 16;
    launch<Access>(cells, given, indices[thread % 4], thread);
  }
#endif
};
struct ThroughGlobal : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch % 7; }
  KLAP_SHARED static void run_beside(int* cells) {
    for (int thread = 0; thread < 64; ++thread) cells[400 + thread] = thread % 7;
  }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    cells[400 + thread] = thread % 7;
    reload();
    launch<Access>(cells, given, cells[400 + thread], thread);
  }
#endif
};
// Each lane has the index of the next one, and the last its own.
struct ThroughShuffle : Parent<32> {
  static constexpr int kLaunches = 32, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch < 31 ? launch + 1 : launch; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    launch<Access>(cells, given, __shfl_down_sync(kAll, lane, 1), lane);
  }
#endif
};
struct FromOneLane : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 32 * 32 + 3; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int thread = threadIdx.x;
    launch<Access>(cells, given, __shfl_sync(kAll, thread, 3), thread);
  }
#endif
};
// The number of lanes before this one that want something, which others have in common.
struct ThroughVotes : Parent<32> {
  static constexpr int kLaunches = 32, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return (launch + 1) / 2; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    const int lane = threadIdx.x;
    const unsigned votes = __ballot_sync(kAll, lane % 2 == 0);
    launch<Access>(cells, given, __popc(votes & ((1U << lane) - 1)), lane);
  }
#endif
};
struct ByLane : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch % 32; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    int lane = 0;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    launch<Access>(cells, given, lane, threadIdx.x);
  }
#endif
};
// Counters that give a number twice.
struct TwoCounters : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 2; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int counters[2];
    const int thread = threadIdx.x;
    if (thread < 2) counters[thread] = 0;
    __syncthreads();
    launch<Access>(cells, given, atomicAdd(counters + thread % 2, 1), thread);
  }
#endif
};
struct WrappingCounter : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch % 8; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ unsigned counter;
    const int thread = threadIdx.x;
    if (thread == 0) counter = 0;
    __syncthreads();
    launch<Access>(cells, given, static_cast<int>(atomicInc(&counter, 7)), thread);
  }
#endif
};
// A number that was taken is given back, and taken again.
struct CounterThatGoesBack : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int counter;
    const int thread = threadIdx.x;
    if (thread == 0) counter = 0;
    __syncthreads();
    launch<Access>(cells, given, atomicAdd(&counter, 1), thread);
    atomicSub(&counter, 1);
  }
#endif
};
// A counter for each warp that all of them begin at 0.
struct CounterOfEachWarp : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch % 32; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int* given) {
    __shared__ int counter;
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int warp = 0; warp < 2; ++warp) {
      if (thread == 0) counter = 0;
      __syncthreads();
      if (thread / 32 == warp) launch<Access>(cells, given, atomicAdd(&counter, 1), thread);
      __syncthreads();
    }
  }
#endif
};

// ---- kernels with arguments of their own ----

#ifdef __CUDACC__

__device__ int* kept[64];

template <class Access>
__global__ void kept_child(int launch) {
  if (threadIdx.x == 0) Access::run(kept[launch], 0, launch);
}
struct Place {
  int launch;
  int* words[2];
};
template <class Access>
__global__ void structure_child(Place place) {
  if (threadIdx.x == 0) Access::run(place.words[1], 0, place.launch);
}
// Two arguments name memory that overlaps between launches; the second kernel may read it as constant.
template <class Access>
__global__ void alias_child(int* to, const int* from, int launch) {
  if (threadIdx.x == 0) *to = *from + Access::kStep * launch + 1;
}
template <class Access>
__global__ void read_only_child(int* __restrict__ to, const int* __restrict__ from, int launch) {
  if (threadIdx.x == 0) *to = *from + Access::kStep * launch + 1;
}

#endif

// The parent stores the pointers that the children load.
struct KeptPointers : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 2; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int*) {
    const int thread = threadIdx.x;
    kept[thread] = cells + thread / 2;
    kept_child<Access><<<1, 32>>>(thread);
  }
#endif
};
struct Structures : Parent<64> {
  static constexpr int kLaunches = 64, kInOrder = 1;
  KLAP_SHARED static int index_of(int launch) { return launch / 2; }
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int*) {
    const int thread = threadIdx.x;
    structure_child<Access><<<1, 32>>>(Place{thread, {cells + thread, cells + thread / 2}});
  }
#endif
};
struct AliasedAroundBarrier : Parent<64> {
  static constexpr int kLaunches = 2, kInOrder = 2;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int*) {
    const int thread = threadIdx.x;
    if (thread < 32) {
      __syncthreads();
      if (thread == 6) alias_child<Access><<<1, 32>>>(cells + Access::kTo + 1, cells + Access::kFrom + 1, 1);
    } else {
      if (thread == 37) alias_child<Access><<<1, 32>>>(cells + Access::kTo, cells + Access::kFrom, 0);
      __syncthreads();
    }
  }
#endif
};
struct ReadOnlyInTurns : Parent<32> {
  static constexpr int kLaunches = 32, kInOrder = 32;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int*) {
    const int lane = threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 32; ++turn) {
      if (lane == (turn ^ 21))
        read_only_child<Access><<<1, 32>>>(cells + Access::kTo + turn, cells + Access::kFrom + turn, turn);
      __syncwarp();
    }
  }
#endif
};
struct ReadOnlyInLoop : Parent<32> {
  static constexpr int kLaunches = 32, kInOrder = 32;
#ifdef __CUDACC__
  template <class Access>
  static __device__ void run(int* cells, const int*) {
    if (threadIdx.x != 4) return;
#pragma unroll 1
    for (int turn = 0; turn < 32; ++turn)
      read_only_child<Access><<<1, 32>>>(cells + Access::kTo + turn, cells + Access::kFrom + turn, turn);
  }
#endif
};
// The relations above pass these pointers, and run() is what their kernels do with them.
template <int To, int From>
struct Pass : Access {
  static constexpr int kTo = To, kFrom = From, kStep = 3;
  KLAP_SHARED static void run(int* cells, int, int launch) {
    cells[kTo + launch] = cells[kFrom + launch] + kStep * launch + 1;
  }
};
using WritesNext = Pass<1, 0>;
using ReadsNext = Pass<0, 1>;

ORDER_CELL(order_function_add, Together, ThroughFunction, "an update in a function is not seen")
ORDER_CELL(order_functions_add, Together, ThroughTwoFunctions, "an update two functions below is not seen")
ORDER_CELL(order_function_result_add, Together, ThroughResult,
           "an address that a function returns is its own")
ORDER_CELL(order_function_last, Ordered, FunctionWritesLast, "a store in a function is not seen")
ORDER_CELL(order_local_array_add, Together, ThroughLocalArray,
           "an address from a local array is taken to differ")
ORDER_CELL(order_local_index_add, Together, ThroughLocalIndex,
           "an index from a local array is taken to differ")
ORDER_CELL(order_local_array_turns, InTurns, ThroughLocalArray, "turns through a local array lose updates")
ORDER_CELL(order_aligned_down_add, Together, AlignedDown,
           "an address without its low bits is taken to differ")
ORDER_CELL(order_from_behind_add, Together, FromBehind, "t and 63 - t are taken to be apart")
ORDER_CELL(order_neighbour_add, Together, WithNeighbour, "t and t + 1 are taken to be apart")
ORDER_CELL(order_one_too_many_add, Together, OneTooMany, "five words every four are taken to be apart")
ORDER_CELL(order_windows_add, Together, Windows, "what a child's threads reach is taken to be apart")
ORDER_CELL(order_chosen_add, Together, Chosen, "the choice of a child is taken to differ")
ORDER_CELL(order_links_add, Together, FollowsLinks, "what a child reads in memory that is written is input")
ORDER_CELL(order_variable_tear, Together, TearsVariable,
           "children share a variable's words while they use them")
ORDER_CELL(order_kept_pointers_add, KeptPointers, AddsAtPlace,
           "pointers that the parent stores are taken to differ")
ORDER_CELL(order_structures_add, Structures, AddsAtPlace, "pointers in a structure are taken to differ")
ORDER_CELL(order_aliased_read, AliasedAroundBarrier, WritesNext,
           "what another argument names is not the same memory")
ORDER_CELL(order_aliased_write, AliasedAroundBarrier, ReadsNext,
           "what another argument reads is written too early")
ORDER_CELL(order_read_only_turns, ReadOnlyInTurns, WritesNext,
           "a promise not to write holds for other children")
ORDER_CELL(order_read_only_loop, ReadOnlyInLoop, WritesNext,
           "read-only loads of a loop's launches come too early")
ORDER_CELL(order_read_only_ahead, ReadOnlyInLoop, ReadsNext, "a loop's launch writes what a former one reads")
ORDER_CELL(order_read_only_load, InTurns, ReadsByReadOnlyLoad, "a read-only load comes before the write")
ORDER_CELL(order_read_only_ordered, Ordered, ReadsByReadOnlyLoad,
           "a read-only load behind a barrier comes early")

ORDER_CELL(order_through_shared_add, ThroughShared, AddsAtPlace,
           "indices from shared memory are taken to differ")
ORDER_CELL(order_through_local_add, ThroughLocal, AddsAtPlace,
           "indices from local memory are taken to differ")
ORDER_CELL(order_through_global_add, ThroughGlobal, AddsAtPlace, "indices that the parent stores are input")
ORDER_CELL(order_through_shuffle_add, ThroughShuffle, AddsAtPlace,
           "indices from a shuffle are taken to differ")
ORDER_CELL(order_from_one_lane_add, FromOneLane, AddsAtPlace,
           "one lane's index is taken to differ between lanes")
ORDER_CELL(order_through_votes_add, ThroughVotes, AddsAtPlace, "numbers of votes are taken to differ")
ORDER_CELL(order_by_lane_add, ByLane, AddsAtPlace, "the lane is taken to differ between threads of a block")

struct CountsAtPlace : Access {
  KLAP_SHARED static void run(int* cells, int place, int) { cells[place] += 1; }
};
struct LocksAtPlace : Access {
  KLAP_SHARED static void run(int* cells, int place, int launch) {
    const int found = compare_and_swap(cells + place, 0, 1);
    reload();
    cells[128 + launch] = 1 - found;
    exchange(cells + place, 0);
  }
};
ORDER_CELL(order_two_counters_add, TwoCounters, CountsAtPlace,
           "two counters are taken to give different numbers")
ORDER_CELL(order_two_counters_lock, TwoCounters, LocksAtPlace, "a lock by one of two counters is found taken")
ORDER_CELL(order_wrapping_counter_add, WrappingCounter, CountsAtPlace,
           "a counter that wraps is taken to be fresh")
ORDER_CELL(order_wrapping_counter_lock, WrappingCounter, LocksAtPlace,
           "a lock by a wrapping counter is found taken")
ORDER_CELL(order_counter_back_lock, CounterThatGoesBack, LocksAtPlace,
           "numbers given back are taken to be fresh")
ORDER_CELL(order_counter_of_warp_add, CounterOfEachWarp, CountsAtPlace, "a counter that is set back is fresh")
ORDER_CELL(order_counter_of_warp_lock, CounterOfEachWarp, LocksAtPlace,
           "a lock by a counter that is set back is taken")

ORDER_CELL(order_bytes_tear, Together, TearsBytes, "bytes and the word that they are do not conflict")
ORDER_CELL(order_byte_of_word_tear, Together, WordThenByte, "a word and one of its bytes do not conflict")
ORDER_CELL(order_vector_tear, Together, TearsVector, "sixteen bytes and their words do not conflict")
ORDER_CELL(order_widths_turns, InTurns, WritesWordOrByte, "a word's byte is written before the word")
ORDER_CELL(order_widths_ordered, Ordered, WritesWordOrByte,
           "a byte behind a barrier is written before the word")
ORDER_CELL(order_long_turns, InTurns, WritesLongOrWord, "a half is written before the long word")
ORDER_CELL(order_long_ordered, Ordered, WritesLongOrWord, "a half behind a barrier is written too early")

ORDER_CELL(order_both_ways_add, Together, AddsBothWays, "a plain update loses what another adds atomically")
ORDER_CELL(order_operations_turns, InTurns, MixesOperations, "additions and maxima change places")
ORDER_CELL(order_operations_ordered, Ordered, MixesOperations, "an addition and a maximum change places")
ORDER_CELL(order_exchanges_turns, InTurns, ExchangesOnly, "exchanges whose results are unused change places")
ORDER_CELL(order_exchanges_ordered, Ordered, ExchangesOnly, "an unused exchange before a barrier comes last")
ORDER_CELL(order_bits_turns, InTurns, SetsBitsOrLowers, "bits are set and a word lowered in another order")
ORDER_CELL(order_bits_ordered, Ordered, SetsBitsOrLowers, "a word behind a barrier is lowered too early")
ORDER_CELL(order_store_or_add_turns, InTurns, StoresOrAdds, "stores and additions change places")
ORDER_CELL(order_store_or_add_ordered, Ordered, StoresOrAdds,
           "a store before a barrier comes behind an addition")
ORDER_CELL(order_add_or_read_turns, InTurns, AddsOrReads, "plain reads and additions change places")
ORDER_CELL(order_add_or_read_ordered, Ordered, AddsOrReads,
           "a read behind a barrier comes before the addition")
ORDER_CELL(order_same_but_once_turns, InTurns, StoresSameButOnce,
           "a store that differs once is taken to be equal")
ORDER_CELL(order_same_but_once_ordered, Ordered, StoresSameButOnce, "two values are taken to be equal")
ORDER_CELL(order_first_one, Together, FirstOneCounts, "two children find that they are the first")
ORDER_CELL(order_mark_turns, InTurns, ReadsMark, "who reads an equal store finds it too early")
ORDER_CELL(order_mark_ordered, Ordered, ReadsMark, "a mark is found before it is made")

}  // namespace klap::differential::pointers
