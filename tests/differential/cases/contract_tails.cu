// The contract of several tail launches, which run one after another, and of fire-and-forget launches. These
// wait for nothing, and only the grid's completion waits for them.
#include "contract_tail_kernels.h"

namespace klap::differential::contract::tails {

#ifdef __CUDACC__

__global__ void add_plainly(int* cell, int value) { *cell += value; }
// A note, and ends with ends of their own.
__global__ void ends(int* log, int value, int depth) {
  note(log, value);
  for (int i = 1; i < 3 && depth > 0; ++i)
    ends<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 4 * value + i, depth - 1);
}
__global__ void subtree(int* log, int value) {
  one_note<<<1, 1>>>(log, value);
  note_and_end<<<1, 1>>>(log, value + 1);
  one_note<<<1, 1>>>(log, value + 2);
}

// A kernel that is its own tail, in other blocks each time.
__global__ void steps(int* cells, int step) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < 24) cells[kSum + i] = (cells[kSum + i] * 3 + step) & 0xffff;
  if (i == 0 && step > 0) steps<<<1 + step % 3, 24 + step % 7, 0, cudaStreamTailLaunch>>>(cells, step - 1);
}
// A sequence in which a step waits for the children of the one before it.
__global__ void rounds(int* cells, int left) {
  note(cells, cells[kSum]);
  for (int i = 0; i < 3; ++i) add<<<1, 2, 0, cudaStreamFireAndForget>>>(cells + kSum, left);
  if (left > 0) rounds<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, left - 1);
}
// Concurrent work at the end: a tail launch that launches without order.
__global__ void fan_out(int* cells, int count) {
  for (int i = 0; i < count; ++i) add_later<<<1, 1, 0, cudaStreamFireAndForget>>>(cells + kSum, i + 1);
}

__global__ void forget_tree(int* cell, int depth) {
  if (threadIdx.x >= 2) return;
  atomicAdd(cell, depth + 1);
  if (depth > 0) forget_tree<<<1, 3, 0, cudaStreamFireAndForget>>>(cell, depth - 1);
}

#endif

// ---- several tail launches ----

template <bool IsSubtree>
struct InOrder : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    for (int i = 1; i < 6; ++i) {
      if constexpr (IsSubtree) {
        subtree<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, 10 * i);
      } else {
        one_note<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, 10 * i);
      }
    }
  }
#else
  static constexpr const char* kSays =
      "A grid's tail launches run one after another, each behind all descendants of the one before it.";
  static constexpr const char* kWrong = "a tail launch does not wait for the one before it";
  static std::string form() { return IsSubtree ? "five with a subtree each" : "five of one thread"; }
  static void expect(int* cells) {
    for (int i = 10; i < 60; i += 10) {
      note(cells, i);
      if (!IsSubtree) continue;
      note(cells, i + 1), note(cells, -i - 1), note(cells, i + 2);
    }
  }
#endif
};
struct InLoop : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int count = cells[kSum];
#pragma unroll 1
    for (int i = 0; i < count; ++i) one_note<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, i * 7);
  }
#else
  static constexpr const char* kSays = InOrder<true>::kSays;
  static constexpr const char* kWrong = InOrder<true>::kWrong;
  static std::string form() { return "a loop"; }
  static void set(int* cells) { cells[kSum] = 13; }
  static void expect(int* cells) {
    for (int i = 0; i < cells[kSum]; ++i) note(cells, i * 7);
  }
#endif
};
template <int Depth>
struct EndsOfEnds : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) { ends<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, 1, Depth); }
#else
  static constexpr const char* kSays =
      "Tail launches of a tail launch come before the next one of the grid that launched it.";
  static constexpr const char* kWrong = "a tail launch comes before the tail launches of the one before it";
  static std::string form() { return std::to_string(Depth) + " levels, two each"; }
  static void visit(int* log, int value, int depth) {
    note(log, value);
    for (int i = 1; i < 3 && depth > 0; ++i) visit(log, 4 * value + i, depth - 1);
  }
  static void expect(int* cells) { visit(cells, 1, Depth); }
#endif
};
template <int Blocks, int Threads>
struct OfManyThreads : Grid<Blocks, Threads> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    add_plainly<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, i + 1);
  }
#else
  static constexpr const char* kSays =
      "A grid has one tail stream for all its blocks: what its threads launch there runs one after another.";
  static constexpr const char* kWrong = "tail launches of two threads or blocks overlap, or are lost";
  static std::string form() {
    return std::to_string(Blocks) + " blocks of " + std::to_string(Threads) + " threads, all launch";
  }
  static void expect(int* cells) { *cells += Blocks * Threads * (Blocks * Threads + 1) / 2; }
#endif
};

// ---- whatever waits for the grid ----

