// The contract of streams, for the threads of a grid: which of their launches share a stream. A block has one
// NULL stream, a thread one of its own, and a created stream serves all threads that know its handle.
#include "contract_forms.h"

namespace klap::differential::contract::threads {

#ifdef __CUDACC__

__global__ void one_note(int* log, int value) { note(log, value); }
__global__ void one_fold(int* cell, int value) { fold(cell, value); }
__global__ void add_plainly(int* cell, int value) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *cell += value;
}
__global__ void add_to_each(int* cells, int first) {
  const int i = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 0) atomicAdd(cells + i, 1 + first + i);
}
__global__ void add_later(int* cell, int value) {
  if (threadIdx.x == 3) add_plainly<<<1, 2>>>(cell, value);
}

#endif

template <int Threads, bool IsLater>
struct OneAtATime : Grid<1, Threads> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int value = static_cast<int>(threadIdx.x) + 1;
    if constexpr (IsLater) {
      add_later<<<1, 4>>>(cells, value);
    } else {
      add_plainly<<<2, 3>>>(cells, value);
    }
  }
#else
  static constexpr const char* kSays =
      "Launches of all threads of a block into the NULL stream run one after another, with all that they "
      "launch.";
  static constexpr const char* kWrong = "children of two threads of a block overlap";
  static std::string form() {
    return std::to_string(Threads) + (IsLater ? " threads, whose grandchildren update" : " threads");
  }
  static void expect(int* cells) { *cells += Threads * (Threads + 1) / 2; }
#endif
};

template <class Stream>
struct OrderByBarrier : Grid<1, 64> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    __shared__ cudaStream_t handle;
    Stream stream;
    if (threadIdx.x == 0) handle = stream.open(cells);
    __syncthreads();
    if (threadIdx.x == 40) one_note<<<1, 1, 0, handle>>>(cells, 1);
    __syncthreads();
    if (threadIdx.x == 7) one_note<<<1, 1, 0, handle>>>(cells, 2);
    __syncthreads();
    if (threadIdx.x == 41) one_note<<<1, 1, 0, handle>>>(cells, 3);
    __syncthreads();
    if (threadIdx.x == 0) stream.close();
  }
#else
  static constexpr const char* kSays =
      "Launches of different threads into one stream have the order that the program's synchronisation "
      "gives.";
  static constexpr const char* kWrong = "launches that a barrier orders run in another order";
  static std::string form() { return std::string(Stream::kName) + ", barriers of the block"; }
  static void expect(int* cells) {
    for (int i = 1; i < 4; ++i) note(cells, i);
  }
#endif
};
struct OrderByWarpBarrier : Grid<1, 32> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    if (threadIdx.x == 9) one_note<<<1, 1>>>(cells, 1);
    __syncwarp();
    if (threadIdx.x == 2) one_note<<<1, 1>>>(cells, 2);
    __syncwarp();
    if (threadIdx.x == 9) one_note<<<1, 1>>>(cells, 3);
  }
#else
  static constexpr const char* kSays = OrderByBarrier<NullStream>::kSays;
  static constexpr const char* kWrong = OrderByBarrier<NullStream>::kWrong;
  static std::string form() { return "the NULL stream, barriers of a warp"; }
  static void expect(int* cells) { OrderByBarrier<NullStream>::expect(cells); }
#endif
};
struct OrderByFlag : Grid<1, 64> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    __shared__ int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x == 40) {
      one_note<<<1, 1>>>(cells, 1);
      __threadfence_block();
      atomicExch(&flag, 1);
    }
    if (threadIdx.x == 3) {
      while (atomicAdd(&flag, 0) == 0) __nanosleep(100);
      __threadfence_block();
      one_note<<<1, 1>>>(cells, 2);
    }
  }
#else
  static constexpr const char* kSays = OrderByBarrier<NullStream>::kSays;
  static constexpr const char* kWrong = "launches that a flag in shared memory orders run in another order";
  static std::string form() { return "the NULL stream, a flag for which another warp waits"; }
  static void expect(int* cells) { note(cells, 1), note(cells, 2); }
#endif
};

template <int Threads>
struct SharedHandle : Grid<1, Threads> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    __shared__ cudaStream_t handle;
    if (threadIdx.x == 0) handle = create();
    __syncthreads();
    add_plainly<<<1, 1, 0, handle>>>(cells, static_cast<int>(threadIdx.x));
    add_later<<<1, 4, 0, handle>>>(cells, 100);
    __syncthreads();
    if (threadIdx.x == Threads - 1) cudaStreamDestroy(handle);
  }
