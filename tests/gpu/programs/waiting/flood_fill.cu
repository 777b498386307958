// Flood fill of several pictures. Each thread drives the fill of one picture: it launches a grid that spreads
// the fill by one pixel, waits for it, and ends when nothing has changed. The threads of a block end at
// different times.
#include "sizes.h"

namespace {

constexpr int wall = -1;
constexpr int dry = -2;

}  // namespace

extern "C" __global__ void flood(int* pictures, int count, int side, int* changes, int* filled);

#ifdef __CUDACC__
namespace {

// A pixel that is filled has the number of the step that filled it.
__global__ void spread(int* picture, int side, int step, int* changes) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(blockIdx.x), pixel = y * side + x;
  if (picture[pixel] != dry) return;
  const bool reached =
      (x > 0 && picture[pixel - 1] == step) || (x + 1 < side && picture[pixel + 1] == step) ||
      (y > 0 && picture[pixel - side] == step) || (y + 1 < side && picture[pixel + side] == step);
  if (!reached) return;
  picture[pixel] = step + 1;
  atomicAdd(changes, 1);
}

}  // namespace

extern "C" __global__ void flood(int* pictures, int count, int side, int* changes, int* filled) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= count) return;
  int* picture = pictures + k * side * side;
  int total = 1;
  picture[0] = 0;
  for (int step = 0;; ++step) {
    changes[k] = 0;
    spread<<<side, side>>>(picture, side, step, &changes[k]);
    cudaDeviceSynchronize();
    if (changes[k] == 0) break;
    total += changes[k];
  }
  filled[k] = total;
}
#endif

#ifndef __CUDACC_RTC__
namespace {

// Fills by a queue of pixels; returns how many it fills.
int on_cpu(int* picture, int side) {
  std::vector<int> queue{0};
  picture[0] = 0;
  for (size_t next = 0; next < queue.size(); ++next) {
    const int x = queue[next] % side, y = queue[next] / side, step = picture[queue[next]];
    const auto fill = [&](int to_x, int to_y) {
      if (to_x < 0 || to_x >= side || to_y < 0 || to_y >= side) return;
      int& pixel = picture[to_y * side + to_x];
      if (pixel != dry) return;
      pixel = step + 1;
      queue.push_back(to_y * side + to_x);
    };
    fill(x - 1, y);
    fill(x + 1, y);
    fill(x, y - 1);
    fill(x, y + 1);
  }
  return static_cast<int>(queue.size());
}

std::vector<int> random_pictures(int count, int side) {
  std::vector<int> pictures;
  unsigned state = 3;
  for (int i = 0; i < count * side * side; ++i) {
    state = state * 1664525 + 1013904223;
    pictures.push_back(state >> 24 < 80 ? wall : dry);
  }
  return pictures;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("flood_fill", argc, argv, [](gpu::Report& report, int size) {
    const int count = 3 + 3 * size, side = 6 + 5 * size;
    std::vector<int> want = random_pictures(count, side), want_filled;
    gpu::Buffer<int> pictures(want), changes(count), filled(count);
    WAITING_LAUNCH(flood, (count + 3) / 4, 4)(pictures.data(), count, side, changes.data(), filled.data());
    gpu::wait("flood");
    for (int k = 0; k < count; ++k) want_filled.push_back(on_cpu(want.data() + k * side * side, side));
    report.expect_equal("a pixel", pictures.to_host(), want);
    report.expect_equal("the number of filled pixels", filled.to_host(), want_filled);
  });
}
#endif
