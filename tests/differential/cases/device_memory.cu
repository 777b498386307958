// Device memory that parents take and give back beside their launches; children use it, and a later kernel
// frees it.
#include "case.h"

constexpr int kThreads = 96;

#ifdef __CUDACC__

__global__ void fill(int* const* memory, int t, int n) {
  if (static_cast<int>(threadIdx.x) < n) memory[t][threadIdx.x] = t + static_cast<int>(threadIdx.x);
}
__global__ void set(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}

extern "C" __global__ void malloc_parent(int** memory) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = t % 8 + 1;
  memory[t] = static_cast<int*>(malloc(n * sizeof(int)));
  if (memory[t] != nullptr) fill<<<1, 32>>>(memory, t, n);
}
extern "C" __global__ void cuda_malloc_parent(int** memory) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = t % 8 + 1;
  cudaMalloc(reinterpret_cast<void**>(memory + t), n * sizeof(int));
  fill<<<1, 32>>>(memory, t, n);
}
extern "C" __global__ void sum_and_free(int** memory, int* sums) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < t % 8 + 1; ++i) sums[t] += memory[t][i];
  free(memory[t]);
  memory[t] = nullptr;
}
extern "C" __global__ void sum_and_cuda_free(int** memory, int* sums) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < t % 8 + 1; ++i) sums[t] += memory[t][i];
  cudaFree(memory[t]);
  memory[t] = nullptr;
}

// Memory for the parent's own use, given back before the launch or behind it.
__device__ int* scratch(int t) {
  auto* values = static_cast<int*>(malloc(4 * sizeof(int)));
  for (int i = 0; i < 4; ++i) values[i] = (t * 7 + i * 3) % 11;
  return values;
}
extern "C" __global__ void free_first_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int* values = scratch(t);
  const int value = values[t % 4];
  free(values);
  set<<<1, 32>>>(cells + t, value);
}
extern "C" __global__ void free_later_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int* values = scratch(t);
  set<<<1, 32>>>(cells + t, values[t % 4]);
  free(values);
}

#else

namespace {

template <class Expected>
std::vector<int> numbers(const Expected& expected_of) {
  std::vector<int> out;
  for (int t = 0; t < kThreads; ++t) out.push_back(expected_of(t));
  return out;
}

void freed_later(klap::differential::Builder& c, const char* parent, const char* after) {
  const auto memory = c.buffer("memory", std::vector<uint64_t>(kThreads), std::vector<uint64_t>(kThreads));
  const auto sums = c.buffer("sums", std::vector<int>(kThreads), numbers([](int t) {
                               const int n = t % 8 + 1;
                               return n * t + n * (n - 1) / 2;
                             }));
  c.launch(parent, {2, 1, 1}, {kThreads / 2, 1, 1}, c.address(memory));
  c.launch(after, {2, 1, 1}, {kThreads / 2, 1, 1}, c.address(memory), c.address(sums));
  c.rewritten(parent);
}
int scratched(int t) { return (t * 7 + t % 4 * 3) % 11; }

}  // namespace

KLAP_CASE(device_malloc, "a child does not get the memory that its thread took for it") {
  freed_later(c, "malloc_parent", "sum_and_free");
  c.children_never_meet();
}
KLAP_CASE(device_cuda_malloc, "a child does not get the memory that cudaMalloc gave its thread") {
  freed_later(c, "cuda_malloc_parent", "sum_and_cuda_free");
  c.children_never_meet();
}
KLAP_CASE(device_free_before, "memory is freed before the launch that depends on it") {
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), numbers(scratched));
  c.launch("free_first_parent", {2, 1, 1}, {kThreads / 2, 1, 1}, c.address(cells));
  c.rewritten("free_first_parent");
}
KLAP_CASE(device_free_after, "memory is freed that a child may use") {
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), numbers(scratched));
  c.launch("free_later_parent", {2, 1, 1}, {kThreads / 2, 1, 1}, c.address(cells));
  c.left("free_later_parent", "parent-frees");
  c.by_warp("rewritten");
}

#endif
