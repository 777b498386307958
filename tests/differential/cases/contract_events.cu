// The contract of the device runtime's other calls in streams: events, which order one stream behind another,
// copies and fills, which wait their turn as grids do, and questions about the device.
#include "contract_forms.h"

namespace klap::differential::contract::events {

constexpr int kFrom = 64, kTo = 128, kCount = 24;

#ifdef __CUDACC__

__global__ void one_note(int* log, int value) { note(log, value); }
__global__ void note_later(int* log, int value) {
  one_note<<<1, 1, 0, cudaStreamFireAndForget>>>(log, value);
}
__global__ void grow(int* cells, int value) { cells[threadIdx.x] = cells[threadIdx.x] * 3 + value; }
__global__ void grow_later(int* cells, int value) {
  grow<<<1, kCount, 0, cudaStreamFireAndForget>>>(cells, value);
}
__global__ void sum_up(int* log, const int* cells) {
  int sum = 0;
  for (int i = 0; i < kCount; ++i) sum = (sum * 5 + cells[i]) & 0xffff;
  note(log, sum);
}
__device__ __forceinline__ cudaEvent_t create_event() {
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  return event;
}
__global__ void __launch_bounds__(96) bounded(int* cells) { cells[0] += 1; }

#else

inline int sum_of(const int* cells) {
  int sum = 0;
  for (int i = 0; i < kCount; ++i) sum = (sum * 5 + cells[i]) & 0xffff;
  return sum;
}
inline void grow(int* cells, int value) {
  for (int i = 0; i < kCount; ++i) cells[i] = cells[i] * 3 + value;
}

#endif

// ---- events ----

template <class First, class Second, bool IsLater>
struct Waits : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    First first;
    Second second;
    const cudaStream_t one = first.open(cells), other = second.open(cells);
    const cudaEvent_t event = create_event(), back = create_event();
    for (int i = 1; i < 4; ++i) {
      if constexpr (IsLater) {
        note_later<<<1, 1, 0, one>>>(cells, i);
      } else {
        one_note<<<1, 1, 0, one>>>(cells, i);
      }
      cudaEventRecord(event, one);
      cudaStreamWaitEvent(other, event, 0);
      one_note<<<1, 1, 0, other>>>(cells, 10 * i);
      cudaEventRecord(back, other);
      cudaStreamWaitEvent(one, back, 0);
    }
    cudaEventDestroy(event);
    cudaEventDestroy(back);
    first.close();
    second.close();
  }
#else
  static constexpr const char* kSays =
      "A stream that waits for an event goes on behind all that the event's stream held "
      "when it was recorded, with all that these grids launched.";
  static constexpr const char* kWrong = "an event does not order two streams";
  static std::string form() {
    return std::string(First::kName) + " and " + Second::kName + ", to and fro" +
           (IsLater ? ", grandchildren" : "");
  }
  static void expect(int* cells) {
    for (int i = 1; i < 4; ++i) note(cells, i), note(cells, 10 * i);
  }
#endif
};
struct Diamond : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const cudaStream_t left = create(), right = create();
    const cudaEvent_t fork = create_event(), join = create_event();
    grow<<<1, kCount, 0, left>>>(cells + kFrom, 1);
    cudaEventRecord(fork, left);
    cudaStreamWaitEvent(right, fork, 0);
    sum_up<<<1, 1, 0, left>>>(cells, cells + kFrom);
    sum_up<<<1, 1, 0, right>>>(cells + 40, cells + kFrom);
    cudaEventRecord(join, right);
    cudaStreamWaitEvent(left, join, 0);
    grow<<<1, kCount, 0, left>>>(cells + kFrom, 2);
    sum_up<<<1, 1, 0, left>>>(cells + 40, cells + kFrom);
    cudaEventDestroy(fork), cudaEventDestroy(join);
    cudaStreamDestroy(left), cudaStreamDestroy(right);
  }
#else
  static constexpr const char* kSays = "Events make a graph of several streams: work forks and joins.";
  static constexpr const char* kWrong = "a stream does not wait at a fork, or at a join";
  static std::string form() { return "two created streams"; }
  static void expect(int* cells) {
    grow(cells + kFrom, 1);
    note(cells, sum_of(cells + kFrom)), note(cells + 40, sum_of(cells + kFrom));
    grow(cells + kFrom, 2);
    note(cells + 40, sum_of(cells + kFrom));
  }
