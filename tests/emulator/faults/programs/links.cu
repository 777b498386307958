// Loops of launches in two streams at once, several in each: every child computes from what all blocks of the
// thread's child before it wrote just now, by a pointer that says nobody writes there meanwhile. Small, and
// wrong as soon as a child begins too early or does not see what it should.
#include "program.h"

constexpr int kThreads = 40;
constexpr int kLinks = 6;  // of the longest chain
constexpr int kCells = 5;  // of a link
constexpr int kBlockSize = 32;
constexpr int kRounds = 3;

__host__ __device__ constexpr int links(int thread) { return thread * 5 % (kLinks + 1); }
__host__ __device__ constexpr int next(const int* cells, int cell, int round) {
  return (cells[(cell + 3) % kCells] * 3 + cells[cell] + cell + round) % 1009;
}

// A block for each cell.
__global__ void link(const int* __restrict__ from, int* __restrict__ to, int round) {
  const int cell = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 7) to[cell] = next(from, cell, round);
}

__global__ void chains(int* cells, int round) {
  int* own = cells + threadIdx.x * (kLinks + 1) * kCells;
  if (round == 0) {
    for (int i = 0; i < kCells; ++i) own[i] = static_cast<int>(threadIdx.x) + i;
  }
#pragma unroll 1
  for (int i = 0; i < links(static_cast<int>(threadIdx.x)); ++i, own += kCells)
    link<<<kCells, kBlockSize>>>(own, own + kCells, round);
}

struct Stream {
  Stream() : cells(kThreads * (kLinks + 1) * kCells) {
    gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  cudaStream_t stream = nullptr;
  gpu::Buffer<int> cells;
};

int main() {
  gpu::Report report("links");
  Stream streams[2];
  gpu::wait("zeros");  // which the streams do not wait for by themselves
  for (int round = 0; round < kRounds; ++round)
    for (Stream& s : streams) chains<<<1, kThreads, 0, s.stream>>>(s.cells.data(), round);
  gpu::wait("rounds");
  std::vector<int> expected(kThreads * (kLinks + 1) * kCells);
  for (int thread = 0; thread < kThreads; ++thread) {
    int* own = &expected[thread * (kLinks + 1) * kCells];
    for (int i = 0; i < kCells; ++i) own[i] = thread + i;
    for (int i = 0; i < links(thread); ++i, own += kCells)
      for (int cell = 0; cell < kCells; ++cell) own[kCells + cell] = next(own, cell, kRounds - 1);
  }
  report.expect_equal("first stream", streams[0].cells.to_host(), expected);
  report.expect_equal("second stream", streams[1].cells.to_host(), expected);
  return report.finish();
}
