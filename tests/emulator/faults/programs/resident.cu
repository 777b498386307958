// Chains of kernels that launch themselves, in two streams at once: one that moves what it keeps to the front
// of its array, in place, and hands on how much that was; and one whose end its data decide, each link
// computing from what the one before wrote just now. Small, and wrong as soon as a link is too early or does
// not see what it should.
#include <algorithm>

#include "program.h"

constexpr int kTiles = 110;
constexpr int kDenseTiles = 30;  // of which nearly all is kept, and nearly nothing of the others
constexpr int kWidth = 64;
constexpr int kSteps = 10;  // links of the second chain
constexpr int kRounds = 3;  // a context serves every second launch of a chain

__host__ __device__ constexpr bool is_kept(int value) { return value != 0; }
__host__ __device__ constexpr int step(int value, int t) { return (value * 5 + t) % 1009; }

__shared__ int before[kWidth + 1];  // of the unit, not of the kernel, as those of functions are

__global__ void compact(int* data, int tile, int offset, int* size) {
  const int t = static_cast<int>(threadIdx.x);
  const int value = data[tile * kWidth + t];
  before[t + 1] = is_kept(value) ? 1 : 0;
  if (t == 0) before[0] = 0;
  __syncthreads();
  if (t == 0) {
    for (int i = 0; i < kWidth; ++i) before[i + 1] += before[i];
  }
  __syncthreads();
  const int kept = before[kWidth], rank = before[t];
  if (t == 0) {
    if (tile + 1 < kTiles) {
      compact<<<1, kWidth>>>(data, tile + 1, offset + kept, size);
    } else {
      *size = offset + kept;
    }
  }
  if (is_kept(value)) data[offset + rank] = value;
}

// The first cell of a row says how many rows are to come.
__global__ void steps(int* row) {
  const int t = static_cast<int>(threadIdx.x);
  const int left = row[0], value = row[t];
  row[kWidth + t] = t == 0 ? left - 1 : step(value, t);
  __syncthreads();
  if (t == 0 && left > 1) steps<<<1, kWidth>>>(row + kWidth);
}

struct Stream {
  Stream() : data(kTiles * kWidth), rows((kSteps + 1) * kWidth), size(1) {
    gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  cudaStream_t stream = nullptr;
  gpu::Buffer<int> data, rows, size;
};

int main() {
  gpu::Report report("resident");
  std::vector<int> data(kTiles * kWidth), kept, rows((kSteps + 1) * kWidth);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<int>(i < kDenseTiles * kWidth ? i * 7 % 11 : i % 11 == 0 ? 1 : 0);
  for (const int value : data) {
    if (is_kept(value)) kept.push_back(value);
  }
  rows[0] = kSteps;
  Stream streams[2];
  gpu::wait("zeros");  // which the streams do not wait for by themselves
  for (int round = 0; round < kRounds; ++round) {
    for (Stream& s : streams) {
      gpu::check(cudaMemcpyAsync(s.data.data(), data.data(), data.size() * sizeof(int),
                                 cudaMemcpyHostToDevice, s.stream),
                 "data");
      gpu::check(cudaMemcpyAsync(s.rows.data(), rows.data(), rows.size() * sizeof(int),
                                 cudaMemcpyHostToDevice, s.stream),
                 "rows");
      compact<<<1, kWidth, 0, s.stream>>>(s.data.data(), 0, 0, s.size.data());
      steps<<<1, kWidth, 0, s.stream>>>(s.rows.data());
    }
  }
  gpu::wait("rounds");
  for (int i = 0; i < kSteps; ++i) {
    for (int t = 0; t < kWidth; ++t)
      rows[(i + 1) * kWidth + t] = t == 0 ? rows[i * kWidth] - 1 : step(rows[i * kWidth + t], t);
  }
  std::vector<int> moved = data;  // nothing is written behind what is kept
  std::copy(kept.begin(), kept.end(), moved.begin());
  for (Stream& s : streams) {
    report.expect_equal("size", s.size.to_host(), {static_cast<int>(kept.size())});
    report.expect_equal("data", s.data.to_host(), moved);
    report.expect_equal("rows", s.rows.to_host(), rows);
  }
  return report.finish();
}
