// Small recursions in several streams, of a program that then takes all of the device's memory, and launches
// them again. Queues must not need pages that the program has taken: the driver would end the kernel.
#include "tree.h"

constexpr int kStreams = 8;
constexpr size_t kLeast = size_t{1} << 20;
constexpr size_t kGivenBack = size_t{64} << 20;  // natively, launches need some memory as well

struct Work {
  cudaStream_t stream = nullptr;
  Tree tree;
};

void launch_all(gpu::Report& report, const std::vector<Work>& works, int round) {
  for (const Work& work : works) work.tree.launch(round, work.stream);
  gpu::wait("launches in all streams");
  for (const Work& work : works) work.tree.expect_right(report, round);
}

// Halves what it asks for where there is no more, down to the least.
std::vector<void*> take_all_memory() {
  std::vector<void*> pieces;
  for (size_t bytes = size_t{4} << 30; bytes >= kLeast; bytes /= 2) {
    void* piece = nullptr;
    while (cudaMalloc(&piece, bytes) == cudaSuccess) pieces.push_back(piece);
    cudaGetLastError();  // which is that there is no more
  }
  return pieces;
}

int main() {
  gpu::Report report("full_memory");
  std::vector<Work> works(kStreams);
  for (Work& work : works)
    gpu::check(cudaStreamCreateWithFlags(&work.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  gpu::wait("zeros");  // which the streams do not wait for by themselves
  launch_all(report, works, 0);
  // Kernels are under way while the program takes the first piece.
  for (const Work& work : works) work.tree.launch(1, work.stream);
  std::vector<void*> pieces = take_all_memory();
  while (!pieces.empty() && free_memory() < kGivenBack) {
    gpu::check(cudaFree(pieces.back()), "cudaFree");
    pieces.pop_back();
  }
  gpu::wait("launches beside allocations");
  for (const Work& work : works) work.tree.expect_right(report, 1);
  launch_all(report, works, 2);
  for (void* piece : pieces) gpu::check(cudaFree(piece), "cudaFree");
  launch_all(report, works, 3);
  return report.finish();
}
