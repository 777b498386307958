// The contract of completion: a grid is complete when its blocks and all grids that it launched are.
// Whatever waits for it waits for all of these.
#include "contract_forms.h"

namespace klap::differential::contract::completion {

#ifdef __CUDACC__

// An entry of the log, of a cell that nobody updates any more.
__global__ void note_cell(int* log, const int* cell) { note(log, *cell); }
__global__ void add(int* cell, int value) {
  if (threadIdx.x == 0) atomicAdd(cell, value);
}

// Launches `Count` grids that add to a cell, and is done itself before they begin.
template <class Stream, int Count>
__global__ void launch_adds(int* cells) {
  if (threadIdx.x != 0) return;
  Stream stream;
  const cudaStream_t handle = stream.open(cells);
#pragma unroll 1
  for (int i = 0; i < Count; ++i) add<<<1, 2, 0, handle>>>(cells + kSum, i + 1);
  stream.close();
}

__global__ void launch_if(int* cells, int condition) {
  if (cells[condition] != 0) add<<<1, 1>>>(cells + kSum, 1);
}

#endif

// ---- a grid and what it launches ----

template <class Stream, class Inner, int Count>
struct BehindChildren : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    launch_adds<Inner, Count><<<1, 2, 0, handle>>>(cells);
    note_cell<<<1, 1, 0, handle>>>(cells, cells + kSum);
    launch_adds<Inner, Count><<<1, 2, 0, handle>>>(cells);
    note_cell<<<1, 1, 0, handle>>>(cells, cells + kSum);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A grid is complete when its threads and all grids that it launched are, into whatever stream; then "
      "the "
      "next one in its stream begins.";
  static constexpr const char* kWrong = "a grid begins before the children of the one before it are complete";
  static std::string form() {
    return std::string(Stream::kName) + "; " + std::to_string(Count) + " grandchildren in " + Inner::kName;
  }
  static void expect(int* cells) {
    for (int time = 0; time < 2; ++time) {
      cells[kSum] += Count * (Count + 1) / 2;
      note(cells, cells[kSum]);
    }
  }
#endif
};

struct NothingLaunched : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    for (int i = 0; i < 4; ++i) {
      launch_if<<<1, 1>>>(cells, kOther + i);
      note_cell<<<1, 1>>>(cells, cells + kSum);
    }
  }
#else
  static constexpr const char* kSays =
      "A grid that could launch and does not is complete when its threads are, as any other.";
  static constexpr const char* kWrong =
      "a grid that launches nothing holds up its stream, or is not waited for";
  static std::string form() { return "every second one of four grids launches"; }
  static void set(int* cells) { cells[kOther + 1] = cells[kOther + 3] = 1; }
  static void expect(int* cells) {
    for (int i = 0; i < 4; ++i) note(cells, cells[kSum] += i % 2);
  }
#endif
};

// ---- rows ----

AT_LEVELS(none_null, BehindChildren<NullStream, NullStream, 0>)
AT_LEVELS(one_null, BehindChildren<NullStream, NullStream, 1>)
AT_LEVELS(one_forget, BehindChildren<NullStream, ForgetStream, 1>)
AT_LEVELS(some_null, BehindChildren<NullStream, NullStream, 6>)
AT_LEVELS(some_thread, BehindChildren<NullStream, ThreadStream, 6>)
AT_LEVELS(some_created, BehindChildren<NullStream, CreatedStream, 6>)
AT_LEVELS(some_forget, BehindChildren<NullStream, ForgetStream, 6>)
AT_LEVELS(some_tail, BehindChildren<NullStream, TailStream, 6>)
AT_LEVELS(many_forget, BehindChildren<NullStream, ForgetStream, 40>)
AT_LEVELS(thread_some_null, BehindChildren<ThreadStream, NullStream, 6>)
AT_LEVELS(thread_some_thread, BehindChildren<ThreadStream, ThreadStream, 6>)
AT_LEVELS(thread_some_forget, BehindChildren<ThreadStream, ForgetStream, 6>)
AT_LEVELS(created_some_null, BehindChildren<CreatedStream, NullStream, 6>)
AT_LEVELS(created_some_created, BehindChildren<CreatedStream, CreatedStream, 6>)
AT_LEVELS(created_some_forget, BehindChildren<CreatedStream, ForgetStream, 6>)
AT_LEVELS(tail_some_null, BehindChildren<TailStream, NullStream, 6>)
AT_LEVELS(tail_some_forget, BehindChildren<TailStream, ForgetStream, 6>)
CONTRACT(contract_some_forget_blocks, ByBlocks, BehindChildren<NullStream, ForgetStream, 6>)
CONTRACT(contract_some_null_end, AtTheEnd, BehindChildren<NullStream, NullStream, 6>)
CONTRACT(contract_some_null_deep, Deep, BehindChildren<NullStream, NullStream, 6>)
AT_LEVELS(nothing_launched, NothingLaunched)

}  // namespace klap::differential::contract::completion
