// The contract of streams, for sequences of grids that differ: in their blocks, in their kernels, and in the
// branches in which a thread launches them.
#include "contract_forms.h"

namespace klap::differential::contract::sequences {

#ifdef __CUDACC__

__global__ void one_fold(int* cell, int value) { fold(cell, value); }
// A step of a sequence of wide grids, each of which reads what its neighbours wrote before.
__global__ void smooth(const int* from, int* to, int n, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = (from[i] * 3 + from[(i + 1) % n] + value) & 0xffff;
}
// Kernels of different blocks, one with a barrier.
__global__ void fold_by_many(int* cells) {
  __shared__ int values[32];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = cells[t];
  __syncthreads();
  cells[t] = (values[31 - t] * 3 + t) & 0xffff;
}
__global__ void fold_by_few(int* cells) {
  const int t = static_cast<int>(threadIdx.x + 5 * threadIdx.y);
  cells[t] = (cells[t] * 5 + 1) & 0xffff;
}

#endif

constexpr int kWidth = 48;
inline void smooth_after(const int* from, int* to, int value) {
  for (int i = 0; i < kWidth; ++i) to[i] = (from[i] * 3 + from[(i + 1) % kWidth] + value) & 0xffff;
}

// ---- one thread ----

template <class Stream>
struct WideSequence : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    int* const to = cells + kOther;
    smooth<<<6, 8, 0, handle>>>(cells, to, kWidth, 1);
    smooth<<<1, 64, 0, handle>>>(to, cells, kWidth, 2);
    smooth<<<48, 1, 0, handle>>>(cells, to, kWidth, 3);
    smooth<<<4, 16, 0, handle>>>(to, cells, kWidth, 4);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A grid of several blocks begins when all blocks of the one before it are complete.";
  static constexpr const char* kWrong = "a block begins before all blocks of the grid before it have ended";
  static std::string form() { return Stream::kName; }
  static void set(int* cells) {
    for (int i = 0; i < kWidth; ++i) cells[i] = i * i;
  }
  static void expect(int* cells) {
    int* const to = cells + kOther;
    for (int step = 1; step < 5; ++step)
      step % 2 == 1 ? smooth_after(cells, to, step) : smooth_after(to, cells, step);
  }
#endif
};

template <class Stream>
struct OtherKernels : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    fold_by_few<<<1, dim3(5, 3), 0, handle>>>(cells);
    fold_by_many<<<1, 32, 0, handle>>>(cells);
    one_fold<<<1, 1, 0, handle>>>(cells, 7);
    fold_by_many<<<1, 32, 0, handle>>>(cells);
    fold_by_few<<<1, dim3(5, 3), 0, handle>>>(cells);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A stream keeps its order whatever kernels and blocks are launched into it.";
  static constexpr const char* kWrong = "a grid begins early because the one before it is of another kernel";
  static std::string form() { return Stream::kName; }
  static void by_few(int* cells) {
    for (int t = 0; t < 15; ++t) cells[t] = (cells[t] * 5 + 1) & 0xffff;
  }
  static void by_many(int* cells) {
    const std::vector<int> before(cells, cells + 32);
    for (int t = 0; t < 32; ++t) cells[t] = (before[static_cast<size_t>(31 - t)] * 3 + t) & 0xffff;
  }
  static void expect(int* cells) {
    by_few(cells);
    by_many(cells);
    fold(cells, 7);
    by_many(cells);
    by_few(cells);
  }
#endif
};

template <class Stream>
struct Branches : Grid<1, 12> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    const int t = static_cast<int>(threadIdx.x);
    int* const own = cells + t;
    if (t % 3 == 0) {
      one_fold<<<1, 1, 0, handle>>>(own, 1);
      if (t % 2 == 0) one_fold<<<1, 1, 0, handle>>>(own, 2);
    } else {
      one_fold<<<1, 1, 0, handle>>>(own, 3);
    }
    one_fold<<<1, 1, 0, handle>>>(own, 4);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A thread's launches into a stream keep the order in which it comes to them, by whatever branches.";
  static constexpr const char* kWrong = "launches in branches run in the order of the code";
  static std::string form() { return Stream::kName; }
  static void expect(int* cells) {
    for (int t = 0; t < kThreads; ++t) {
      fold(cells + t, t % 3 == 0 ? 1 : 3);
      if (t % 6 == 0) fold(cells + t, 2);
      fold(cells + t, 4);
    }
  }
#endif
};

// ---- rows ----

AT_LEVELS(wide_null, WideSequence<NullStream>)
AT_LEVELS(wide_thread, WideSequence<ThreadStream>)
AT_LEVELS(wide_created, WideSequence<CreatedStream>)
CONTRACT(contract_wide_blocks, ByBlocks, WideSequence<NullStream>)
AT_LEVELS(kernels_null, OtherKernels<NullStream>)
AT_LEVELS(kernels_thread, OtherKernels<ThreadStream>)
AT_LEVELS(kernels_created, OtherKernels<CreatedStream>)
AT_LEVELS(branches_null, Branches<NullStream>)
AT_LEVELS(branches_thread, Branches<ThreadStream>)
AT_LEVELS(branches_created, Branches<CreatedStream>)

}  // namespace klap::differential::contract::sequences
