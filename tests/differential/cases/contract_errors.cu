// The contract of errors and limits: a launch that CUDA refuses leaves an error with its thread, which keeps
// it until it is read, and disturbs no other launch.
#include "contract_forms.h"

namespace klap::differential::contract::errors {

constexpr int kInvalidConfiguration = 9;  // cudaErrorInvalidConfiguration

#ifdef __CUDACC__

__global__ void one_note(int* log, int value) {
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
    note(log, value);
}
__global__ void add(int* cell, int value) {
  if (threadIdx.x == 0) atomicAdd(cell, value);
}
__device__ __forceinline__ dim3 dim_at(const int* cells) {
  return dim3(static_cast<unsigned int>(cells[0]), static_cast<unsigned int>(cells[1]),
              static_cast<unsigned int>(cells[2]));
}
// A launch that is refused if the extent is 0, and the error that its thread finds then.
__global__ void fail_quietly(int* cells, int blocks) { add<<<blocks, 1>>>(cells + kSum, 3); }
__global__ void note_error(int* log) {
  const int peeked = cudaPeekAtLastError();
  note(log, 100 * peeked + cudaGetLastError());
}
__global__ void fail_and_note(int* log, int blocks) {
  add<<<blocks, 1>>>(log + kSum, 3);
  note(log, 1000 + cudaPeekAtLastError());
  note(log, 2000 + cudaGetLastError());
  note(log, 3000 + cudaGetLastError());
}

// It finds its own thread's error before its launch, and leaves one if the extent is 0.
__global__ void note_before(int* log, int blocks) {
  const int before = cudaPeekAtLastError();
  one_note<<<blocks, 1>>>(log, 500 + before);
}

#endif

// ---- sizes that are refused ----

// Grids and blocks: x, y and z of each.
struct Sizes {
  int extents[6];
  const char* text;
};
constexpr Sizes kSizes[] = {{{0, 1, 1, 1, 1, 1}, "no blocks"},
                            {{1, 1, 1, 0, 1, 1}, "no threads"},
                            {{1, 1, 1, 1025, 1, 1}, "more than 1024 threads in a row"},
                            {{1, 1, 1, 33, 32, 1}, "more than 1024 threads in rows"},
                            {{1, 1, 1, 1, 1, 65}, "more than 64 layers of a block"},
                            {{1, 65536, 1, 1, 1, 1}, "more than 65535 rows of blocks"},
                            {{1, 1, 65536, 1, 1, 1}, "more than 65535 layers of blocks"}};

template <class Stream, int Which>
struct Refused : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    int* const errors = cells + kOther;
    const dim3 grid = dim_at(cells + kSum), block = dim_at(cells + kSum + 3);
    one_note<<<1, 1, 0, handle>>>(cells, 1);
    errors[0] = cudaPeekAtLastError();
    one_note<<<grid, block, 0, handle>>>(cells, 2);
    errors[1] = cudaPeekAtLastError();
    one_note<<<1, dim3(2, 2), 0, handle>>>(cells, 3);
    errors[2] = cudaPeekAtLastError();
    errors[3] = cudaGetLastError();
    errors[4] = cudaGetLastError();
    one_note<<<2, 3, 0, handle>>>(cells, 4);
    errors[5] = cudaGetLastError();
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A launch of a size that the device does not allow is refused with an error, and the launches around "
      "it "
      "keep their order.";
  static constexpr const char* kWrong = "a refused launch runs, has another error, or breaks its stream";
  static std::string form() { return std::string(Stream::kName) + ", " + kSizes[Which].text; }
  static void set(int* cells) {
    for (int i = 0; i < 6; ++i) cells[kSum + i] = kSizes[Which].extents[i];
  }
  static void expect(int* cells) {
    for (const int value : {1, 3, 4}) note(cells, value);
    const int errors[] = {0, kInvalidConfiguration, kInvalidConfiguration, kInvalidConfiguration, 0, 0};
    for (int i = 0; i < 6; ++i) cells[kOther + i] = errors[i];
  }
#endif
};

// ---- whose error it is ----

struct ErrorsOfThreads : Grid<3, 20> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    add<<<i % 3, 2>>>(cells + kOther + i, 10);
    const int peeked = cudaPeekAtLastError(), read = cudaGetLastError();
    atomicAdd(cells + kOther + i, 1000 * peeked + 100 * read + static_cast<int>(cudaGetLastError()));
  }
#else
  static constexpr const char* kSays =
      "Each thread has a last error of its own; reading it by cudaGetLastError() "
      "clears it.";
  static constexpr const char* kWrong = "a thread finds the error of another one, or none";
  static std::string form() { return "three blocks, every third thread fails"; }
  static void expect(int* cells) {
    for (int i = 0; i < 60; ++i) cells[kOther + i] += i % 3 == 0 ? 1100 * kInvalidConfiguration : i % 3 * 10;
  }
