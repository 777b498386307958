// Calls of the device runtime, beside launches, in kernels that the executor runs and in their parents:
// queries that do the same in every kernel, and the last error after any mix of calls.
//
// The codes are those that an H100 returned with driver 580.
#include "case.h"

#ifdef __CUDACC__

// ---- queries ----

__global__ void any_kernel() {}

// Writes the codes of all queries, and whether they answer as they did where `before` comes from.
__device__ void ask(int* codes, int* answers, const int* before) {
  int value = -1, at = 0;
  size_t bytes = 0;
  cudaFuncAttributes attributes;
  const auto note = [&](cudaError_t code, int answer) {
    codes[at] = code;
    answers[at] = before == nullptr ? answer : answer == before[at];
    ++at;
  };
  note(cudaGetDevice(&value), value);
  note(cudaGetDeviceCount(&value), value);
  note(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), value);
  note(cudaDeviceGetLimit(&bytes, cudaLimitMallocHeapSize), static_cast<int>(bytes));
  note(cudaRuntimeGetVersion(&value), value);
  note(cudaFuncGetAttributes(&attributes, any_kernel), attributes.numRegs);
  note(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, any_kernel, 64, 0), value);
  note(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&value, any_kernel, 32, 0, 0), value);
  note(cudaSuccess, cudaGetErrorString(cudaErrorInvalidValue)[0]);
  note(cudaSuccess, cudaGetErrorName(cudaErrorInvalidValue)[4]);
}

// A tree in the order of its nodes: each one asks, and counts those before it without atomics.
__global__ void ask_in_tree(int* codes, int* answers, const int* before, int* nodes, int depth) {
  const int node = (*nodes)++;
  ask(codes + 10 * node, answers + 10 * node, before);
  if (depth == 0) return;
  ask_in_tree<<<1, 1>>>(codes, answers, before, nodes, depth - 1);
  ask_in_tree<<<1, 1>>>(codes, answers, before, nodes, depth - 1);
}
extern "C" __global__ void begin_asking(int* codes, int* answers, int* nodes, int* before) {
  ask(codes, before, nullptr);
  ask_in_tree<<<1, 1>>>(codes, answers, before, nodes, 3);
  ask_in_tree<<<1, 1>>>(codes, answers, before, nodes, 2);
}

// ---- the last error ----

__global__ void count_one(int* count) { ++*count; }

// Values that CUDA refuses, and that no compiler sees.
struct Wrong {
  int grid, block;
  cudaStream_t stream;
};

// Calls that fail and calls that do not, and the error that is then there.
__device__ void fail_often(int* errors, int* count, Wrong wrong) {
  int value = 0;
  size_t bytes = 0;
  errors[0] = cudaPeekAtLastError();
  count_one<<<wrong.grid, 1>>>(count);
  errors[1] = cudaPeekAtLastError();
  errors[2] = cudaPeekAtLastError();
  errors[3] = cudaGetLastError();
  errors[4] = cudaGetLastError();
  count_one<<<wrong.grid, 1>>>(count);
  errors[5] = cudaGetDevice(&value);
  count_one<<<1, 1>>>(count);
  errors[6] = cudaPeekAtLastError();
  errors[7] = cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 7);
  errors[8] = cudaPeekAtLastError();
  count_one<<<1, wrong.block>>>(count);
  errors[9] = cudaPeekAtLastError();
  cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0);
  errors[10] = cudaGetLastError();
  errors[11] = cudaDeviceGetLimit(&bytes, cudaLimitDevRuntimeSyncDepth);
  errors[12] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, any_kernel, 0, 0);
  errors[13] = cudaGetLastError();
  errors[14] = cudaStreamDestroy(wrong.stream);
  errors[15] = cudaPeekAtLastError();
  count_one<<<1, 1>>>(count);
  errors[16] = cudaGetLastError();
  errors[17] = cudaGetLastError();
}

__global__ void fail_in_tree(int* errors, int* nodes, int* count, Wrong wrong, int depth) {
  const int node = (*nodes)++;
  fail_often(errors + 18 * node, count, wrong);
  if (depth == 0) return;
  fail_in_tree<<<1, 1>>>(errors, nodes, count, wrong, depth - 1);
  fail_in_tree<<<1, 1>>>(errors, nodes, count, wrong, depth - 1);
}
extern "C" __global__ void begin_failing(int* errors, int* nodes, int* count, Wrong wrong) {
  if (threadIdx.x != 0) return;
  fail_often(errors, count, wrong);
  fail_in_tree<<<1, 1>>>(errors, nodes, count, wrong, 3);
}

