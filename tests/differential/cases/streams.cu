// The streams a device launch can name: fire-and-forget, per-thread, created, tail launch.
#include "case.h"

constexpr int kThreads = 128;

#ifdef __CUDACC__

__global__ void set(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}
__global__ void twice(int* cell) {
  if (threadIdx.x == 0) *cell *= 2;
}

extern "C" __global__ void forget_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  set<<<1, 32, 0, cudaStreamFireAndForget>>>(cells + t, t + 1);
}
extern "C" __global__ void per_thread_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  set<<<1, 32, 0, cudaStreamPerThread>>>(cells + t, t + 2);
}
extern "C" __global__ void created_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  set<<<1, 32, 0, stream>>>(cells + t, t + 3);
  twice<<<1, 32, 0, stream>>>(cells + t);
  cudaStreamDestroy(stream);
}
// The child runs after the parent, whatever the parent does after launching it.
extern "C" __global__ void tail_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cells[t] = 1;
  if (t == 0) twice<<<1, 32, 0, cudaStreamTailLaunch>>>(cells);
  cells[t] = 21;
}
// Tail launches of one grid run after its other children.
extern "C" __global__ void tail_after_children(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t == 0) twice<<<1, 32, 0, cudaStreamTailLaunch>>>(cells);
  if (t == 64) set<<<1, 32, 0, cudaStreamFireAndForget>>>(cells, 50);
}

#else

namespace {

template <class Expected>
void one_stream(klap::differential::Builder& c, const char* parent, const Expected& expected_of) {
  std::vector<int> expected;
  for (int t = 0; t < kThreads; ++t) expected.push_back(expected_of(t));
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), expected);
  c.launch(parent, {2, 1, 1}, {64, 1, 1}, c.address(cells));
}

}  // namespace

KLAP_CASE(fire_and_forget, "a launch into the fire-and-forget stream is lost") {
  c.contract(
      "Each fire-and-forget launch runs once, in no order, and the grid that launched it is complete behind "
      "it.",
      "one by each thread of two blocks, cells apart");
  one_stream(c, "forget_parent", [](int t) { return t + 1; });
  c.rewritten("forget_parent");
}
KLAP_CASE(per_thread, "a launch into the per-thread stream is lost") {
  c.contract("Every thread has a stream of its own, which keeps the order of its launches.",
             "one launch by each thread of two blocks");
  one_stream(c, "per_thread_parent", [](int t) { return t + 2; });
  c.rewritten("per_thread_parent");
}
KLAP_CASE(created_stream, "two launches into a created stream are not run in order") {
  c.contract(
      "A grid begins when the grid that its thread launched before it into the same stream is complete.",
      "two launches into a stream of each thread");
  one_stream(c, "created_parent", [](int t) { return 2 * (t + 3); });
  c.rewritten("created_parent");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(tail_launch, "a tail launch runs before its grid is done") {
  c.contract(
      "A tail launch begins when all threads of its grid have ended, wherever they are when it is launched.",
      "the grid writes before and behind the launch");
  one_stream(c, "tail_parent", [](int t) { return t == 0 ? 42 : 21; });
  c.left_on_device("tail_parent", "stream-unsupported");
  c.by_warp("stream-unsupported");
}
KLAP_CASE(tail_after_children, "a tail launch runs before the other children of its grid are done") {
  c.contract(
      "A tail launch begins when all grids are complete that its grid launches into other streams, before or "
      "after it, with their descendants.",
      "fire-and-forget by another warp");
  one_stream(c, "tail_after_children", [](int t) { return t == 0 ? 100 : 0; });
  c.left_on_device("tail_after_children", "stream-unsupported");
  c.by_warp("some");
}

#endif
