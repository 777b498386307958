// Prints registers, local bytes and the other attributes of every kernel as the runtime reports them, before
// and after the kernels ran, so that native and preloaded runs can be compared: rewriting must leave the
// originals as the program's own build made them. Built a second time with -maxrregcount=32, where a careless
// relink shows at once: the parent needs far more registers than that, and its blocks of 1,024 threads could
// not launch.
#include "program.h"

constexpr int kThreads = 1024;
constexpr int kTerms = 48;

// Keeps many values alive at once, in the child and, by the same function, in the parent.
__device__ float busy(const float* in, int i) {
  float term[kTerms];
#pragma unroll
  for (int k = 0; k < kTerms; ++k) term[k] = in[(i + k) & 255];
#pragma unroll
  for (int round = 0; round < 4; ++round) {
#pragma unroll
    for (int k = 0; k < kTerms; ++k) term[k] += term[(k * 5 + round) % kTerms];
  }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kTerms; ++k) sum = sum * 0.5F + term[k];
  return sum;
}

__global__ void child(const float* in, float* out, int t) {
  out[threadIdx.x] = busy(in, t + static_cast<int>(threadIdx.x));
}

__global__ void parent(const float* in, float* out, float* own) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  own[t] = busy(in, 3 * t);
  child<<<1, 32>>>(in, out + 32 * t, t);
}

__global__ void child_with_shared(int* out, int t) {
  __shared__ int cells[300];
  cells[threadIdx.x] = t;
  out[threadIdx.x] = cells[threadIdx.x] + static_cast<int>(threadIdx.x);
}

__global__ void __launch_bounds__(256, 2) parent_bounded(int* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  child_with_shared<<<1, 32>>>(out + 32 * t, t);
}

__global__ void plain(const float* in, float* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  out[t] = busy(in, t);
}

template <class Kernel>
void print_attributes(const char* name, Kernel kernel) {
  cudaFuncAttributes a{};
  gpu::check(cudaFuncGetAttributes(&a, kernel), name);
  int blocks = 0;
  gpu::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 0), name);
  std::printf(
      "%s: %d registers, %zu local bytes, %zu shared bytes, %zu constant bytes, at most %d threads, "
      "%d blocks of 256 fit, binary %d\n",
      name, a.numRegs, a.localSizeBytes, a.sharedSizeBytes, a.constSizeBytes, a.maxThreadsPerBlock, blocks,
      a.binaryVersion);
}

void print_all() {
  print_attributes("child", child);
  print_attributes("parent", parent);
  print_attributes("child_with_shared", child_with_shared);
  print_attributes("parent_bounded", parent_bounded);
  print_attributes("plain", plain);
}

int main() {
  gpu::Report report("attributes");
  print_all();
  std::vector<float> in;
  for (int i = 0; i < 256; ++i) in.push_back(static_cast<float>(i % 7));
  const gpu::Buffer<float> input(in);
  const gpu::Buffer<float> out(kThreads * 32);
  const gpu::Buffer<float> own(kThreads);
  const gpu::Buffer<float> reference(kThreads * 4);
  const gpu::Buffer<int> indices(512 * 32);
  parent<<<1, kThreads>>>(input.data(), out.data(), own.data());
  gpu::wait("parent");
  plain<<<4, kThreads>>>(input.data(), reference.data());
  parent_bounded<<<2, 256>>>(indices.data());
  gpu::wait("parent_bounded");

  // `plain` computed busy(in, t) for every t; the others must have got the same at their own places.
  const std::vector<float> plain_result = reference.to_host();
  std::vector<float> expected_out;
  std::vector<float> expected_own;
  for (int t = 0; t < kThreads; ++t) {
    expected_own.push_back(plain_result[3 * t]);
    for (int i = 0; i < 32; ++i) expected_out.push_back(plain_result[t + i]);
  }
  std::vector<int> expected_indices;
  for (int i = 0; i < 512 * 32; ++i) expected_indices.push_back(i / 32 + i % 32);
  report.expect_equal("children's sums", out.to_host(), expected_out);
  report.expect_equal("parent's sums", own.to_host(), expected_own);
  report.expect_equal("children with shared memory", indices.to_host(), expected_indices);
  report.expect(plain_result[1] != 0, "the sums are empty");
  print_all();
  return report.finish();
}