// A child that launches nothing and whose threads run after threads that have left an error behind.
__global__ void leave_error(int* count, int sizes) { count_one<<<sizes, 1>>>(count); }
__global__ void expect_none(int* errors) { errors[threadIdx.x] = cudaGetLastError(); }
__global__ void expect_own(int* errors, int device) {
  int value = 0;
  cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device);
  errors[threadIdx.x] = cudaPeekAtLastError();
}
extern "C" __global__ void errors_of_others(int* errors, int* count) {
  for (int i = 0; i < 4; ++i) {
    leave_error<<<1, 40>>>(count, 0);
    expect_none<<<1, 40>>>(errors + 80 * i);
    leave_error<<<1, 40>>>(count, 0);
    expect_own<<<1, 40>>>(errors + 80 * i + 40, 1000 * (i % 2));  // no machine has as many devices
  }
}

#else

namespace {

using klap::differential::Builder;

void executed(Builder& c, const char* parent, const char* on_device, const char* by_warp) {
  c.left_on_device(parent, on_device);
  c.by_warp(by_warp);
}

constexpr int kTreeOf3 = 15, kTreeOf2 = 7;  // nodes

}  // namespace

KLAP_CASE(executed_queries, "a query of the device has another answer in a kernel that the executor runs") {
  constexpr size_t kNodes = kTreeOf3 + kTreeOf2, kQueries = 10;
  const auto codes =
      c.buffer("codes", std::vector<int>(kNodes * kQueries, -1), std::vector<int>(kNodes * kQueries));
  const auto answers =
      c.buffer("answers", std::vector<int>(kNodes * kQueries), std::vector<int>(kNodes * kQueries, 1));
  const auto nodes = c.buffer("nodes", std::vector<int>{0}, std::vector<int>{kNodes});
  const auto before = c.buffer("before", std::vector<int>(kQueries), std::vector<int>());
  c.launch("begin_asking", {1, 1, 1}, {1, 1, 1}, c.address(codes), c.address(answers), c.address(nodes),
           c.address(before));
  executed(c, "begin_asking", "runtime-call", "child-launches");
}

KLAP_CASE(executed_errors, "the last error is not that of the last call that failed") {
  const std::vector<int> of_node = {0, 9, 9, 9, 0, 0, 9, 101, 101, 9, 1, 215, 1, 0, 1, 1, 1, 0};
  std::vector<int> errors;
  for (int node = 0; node <= kTreeOf3; ++node) errors.insert(errors.end(), of_node.begin(), of_node.end());
  const auto of_errors = c.buffer("errors", std::vector<int>(errors.size(), -1), errors);
  const auto nodes = c.buffer("nodes", std::vector<int>{1}, std::vector<int>{1 + kTreeOf3});
  const auto count = c.buffer("count", std::vector<int>(1), std::vector<int>{2 * (1 + kTreeOf3)});
  struct {
    int grid = 0, block = 2000;
    uint64_t stream = 0;
  } const wrong;
  c.launch("begin_failing", {1, 1, 1}, {32, 1, 1}, c.address(of_errors), c.address(nodes), c.address(count),
           wrong);
  executed(c, "begin_failing", "runtime-call", "some");
}

KLAP_CASE(executed_errors_of_others,
          "a thread sees an error of another thread, which a block ran before it") {
  std::vector<int> errors;
  for (size_t i = 0; i < 4; ++i) {
    errors.insert(errors.end(), 40, 0);
    errors.insert(errors.end(), 40, i % 2 == 0 ? 0 : 101);
  }
  const auto of_errors = c.buffer("errors", std::vector<int>(errors.size(), -1), errors);
  const auto count = c.buffer("count", std::vector<int>(1), std::vector<int>(1));
  c.launch("errors_of_others", {1, 1, 1}, {1, 1, 1}, c.address(of_errors), c.address(count));
  executed(c, "errors_of_others", "child-launches", "child-launches");
}

#endif
