// The contract of the tail stream: a tail launch begins when the whole grid is complete, with everything
// else that it launched, and comes before whatever waits for the grid.
#include "contract_tail_kernels.h"

namespace klap::differential::contract::tail {

#ifdef __CUDACC__

// Its child has an end, which comes before whatever waits for this grid.
__global__ void child_with_end(int* log, int value) {
  note_and_end<<<1, 1, 0, cudaStreamFireAndForget>>>(log, value);
}

#endif

// ---- the grid itself, and its other launches ----

template <int Blocks, int Threads>
struct BehindGrid : Grid<Blocks, Threads> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i == Threads / 2) note_sum<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, kSum, Blocks * Threads);
    cells[kSum + i] += i + 1;
  }
#else
  static constexpr const char* kSays =
      "A tail launch begins when all threads of its grid have ended, wherever they "
      "are when it is launched.";
  static constexpr const char* kWrong = "a tail launch begins before a thread of its grid has ended";
  static std::string form() {
    return std::to_string(Blocks) + " blocks of " + std::to_string(Threads) + " threads, one launches";
  }
  static void expect(int* cells) {
    int sum = 0;
    for (int i = 0; i < Blocks * Threads; ++i) sum += cells[kSum + i] += i + 1;
    note(cells, sum);
  }
#endif
};

template <class Stream, bool IsFirst>
struct BehindOthers : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    if (IsFirst) note_cell<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, cells + kSum);
    for (int i = 1; i < 6; ++i) add_later<<<1, 1, 0, handle>>>(cells + kSum, i);
    if (!IsFirst) note_cell<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, cells + kSum);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A tail launch begins when all grids are complete that its grid launches into "
      "other streams, before or after it, with their descendants.";
  static constexpr const char* kWrong = "a tail launch does not wait for another launch of its grid";
  static std::string form() {
    return std::string("five launches into ") + Stream::kName + (IsFirst ? " behind it" : " before it");
  }
  static void expect(int* cells) { note(cells, cells[kSum] += 15); }
#endif
};

// ---- whatever waits for the grid ----

template <class Stream>
struct BeforeNext : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    for (int i = 1; i < 4; ++i) {
      note_and_end<<<1, 1, 0, handle>>>(cells, i);
      one_note<<<1, 1, 0, handle>>>(cells, 10 * i);
    }
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "Tail launches come between their grid and the next one in the stream of the "
      "grid.";
  static constexpr const char* kWrong =
      "the grid behind a grid in its stream begins before its tail launches";
  static std::string form() { return Stream::kName; }
  static void expect(int* cells) {
    for (int i = 1; i < 4; ++i) note(cells, i), note(cells, -i), note(cells, 10 * i);
  }
#endif
};
struct OfGrandchild : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    child_with_end<<<1, 1>>>(cells, 5);
    one_note<<<1, 1>>>(cells, 1);
    child_with_end<<<1, 1>>>(cells, 6);
    one_note<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, 2);
  }
#else
  static constexpr const char* kSays = "A grid is complete only behind the tail launches of its descendants.";
  static constexpr const char* kWrong = "a grid does not wait for the tail launch of a grandchild";
  static std::string form() { return "the NULL stream, and a tail launch behind it"; }
  static void expect(int* cells) {
    for (const int value : {5, -5, 1, 6, -6, 2}) note(cells, value);
  }
#endif
};

// ---- rows ----

AT_LEVELS(tail_thread, BehindGrid<1, 1>)
AT_LEVELS(tail_block, BehindGrid<1, 40>)
AT_LEVELS(tail_blocks, BehindGrid<9, 4>)
CONTRACT(contract_tail_blocks_many, ByBlocks, BehindGrid<3, 4>)
AT_LEVELS(tail_behind_null, BehindOthers<NullStream, false>)
AT_LEVELS(tail_before_null, BehindOthers<NullStream, true>)
AT_LEVELS(tail_behind_thread, BehindOthers<ThreadStream, false>)
AT_LEVELS(tail_before_thread, BehindOthers<ThreadStream, true>)
AT_LEVELS(tail_behind_created, BehindOthers<CreatedStream, false>)
AT_LEVELS(tail_before_created, BehindOthers<CreatedStream, true>)
AT_LEVELS(tail_behind_forget, BehindOthers<ForgetStream, false>)
AT_LEVELS(tail_before_forget, BehindOthers<ForgetStream, true>)
AT_LEVELS(tail_behind_chosen, BehindOthers<ChosenStream<4>, false>)
AT_LEVELS(tail_next_null, BeforeNext<NullStream>)
AT_LEVELS(tail_next_thread, BeforeNext<ThreadStream>)
AT_LEVELS(tail_next_created, BeforeNext<CreatedStream>)
AT_LEVELS(tail_next_tail, BeforeNext<TailStream>)
AT_LEVELS(tail_of_grandchild, OfGrandchild)

}  // namespace klap::differential::contract::tail