#endif
};
struct RecordedTwice : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const cudaStream_t stream = create();
    const cudaEvent_t event = create_event(), never = create_event();
    cudaStreamWaitEvent(nullptr, never, 0);
    one_note<<<1, 1, 0, stream>>>(cells, 1);
    cudaEventRecord(event, stream);
    note_later<<<1, 1, 0, stream>>>(cells, 2);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(nullptr, event, 0);
    cudaEventDestroy(event), cudaEventDestroy(never);
    cudaStreamDestroy(stream);
    one_note<<<1, 1>>>(cells, 3);
  }
#else
  static constexpr const char* kSays =
      "An event stands for its last record; one that was never recorded holds up "
      "nothing; events and streams may be destroyed while they are waited for.";
  static constexpr const char* kWrong =
      "an event stands for its first record, or is lost when it is destroyed";
  static std::string form() { return "a created stream, the NULL stream waits"; }
  static void expect(int* cells) {
    for (int i = 1; i < 4; ++i) note(cells, i);
  }
#endif
};
struct EventOfBlock : Grid<1, 64> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    __shared__ cudaEvent_t event;
    if (threadIdx.x == 40) {
      note_later<<<1, 1, 0, cudaStreamPerThread>>>(cells, 1);
      event = create_event();
      cudaEventRecord(event, cudaStreamPerThread);
    }
    __syncthreads();
    if (threadIdx.x == 3) {
      cudaStreamWaitEvent(cudaStreamPerThread, event, 0);
      one_note<<<1, 1, 0, cudaStreamPerThread>>>(cells, 2);
    }
    __syncthreads();
    if (threadIdx.x == 0) cudaEventDestroy(event);
  }
#else
  static constexpr const char* kSays =
      "An event serves all threads of its block, so it orders streams of different "
      "threads.";
  static constexpr const char* kWrong = "an event does not order two threads' own streams";
  static std::string form() { return "the streams of two threads"; }
  static void expect(int* cells) { note(cells, 1), note(cells, 2); }
#endif
};

// ---- copies and fills ----

template <class Stream, bool IsLater>
struct Copies : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    for (int i = 1; i < 4; ++i) {
      if constexpr (IsLater) {
        grow_later<<<1, 1, 0, handle>>>(cells + kFrom, i);
      } else {
        grow<<<1, kCount, 0, handle>>>(cells + kFrom, i);
      }
      cudaMemcpyAsync(cells + kTo, cells + kFrom, kCount * sizeof(int), cudaMemcpyDeviceToDevice, handle);
      sum_up<<<1, 1, 0, handle>>>(cells, cells + kTo);
    }
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A copy in a stream waits for the grid before it and all that it launched, and "
      "the grid behind it waits for the copy.";
  static constexpr const char* kWrong = "a copy comes before a grid, or a grid before a copy";
  static std::string form() {
    return std::string("cudaMemcpyAsync in ") + Stream::kName + (IsLater ? ", grandchildren write" : "");
  }
  static void expect(int* cells) {
    for (int i = 1; i < 4; ++i) {
      grow(cells + kFrom, i);
      memcpy(cells + kTo, cells + kFrom, kCount * sizeof(int));
      note(cells, sum_of(cells + kTo));
    }
  }
#endif
};
template <class Stream>
struct Fills : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    for (int i = 1; i < 4; ++i) {
      cudaMemsetAsync(cells + kFrom + i, i, 6 * sizeof(int), handle);
      grow_later<<<1, 1, 0, handle>>>(cells + kFrom, i);
      sum_up<<<1, 1, 0, handle>>>(cells, cells + kFrom);
    }
    stream.close();
  }
#else
  static constexpr const char* kSays = "A fill in a stream waits for its turn as a grid does.";
  static constexpr const char* kWrong = "a fill comes before the grid before it, or behind the next one";
  static std::string form() { return std::string("cudaMemsetAsync in ") + Stream::kName; }
  static void expect(int* cells) {
    for (int i = 1; i < 4; ++i) {
      memset(cells + kFrom + i, i, 6 * sizeof(int));
      grow(cells + kFrom, i);
      note(cells, sum_of(cells + kFrom));
    }
  }
#endif
};
struct Planes : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    grow<<<1, kCount>>>(cells + kFrom, 5);
    cudaMemcpy2DAsync(cells + kTo, 8 * sizeof(int), cells + kFrom, 6 * sizeof(int), 5 * sizeof(int), 4,
                      cudaMemcpyDeviceToDevice, nullptr);
    cudaMemset2DAsync(cells + kTo + 2, 8 * sizeof(int), 1, 2 * sizeof(int), 2, nullptr);
    sum_up<<<1, 1>>>(cells, cells + kTo);
  }
