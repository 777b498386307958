// Many streams, in each of which a few small recursions run, and grids that wait for each other. Preloaded,
// each stream has a queue that could hold a million launches. All of them together must take no more device
// memory than the few launches need.
//
// Other processes that use the device at the same time make the result meaningless.
#include "tree.h"

constexpr int kStreams = 40;
constexpr int kSteps = 64;  // threads that launch two grids, one behind the other
constexpr int kRounds = 3;
constexpr int kAtOnce = 5;  // streams
constexpr size_t kMostBytes = size_t{64} << 20;

__global__ void write_step(int* cells, int t, int round) { cells[t] = cells[t] * 5 % 1009 + t + round; }
__global__ void read_step(int* cells, int t) {
  if (threadIdx.x == 0) cells[kSteps + t] += cells[t];
}

// Both grids are launched into the block's NULL stream, so the second one sees what the first one wrote.
__global__ void step(int* cells, int round) {
  const int t = static_cast<int>(threadIdx.x);
  write_step<<<1, 1>>>(cells, t, round);
  read_step<<<1, 32>>>(cells, t);
}

struct Work {
  cudaStream_t stream = nullptr;
  Tree tree;
  gpu::Buffer<int> cells{2 * kSteps};

  void launch(int round) const {
    tree.launch(round, stream);
    step<<<1, kSteps, 0, stream>>>(cells.data(), round);
  }
};

std::vector<int> expected_cells(int rounds) {
  std::vector<int> cells(2 * kSteps);
  for (int round = 0; round < rounds; ++round) {
    for (int t = 0; t < kSteps; ++t) {
      cells[t] = cells[t] * 5 % 1009 + t + round;
      cells[kSteps + t] += cells[t];
    }
  }
  return cells;
}

int main() {
  gpu::Report report("many_streams");
  std::vector<Work> works(kStreams);
  for (Work& work : works)
    gpu::check(cudaStreamCreateWithFlags(&work.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  // What a program's first launches take in any case is not meant.
  const Work first;
  first.launch(0);
  gpu::wait("the first launches");

  const size_t before = free_memory();
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kStreams; ++i) {
      works[i].launch(round);
      if (i % kAtOnce == kAtOnce - 1) gpu::wait("launches in some streams");
    }
  }
  const size_t after = free_memory();
  report.expect(after + kMostBytes >= before, "%d streams took %zu bytes", kStreams, before - after);
  for (const Work& work : works) {
    work.tree.expect_right(report, kRounds - 1);
    report.expect_equal("cells of steps", work.cells.to_host(), expected_cells(kRounds));
    gpu::check(cudaStreamDestroy(work.stream), "cudaStreamDestroy");
  }
  return report.finish();
}
