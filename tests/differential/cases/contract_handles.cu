// The contract of streams where only the run tells which one a launch goes into: lanes that launch at one
// place into different streams, one stream under two names, streams that are never destroyed, threads that
// end early.
#include "contract_forms.h"

namespace klap::differential::contract::handles {

#ifdef __CUDACC__

__global__ void one_note(int* log, int value) { note(log, value); }
__global__ void one_fold(int* cell, int value) { fold(cell, value); }
__global__ void note_cell(int* log, const int* cell) { note(log, *cell); }
__global__ void add(int* cell, int value) {
  if (threadIdx.x == 0) atomicAdd(cell, value);
}
__global__ void add_late(int* cell, int value, int depth) {
  if (depth == 0) {
    add<<<1, 2, 0, cudaStreamFireAndForget>>>(cell, value);
  } else {
    add_late<<<1, 1>>>(cell, value, depth - 1);
  }
}
// A handle that the compiler cannot know.
__device__ __forceinline__ cudaStream_t unknown(int* cells, cudaStream_t handle) {
  const unsigned long long zero =
      static_cast<volatile unsigned long long*>(static_cast<void*>(cells + kHandleCell))[0];
  return reinterpret_cast<cudaStream_t>(reinterpret_cast<unsigned long long>(handle) + zero);
}

#endif

// ---- lanes that differ ----

enum class Lanes { NullFirst, CreatedFirst, NullAndForget, NullAndThread, NullAndTail, All };

template <Lanes How, int Depth>
struct OtherLanes : Grid<1, 32> {
#ifdef __CUDACC__
  static __device__ cudaStream_t choose(int t, cudaStream_t created) {
    switch (How) {
      case Lanes::NullFirst:
        return t == 0 ? nullptr : created;
      case Lanes::CreatedFirst:
        return t != 0 ? nullptr : created;
      case Lanes::NullAndForget:
        return t % 2 == 0 ? nullptr : cudaStreamFireAndForget;
      case Lanes::NullAndThread:
        return t % 2 == 0 ? nullptr : cudaStreamPerThread;
      case Lanes::NullAndTail:
        return t % 2 == 0 ? nullptr : cudaStreamTailLaunch;
      default:
        break;
    }
    const cudaStream_t all[] = {nullptr, created, cudaStreamPerThread, cudaStreamFireAndForget,
                                cudaStreamTailLaunch};
    return all[t % 5];
  }
  static __device__ void run(int* cells) {
    const int t = static_cast<int>(threadIdx.x);
    const cudaStream_t created = create();
    const cudaStream_t handle = unknown(cells, choose(t, created));
    __syncwarp();
    add_late<<<1, 1, 0, handle>>>(cells + kSum, t + 1, t == 0 ? 0 : Depth);
    cudaStreamDestroy(created);
  }
#else
  static constexpr const char* kSays =
      "Lanes may launch at one place into different streams. Their grid is complete "
      "when all of these launches are.";
  static constexpr const char* kWrong =
      "a grid does not wait for a lane's launch into another stream than the "
      "first lane's";
  static std::string form() {
    constexpr const char* kForms[] = {"the NULL stream by lane 0, created streams by others",
                                      "a created stream by lane 0, the NULL stream by others",
                                      "the NULL stream and fire-and-forget",
                                      "the NULL stream and per-thread streams",
                                      "the NULL stream and the tail stream",
                                      "five kinds"};
    return std::string(kForms[static_cast<int>(How)]) + ", " + std::to_string(Depth) + " levels below";
  }
  static void expect(int* cells) { cells[kSum] += 528; }
#endif
};
// A grid behind it reads what they have led to.
template <class Stream, Lanes How, int Depth>
struct BehindOtherLanes : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    for (int i = 0; i < 2; ++i) {
      launching<OtherLanes<How, Depth>><<<1, 32, 0, handle>>>(cells);
      note_cell<<<1, 1, 0, handle>>>(cells, cells + kSum);
    }
    stream.close();
  }
#else
  static constexpr const char* kSays = OtherLanes<How, Depth>::kSays;
  static constexpr const char* kWrong = OtherLanes<How, Depth>::kWrong;
  static std::string form() { return OtherLanes<How, Depth>::form() + "; " + Stream::kName + " waits"; }
  static void expect(int* cells) { note(cells, cells[kSum] += 528), note(cells, cells[kSum] += 528); }
#endif
};

// ---- two names ----

enum class Name { Null, Thread, Tail };

template <Name Which, bool IsConstantFirst>
struct TwoNames : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    constexpr unsigned long long kNumbers[] = {0, 2, 3};  // NULL, per-thread, tail
    const cudaStream_t known = reinterpret_cast<cudaStream_t>(kNumbers[static_cast<int>(Which)]);
    const cudaStream_t loaded = unknown(cells, known);
    if constexpr (IsConstantFirst) {
      add_late<<<1, 1, 0, known>>>(cells + kSum, 5, 2);
      note_cell<<<1, 1, 0, loaded>>>(cells, cells + kSum);
    } else {
      add_late<<<1, 1, 0, loaded>>>(cells + kSum, 5, 2);
      note_cell<<<1, 1, 0, known>>>(cells, cells + kSum);
    }
  }
#else
  static constexpr const char* kSays =
      "A stream that has a constant for its handle is the same one where the handle "
      "comes from memory.";
  static constexpr const char* kWrong = "a launch does not wait for one whose stream is named otherwise";
  static std::string form() {
    constexpr const char* kForms[] = {"the NULL stream", "the per-thread stream", "the tail stream"};
    return std::string(kForms[static_cast<int>(Which)]) +
           (IsConstantFirst ? ", by its constant, then from memory" : ", from memory, then by its constant");
  }
  static void expect(int* cells) { note(cells, cells[kSum] += 5); }
