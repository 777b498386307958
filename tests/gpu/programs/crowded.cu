// A recursion on a GPU that others have most of: a kernel in another stream holds all multiprocessors but
// one, for no time, or until the recursion has begun, or longer than it takes. What runs the recursion must
// end with the blocks that fit beside it, and blocks that come late, in the middle or when all is done, must
// find that out.
//
// The argument is how often all of it is done, one time unless given: a process of many rounds is what others
// are started beside (tools/gpu_check, section beside).
#include "program.h"

constexpr int kFan = 3;       // launches of a kernel, from as many warps
constexpr int kNodes = 1093;  // 1 + 3 + 9 + ... + 729
constexpr int kBlockSize = 96;

// A node of a heap-ordered tree: its value from what its launcher left for it, then its children's kernels.
__global__ void descend(const int* __restrict__ left, int* __restrict__ leave, int* values, int node,
                        int round) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int value = left[node] * 3 % 1009 + node + round;
  if (threadIdx.x == 0) values[node] = value;
  const int next = kFan * node + 1 + warp;
  if (threadIdx.x % 32 != 7 || next >= kNodes) return;
  leave[next] = value;
  descend<<<1, kBlockSize, 0, cudaStreamFireAndForget>>>(leave, leave, values, next, round);
}

// About a microsecond each.
__global__ void occupy(int pauses) {
  for (int i = 0; i < pauses; ++i) __nanosleep(1000);
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  gpu::check(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

// A block of it is alone on its multiprocessor.
class Occupant {
 public:
  Occupant()
      : blocks_(attribute(cudaDevAttrMultiProcessorCount) - 1),
        shared_bytes_(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
        stream_(new_stream()) {
    gpu::check(cudaFuncSetAttribute(occupy, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes_),
               "cudaFuncSetAttribute");
  }
  void start(int pauses) {
    if (blocks_ == 0 || pauses == 0) return;
    occupy<<<blocks_, 32, shared_bytes_, stream_>>>(pauses);
    gpu::check(cudaGetLastError(), "occupying");
  }

 private:
  int blocks_, shared_bytes_;
  cudaStream_t stream_;
};

std::vector<int> expected_values(int round) {
  std::vector<int> expected(kNodes);
  for (int node = 0; node < kNodes; ++node)
    expected[node] = (node == 0 ? 0 : expected[(node - 1) / kFan] * 3 % 1009) + node + round;
  return expected;
}

int main(int argc, char** argv) {
  gpu::Report report("crowded");
  const int times = argc > 1 ? std::atoi(argv[1]) : 1;
  const int pauses[] = {0, 30, 300, 3000};
  const cudaStream_t stream = new_stream();
  Occupant occupant;
  gpu::Buffer<int> left(kNodes), values(kNodes);
  gpu::wait("zeros");  // which the streams do not wait for by themselves
  int round = 0;
  for (int time = 0; time < times; ++time) {
    for (const int length : pauses) {
      occupant.start(length);
      descend<<<1, kBlockSize, 0, stream>>>(left.data(), left.data(), values.data(), 0, ++round);
      gpu::check(cudaGetLastError(), "descending");
      gpu::wait("round");
      report.expect_equal("values", values.to_host(), expected_values(round));
    }
  }
  return report.finish();
}
