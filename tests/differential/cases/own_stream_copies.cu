// Copies and fills of device code that another place decides about: in a stream that a thread creates for one
// launch or none, and in a function that a child without launches calls.
#include "case.h"

#ifdef __CUDACC__

constexpr cudaMemcpyKind kOnDevice = cudaMemcpyDeviceToDevice;

__global__ void count_up(int* cells, int rounds, int by) {
#pragma unroll 1
  for (int i = 0; i < rounds; ++i) cells[threadIdx.x] += by;
}
// Each thread has 16 cells and a number of its own.
template <class Work>
__device__ __forceinline__ void with_own_stream(int* cells, Work work) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  work(stream, cells + 16 * threadIdx.x, 1 + static_cast<int>(threadIdx.x));
  cudaStreamDestroy(stream);
}
extern "C" __global__ void copy_behind_launch(int* cells) {
  with_own_stream(cells, [](cudaStream_t stream, int* own, int number) {
    count_up<<<1, 8, 0, stream>>>(own, 20, number);
    cudaMemcpyAsync(own + 8, own, 32, kOnDevice, stream);
  });
}
extern "C" __global__ void fill_ahead_of_launch(int* cells) {
  with_own_stream(cells, [](cudaStream_t stream, int* own, int number) {
    cudaMemsetAsync(own, 1, 64, stream);
    count_up<<<1, 8, 0, stream>>>(own, 20, number);
  });
}
extern "C" __global__ void copies_beside_launch(int* cells) {
  with_own_stream(cells, [](cudaStream_t stream, int* own, int number) {
    cudaMemsetAsync(own, 1, 12, stream);
    cudaMemcpyAsync(own + 3, own, 12, kOnDevice, stream);
    cudaMemcpyAsync(own + 5, own + 2, 12, kOnDevice, stream);
    count_up<<<1, 8>>>(own + 8, 20, number);
  });
}

__device__ __noinline__ void fill_elsewhere(int* cells, int value, size_t bytes) {
  cudaMemsetAsync(cells, value, bytes);
}
__global__ void fills_twice(int* cells) {
  cudaMemsetAsync(cells, 1, 8192);
  fill_elsewhere(cells, 2, 8192);
}
extern "C" __global__ void launch_fills(int* cells) { fills_twice<<<1, 1>>>(cells); }

#else

namespace klap::differential {

KLAP_CASE(executed_copies_in_own_stream,
          "a copy does not wait for the one launch of its stream, or for a fill") {
  constexpr int kOwners = 3, kByte = 0x01010101;
  std::vector<int> behind, ahead, beside;
  for (int t = 0; t < kOwners; ++t) {
    const int counted = 20 * (1 + t);
    behind.insert(behind.end(), 16, counted);
    ahead.insert(ahead.end(), 8, kByte + counted);
    ahead.insert(ahead.end(), 8, kByte);
    beside.insert(beside.end(), 8, kByte);
    beside.insert(beside.end(), 8, counted);
  }
  const auto run = [&](const char* parent, const std::vector<int>& cells) {
    const auto of_cells = c.buffer(parent, std::vector<int>(cells.size()), cells);
    c.launch(parent, {1, 1, 1}, {kOwners, 1, 1}, c.address(of_cells));
    c.left_on_device(parent, "runtime-call");
    c.by_warp("any");
  };
  run("copy_behind_launch", behind);
  run("fill_ahead_of_launch", ahead);
  run("copies_beside_launch", beside);
}

KLAP_CASE(copies_in_called_function, "a fill in a called function is not in the order of the kernel's own") {
  constexpr int kCells = 2048;
  const auto cells = c.buffer("cells", std::vector<int>(kCells), std::vector<int>(kCells, 0x02020202));
  c.launch("launch_fills", {1, 1, 1}, {1, 1, 1}, c.address(cells));
  c.left("launch_fills", "child-launches");
  c.by_warp("any");
}

}  // namespace klap::differential

#endif
