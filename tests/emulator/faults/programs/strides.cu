// Children that walk over their data in a grid-stride loop: what their rounds hand on, in memory, in a
// register or by where their thread began, is wrong as soon as other threads run them.
#include "program.h"

constexpr int kChildren = 64, kThreads = 32;  // of a parent's grid, in blocks of 32; of a child
constexpr int kMost = 200, kRow = 2 * kMost;  // rounds, and cells of a child
constexpr int kFew = 4;  // threads of a child, most of which have so many rounds that these are dealt out

__device__ int here() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
int rounds_of(int t) { return t * 37 % kMost; }

__global__ void mix(const int* x, int* y, int n) {
  for (int i = here(); i < n; i += gridDim.x * blockDim.x) y[i] = 3 * x[i] + y[i];
}
__global__ void add_up(int* y, int n) {
  int sum = 0;
  for (int i = here(); i < n; i += gridDim.x * blockDim.x) {
    sum += i;
    y[i] = sum;
  }
}
__global__ void began(int* y, int n) {
  const int begin = here();
  const int half = static_cast<int>(static_cast<float>(begin) * 0.5F);
  for (int i = begin; i < n; i += gridDim.x * blockDim.x) y[i] = half;
}

__global__ void mix_all(int* cells, const int* rounds, int distance) {
  const int t = here();
  mix<<<1, kThreads>>>(cells + t * kRow, cells + t * kRow + distance, rounds[t]);
}
__global__ void mix_all_by_few(int* cells, const int* rounds) {
  const int t = here();
  mix<<<1, kFew>>>(cells + t * kRow, cells + t * kRow + kMost, rounds[t]);
}
__global__ void add_up_all(int* cells, const int* rounds) {
  const int t = here();
  add_up<<<1, kThreads>>>(cells + t * kRow, rounds[t]);
}
__global__ void began_all(int* cells, const int* rounds) {
  const int t = here();
  began<<<1, kThreads>>>(cells + t * kRow, rounds[t]);
}

template <class Round>
void expect(gpu::Report& report, const char* what, gpu::Buffer<int>& cells, std::vector<int>& expected,
            Round round) {
  gpu::wait(what);
  for (int t = 0; t < kChildren; ++t) {
    for (int i = 0; i < rounds_of(t); ++i) round(expected.data() + t * kRow, i);
  }
  report.expect_equal(what, cells.to_host(), expected);
}

int main() {
  gpu::Report report("strides");
  std::vector<int> rounds, expected(kChildren * kRow, 1);
  for (int t = 0; t < kChildren; ++t) rounds.push_back(rounds_of(t));
  gpu::Buffer<int> given(rounds), cells(expected);
  const int blocks = kChildren / 32;
  for (const int distance : {kMost, kThreads}) {
    mix_all<<<blocks, 32>>>(cells.data(), given.data(), distance);
    expect(report, "mixed", cells, expected,
           [&](int* x, int i) { x[i + distance] = 3 * x[i] + x[i + distance]; });
  }
  mix_all_by_few<<<blocks, 32>>>(cells.data(), given.data());
  expect(report, "mixed by few", cells, expected,
         [](int* x, int i) { x[i + kMost] = 3 * x[i] + x[i + kMost]; });
  add_up_all<<<blocks, 32>>>(cells.data(), given.data());
  expect(report, "added", cells, expected,
         [](int* y, int i) { y[i] = i + (i < kThreads ? 0 : y[i - kThreads]); });
  began_all<<<blocks, 32>>>(cells.data(), given.data());
  expect(report, "began", cells, expected, [](int* y, int i) { y[i] = i % kThreads / 2; });
  return report.finish();
}
