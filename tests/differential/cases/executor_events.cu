// Events in kernels that the executor runs and in their parents: streams that wait for what was in another
// stream when an event was recorded, with all that it launched.
//
// The codes are those that an H100 returned with driver 580.
#include "case.h"

KLAP_SHARED static inline int next_value(int value) {
  return static_cast<int>((value * 1103515245u + 12345u) >> 3);
}

#ifdef __CUDACC__

constexpr unsigned kNoTiming = cudaEventDisableTiming;

__global__ void step_cell(int* cell, int times) {
  for (int i = 0; i < times; ++i) *cell = next_value(*cell);
}
// What a grid leaves is only complete with its subtree.
__global__ void step_tree(int* cell, int depth) {
  step_cell<<<1, 1>>>(cell, 1 + depth);
  if (depth > 0) step_tree<<<1, 1>>>(cell, depth - 1);
  step_cell<<<1, 1>>>(cell, 2);
}
__global__ void mix(int* to, const int* a, const int* b) { *to = next_value(*to + 3 * *a + 7 * *b); }

// Two streams that wait for each other in turns, and a third one for both.
__device__ void by_turns(int* cells, int* codes, int rounds) {
  cudaStream_t a, b, both;
  cudaEvent_t of_a, of_b;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&both, cudaStreamNonBlocking);
  codes[0] = cudaEventCreateWithFlags(&of_a, kNoTiming);
  codes[1] = cudaEventCreateWithFlags(&of_b, kNoTiming);
  codes[2] = cudaStreamWaitEvent(a, of_b, 0);  // never recorded
  for (int i = 0; i < rounds; ++i) {
    step_tree<<<1, 1, 0, a>>>(cells, i % 3);
    codes[3] = cudaEventRecord(of_a, a);
    codes[4] = cudaStreamWaitEvent(b, of_a, 0);
    mix<<<1, 1, 0, b>>>(cells + 1, cells, cells + 1);
    cudaEventRecord(of_b, b);
    cudaStreamWaitEvent(both, of_b, 0);
    cudaStreamWaitEvent(a, of_b, 0);
    mix<<<1, 1, 0, both>>>(cells + 2, cells, cells + 1);
    cudaEventRecord(of_a, both);
    cudaStreamWaitEvent(a, of_a, 0);
  }
  codes[5] = cudaEventDestroy(of_a);
  cudaEventDestroy(of_b);
  cudaStreamDestroy(a);
  cudaStreamDestroy(b);
  cudaStreamDestroy(both);
}
__global__ void turns_in_child(int* cells, int* codes, int depth) {
  by_turns(cells, codes, 5);
  if (depth > 0) turns_in_child<<<1, 1>>>(cells + 4, codes + 8, depth - 1);
}
extern "C" __global__ void begin_turns(int* cells, int* codes) {
  by_turns(cells, codes, 3);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  turns_in_child<<<1, 1, 0, stream>>>(cells + 4, codes + 8, 2);
  cudaStreamDestroy(stream);
}

// Threads with a stream of their own, which wait for the block's stream, and the block's stream for them.
__global__ void of_threads(int* cells, int depth) {
  const int i = static_cast<int>(threadIdx.x);
  __shared__ cudaEvent_t events[33];
  cudaEventCreateWithFlags(events + i, kNoTiming);
  if (i == 0) {
    cudaEventCreateWithFlags(events + 32, kNoTiming);
    step_tree<<<1, 1>>>(cells, 2);
    cudaEventRecord(events[32], nullptr);
  }
  __syncthreads();
  cudaStreamWaitEvent(cudaStreamPerThread, events[32], 0);
  mix<<<1, 1, 0, cudaStreamPerThread>>>(cells + 1 + i, cells, cells);
  cudaEventRecord(events[i], cudaStreamPerThread);
  __syncthreads();
  if (i != 0) return;
  for (int j = 0; j < 32; ++j) {
    cudaStreamWaitEvent(nullptr, events[j], 0);
    mix<<<1, 1>>>(cells + 33, cells + 1 + j, cells);
  }
  for (int j = 0; j < 33; ++j) cudaEventDestroy(events[j]);
  if (depth > 0) of_threads<<<1, 32>>>(cells + 34, depth - 1);
}
extern "C" __global__ void begin_threads(int* cells) { of_threads<<<1, 32>>>(cells, 2); }

// Launches that are apart, in the block's stream, and another stream that waits for all of them.
__global__ void step_own(int* cells, int number) { cells[number] = next_value(cells[number]); }
__global__ void sum_cells(int* cells, int count) {
  for (int i = 0; i < count; ++i) cells[count] = next_value(cells[count] + cells[i]);
}
extern "C" __global__ void forks_and_event(int* cells, int rounds) {
  step_own<<<1, 1>>>(cells, static_cast<int>(threadIdx.x));
  __syncthreads();
  if (threadIdx.x != 0) return;
  cudaStream_t stream;
  cudaEvent_t event;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&event, kNoTiming);
  cudaEventRecord(event, nullptr);
  cudaStreamWaitEvent(stream, event, 0);
  sum_cells<<<1, 1, 0, stream>>>(cells, 32);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
  if (rounds > 1) forks_and_event<<<1, 32, 0, cudaStreamTailLaunch>>>(cells, rounds - 1);
}

// More events than there is room for at a time, each of which waits for the one before.
__global__ void many_events(int* cells, int count) {
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, kNoTiming);
  for (int i = 0; i < count; ++i) {
    cudaStreamWaitEvent(streams[i % 2], event, 0);
    step_cell<<<1, 1, 0, streams[i % 2]>>>(cells, 1);
    cudaEventRecord(event, streams[i % 2]);
  }
  cudaEventDestroy(event);
  for (const cudaStream_t stream : streams) cudaStreamDestroy(stream);
}
extern "C" __global__ void begin_many_events(int* cells) {
  many_events<<<1, 1>>>(cells, 70);
  many_events<<<1, 1>>>(cells, 50);
}

