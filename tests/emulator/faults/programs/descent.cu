// Recursions in two streams at once, several in each, where every kernel reads what the one that launched it
// wrote just before, by a pointer that says nobody writes there meanwhile: small, and wrong as soon as an
// item of the queue, its order or its end is.
#include "program.h"

constexpr int kFan = 3;      // launches of a kernel, from as many warps
constexpr int kTree = 121;   // 1 + 3 + 9 + 27 + 81
constexpr int kNodes = 133;  // below the tree's last node hangs a row of single ones: each is the last item
constexpr int kBlockSize = 96;
constexpr int kRounds = 3;

constexpr int kNone = kNodes;

// What a warp of a node's kernel launches. Every other round ends with the tree's leaves, many at once.
__host__ __device__ int next_of(int node, int warp, int round) {
  const bool goes_on = warp == kFan - 1 && round % 2 == 0;
  if (node >= kTree - 1) return goes_on ? node + 1 : kNone;
  const int next = kFan * node + 1 + warp;
  return next < kTree ? next : kNone;
}

// A node of a heap-ordered tree: its value from what its launcher left for it, then its children's kernels.
__global__ void descend(const int* __restrict__ left, int* __restrict__ leave, int* values, int node,
                        int round) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int value = left[node] * 3 % 1009 + node + round;
  if (threadIdx.x == 0) values[node] = value;
  const int next = next_of(node, warp, round);
  if (threadIdx.x % 32 != 7 || next == kNone) return;
  leave[next] = value;
  descend<<<1, kBlockSize>>>(leave, leave, values, next, round);
}

struct Stream {
  Stream() : left(kNodes), values(kNodes) {
    gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  cudaStream_t stream = nullptr;
  gpu::Buffer<int> left, values;
};

int main() {
  gpu::Report report("descent");
  Stream streams[2];
  gpu::wait("zeros");  // which the streams do not wait for by themselves
  for (int round = 0; round < kRounds; ++round)
    for (Stream& s : streams)
      descend<<<1, kBlockSize, 0, s.stream>>>(s.left.data(), s.left.data(), s.values.data(), 0, round);
  gpu::wait("rounds");
  std::vector<int> expected(kNodes);
  for (int node = 0; node < kNodes; ++node) {
    const int above = node < kTree ? (node - 1) / kFan : node - 1;
    expected[node] = (node == 0 ? 0 : expected[above] * 3 % 1009) + node + kRounds - 1;
  }
  report.expect_equal("first stream", streams[0].values.to_host(), expected);
  report.expect_equal("second stream", streams[1].values.to_host(), expected);
  return report.finish();
}
