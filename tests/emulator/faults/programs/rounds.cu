// Parents in two streams at once, several in each, whose children compute from what their own launcher wrote
// just before: small, and wrong as soon as a record, its order or its queue is.
#include "program.h"

constexpr int kBlocks = 6;
constexpr int kBlockSize = 48;  // one and a half warps
constexpr int kThreads = kBlocks * kBlockSize;
constexpr int kRounds = 3;
constexpr int kChildSize = 8;

// Adds up what the launching thread wrote, in all blocks of the child.
__global__ void child(const int* written, int* sum, int thread, int amount, int block) {
  if (threadIdx.x == 0)
    atomicAdd(sum + thread, (written[thread] + amount + block) * (static_cast<int>(blockIdx.x) + 1));
}

__host__ __device__ constexpr int value(int thread, int round) { return thread * 5 % 23 + round; }
__host__ __device__ constexpr int blocks(int thread) { return thread % 3 + 1; }

// A third of the threads leaves without a child.
__global__ void parent(int* written, int* sum, int round) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (thread % 3 == 1) return;
  written[thread] = value(thread, round);
  child<<<blocks(thread), kChildSize>>>(written, sum, thread, round, static_cast<int>(blockIdx.x));
}

struct Stream {
  Stream() : written(kThreads), sum(kThreads) {
    gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  cudaStream_t stream = nullptr;
  gpu::Buffer<int> written, sum;
};

int main() {
  gpu::Report report("rounds");
  Stream streams[2];
  gpu::wait("zeros");  // which the streams do not wait for by themselves
  for (int round = 0; round < kRounds; ++round)
    for (Stream& s : streams)
      parent<<<kBlocks, kBlockSize, 0, s.stream>>>(s.written.data(), s.sum.data(), round);
  gpu::wait("rounds");
  std::vector<int> expected(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    if (thread % 3 == 1) continue;
    const int factor = blocks(thread) * (blocks(thread) + 1) / 2;
    for (int round = 0; round < kRounds; ++round)
      expected[thread] += (value(thread, round) + round + thread / kBlockSize) * factor;
  }
  report.expect_equal("first stream", streams[0].sum.to_host(), expected);
  report.expect_equal("second stream", streams[1].sum.to_host(), expected);
  return report.finish();
}
