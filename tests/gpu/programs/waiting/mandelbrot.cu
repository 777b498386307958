// The Mandelbrot set by the algorithm of Mariani and Silver. Each block launches a grid that computes the
// border of its square, and waits for it. If the border has one value, the block fills its square with it;
// otherwise it launches blocks for the four quarters, or a grid for all pixels of a small square.
#include "sizes.h"

namespace {

constexpr int smallest = 4;

// Counts the steps until a point leaves the circle of radius 2, with 12 binary places.
__host__ __device__ int steps_at(int pixel, int side) {
  const int x = 3 * 4096 * (pixel % side) / side - 8192, y = 3 * 4096 * (pixel / side) / side - 6144;
  int a = 0, b = 0, steps = 0;
  while (steps < 32 && a * a + b * b <= 4 * 4096 * 4096) {
    const int next = (a * a - b * b) / 4096 + x;
    b = 2 * a * b / 4096 + y;
    a = next;
    ++steps;
  }
  return steps;
}

}  // namespace

extern "C" __global__ void square(int* image, int corner, int extent, int side, int* filled);

#ifdef __CUDACC__
namespace {

// Numbers the pixels of a square's border, in four runs that begin at the corners.
__device__ int on_border(int corner, int extent, int side, int k) {
  const int run = k / (extent - 1), offset = k % (extent - 1), end = extent - 1;
  if (run == 0) return corner + offset;
  if (run == 1) return corner + end + offset * side;
  if (run == 2) return corner + end * side + end - offset;
  return corner + (end - offset) * side;
}

__global__ void border(int* image, int corner, int extent, int side) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= 4 * (extent - 1)) return;
  const int pixel = on_border(corner, extent, side, k);
  image[pixel] = steps_at(pixel, side);
}

__global__ void pixels(int* image, int corner, int side) {
  const int pixel = corner + static_cast<int>(blockIdx.x) * side + static_cast<int>(threadIdx.x);
  image[pixel] = steps_at(pixel, side);
}

}  // namespace

extern "C" __global__ void square(int* image, int corner, int extent, int side, int* filled) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  if (thread == 0) {
    border<<<(4 * extent + 31) / 32, 32>>>(image, corner, extent, side);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  const int value = image[corner];
  bool same = true;
  for (int k = thread; k < 4 * (extent - 1); k += threads) {
    same = same && image[on_border(corner, extent, side, k)] == value;
  }
  if (__syncthreads_and(same)) {
    for (int k = thread; k < extent * extent; k += threads)
      image[corner + k / extent * side + k % extent] = value;
    if (thread == 0) atomicAdd(filled, extent * extent);
  } else if (extent == smallest) {
    if (thread == 0) pixels<<<smallest, smallest>>>(image, corner, side);
  } else if (thread < 4) {
    const int half = extent / 2;
    square<<<1, 32>>>(image, corner + thread / 2 * half * side + thread % 2 * half, half, side, filled);
  }
}
#endif

#ifndef __CUDACC_RTC__
int main(int argc, char** argv) {
  return waiting::at_sizes("mandelbrot", argc, argv, [](gpu::Report& report, int size) {
    const int side = 32 << size;
    gpu::Buffer<int> image(side * side), filled(1);
    WAITING_LAUNCH(square, 1, 32)(image.data(), 0, side, side, filled.data());
    gpu::wait("square");
    std::vector<int> want;
    for (int pixel = 0; pixel < side * side; ++pixel) want.push_back(steps_at(pixel, side));
    report.expect_equal("a pixel", image.to_host(), want);
    report.expect(filled.to_host()[0] > 0, "no square was filled");
  });
}
#endif