#endif
};
template <class Stream>
struct ErrorsOfGrids : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    fail_quietly<<<1, 1, 0, handle>>>(cells, 0);
    note_error<<<1, 1, 0, handle>>>(cells);
    fail_and_note<<<1, 1, 0, handle>>>(cells, 0);
    fail_and_note<<<1, 1, 0, handle>>>(cells, 2);
    fail_quietly<<<1, 1, 0, handle>>>(cells, 0);
    note_error<<<1, 1, 0, handle>>>(cells);
    stream.close();
  }
#else
  static constexpr const char* kSays = "Errors belong to the threads of one grid: no other grid finds them.";
  static constexpr const char* kWrong = "a grid begins with the error of a grid before it";
  static std::string form() {
    return std::string("children in ") + Stream::kName + ", one of which reads no error";
  }
  static void expect(int* cells) {
    note(cells, 0);
    for (const int value : {1000 + kInvalidConfiguration, 2000 + kInvalidConfiguration, 3000})
      note(cells, value);
    for (const int value : {1000, 2000, 3000}) note(cells, value);
    note(cells, 0);
    cells[kSum] += 6;
  }
#endif
};
struct NoErrorBefore : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    for (int i = 0; i < 3; ++i) {
      note_before<<<1, 1>>>(cells, 0);
      note_before<<<1, 1>>>(cells, i);
    }
  }
#else
  static constexpr const char* kSays = ErrorsOfGrids<NullStream>::kSays;
  static constexpr const char* kWrong = ErrorsOfGrids<NullStream>::kWrong;
  static std::string form() { return "children that launch, some without reading their error"; }
  static void expect(int* cells) { note(cells, 500), note(cells, 500); }
#endif
};
struct ErrorOfChild : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    fail_quietly<<<1, 1>>>(cells, 0);
    cells[kOther] = cudaGetLastError();
    fail_quietly<<<0, 1>>>(cells, 1);
    cells[kOther + 1] = cudaGetLastError();
    fail_quietly<<<1, 1>>>(cells, 1);
    cells[kOther + 2] = cudaGetLastError();
  }
#else
  static constexpr const char* kSays =
      "An error of a launch that a child makes is not an error of its launcher.";
  static constexpr const char* kWrong = "a thread finds an error of its child";
  static std::string form() { return "the child fails, the launch fails, neither"; }
  static void expect(int* cells) {
    cells[kSum] += 3;
    cells[kOther + 1] = kInvalidConfiguration;
  }
#endif
};
template <class Stream>
struct NothingWrong : Grid<1, 40> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const int t = static_cast<int>(threadIdx.x);
    const cudaStream_t handle = stream.open(cells);
    add<<<1, 1, 0, handle>>>(cells, t);
    stream.close();
    cells[kSum + t] = 100 + 10 * cudaPeekAtLastError() + cudaGetLastError();
  }
#else
  static constexpr const char* kSays =
      "A launch, a stream's creation and its end leave no error if they succeed.";
  static constexpr const char* kWrong = "a thread finds an error where nothing failed";
  static std::string form() { return std::string(Stream::kName) + ", 40 threads"; }
  static void expect(int* cells) {
    cells[0] += 40 * 39 / 2;
    for (int t = 0; t < 40; ++t) cells[kSum + t] = 100;
  }
#endif
};
struct NamesOfErrors : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    add<<<0, 1>>>(cells, 1);
    const cudaError_t error = cudaGetLastError();
    const char* const name = cudaGetErrorName(error);
    for (int i = 0; i < 16; ++i) cells[kOther + i] = name[i];
    cells[kSum] = cudaGetErrorString(error)[0] != '\0' ? 1 : 0;
  }
#else
  static constexpr const char* kSays = "The device can put an error into words.";
  static constexpr const char* kWrong = "the name of an error is another one";
  static std::string form() { return "the name of a refused launch's error"; }
  static void expect(int* cells) {
    const std::string name = "cudaErrorInvalid";
    for (int i = 0; i < 16; ++i) cells[kOther + i] = name[static_cast<size_t>(i)];
    cells[kSum] = 1;
  }
#endif
};

// ---- loops that look at each error ----

// A thread launches six times, one block or none.
KLAP_SHARED static constexpr int blocks_of_round(int thread, int i) {
  return (thread + 5 * i) % 4 == 0 ? 0 : 1;
}

