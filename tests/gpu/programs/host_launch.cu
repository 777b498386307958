// Every way the host has to launch a parent: <<<>>> on the default, the legacy, the per-thread and created
// streams, cudaLaunchKernel, cudaLaunchKernelExC with and without attributes, a cooperative launch, clusters,
// a captured graph replayed several times, dynamic shared memory beyond 48 KB, many launches without waiting
// in between, and streams that come and go.
//
// Where CUDA itself may refuse, the error code is printed (so that native and preloaded runs can be compared)
// and the result is checked against what that code means.
#include "program.h"

constexpr int kBlocks = 4;
constexpr int kBlockSize = 64;
constexpr int kThreads = kBlocks * kBlockSize;

__global__ void add_to(int* cell, int amount) {
  if (threadIdx.x == 0) atomicAdd(cell, amount);
}

// Thread t's child has t % 3 + 1 blocks, each of which adds `amount` to cell t.
__global__ void parent(int* cells, int amount) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add_to<<<t % 3 + 1, 32>>>(cells + t, amount);
}

__global__ void parent_forget(int* cells, int amount) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add_to<<<t % 3 + 1, 32, 0, cudaStreamFireAndForget>>>(cells + t, amount);
}

__global__ void parent_shared(int* cells, int amount) {
  extern __shared__ int scratch[];
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  constexpr int far = 15 * 1024;  // in ints: 60 KB
  scratch[far + threadIdx.x] = amount;
  __syncthreads();
  add_to<<<t % 3 + 1, 32>>>(cells + t, scratch[far + (threadIdx.x + 1) % kBlockSize]);
}

// Runs between parents: every child of the parent before it must be done, none of the parent after it begun.
__global__ void square(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cells[t] = cells[t] * cells[t] % 1009;
}

class Cells {
 public:
  Cells() : buffer_(kThreads), expected_(kThreads) {}
  int* data() { return buffer_.data(); }
  void expect_parent(int amount) {
    for (int t = 0; t < kThreads; ++t) expected_[t] += (t % 3 + 1) * amount;
  }
  void expect_square() {
    for (int& cell : expected_) cell = cell * cell % 1009;
  }
  void compare(gpu::Report& report, const char* what) {
    gpu::wait(what);
    report.expect_equal(what, buffer_.to_host(), expected_);
  }

 private:
  gpu::Buffer<int> buffer_;
  std::vector<int> expected_;
};

void test_streams(gpu::Report& report) {
  Cells cells;
  const cudaStream_t special[] = {nullptr, cudaStreamLegacy, cudaStreamPerThread};
  for (cudaStream_t stream : special) {
    parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 2);
    parent_forget<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 3);
    gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    cells.expect_parent(5);
  }
  for (int i = 0; i < 40; ++i) {
    cudaStream_t stream = nullptr;
    gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), i);
    // Destroying a stream with work in it is allowed: the work is finished all the same.
    gpu::check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    gpu::wait("parent in a short-lived stream");
    cells.expect_parent(i);
  }
  cells.compare(report, "streams");
}

void test_in_order(gpu::Report& report) {
  Cells cells;
  for (int i = 0; i < 60; ++i) {
    parent<<<kBlocks, kBlockSize>>>(cells.data(), i);
    square<<<kBlocks, kBlockSize>>>(cells.data());
    cells.expect_parent(i);
    cells.expect_square();
  }
  cells.compare(report, "parents and plain kernels in turn");
}

void test_runtime_calls(gpu::Report& report) {
  Cells cells;
  int* data = cells.data();
  int amount = 4;
  void* arguments[] = {&data, &amount};
  gpu::check(cudaLaunchKernel(reinterpret_cast<const void*>(parent), dim3(kBlocks), dim3(kBlockSize),
                              arguments, 0, nullptr),
             "cudaLaunchKernel");
  cells.expect_parent(4);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(kBlockSize);
  amount = 6;
  gpu::check(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(parent), arguments),
             "cudaLaunchKernelExC");
  cells.expect_parent(6);
  cudaLaunchAttribute priority{};
  priority.id = cudaLaunchAttributePriority;
  priority.val.priority = 0;
  config.attrs = &priority;
  config.numAttrs = 1;
  amount = 1;
  gpu::check(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(parent_forget), arguments),
             "cudaLaunchKernelExC with a priority");
  cells.expect_parent(1);
  cells.compare(report, "cudaLaunchKernel and cudaLaunchKernelExC");
}

// Launches whose parents CUDA may refuse; code 0 means that everything must have run.
void finish_maybe(gpu::Report& report, const char* what, cudaError_t error, Cells& cells, int amount) {
  std::printf("%s: code %d\n", what, static_cast<int>(error));
  cudaGetLastError();
  if (error == cudaSuccess) cells.expect_parent(amount);
  cells.compare(report, what);
}

void test_cooperative(gpu::Report& report) {
  Cells cells;
  int* data = cells.data();
  int amount = 9;
  void* arguments[] = {&data, &amount};
  const cudaError_t error = cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(parent), dim3(kBlocks),
                                                        dim3(kBlockSize), arguments, 0, nullptr);
  finish_maybe(report, "cooperative launch", error, cells, amount);
}

void test_cluster(gpu::Report& report) {
  Cells cells;
  int* data = cells.data();
  int amount = 8;
  void* arguments[] = {&data, &amount};
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = 2;
  cluster.val.clusterDim.y = 1;
  cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(kBlockSize);
  config.attrs = &cluster;
  config.numAttrs = 1;
  const cudaError_t error = cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(parent), arguments);
  finish_maybe(report, "launch in clusters of two blocks", error, cells, amount);
}

void test_shared_memory(gpu::Report& report) {
  Cells cells;
  constexpr int kBytes = 64 * 1024;
  gpu::check(cudaFuncSetAttribute(parent_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
             "raising the shared memory limit");
  parent_shared<<<kBlocks, kBlockSize, kBytes>>>(cells.data(), 11);
  cells.expect_parent(11);
  cells.compare(report, "64 KB of dynamic shared memory");
}

cudaError_t capture(cudaStream_t stream, Cells& cells, cudaGraphExec_t* executable) {
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
  if (error != cudaSuccess) return error;
  parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 7);
  square<<<kBlocks, kBlockSize, 0, stream>>>(cells.data());
  parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 2);
  error = cudaStreamEndCapture(stream, &graph);
  if (error != cudaSuccess) return error;
  error = cudaGraphInstantiate(executable, graph, 0);
  cudaGraphDestroy(graph);
  return error;
}

void test_graph(gpu::Report& report) {
  Cells cells;
  cudaStream_t stream = nullptr;
  cudaGraphExec_t executable = nullptr;
  gpu::check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const cudaError_t error = capture(stream, cells, &executable);
  std::printf("capturing a parent into a graph: code %d\n", static_cast<int>(error));
  cudaGetLastError();
  if (error == cudaSuccess) {
    for (int replay = 0; replay < 3; ++replay) {
      gpu::check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
      // The same parent outside the graph, between two replays.
      parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), replay);
      cells.expect_parent(7);
      cells.expect_square();
      cells.expect_parent(2);
      cells.expect_parent(replay);
    }
    gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    gpu::check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  }
  cells.compare(report, "captured graph");
  gpu::check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

int main() {
  gpu::Report report("host_launch");
  test_streams(report);
  test_in_order(report);
  test_runtime_calls(report);
  test_shared_memory(report);
  test_cooperative(report);
  test_cluster(report);
  test_graph(report);
  return report.finish();
}
