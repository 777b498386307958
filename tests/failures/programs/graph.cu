// A graph with a parent, instantiated twice and replayed: its node is replaced in copies of the graph.
#include "program.h"

constexpr int kThreads = 4;

__global__ void add_to(int* cell, int amount) {
  if (threadIdx.x == 0) atomicAdd(cell, amount);
}

__global__ void parent(int* cells) { add_to<<<threadIdx.x + 1, 32>>>(cells + threadIdx.x, 3); }

__global__ void twice(int* cells) { cells[threadIdx.x] *= 2; }

int main() {
  gpu::Report report("graph");
  gpu::Buffer<int> cells(kThreads);
  std::vector<int> expected(kThreads);
  cudaGraph_t graph = nullptr;
  gpu::check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  int* data = cells.data();
  void* arguments[] = {&data};
  cudaGraphNode_t nodes[2] = {};
  for (int i = 0; i < 2; ++i) {
    cudaKernelNodeParams params{};
    params.func = i == 0 ? reinterpret_cast<void*>(parent) : reinterpret_cast<void*>(twice);
    params.gridDim = dim3(1);
    params.blockDim = dim3(kThreads);
    params.kernelParams = arguments;
    gpu::check(cudaGraphAddKernelNode(&nodes[i], graph, nodes, i, &params), "cudaGraphAddKernelNode");
  }
  for (int round = 0; round < 2; ++round) {
    cudaGraphExec_t executable = nullptr;
    gpu::check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    for (int replay = 0; replay < 2; ++replay) {
      gpu::check(cudaGraphLaunch(executable, nullptr), "cudaGraphLaunch");
      for (int t = 0; t < kThreads; ++t) expected[t] = (expected[t] + (t + 1) * 3) * 2;
    }
    gpu::check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  }
  gpu::check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  gpu::wait("replays");
  report.expect_equal("cells", cells.to_host(), expected);
  return report.finish();
}