struct CountsErrors : Grid<1, 40> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int t = static_cast<int>(threadIdx.x);
#pragma unroll 1
    for (int i = 0; i < 6; ++i) {
      add<<<blocks_of_round(t, i), 1>>>(cells + kOther + t, 1 + i);
      if (cudaGetLastError() != cudaSuccess) atomicAdd(cells + kSum, 1);
    }
  }
#else
  static constexpr const char* kSays = "A thread finds the error of each launch that it has made.";
  static constexpr const char* kWrong = "a thread counts other errors than its launches leave";
  static std::string form() { return "a loop of 40 threads that counts refused launches"; }
  static void expect(int* cells) {
    for (int t = 0; t < 40; ++t) {
      for (int i = 0; i < 6; ++i) {
        if (blocks_of_round(t, i) == 0) {
          ++cells[kSum];
        } else {
          cells[kOther + t] += 1 + i;
        }
      }
    }
  }
#endif
};
struct EndsAtError : Grid<1, 40> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    const int t = static_cast<int>(threadIdx.x);
#pragma unroll 1
    for (int i = 0; i < 6; ++i) {
      add<<<blocks_of_round(t, i), 1>>>(cells + kOther + t, 1 + i);
      if (cudaGetLastError() != cudaSuccess) break;
    }
  }
#else
  static constexpr const char* kSays = CountsErrors::kSays;
  static constexpr const char* kWrong = "a thread goes on after an error, or ends before it";
  static std::string form() { return "a loop of 40 threads that ends at the first refused launch"; }
  static void expect(int* cells) {
    for (int t = 0; t < 40; ++t) {
      for (int i = 0; i < 6 && blocks_of_round(t, i) != 0; ++i) cells[kOther + t] += 1 + i;
    }
  }
#endif
};

// ---- how many launches may wait ----

template <int Count, class Stream>
struct ManyPending : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
#pragma unroll 1
    for (int i = 0; i < Count; ++i) add<<<1, 1, 0, handle>>>(cells + i % 50, 1 + i % 3);
    cells[kSum] = cudaGetLastError();
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "As many launches as the limit of pending launches says may wait: 2048, unless "
      "the host sets another one.";
  static constexpr const char* kWrong = "a launch is refused, or lost, although the limit is not reached";
  static std::string form() { return std::to_string(Count) + " by one thread into " + Stream::kName; }
  static void expect(int* cells) {
    for (int i = 0; i < Count; ++i) cells[i % 50] += 1 + i % 3;
  }
#endif
};

// ---- rows ----

AT_LEVELS(refused_empty, Refused<NullStream, 0>)
AT_LEVELS(refused_empty_thread, Refused<ThreadStream, 0>)
AT_LEVELS(refused_empty_created, Refused<CreatedStream, 0>)
AT_LEVELS(refused_empty_memory, Refused<StreamInMemory, 0>)
AT_LEVELS(refused_empty_tail, Refused<TailStream, 0>)
AT_LEVELS(refused_no_threads, Refused<NullStream, 1>)
AT_LEVELS(refused_row, Refused<NullStream, 2>)
AT_LEVELS(refused_rows, Refused<NullStream, 3>)
AT_LEVELS(refused_layers, Refused<NullStream, 4>)
AT_LEVELS(refused_grid_rows, Refused<NullStream, 5>)
AT_LEVELS(refused_grid_layers, Refused<NullStream, 6>)
AT_LEVELS(errors_of_threads, ErrorsOfThreads)
AT_LEVELS(errors_of_grids, ErrorsOfGrids<NullStream>)
AT_LEVELS(errors_of_grids_created, ErrorsOfGrids<CreatedStream>)
AT_LEVELS(errors_of_grids_tail, ErrorsOfGrids<TailStream>)
AT_LEVELS(no_error_before, NoErrorBefore)
AT_LEVELS(error_of_child, ErrorOfChild)
AT_LEVELS(no_error_null, NothingWrong<NullStream>)
AT_LEVELS(no_error_created, NothingWrong<CreatedStream>)
AT_LEVELS(no_error_forget, NothingWrong<ForgetStream>)
AT_LEVELS(names_of_errors, NamesOfErrors)
AT_LEVELS(counted_errors, CountsErrors)
AT_LEVELS(end_at_error, EndsAtError)
CONTRACT(contract_pending, ByHost, ManyPending<1900, NullStream>)
CONTRACT(contract_pending_child, ByParent, ManyPending<1900, NullStream>)
CONTRACT(contract_pending_forget, ByHost, ManyPending<1900, ForgetStream>)
CONTRACT(contract_pending_forget_child, ByParent, ManyPending<1900, ForgetStream>)
CONTRACT(contract_pending_tail_child, ByParent, ManyPending<1900, TailStream>)

}  // namespace klap::differential::contract::errors