template <int Steps>
struct TailRecursion : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) { steps<<<1, 24, 0, cudaStreamTailLaunch>>>(cells, Steps); }
#else
  static constexpr const char* kSays =
      "A kernel may launch itself as its own tail any number of times: no depth of nesting is used up.";
  static constexpr const char* kWrong = "a kernel that follows itself begins before it is complete";
  static std::string form() { return std::to_string(Steps) + " steps in grids that differ"; }
  static void expect(int* cells) {
    for (int step = Steps; step >= 0; --step) {
      for (int i = 0; i < 24; ++i) fold(cells + kSum + i, step);
    }
  }
#endif
};
template <int Steps>
struct Rounds : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) { rounds<<<1, 1>>>(cells, Steps); }
#else
  static constexpr const char* kSays = "A tail launch sees what all children of its grid have written.";
  static constexpr const char* kWrong = "a tail launch misses what a child of its grid wrote";
  static std::string form() { return std::to_string(Steps) + " rounds of three children"; }
  static void expect(int* cells) {
    for (int left = Steps; left >= 0; --left) {
      note(cells, cells[kSum]);
      cells[kSum] += 3 * left;
    }
  }
#endif
};
template <int Count>
struct FanOut : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    fan_out<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, Count);
    note_cell<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, cells + kSum);
  }
#else
  static constexpr const char* kSays =
      "For concurrent work at its end, a grid launches a tail that launches it; the next tail waits for all.";
  static constexpr const char* kWrong = "a tail launch does not wait for what the one before it launched";
  static std::string form() { return std::to_string(Count) + " grids without order"; }
  static void expect(int* cells) { note(cells, cells[kSum] += Count * (Count + 1) / 2); }
#endif
};

// ---- fire-and-forget ----

template <int Blocks, int Threads, int Times>
struct ForgetAll : Grid<Blocks, Threads> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    for (int time = 0; time < Times; ++time)
      add<<<1, 2, 0, cudaStreamFireAndForget>>>(cells + kSum + i, 10 * i + time);
    if (i == 0) note_sum<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, kSum, Blocks * Threads);
  }
#else
  static constexpr const char* kSays =
      "Each fire-and-forget launch runs once, in no order, and the grid that launched it is complete behind "
      "it.";
  static constexpr const char* kWrong = "a fire-and-forget launch is lost, runs twice, or is not waited for";
  static std::string form() {
    return std::to_string(Times) + " by each thread of " + std::to_string(Blocks) + " blocks of " +
           std::to_string(Threads);
  }
  static void expect(int* cells) {
    int sum = 0;
    for (int i = 0; i < Blocks * Threads; ++i)
      sum += cells[kSum + i] += Times * 10 * i + Times * (Times - 1) / 2;
    note(cells, sum);
  }
#endif
};
template <class Stream, int Depth>
struct ForgetTree : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    forget_tree<<<1, 3, 0, handle>>>(cells + kSum, Depth);
    note_cell<<<1, 1, 0, handle>>>(cells, cells + kSum);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "The next grid in a stream begins behind all fire-and-forget descendants of the one before it.";
  static constexpr const char* kWrong = "a stream does not wait for fire-and-forget work at some depth";
  static std::string form() { return std::string(Stream::kName) + "; " + std::to_string(Depth) + " levels"; }
  static int sum(int depth) { return 2 * (depth + 1 + (depth == 0 ? 0 : sum(depth - 1))); }
  static void expect(int* cells) { note(cells, cells[kSum] += sum(Depth)); }
#endif
};

// ---- rows ----

AT_LEVELS(tails, InOrder<false>)
AT_LEVELS(tails_of_subtrees, InOrder<true>)
CONTRACT(contract_tails_of_subtrees_end, AtTheEnd, InOrder<true>)
CONTRACT(contract_tails_of_subtrees_blocks, ByBlocks, InOrder<true>)
AT_LEVELS(tails_in_loop, InLoop)
AT_LEVELS(tails_of_tails, EndsOfEnds<1>)
AT_LEVELS(tails_of_tails_deep, EndsOfEnds<3>)
AT_LEVELS(tails_of_lanes, OfManyThreads<1, 12>)
AT_LEVELS(tails_of_warps, OfManyThreads<1, 70>)
AT_LEVELS(tails_of_blocks, OfManyThreads<7, 3>)
AT_LEVELS(tail_steps, TailRecursion<5>)
AT_LEVELS(tail_steps_many, TailRecursion<90>)
AT_LEVELS(tail_rounds, Rounds<6>)
AT_LEVELS(tail_fan, FanOut<15>)
AT_LEVELS(forget_thread, ForgetAll<1, 1, 9>)
AT_LEVELS(forget_warps, ForgetAll<1, 40, 2>)
AT_LEVELS(forget_blocks, ForgetAll<8, 5, 1>)
AT_LEVELS(forget_tree_null, ForgetTree<NullStream, 3>)
AT_LEVELS(forget_tree_thread, ForgetTree<ThreadStream, 3>)
AT_LEVELS(forget_tree_created, ForgetTree<CreatedStream, 3>)
AT_LEVELS(forget_tree_tail, ForgetTree<TailStream, 3>)

}  // namespace klap::differential::contract::tails