#else
  static constexpr const char* kSays =
      "A created stream serves all threads of its block: what they launch into it runs one after another.";
  static constexpr const char* kWrong = "grids that two threads launch into one created stream overlap";
  static std::string form() { return std::to_string(Threads) + " threads"; }
  static void expect(int* cells) { *cells += Threads * (Threads - 1) / 2 + 100 * Threads; }
#endif
};

template <int Blocks, int Threads>
struct StreamsOfThreads : Grid<Blocks, Threads> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    int* const own = cells + blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 1; i < 4; ++i) one_fold<<<1, 1, 0, cudaStreamPerThread>>>(own, i);
  }
#else
  static constexpr const char* kSays =
      "Every thread has a stream of its own, which keeps the order of its launches.";
  static constexpr const char* kWrong =
      "a thread's launches into its own stream run in another order, or are lost";
  static std::string form() {
    return std::to_string(Blocks) + " blocks of " + std::to_string(Threads) + " threads";
  }
  static void expect(int* cells) {
    for (int t = 0; t < Blocks * Threads; ++t) {
      for (int i = 1; i < 4; ++i) fold(cells + t, i);
    }
  }
#endif
};

template <class Stream>
struct StreamsOfBlocks : Grid<6, 2> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    if (threadIdx.x != 1) return;
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    int* const own = cells + 16 * blockIdx.x;
    for (int i = 0; i < 5; ++i) one_note<<<1, 1, 0, handle>>>(own, static_cast<int>(blockIdx.x) + i);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "Each block of a grid has a NULL stream and created streams of its own, which keep their order.";
  static constexpr const char* kWrong = "a block's stream loses its order beside those of other blocks";
  static std::string form() { return std::string(Stream::kName) + ", six blocks"; }
  static void expect(int* cells) {
    for (int block = 0; block < kBlocks; ++block) {
      for (int i = 0; i < 5; ++i) note(cells + 16 * block, block + i);
    }
  }
#endif
};

// The threads of a block take work from one list, some places of it at a time.
template <bool KeepsError>
struct CommonList : Grid<2, 64> {
  static constexpr int kWork = 60;
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    __shared__ int next;
    if (threadIdx.x == 0) next = 0;
    __syncthreads();
    for (;;) {
      int begin = atomicAdd(&next, 0), end = begin;
      while (begin < kWork) {
        end = min(begin + 1 + begin % 3, static_cast<int>(kWork));
        const int found = atomicCAS(&next, begin, end);
        if (found == begin) break;
        begin = found;
      }
      if (begin >= kWork) return;
      add_to_each<<<end - begin, 3>>>(cells + kOther + begin, begin);
      if constexpr (KeepsError) cells[kSum + threadIdx.x] += cudaGetLastError();
    }
  }
#else
  static constexpr const char* kSays =
      "A thread may launch in a loop, as often as the other threads of its block let it.";
  static constexpr const char* kWrong = "a launch of a common list is lost, or made twice";
  static std::string form() {
    return std::string("a list in shared memory, of two blocks of 64 threads") +
           (KeepsError ? " that add up their errors" : "");
  }
  static void expect(int* cells) {
    for (int i = 0; i < kWork; ++i) cells[kOther + i] += 2 * (1 + i);
  }
#endif
};

// ---- rows ----

AT_LEVELS(lanes, OneAtATime<8, false>)
AT_LEVELS(warps, OneAtATime<70, false>)
AT_LEVELS(lanes_later, OneAtATime<8, true>)
AT_LEVELS(warps_later, OneAtATime<40, true>)
AT_LEVELS(barrier_null, OrderByBarrier<NullStream>)
AT_LEVELS(barrier_created, OrderByBarrier<CreatedStream>)
AT_LEVELS(barrier_memory, OrderByBarrier<StreamInMemory>)
AT_LEVELS(barrier_warp, OrderByWarpBarrier)
AT_LEVELS(flag, OrderByFlag)
AT_LEVELS(shared_handle, SharedHandle<8>)
AT_LEVELS(shared_handle_warp, SharedHandle<32>)
AT_LEVELS(shared_handle_warps, SharedHandle<64>)
CONTRACT(contract_shared_handle_odd, ByHost, SharedHandle<45>)
CONTRACT(contract_shared_handle_blocks, ByBlocks, SharedHandle<64>)
AT_LEVELS(threads_streams, StreamsOfThreads<1, 40>)
AT_LEVELS(threads_streams_blocks, StreamsOfThreads<7, 3>)
AT_LEVELS(blocks_null, StreamsOfBlocks<NullStream>)
AT_LEVELS(blocks_created, StreamsOfBlocks<CreatedStream>)
AT_LEVELS(common_list, CommonList<false>)
AT_LEVELS(common_list_errors, CommonList<true>)

}  // namespace klap::differential::contract::threads