#endif
};
struct TwoCopies : Grid<1, 64> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    __shared__ cudaStream_t first, second;
    if (threadIdx.x == 0) first = second = create();
    __syncthreads();
    if (threadIdx.x == 33) add_late<<<1, 1, 0, first>>>(cells + kSum, 5, 1);
    __syncthreads();
    if (threadIdx.x == 2) note_cell<<<1, 1, 0, second>>>(cells, cells + kSum);
    __syncthreads();
    if (threadIdx.x == 39) cudaStreamDestroy(second);
  }
#else
  static constexpr const char* kSays = "Copies of a created stream's handle name the same stream.";
  static constexpr const char* kWrong = "a copy of a handle names another stream";
  static std::string form() { return "two copies in shared memory"; }
  static void expect(int* cells) { note(cells, cells[kSum] += 5); }
#endif
};

// ---- the end of streams and threads ----

template <int Count>
struct NeverDestroyed : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
#pragma unroll 1
    for (int i = 0; i < Count; ++i) {
      const cudaStream_t stream = unknown(cells, create());
      one_fold<<<1, 1, 0, stream>>>(cells + i, 2);
      one_fold<<<1, 1, 0, stream>>>(cells + i, i);
    }
  }
#else
  static constexpr const char* kSays =
      "A stream that is never destroyed holds up nothing: its grid is complete when the "
      "work in it is.";
  static constexpr const char* kWrong =
      "a grid waits for a stream that stays, or does not wait for the work in it";
  static std::string form() { return std::to_string(Count) + " streams"; }
  static void expect(int* cells) {
    for (int i = 0; i < Count; ++i) fold(cells + i, 2), fold(cells + i, i);
  }
#endif
};
template <class Stream>
struct EarlyReturns : Grid<2, 9> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (t % 5 == 4) return;
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    one_fold<<<1, 1, 0, handle>>>(cells + t, 1);
    if (t % 3 == 0) {
      stream.close();
      return;
    }
    one_fold<<<1, 1, 0, handle>>>(cells + t, 2);
#pragma unroll 1
    for (int i = 0; i < 3; ++i) {
      if (i == t % 4) break;
      one_fold<<<1, 1, 0, handle>>>(cells + t, 3 + i);
    }
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A thread may end before others of its block launch; its launches stay.";
  static constexpr const char* kWrong = "a launch is lost, or out of order, whose thread ends early";
  static std::string form() { return Stream::kName; }
  static void expect(int* cells) {
    for (int t = 0; t < 18; ++t) {
      if (t % 5 == 4) continue;
      fold(cells + t, 1);
      if (t % 3 == 0) continue;
      fold(cells + t, 2);
      for (int i = 0; i < 3 && i != t % 4; ++i) fold(cells + t, 3 + i);
    }
  }
#endif
};
struct NothingAtAll : Grid<3, 4> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    if (cells[kSum] == 77) add_late<<<1, 1>>>(cells, 1, 1);
    if (cells[kSum] == 78) note_cell<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, cells + 1);
    if (threadIdx.x == 0) atomicAdd(cells + kOther, 1);
  }
#else
  static constexpr const char* kSays = "A grid of which no thread launches is complete by itself.";
  static constexpr const char* kWrong =
      "a grid without launches does not end, or another launch is lost behind it";
  static std::string form() { return "three blocks"; }
  static void expect(int* cells) { cells[kOther] += 3; }
#endif
};

// ---- rows ----

AT_LEVELS(lanes_null_first, BehindOtherLanes<NullStream, Lanes::NullFirst, 3>)
AT_LEVELS(lanes_null_first_thread, BehindOtherLanes<ThreadStream, Lanes::NullFirst, 3>)
AT_LEVELS(lanes_created_first, BehindOtherLanes<NullStream, Lanes::CreatedFirst, 3>)
AT_LEVELS(lanes_null_forget, BehindOtherLanes<NullStream, Lanes::NullAndForget, 3>)
AT_LEVELS(lanes_null_thread, BehindOtherLanes<NullStream, Lanes::NullAndThread, 3>)
AT_LEVELS(lanes_null_tail, BehindOtherLanes<NullStream, Lanes::NullAndTail, 3>)
AT_LEVELS(lanes_all, BehindOtherLanes<NullStream, Lanes::All, 2>)
CONTRACT(contract_lanes_all_host, ByHost, OtherLanes<Lanes::All, 2>)
CONTRACT(contract_lanes_all_end, AtTheEnd, BehindOtherLanes<TailStream, Lanes::All, 1>)
AT_LEVELS(names_null, TwoNames<Name::Null, true>)
AT_LEVELS(names_null_loaded, TwoNames<Name::Null, false>)
AT_LEVELS(names_thread, TwoNames<Name::Thread, true>)
AT_LEVELS(names_thread_loaded, TwoNames<Name::Thread, false>)
AT_LEVELS(names_tail, TwoNames<Name::Tail, true>)
AT_LEVELS(names_tail_loaded, TwoNames<Name::Tail, false>)
AT_LEVELS(copies_of_handle, TwoCopies)
AT_LEVELS(never_destroyed, NeverDestroyed<5>)
AT_LEVELS(never_destroyed_many, NeverDestroyed<60>)
AT_LEVELS(returns_null, EarlyReturns<NullStream>)
AT_LEVELS(returns_thread, EarlyReturns<ThreadStream>)
AT_LEVELS(returns_created, EarlyReturns<CreatedStream>)
AT_LEVELS(nothing_at_all, NothingAtAll)

}  // namespace klap::differential::contract::handles
