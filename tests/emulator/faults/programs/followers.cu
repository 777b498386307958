// Recursion in blocks like the launching kernel's own, beside a kernel whose block is constant, launched in
// blocks of several sizes: small, and wrong as soon as a kernel gets another block than its own, or threads
// wait for some that it does not have. And children that nothing but their order keeps apart where the
// parent's block has more than one row.
#include "program.h"

constexpr int kNodes = 15, kMost = 256, kMarks = 40;

__global__ void mark(int* marks, int node) { marks[node * kMarks + threadIdx.x] = node + threadIdx.x; }

// A node of a heap-ordered tree turns its tile around.
__global__ void turn(const int* from, int* to, int* marks, int node) {
  __shared__ int tile[kMost];
  const int threads = static_cast<int>(blockDim.x * blockDim.y);
  const int t = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  tile[t] = from[node * kMost + t];
  __syncthreads();
  to[node * kMost + t] = tile[threads - 1 - t] + static_cast<int>(blockDim.x) * 1000;
  if (t == 2) mark<<<1, kMarks, 0, cudaStreamFireAndForget>>>(marks, node);
  if (t > 1 || 2 * node + 1 + t >= kNodes) return;
  turn<<<1, dim3(blockDim.x, blockDim.y), 0, cudaStreamFireAndForget>>>(from, to, marks, 2 * node + 1 + t);
}

__global__ void grow(int* cells) { cells[threadIdx.x] += 1 + cells[threadIdx.x] % 2; }
__global__ void first_of_row(int* cells) {
  if (threadIdx.x == 0) grow<<<1, kMarks>>>(cells);
}

// Blocks of one row, and of several, which are the program's own.
void check_rows(gpu::Report& report) {
  gpu::Buffer<int> cells(kMarks);
  gpu::wait("zeros");
  int grown = 0;
  for (const unsigned rows : {1u, 8u, 1u}) {
    first_of_row<<<1, dim3(8, rows)>>>(cells.data());
    for (unsigned row = 0; row < rows; ++row) grown += 1 + grown % 2;
  }
  gpu::wait("rows");
  report.expect_equal("rows", cells.to_host(), std::vector<int>(kMarks, grown));
}

// Blocks in which both kernels run, and one smaller than the constant one, which is the program's own.
int main() {
  gpu::Report report("followers");
  std::vector<int> from(kNodes * kMost);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i * 7 % 1000);
  for (const dim3 block : {dim3(64), dim3(16, 12), dim3(32)}) {
    gpu::Buffer<int> source(from), result(kNodes * kMost), marks(kNodes * kMarks);
    gpu::wait("zeros");
    turn<<<1, block>>>(source.data(), result.data(), marks.data(), 0);
    gpu::wait("turn");
    const int threads = static_cast<int>(block.x * block.y);
    std::vector<int> turned(kNodes * kMost), marked;
    for (int node = 0; node < kNodes; ++node) {
      for (int t = 0; t < threads; ++t)
        turned[node * kMost + t] = from[node * kMost + threads - 1 - t] + static_cast<int>(block.x) * 1000;
      for (int t = 0; t < kMarks; ++t) marked.push_back(node + t);
    }
    report.expect_equal("turned", result.to_host(), turned);
    report.expect_equal("marked", marks.to_host(), marked);
  }
  check_rows(report);
  return report.finish();
}
