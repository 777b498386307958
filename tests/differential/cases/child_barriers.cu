// Children with barriers, static and dynamic shared memory, warp operations, and early exits before barriers.
#include "case.h"

constexpr int kThreads = 16;
constexpr int kBlock = 64;

#ifdef __CUDACC__

__global__ void reverse(int* cells) {
  __shared__ int held[kBlock];
  held[threadIdx.x] = cells[threadIdx.x];
  __syncthreads();
  cells[threadIdx.x] = held[kBlock - 1 - threadIdx.x];
}
__global__ void rotate(int* cells) {
  extern __shared__ int moved[];
  moved[threadIdx.x] = cells[threadIdx.x];
  __syncthreads();
  cells[threadIdx.x] = moved[(threadIdx.x + 1) % blockDim.x];
}
__global__ void count_after_exit(int* cells, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  atomicAdd(cells, 1);
  __syncthreads();
  if (threadIdx.x == 0) cells[1] = *cells * 2;
}
__global__ void sum_warp(int* cells) {
  int sum = cells[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  __syncwarp();
  cells[threadIdx.x] = sum;
}

extern "C" __global__ void reverse_parent(int* cells) {
  reverse<<<1, kBlock>>>(cells + threadIdx.x * kBlock);
}
extern "C" __global__ void rotate_parent(int* cells) {
  rotate<<<1, kBlock, kBlock * sizeof(int)>>>(cells + threadIdx.x * kBlock);
}
extern "C" __global__ void exits_parent(int* cells) {
  count_after_exit<<<1, kBlock>>>(cells + threadIdx.x * kBlock, static_cast<int>(threadIdx.x) * 4 + 1);
}
extern "C" __global__ void warp_parent(int* cells) { sum_warp<<<1, kBlock>>>(cells + threadIdx.x * kBlock); }

#else

namespace {

int start_of(int i) { return i * 3 % 17; }

template <class Expected>
void of_child(klap::differential::Builder& c, const char* parent, const char* reason,
              const Expected& expected_of) {
  std::vector<int> before, after;
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kBlock; ++i) {
      before.push_back(start_of(t * kBlock + i));
      after.push_back(expected_of(t, i));
    }
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch(parent, {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  c.left(parent, reason);
}

}  // namespace

KLAP_CASE(child_barrier, "threads of a child's block pass a barrier that others have not reached") {
  of_child(c, "reverse_parent", "child-shared-memory",
           [](int t, int i) { return start_of(t * kBlock + kBlock - 1 - i); });
}
KLAP_CASE(child_dynamic_shared, "a child's dynamic shared memory is too small or another child's") {
  of_child(c, "rotate_parent", "dynamic-shared-memory",
           [](int t, int i) { return start_of(t * kBlock + (i + 1) % kBlock); });
  c.by_warp("child-shared-memory");
}
KLAP_CASE(child_exits_before_barrier,
          "a barrier waits for threads that have left, or not for those that stay") {
  of_child(c, "exits_parent", "child-barrier", [](int t, int i) {
    const int sum = start_of(t * kBlock) + t * 4 + 1;
    return i == 0 ? sum : i == 1 ? 2 * sum : start_of(t * kBlock + i);
  });
  c.by_warp("rewritten");
}
KLAP_CASE(child_shuffle, "lanes of a child shuffle with those of another child") {
  of_child(c, "warp_parent", "child-warp-sync", [](int t, int i) {
    int sum = 0;
    for (int lane = 0; lane < 32; ++lane) sum += start_of(t * kBlock + i / 32 * 32 + lane);
    return sum;
  });
  c.by_warp("rewritten");
}

#endif