__device__ void refuse_events(int* codes, cudaEvent_t wrong, cudaStream_t none) {
  cudaEvent_t event;
  codes[0] = cudaEventCreateWithFlags(&event, 0);
  codes[1] = cudaEventCreateWithFlags(&event, kNoTiming | cudaEventInterprocess);
  codes[2] = cudaEventCreateWithFlags(&event, kNoTiming | cudaEventBlockingSync);
  codes[3] = cudaGetLastError();
  codes[4] = cudaEventRecord(event, cudaStreamTailLaunch);
  codes[5] = cudaEventRecord(event, cudaStreamFireAndForget);
  codes[6] = cudaStreamWaitEvent(cudaStreamTailLaunch, event, 0);
  codes[7] = cudaStreamWaitEvent(cudaStreamFireAndForget, event, 0);
  codes[8] = cudaEventRecord(wrong, nullptr);
  codes[9] = cudaGetLastError();
  codes[10] = cudaEventDestroy(event);
  codes[11] = cudaGetLastError();
}
__global__ void refused_in_child(int* codes, cudaEvent_t wrong, cudaStream_t none) {
  refuse_events(codes, wrong, none);
}
extern "C" __global__ void refused_events(int* codes, cudaEvent_t wrong, cudaStream_t none) {
  refuse_events(codes, wrong, none);
  refused_in_child<<<1, 1>>>(codes + 12, wrong, none);
}

#else

namespace {

using klap::differential::Builder;

void executed(Builder& c, const char* parent, const char* on_device, const char* by_warp) {
  c.left_on_device(parent, on_device);
  c.by_warp(by_warp);
}

void step_cell(int* cell, int times) {
  for (int i = 0; i < times; ++i) *cell = next_value(*cell);
}
void step_tree(int* cell, int depth) {
  step_cell(cell, 1 + depth);
  if (depth > 0) step_tree(cell, depth - 1);
  step_cell(cell, 2);
}
void mix(int* to, const int* a, const int* b) {
  *to = static_cast<int>(
      (static_cast<unsigned>(*to) + 3U * static_cast<unsigned>(*a) + 7U * static_cast<unsigned>(*b)));
  *to = next_value(*to);
}
void by_turns(int* cells, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    step_tree(cells, i % 3);
    mix(cells + 1, cells, cells + 1);
    mix(cells + 2, cells, cells + 1);
  }
}

}  // namespace

KLAP_CASE(executed_events, "a stream does not wait for an event, or for the subtree of a grid before it") {
  std::vector<int> cells(16, 3), codes(8 * 4, -1);
  const std::vector<int> before = cells, none = codes;
  by_turns(cells.data(), 3);
  for (size_t i = 1; i < 4; ++i) by_turns(cells.data() + 4 * i, 5);
  for (size_t i = 0; i < codes.size(); ++i) {
    if (i % 8 < 6) codes[i] = 0;
  }
  const auto of_cells = c.buffer("cells", before, cells);
  const auto of_codes = c.buffer("codes", none, codes);
  c.launch("begin_turns", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), c.address(of_codes));
  executed(c, "begin_turns", "runtime-call", "stream-unsupported");
}

KLAP_CASE(executed_events_of_threads,
          "the streams of threads and of their block do not wait for each other") {
  std::vector<int> cells(3 * 34, 5);
  const std::vector<int> before = cells;
  for (size_t at = 0; at < cells.size(); at += 34) {
    int* const of = cells.data() + at;
    step_tree(of, 2);
    for (int i = 0; i < 32; ++i) mix(of + 1 + i, of, of);
    for (int i = 0; i < 32; ++i) mix(of + 33, of + 1 + i, of);
  }
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("begin_threads", {1, 1, 1}, {1, 1, 1}, c.address(of_cells));
  executed(c, "begin_threads", "child-launches", "child-launches");
}

KLAP_CASE(forks_and_event, "an event does not stand for all launches before it in the block's stream") {
  std::vector<int> cells(33, 11);
  const std::vector<int> before = cells;
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < 32; ++i) cells[i] = next_value(cells[i]);
    for (size_t i = 0; i < 32; ++i) cells[32] = next_value(cells[32] + cells[i]);
  }
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("forks_and_event", {1, 1, 1}, {32, 1, 1}, c.address(of_cells), 3);
  executed(c, "forks_and_event", "runtime-call", "stream-unsupported");
}

KLAP_CASE(executed_many_events, "a record of an event has the state of an earlier one, or loses it") {
  std::vector<int> cells(1, 9);
  const std::vector<int> before = cells;
  step_cell(cells.data(), 120);
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("begin_many_events", {1, 1, 1}, {1, 1, 1}, c.address(of_cells));
  executed(c, "begin_many_events", "child-launches", "child-launches");
}

KLAP_CASE(executed_refused_events, "a call for an event that CUDA refuses succeeds, or has another error") {
  std::vector<int> codes = {1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0};
  codes.reserve(24);
  for (size_t i = 0; i < 12; ++i) codes.push_back(codes[i]);
  const auto of_codes = c.buffer("codes", std::vector<int>(24, -1), codes);
  const auto memory = c.input("memory", std::vector<int>(64));
  c.launch("refused_events", {1, 1, 1}, {1, 1, 1}, c.address(of_codes), c.address(memory), c.address(memory));
  executed(c, "refused_events", "runtime-call", "child-launches");
}

#endif
