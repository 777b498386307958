// The contract of streams, for the launches of one thread: a grid begins when the one before it in its
// stream is complete, whatever stream it is and whatever the thread launches beside it.
#include "contract_forms.h"

namespace klap::differential::contract::streams {

#ifdef __CUDACC__

__global__ void one_note(int* log, int value) { note(log, value); }
__global__ void one_fold(int* cell, int value) { fold(cell, value); }

#endif

// ---- one thread ----

template <class Stream>
struct Sequence : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    one_note<<<1, 1, 0, handle>>>(cells, 4);
    one_note<<<1, 1, 0, handle>>>(cells, 3);
    one_note<<<1, 1, 0, handle>>>(cells, 2);
    one_note<<<1, 1, 0, handle>>>(cells, 1);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A grid begins when the grid that its thread launched before it into the same stream is complete.";
  static constexpr const char* kWrong = "grids of one stream overlap, or run in another order";
  static std::string form() { return Stream::kName; }
  static void expect(int* cells) {
    for (int i = 4; i > 0; --i) note(cells, i);
  }
#endif
};

template <class Stream>
struct SequenceInLoop : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    const int count = cells[kSum];
#pragma unroll 1
    for (int i = 0; i < count; ++i) one_note<<<1, 1, 0, handle>>>(cells, i * i);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "Launches of a loop into one stream run one after another, however many there are.";
  static constexpr const char* kWrong = "grids that a loop launches overlap, or run in another order";
  static std::string form() { return Stream::kName; }
  static void set(int* cells) { cells[kSum] = 11; }
  static void expect(int* cells) {
    for (int i = 0; i < cells[kSum]; ++i) note(cells, i * i);
  }
#endif
};

template <class First, class Second>
struct TwoStreams : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    First first;
    Second second;
    const cudaStream_t one = first.open(cells), other = second.open(cells);
    for (int i = 0; i < 4; ++i) {
      one_note<<<1, 1, 0, one>>>(cells, i);
      one_note<<<1, 1, 0, other>>>(cells + kOther, 10 - i);
    }
    first.close();
    second.close();
  }
#else
  static constexpr const char* kSays =
      "Each of a thread's streams keeps its order, whatever goes into the others.";
  static constexpr const char* kWrong = "a launch into another stream breaks the order of the first one";
  static std::string form() { return std::string(First::kName) + " and " + Second::kName; }
  static void expect(int* cells) {
    for (int i = 0; i < 4; ++i) note(cells, i), note(cells + kOther, 10 - i);
  }
#endif
};

// ---- created streams ----

template <int Times>
struct DestroyedAtOnce : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
#pragma unroll 1
    for (int i = 0; i < Times; ++i) {
      const cudaStream_t stream = create();
      one_fold<<<1, 1, 0, stream>>>(cells + i, 1);
      one_fold<<<1, 1, 0, stream>>>(cells + i, i);
      one_fold<<<1, 1, 0, stream>>>(cells + i, 5);
      if (cudaStreamDestroy(stream) != cudaSuccess) cells[i] = -1;
    }
  }
#else
  static constexpr const char* kSays =
      "A stream may be destroyed while grids wait in it: they run all the same, in their order.";
  static constexpr const char* kWrong = "grids of a stream that was destroyed are lost, or overlap";
  static std::string form() { return std::to_string(Times) + " streams, one after the other"; }
  static void expect(int* cells) {
    for (int i = 0; i < Times; ++i) fold(cells + i, 1), fold(cells + i, i), fold(cells + i, 5);
  }
#endif
};

template <int Count>
struct ManyAtOnce : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    cudaStream_t all[Count];
    for (cudaStream_t& stream : all) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
#pragma unroll 1
    for (int i = 0; i < 3 * Count; ++i) one_fold<<<1, 1, 0, all[i % Count]>>>(cells + i % Count, i);
    for (const cudaStream_t stream : all) cudaStreamDestroy(stream);
  }
#else
  static constexpr const char* kSays =
      "A program may have many streams at the same time, each with an order of its own.";
  static constexpr const char* kWrong = "two streams that were created are taken for one, or for none";
  static std::string form() { return std::to_string(Count) + " streams in an array"; }
  static void expect(int* cells) {
    for (int i = 0; i < 3 * Count; ++i) fold(cells + i % Count, i);
  }
#endif
};

// ---- rows ----

AT_LEVELS(sequence_null, Sequence<NullStream>)
AT_LEVELS(sequence_thread, Sequence<ThreadStream>)
AT_LEVELS(sequence_created, Sequence<CreatedStream>)
AT_LEVELS(sequence_function, Sequence<FunctionStream>)
AT_LEVELS(sequence_memory, Sequence<StreamInMemory>)
AT_LEVELS(sequence_shared, Sequence<StreamInShared>)
AT_LEVELS(sequence_chosen_created, Sequence<ChosenStream<0>>)
AT_LEVELS(sequence_chosen_null, Sequence<ChosenStream<1>>)
AT_LEVELS(sequence_chosen_thread, Sequence<ChosenStream<2>>)
AT_LEVELS(sequence_chosen_tail, Sequence<ChosenStream<3>>)
CONTRACT(contract_sequence_null_child, ByParent, Sequence<NullStream>)
CONTRACT(contract_sequence_null_end, AtTheEnd, Sequence<NullStream>)
CONTRACT(contract_sequence_null_deep, Deep, Sequence<NullStream>)
CONTRACT(contract_sequence_null_blocks, ByBlocks, Sequence<NullStream>)
CONTRACT(contract_sequence_thread_blocks, ByBlocks, Sequence<ThreadStream>)
CONTRACT(contract_sequence_created_blocks, ByBlocks, Sequence<CreatedStream>)
CONTRACT(contract_sequence_created_end, AtTheEnd, Sequence<CreatedStream>)
AT_LEVELS(loop_null, SequenceInLoop<NullStream>)
AT_LEVELS(loop_thread, SequenceInLoop<ThreadStream>)
AT_LEVELS(loop_created, SequenceInLoop<CreatedStream>)
AT_LEVELS(loop_memory, SequenceInLoop<StreamInMemory>)
AT_LEVELS(loop_chosen, SequenceInLoop<ChosenStream<1>>)
AT_LEVELS(two_null_thread, TwoStreams<NullStream, ThreadStream>)
AT_LEVELS(two_null_created, TwoStreams<NullStream, CreatedStream>)
AT_LEVELS(two_thread_created, TwoStreams<ThreadStream, CreatedStream>)
AT_LEVELS(two_created, TwoStreams<CreatedStream, CreatedStream>)
AT_LEVELS(destroyed, DestroyedAtOnce<3>)
AT_LEVELS(destroyed_often, DestroyedAtOnce<50>)
AT_LEVELS(many_streams, ManyAtOnce<20>)

}  // namespace klap::differential::contract::streams
