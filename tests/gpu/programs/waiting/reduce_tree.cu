// The sum over a tree whose nodes have 256 values each. Each block keeps its values in shared memory,
// registers and a small local array while two of its threads, in different branches, wait for two children
// each. A quarter of the threads returns before the wait. Afterwards the block counts odd values, chosen by
// its children's sums.
#include "sizes.h"

namespace {

constexpr int threads = 64;
constexpr int staying = 48;

}  // namespace

// Block b works on node first + b. The children of node k are the nodes 4k + 1 to 4k + 4.
extern "C" __global__ void add(const unsigned* values, unsigned* sums, int first, int levels);

#ifdef __CUDACC__
extern "C" __global__ void add(const unsigned* values, unsigned* sums, int first, int levels) {
  __shared__ unsigned of_thread[threads];
  const int node = first + static_cast<int>(blockIdx.x), child = 4 * node + 1;
  const unsigned thread = threadIdx.x;
  unsigned kept[4], own = 0;
  for (unsigned i = 0; i < 4; ++i) {
    kept[i] = values[(static_cast<unsigned>(node) * threads + thread) * 4 + i];
    own += kept[i] >> i;
  }
  of_thread[thread] = own;
  __syncthreads();
  if (thread >= staying) return;
  if (levels > 1) {
    if (thread == 0) {
      add<<<2, threads>>>(values, sums, child, levels - 1);
      cudaDeviceSynchronize();
    } else if (thread == 33) {
      add<<<2, threads>>>(values, sums, child + 2, levels - 1);
      cudaDeviceSynchronize();
    }
  }
  __syncthreads();
  unsigned below = 0;
  for (int i = 0; levels > 1 && i < 4; ++i) below += sums[child + i];
  const int odd = __syncthreads_count(static_cast<int>((kept[(below + thread) % 4] ^ own) & 1));
  if (thread != 0) return;
  unsigned sum = below + static_cast<unsigned>(odd);
  for (const unsigned value : of_thread) sum += value;
  sums[node] = sum;
}
#endif

#ifndef __CUDACC_RTC__
namespace {

unsigned on_cpu(const std::vector<unsigned>& values, std::vector<unsigned>& sums, int node, int levels) {
  unsigned below = 0;
  for (int i = 1; levels > 1 && i <= 4; ++i) below += on_cpu(values, sums, 4 * node + i, levels - 1);
  unsigned sum = below;
  for (unsigned thread = 0; thread < threads; ++thread) {
    const unsigned* kept = &values[(static_cast<unsigned>(node) * threads + thread) * 4];
    const unsigned own = kept[0] + (kept[1] >> 1) + (kept[2] >> 2) + (kept[3] >> 3);
    const bool counts = thread < staying && ((kept[(below + thread) % 4] ^ own) & 1) != 0;
    sum += own + (counts ? 1 : 0);
  }
  return sums[node] = sum;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("reduce_tree", argc, argv, [](gpu::Report& report, int size) {
    const int levels = size + 2;
    int nodes = 1;
    for (int level = 0; level < levels; ++level) nodes = 4 * nodes + 1;
    std::vector<unsigned> values;
    unsigned state = 5;
    for (int i = 0; i < nodes * threads * 4; ++i) {
      state = state * 1664525 + 1013904223;
      values.push_back(state >> 8);
    }
    std::vector<unsigned> want(nodes);
    gpu::Buffer<unsigned> device_values(values), sums(want);
    WAITING_LAUNCH(add, 4, threads)(device_values.data(), sums.data(), 1, levels);
    gpu::wait("add");
    for (int root = 1; root <= 4; ++root) on_cpu(values, want, root, levels);
    report.expect_equal("a sum", sums.to_host(), want);
  });
}
#endif
