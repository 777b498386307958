// Parents whose own kernels run their children, in all ways in which that can go wrong: more blocks than find
// room at a time, children that read what other blocks of the parent have written, children whose blocks are
// smaller or larger than the parent's and meet at barriers, and two launches in one parent.
#include <functional>

#include "program.h"

constexpr int kRounds = 6;
constexpr int kBlocks = 24, kThreads = 96, kAll = kBlocks * kThreads;
constexpr int kChildThreads = 64;
constexpr int kEvery = 16;  // one thread of so many launches
constexpr int kChildren = kAll / kEvery;
constexpr int kSingle = 12;  // blocks of one thread

__host__ __device__ int written_by(int thread, int round) { return thread * 7 % 1009 + round; }
__host__ __device__ int read_by(int child, int thread) { return (child * 613 + thread * 41) % kAll; }

// Each thread reads what some thread of the parent has written, and passes it to another one.
__global__ void mix(const int* __restrict__ in, int* __restrict__ out, int child) {
  __shared__ int values[kChildThreads];
  const int thread = static_cast<int>(threadIdx.x);
  values[thread] = in[read_by(child, thread)];
  __syncthreads();
  out[child * kChildThreads + thread] += values[kChildThreads - 1 - thread];
}

__global__ void copy(const int* __restrict__ in, int* __restrict__ out, int child, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[child * kChildThreads + i] += in[read_by(child, i)];
}

__host__ __device__ int size_of(int child) { return child * 5 % (kChildThreads + 1); }

// The parent's blocks have more threads than those of its children.
__global__ void larger(int* in, int* out, int round) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= kAll) return;
  in[i] = written_by(i, round);
  if (i % kEvery == 0) mix<<<1, kChildThreads>>>(in, out, i / kEvery);
}

// They have fewer.
__global__ void smaller(int* in, int* out, int round) {
  const int i = static_cast<int>(blockIdx.x);
  for (int k = i; k < kAll; k += kSingle) in[k] = written_by(k, round);
  mix<<<1, kChildThreads>>>(in, out, i);
}

// Both launch, and the second child reads what the first one of another thread has read.
__global__ void both(int* in, int* out, int* more, int round) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= kAll) return;
  in[i] = written_by(i, round);
  if (i % kEvery != 0) return;
  const int child = i / kEvery;
  copy<<<2, kChildThreads / 2>>>(in, more, child, size_of(child));
  mix<<<1, kChildThreads>>>(in, out, child);
}

int main() {
  gpu::Report report("fused");
  gpu::Buffer<int> in(kAll), out(kChildren * kChildThreads), more(kChildren * kChildThreads);
  std::vector<int> expected(kChildren * kChildThreads), expected_more(kChildren * kChildThreads);
  const auto add = [&](int children, int round) {
    for (int child = 0; child < children; ++child) {
      for (int t = 0; t < kChildThreads; ++t)
        expected[child * kChildThreads + t] += written_by(read_by(child, kChildThreads - 1 - t), round);
    }
  };
  for (int round = 0; round < kRounds; ++round) {
    larger<<<kBlocks, kThreads>>>(in.data(), out.data(), round);
    add(kChildren, round);
    smaller<<<kSingle, 1>>>(in.data(), out.data(), kRounds + round);
    add(kSingle, kRounds + round);
    both<<<kBlocks, kThreads>>>(in.data(), out.data(), more.data(), 2 * kRounds + round);
    add(kChildren, 2 * kRounds + round);
    for (int child = 0; child < kChildren; ++child) {
      for (int t = 0; t < size_of(child); ++t)
        expected_more[child * kChildThreads + t] += written_by(read_by(child, t), 2 * kRounds + round);
    }
  }
  gpu::wait("rounds");
  report.expect_equal("values", out.to_host(), expected);
  report.expect_equal("copies", more.to_host(), expected_more);
  return report.finish();
}
