// The contract of CUDA's device runtime, as a table of statements and forms (contract.md). A row is one case.
//
// A statement is a struct. Its run() is the code of a launching grid, and its expect() does to the cells on
// the host what that grid and all that it launches must do. Statements are templates of the stream that they
// launch into. A level says who launches the grid: the host, or other grids. So the same statement is tested
// where a parent begins and in the middle of a tree of grids.
//
// Most kernels write into a log, one entry behind the other and without atomics. Two that overlap, or that
// run in another order, leave another log.
#pragma once

#include "case.h"

#ifndef __CUDACC__
#include <string>
#include <vector>
#endif

namespace klap::differential::contract {

constexpr int kCells = 256;       // of one grid that runs a statement
constexpr int kHandleCell = 250;  // where a stream's handle stands while it is in use
constexpr int kSum = 64;          // a cell that no log reaches
constexpr int kOther = 128;       // where a second log begins

// ---- operations of kernels and of the reference ----

// An entry of the log, whose first word counts them.
KLAP_SHARED inline void note(int* log, int value) {
  const int entries = *log;
  log[1 + entries] = value;
  *log = entries + 1;
}
// An update that has another result in another order.
KLAP_SHARED inline void fold(int* cell, int value) { *cell = (*cell * 3 + value) & 0xffff; }

// The size of a statement's grid: one thread, unless it says otherwise.
template <int Blocks, int Threads>
struct Grid {
  static constexpr int kBlocks = Blocks, kThreads = Threads;
#ifndef __CUDACC__
  static void set(int*) {}  // the cells before
#endif
};

// ---- streams ----

#ifdef __CUDACC__

__device__ inline cudaStream_t create() {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  return stream;
}
static __device__ __noinline__ cudaStream_t create_in_function() { return create(); }

// A stream is opened by the thread that launches into it. Handles in memory stand among the statement's
// cells.
struct NullStream {
  __device__ cudaStream_t open(int*) { return nullptr; }
  __device__ void close() {}
};
struct ThreadStream {
  __device__ cudaStream_t open(int*) { return cudaStreamPerThread; }
  __device__ void close() {}
};
struct ForgetStream {
  __device__ cudaStream_t open(int*) { return cudaStreamFireAndForget; }
  __device__ void close() {}
};
struct TailStream {
  __device__ cudaStream_t open(int*) { return cudaStreamTailLaunch; }
  __device__ void close() {}
};
struct CreatedStream {
  cudaStream_t stream;
  __device__ cudaStream_t open(int*) { return stream = create(); }
  __device__ void close() { cudaStreamDestroy(stream); }
};
struct FunctionStream {
  cudaStream_t stream;
  __device__ cudaStream_t open(int*) { return stream = create_in_function(); }
  __device__ void close() { cudaStreamDestroy(stream); }
};
struct StreamInMemory {
  volatile unsigned long long* place;
  __device__ cudaStream_t open(int* cells) {
    place = reinterpret_cast<volatile unsigned long long*>(cells + kHandleCell);
    *place = reinterpret_cast<unsigned long long>(create());
    return reinterpret_cast<cudaStream_t>(*place);
  }
  __device__ void close() {
    cudaStreamDestroy(reinterpret_cast<cudaStream_t>(*place));
    *place = 0;
  }
};
struct StreamInShared {
  __device__ static cudaStream_t& place() {
    __shared__ cudaStream_t stream;
    return stream;
  }
  __device__ cudaStream_t open(int*) {
    place() = create();
    __threadfence_block();
    return place();
  }
  __device__ void close() { cudaStreamDestroy(place()); }
};
// One of several handles, which memory chooses: the cell of a handle is 0 unless the statement sets it.
template <int Choice>
struct ChosenStream {
  cudaStream_t stream;
  __device__ cudaStream_t open(int* cells) {
    stream = create();
    const cudaStream_t all[] = {stream, nullptr, cudaStreamPerThread, cudaStreamTailLaunch,
                                cudaStreamFireAndForget};
    return all[(Choice + *static_cast<volatile int*>(cells + kHandleCell)) % 5];
  }
  __device__ void close() { cudaStreamDestroy(stream); }
};

#else

#define KLAP_STREAM(name, text)                \
  struct name {                                \
    static constexpr const char* kName = text; \
  };
KLAP_STREAM(NullStream, "the NULL stream")
KLAP_STREAM(ThreadStream, "the per-thread stream")
KLAP_STREAM(ForgetStream, "fire-and-forget")
KLAP_STREAM(TailStream, "the tail stream")
KLAP_STREAM(CreatedStream, "a created stream")
KLAP_STREAM(FunctionStream, "a stream that a function creates")
KLAP_STREAM(StreamInMemory, "a created stream, its handle in memory")
KLAP_STREAM(StreamInShared, "a created stream, its handle in shared memory")
template <int Choice>
struct ChosenStream {
  static constexpr const char* kNames[] = {"a created stream", "the NULL stream", "the per-thread stream",
                                           "the tail stream", "fire-and-forget"};
  static inline const std::string kName = std::string(kNames[Choice]) + ", its handle chosen at run time";
};

#endif

// ---- levels ----

#ifdef __CUDACC__

template <class Statement>
__global__ void launching(int* cells) {
  Statement::run(cells);
}
template <class Statement>
__device__ __forceinline__ void launch_statement(int* cells, cudaStream_t stream = nullptr) {
  launching<Statement><<<Statement::kBlocks, Statement::kThreads, 0, stream>>>(cells);
}
template <class Statement, int Depth>
__global__ void deeper(int* cells) {
  if constexpr (Depth == 0) {
    launch_statement<Statement>(cells);
  } else {
    deeper<Statement, Depth - 1><<<1, 1>>>(cells);
  }
}

#endif

// The host launches the statement's grid.
struct ByHost {
  static constexpr int kTimes = 1, kInstances = 1;
  static constexpr const char* kName = "by a grid of the host";
#ifdef __CUDACC__
  template <class Statement>
  static __device__ void begin(int* cells) {
    Statement::run(cells);
  }
#endif
};

// A level of which the host launches a grid of `Blocks` blocks of `Threads` threads.
template <int Blocks, int Threads, int Times, int Instances>
struct Above {
  static constexpr int kBlocks = Blocks, kThreads = Threads, kTimes = Times, kInstances = Instances;
};
struct ByParent : Above<1, 1, 1, 1> {
  static constexpr const char* kName = "by a child";
#ifdef __CUDACC__
  template <class Statement>
  static __device__ void begin(int* cells) {
    launch_statement<Statement>(cells);
  }
#endif
};
// The second one must find all that the first one leads to.
struct Twice : Above<1, 1, 2, 1> {
  static constexpr const char* kName = "by two children, one behind the other";
#ifdef __CUDACC__
  template <class Statement>
  static __device__ void begin(int* cells) {
    launch_statement<Statement>(cells);
    launch_statement<Statement>(cells);
  }
#endif
};
struct AtTheEnd : Above<1, 1, 2, 1> {
  static constexpr const char* kName = "by two tail launches";
#ifdef __CUDACC__
  template <class Statement>
  static __device__ void begin(int* cells) {
    launch_statement<Statement>(cells, cudaStreamTailLaunch);
    launch_statement<Statement>(cells, cudaStreamTailLaunch);
  }
#endif
};
struct Deep : Above<1, 1, 1, 1> {
  static constexpr const char* kName = "four levels below the host's grid";
#ifdef __CUDACC__
  template <class Statement>
  static __device__ void begin(int* cells) {
    deeper<Statement, 2><<<1, 1>>>(cells);
  }
#endif
};
// Many at the same time, each with cells of its own.
struct ByBlocks : Above<5, 2, 1, 10> {
  static constexpr const char* kName = "by ten children of five blocks at the same time";
#ifdef __CUDACC__
  template <class Statement>
  static __device__ void begin(int* cells) {
    launch_statement<Statement>(cells + kCells * (2 * blockIdx.x + threadIdx.x), cudaStreamFireAndForget);
  }
#endif
};

// ---- rows ----

#ifdef __CUDACC__

#define CONTRACT(name, level, ...)                                             \
  extern "C" __global__ void name##_parent(int* cells) {                       \
    ::klap::differential::contract::level::template begin<__VA_ARGS__>(cells); \
  }

