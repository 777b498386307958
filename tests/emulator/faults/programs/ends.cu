// Tail launches that add up what the other children and the blocks of the grid wrote, by one thread of a grid
// and by one of each block: small, and wrong as soon as one begins early, or two of them overlap.
#include "program.h"

constexpr int kParts = 60, kEach = 8;
constexpr int kBlocks = 40, kThreads = 32;
constexpr int kApart = kBlocks * kThreads / kParts;  // threads, so that all blocks have some

__global__ void part(int* parts, int value) { parts[threadIdx.x] = value + static_cast<int>(threadIdx.x); }
__global__ void join(const int* parts, const int* marks, int* total) {
  if (threadIdx.x != 0) return;
  int sum = 0;
  for (int i = 0; i < kParts * kEach; ++i) sum += parts[i] + marks[i / kEach];
  *total += sum;
}

// The launch for the end stands first.
__global__ void join_at_end(int* parts, int* marks, int* total, int round) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i == 0) join<<<1, 32, 0, cudaStreamTailLaunch>>>(parts, marks, total);
  const int mark = i / kApart;
  if (i % kApart != 0 || mark >= kParts) return;
  part<<<1, kEach>>>(parts + mark * kEach, round * mark);
  marks[mark] = round + mark;
}
__global__ void join_of_each_block(int* parts, int* marks, int* total) {
  if (threadIdx.x == 0) join<<<1, 32, 0, cudaStreamTailLaunch>>>(parts, marks, total);
}

int main() {
  gpu::Report report("ends");
  gpu::Buffer<int> parts(kParts * kEach), marks(kParts), total(1);
  gpu::wait("zeros");
  int expected = 0;
  for (int round = 1; round <= 3; ++round) {
    join_at_end<<<kBlocks, kThreads>>>(parts.data(), marks.data(), total.data(), round);
    int sum = 0;
    for (int i = 0; i < kParts * kEach; ++i) sum += round * (i / kEach) + i % kEach + round + i / kEach;
    expected += sum;
    for (const int blocks : {1, 5}) {
      join_of_each_block<<<blocks, 32>>>(parts.data(), marks.data(), total.data());
      expected += blocks * sum;
    }
  }
  gpu::wait("rounds");
  report.expect_equal("total", total.to_host(), std::vector<int>{expected});
  return report.finish();
}
