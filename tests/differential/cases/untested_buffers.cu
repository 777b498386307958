// Launches whose code does not ask whether there is a buffer for the arguments, as CUDA.jl writes them, and
// people by hand. Natively a launch that CUDA refuses ends such a program, so none is refused here.
#include "case.h"

constexpr int kThreads = 96;  // of a parent's grid, in blocks of 32
constexpr int kCells = 40;

KLAP_SHARED static constexpr int size_of(int t) { return (t * 7 + 3) % kCells; }

#ifdef __CUDACC__

struct Filling {
  int* cells;
  int count;
  int value;
};
__global__ void fill(Filling f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < f.count) f.cells[i] += f.value + i;
}
__device__ int counted;
__global__ void count() { atomicAdd(&counted, 1); }

__device__ Filling* buffer_for(int blocks) {
  return static_cast<Filling*>(
      cudaGetParameterBufferV2(reinterpret_cast<void*>(fill), dim3(blocks), dim3(16), 0));
}

extern "C" __global__ void untested_parent(int* cells, int value) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  Filling* const f = buffer_for((kCells + 15) / 16);
  f->cells = cells + t * kCells;
  f->count = size_of(t);
  f->value = value;
  cudaLaunchDeviceV2(f, nullptr);
}

// Some lanes launch, and the result is kept.
extern "C" __global__ void untested_some_parent(int* cells, int* codes) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  codes[t] = -1;
  if (size_of(t) % 3 == 0) return;
  Filling* const f = buffer_for(1 + size_of(t) / 16);
  *f = {cells + t * kCells, size_of(t), t};
  codes[t] = cudaLaunchDeviceV2(f, nullptr);
}

// A child without arguments.
extern "C" __global__ void untested_none_parent(int launching) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= launching) return;
  cudaLaunchDeviceV2(cudaGetParameterBufferV2(reinterpret_cast<void*>(count), dim3(2), dim3(3), 0), nullptr);
}

#else

namespace {

std::vector<int> filled(int launches, bool by_thread, bool all) {
  std::vector<int> cells(kThreads * kCells);
  for (int t = 0; t < kThreads; ++t) {
    if (!all && size_of(t) % 3 == 0) continue;
    for (int i = 0; i < size_of(t); ++i) {
      for (int k = 1; k <= launches; ++k) cells[t * kCells + i] += (by_thread ? t : k) + i;
    }
  }
  return cells;
}

}  // namespace

KLAP_CASE(untested_buffer, "arguments are stored elsewhere than in the record of a launch without a test") {
  const auto cells = c.buffer("cells", std::vector<int>(kThreads * kCells), filled(3, false, true));
  for (int k = 1; k <= 3; ++k) c.launch("untested_parent", {3, 1, 1}, {32, 1, 1}, c.address(cells), k);
  c.rewritten("untested_parent");
  c.children_never_meet();
}

KLAP_CASE(untested_buffer_of_some_lanes, "a lane without a launch gets a record, or another's result") {
  std::vector<int> codes(kThreads);
  for (int t = 0; t < kThreads; ++t) codes[t] = size_of(t) % 3 == 0 ? -1 : 0;
  const auto cells = c.buffer("cells", std::vector<int>(kThreads * kCells), filled(1, true, false));
  const auto results = c.buffer("codes", std::vector<int>(kThreads), codes);
  c.launch("untested_some_parent", {3, 1, 1}, {32, 1, 1}, c.address(cells), c.address(results));
  c.rewritten("untested_some_parent");
  c.children_never_meet();
}

KLAP_CASE(untested_buffer_of_no_arguments,
          "a child without arguments is lost where nobody tests its buffer") {
  c.variable("counted", std::vector<int>{0}, std::vector<int>{77 * 6});
  c.launch("untested_none_parent", {3, 1, 1}, {32, 1, 1}, 77);
  c.rewritten("untested_none_parent");
}

#endif