#else

inline constexpr const char* kExecutor = "+executor";

template <class Level, class Statement>
void fill_row(Builder& c, const std::string& parent) {
  std::vector<int> before(size_t{kCells} * Level::kInstances);
  for (size_t i = 0; i < before.size(); i += kCells) Statement::set(before.data() + i);
  std::vector<int> after = before;
  for (size_t i = 0; i < after.size(); i += kCells) {
    for (int time = 0; time < Level::kTimes; ++time) Statement::expect(after.data() + i);
  }
  uint32_t blocks = Statement::kBlocks, threads = Statement::kThreads;
  if constexpr (requires { Level::kBlocks; }) blocks = Level::kBlocks, threads = Level::kThreads;
  c.launch(parent, {blocks, 1, 1}, {threads, 1, 1}, c.address(c.buffer("cells", before, after)));
  c.contract(Statement::kSays, Statement::form() + "; " + Level::kName);
  c.setting("KLAP_OPTIMISE", kExecutor);
}

#define CONTRACT(name, level, ...)                    \
  KLAP_CASE(name, (__VA_ARGS__::kWrong)) {            \
    using namespace ::klap::differential::contract;   \
    fill_row<level, __VA_ARGS__>(c, #name "_parent"); \
  }

#endif

// A statement in the two forms that all have: a grid of the host, and two grids in a stream of the device.
#define AT_LEVELS(name, ...)                     \
  CONTRACT(contract_##name, ByHost, __VA_ARGS__) \
  CONTRACT(contract_##name##_twice, Twice, __VA_ARGS__)

}  // namespace klap::differential::contract