#else
  static constexpr const char* kSays =
      "Copies and fills of two dimensions keep the stream's order and their pitch.";
  static constexpr const char* kWrong = "a row of a copy or fill is lost, or another one, or early";
  static std::string form() { return "the NULL stream"; }
  static void expect(int* cells) {
    grow(cells + kFrom, 5);
    for (int row = 0; row < 4; ++row) memcpy(cells + kTo + 8 * row, cells + kFrom + 6 * row, 5 * sizeof(int));
    for (int row = 0; row < 2; ++row) memset(cells + kTo + 8 * row + 2, 1, 2 * sizeof(int));
    note(cells, sum_of(cells + kTo));
  }
#endif
};
struct CopyAtTheEnd : Grid<2, 12> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i == 3) {
      cudaMemcpyAsync(cells + kTo, cells + kFrom, kCount * sizeof(int), cudaMemcpyDeviceToDevice,
                      cudaStreamTailLaunch);
      sum_up<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, cells + kTo);
    }
    cells[kFrom + i] += i + 1;
  }
#else
  static constexpr const char* kSays =
      "A copy in the tail stream waits for the whole grid, as a tail launch does.";
  static constexpr const char* kWrong = "a copy at the end misses what a block of the grid wrote";
  static std::string form() { return "cudaMemcpyAsync, then a tail launch"; }
  static void expect(int* cells) {
    for (int i = 0; i < kCount; ++i) cells[kTo + i] = cells[kFrom + i] += i + 1;
    note(cells, sum_of(cells + kTo));
  }
#endif
};

// ---- questions ----

struct Questions : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    int device = -1, warp = 0, threads = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device);
    cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, device);
    grow<<<1, kCount>>>(cells + kFrom, warp);
    sum_up<<<1, 1>>>(cells, cells + kFrom);
    one_note<<<1, 1>>>(cells, threads + device);
  }
#else
  static constexpr const char* kSays = "The device can be asked for itself and its attributes.";
  static constexpr const char* kWrong = "the device gives another answer, or a launch beside it is lost";
  static std::string form() { return "number, warp size, most threads"; }
  static void expect(int* cells) {
    grow(cells + kFrom, 32);
    note(cells, sum_of(cells + kFrom));
    note(cells, 1024);
  }
#endif
};
struct KernelQuestions : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    cudaFuncAttributes attributes{};
    const int error = cudaFuncGetAttributes(&attributes, bounded);
    bounded<<<1, attributes.maxThreadsPerBlock == 96 ? 1 : 0>>>(cells + kFrom);
    one_note<<<1, 1>>>(cells, 100 * error + attributes.maxThreadsPerBlock);
  }
#else
  static constexpr const char* kSays = "A kernel's attributes are those of the program's kernel.";
  static constexpr const char* kWrong = "the attributes are those of another kernel";
  static std::string form() { return "the most threads of a bounded kernel"; }
  static void expect(int* cells) {
    cells[kFrom] += 1;
    note(cells, 96);
  }
#endif
};

// ---- rows ----

AT_LEVELS(waits_created, Waits<CreatedStream, CreatedStream, false>)
AT_LEVELS(waits_created_later, Waits<CreatedStream, CreatedStream, true>)
AT_LEVELS(waits_null, Waits<NullStream, CreatedStream, true>)
AT_LEVELS(waits_thread, Waits<ThreadStream, NullStream, true>)
AT_LEVELS(diamond, Diamond)
AT_LEVELS(recorded_twice, RecordedTwice)
AT_LEVELS(event_of_block, EventOfBlock)
AT_LEVELS(copies_null, Copies<NullStream, false>)
AT_LEVELS(copies_null_later, Copies<NullStream, true>)
AT_LEVELS(copies_thread_later, Copies<ThreadStream, true>)
AT_LEVELS(copies_created, Copies<CreatedStream, false>)
AT_LEVELS(copies_created_later, Copies<CreatedStream, true>)
AT_LEVELS(copies_tail, Copies<TailStream, true>)
AT_LEVELS(fills_null, Fills<NullStream>)
AT_LEVELS(fills_thread, Fills<ThreadStream>)
AT_LEVELS(fills_created, Fills<CreatedStream>)
AT_LEVELS(planes, Planes)
AT_LEVELS(copy_at_end, CopyAtTheEnd)
AT_LEVELS(questions, Questions)
AT_LEVELS(kernel_questions, KernelQuestions)

}  // namespace klap::differential::contract::events
