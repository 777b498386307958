// Children that fold a row of numbers into one: a round of the loop that is missing, runs twice or comes out
// of order shows, whatever the row's length.
#include "program.h"

constexpr int kChildren = 64, kThreads = 32;  // of a parent's grid, in blocks of 32; of a child
constexpr int kLongest = 1100;

int length_of(int row) { return row * 337 % kLongest; }

__host__ __device__ unsigned folded(unsigned before, int value) {
  return before * 31u + static_cast<unsigned>(value);
}

__global__ void fold(const int* values, unsigned* out, int n) {
  unsigned all = threadIdx.x;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) all = folded(all, values[i]);
  out[threadIdx.x] = all;
}
__global__ void fold_rows(const int* values, unsigned* out, const int* lengths) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  fold<<<1, kThreads>>>(values + row * kLongest, out + row * kThreads, lengths[row]);
}

int main() {
  gpu::Report report("straight");
  std::vector<int> values, lengths;
  for (int i = 0; i < kChildren * kLongest; ++i) values.push_back(i * 7919 % 10007);
  std::vector<unsigned> expected;
  for (int row = 0; row < kChildren; ++row) {
    lengths.push_back(length_of(row));
    for (int thread = 0; thread < kThreads; ++thread) {
      unsigned all = static_cast<unsigned>(thread);
      for (int i = thread; i < length_of(row); i += kThreads) all = folded(all, values[row * kLongest + i]);
      expected.push_back(all);
    }
  }
  gpu::Buffer<int> in(values), given(lengths);
  gpu::Buffer<unsigned> out(std::vector<unsigned>(expected.size()));
  fold_rows<<<kChildren / 32, 32>>>(in.data(), out.data(), given.data());
  gpu::wait("folding rows");
  report.expect_equal("folded rows", out.to_host(), expected);
  return report.finish();
}
