// A recursion in phases: many blocks at once, one of which takes long, and of the last one a few more. So a
// block of the consumer that has seen much to take comes back when nearly all of it is taken, and waits for
// several pieces of work that are not there yet, or never come. Every block reads what the one that launched
// it wrote just before.
#include "program.h"

constexpr int kWide = 60;  // blocks of a phase
constexpr int kLast = 3;   // blocks behind the last phase
constexpr int kBlocks = 1 + 2 * kWide + kLast;
constexpr int kBlockSize = 32;
constexpr int kRounds = 12;
constexpr int kLonger = 60;  // of a round than of the one before

__host__ __device__ int value_of(int above, int block, int steps) {
  int value = above * 3 % 1009 + block;
  for (int i = 0; block % kWide == 20 && i < steps; ++i) value = value * 3 % 1009 + block;
  return value;
}

// Blocks from `first` on, which the one in front of them launched.
__global__ void fan(int* values, int first, int steps) {
  if (threadIdx.x != 0) return;
  const int block = first + static_cast<int>(blockIdx.x);
  values[block] = value_of(first == 0 ? 0 : values[first - 1], block, steps);
  if (block % kWide != 0 || block + 1 == kBlocks) return;
  const int blocks = min(kWide, kBlocks - 1 - block);
  fan<<<blocks, kBlockSize>>>(values, block + 1, steps);
}

int main() {
  gpu::Report report("fan");
  gpu::Buffer<int> values(kBlocks);
  for (int round = 0; round < kRounds; ++round) fan<<<1, kBlockSize>>>(values.data(), 0, kLonger * round);
  gpu::wait("rounds");
  std::vector<int> expected(kBlocks);
  for (int block = 0; block < kBlocks; ++block) {
    const int first = block == 0 ? 0 : (block - 1) / kWide * kWide + 1;
    expected[block] = value_of(first == 0 ? 0 : expected[first - 1], block, kLonger * (kRounds - 1));
  }
  report.expect_equal("values", values.to_host(), expected);
  return report.finish();
}
