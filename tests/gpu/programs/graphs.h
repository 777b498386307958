// The kernels of graphs.cu, the memory that they change with what is expected of it, and handles of the
// runtime whose calls are checked.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "program.h"

constexpr int kBlocks = 4;
constexpr int kBlockSize = 64;
constexpr int kThreads = kBlocks * kBlockSize;
constexpr int kMostBlocks = 16;

__global__ void add_to(int* cell, int amount) {
  if (threadIdx.x == 0) atomicAdd(cell, amount);
}

// Thread t's child has t % 3 + 1 blocks, each of which adds `amount` to cell t.
__global__ void parent(int* cells, int amount) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add_to<<<t % 3 + 1, 32>>>(cells + t, amount);
}

// The same with another child, into a stream without order.
__global__ void parent_forget(int* cells, int amount) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add_to<<<1, 64, 0, cudaStreamFireAndForget>>>(cells + t, (t % 3 + 1) * amount);
}

__global__ void square(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cells[t] = cells[t] * cells[t] % 1009;
}

__global__ void times_plus(int* cell, int factor, int addend) { *cell = *cell * factor % 1009 + addend; }

// The launches of one thread follow each other.
__global__ void in_order(int* cells) {
  if (threadIdx.x != 0) return;
  for (int i = 0; i < 5; ++i) times_plus<<<1, 1>>>(cells + blockIdx.x, i + 2, 1);
}

// A tree of launches: 2^(depth + 1) - 1 grids add one each.
__global__ void descend(int* cell, int depth) {
  atomicAdd(cell, 1);
  if (depth == 0) return;
  descend<<<1, 1>>>(cell, depth - 1);
  descend<<<1, 1>>>(cell, depth - 1);
}

// A chain of one block that launches itself: what one link leaves, the next one needs.
__global__ void links(int* cells, int link, int all) {
  cells[threadIdx.x] = (cells[threadIdx.x] * 3 + link) % 1009;
  if (link + 1 == all) return;
  __syncthreads();
  if (threadIdx.x == 0) links<<<1, kBlockSize>>>(cells, link + 1, all);
}
// The links pass a value on.
__global__ void passing(int* cells, int link, int all, int value) {
  const int next = value * 5 % 1009 + link;
  if (threadIdx.x == 0) cells[link] += next;
  if (link + 1 == all) return;
  __syncthreads();
  if (threadIdx.x == 0) passing<<<1, kBlockSize>>>(cells, link + 1, all, next);
}

// What `parent` does, without launches.
__global__ void alone(int* cells, int amount) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cells[t] += (t % 3 + 1) * amount;
}

// Two launch sites, so two queues where each has its own.
__global__ void parent_of_two(int* cells, int amount) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add_to<<<1, 32>>>(cells + t, amount);
  if (t % 3 != 0) add_to<<<t % 3, 32>>>(cells + t, amount);
}

__global__ void follow(const int* from, int* to) { to[threadIdx.x] = from[threadIdx.x] * 3 % 1009 + 1; }

// That the order of the children does not matter is known where the pointers lead to different allocations.
__global__ void parent_of_followers(const int* from, int* to) {
  const int t = threadIdx.x;
  follow<<<1, 8>>>(from + 8 * t, to + 8 * t);
}

class Cells {
 public:
  // Streams that do not wait for the legacy stream would not wait for its zeros.
  Cells() : buffer_(kMostBlocks * kBlockSize), expected_(kMostBlocks * kBlockSize) { gpu::wait("zeros"); }
  int* data() { return buffer_.data(); }
  void expect_parent(int amount, int blocks = kBlocks) {
    for (int t = 0; t < blocks * kBlockSize; ++t) expected_[t] += (t % 3 + 1) * amount;
  }
  void expect_fill(int value) { std::fill_n(expected_.begin(), kThreads, value); }
  void expect_square() {
    for (int t = 0; t < kThreads; ++t) expected_[t] = expected_[t] * expected_[t] % 1009;
  }
  void expect_in_order(int blocks) {
    for (int block = 0; block < blocks; ++block) {
      for (int i = 0; i < 5; ++i) expected_[block] = expected_[block] * (i + 2) % 1009 + 1;
    }
  }
  void expect_followers(const Cells& from) {
    for (int t = 0; t < kThreads; ++t) expected_[t] = from.expected_[t] * 3 % 1009 + 1;
  }
  void expect_descent(int depth) { expected_[0] += (2 << depth) - 1; }
  void expect_links(int all) {
    for (int t = 0; t < kBlockSize; ++t) {
      for (int link = 0; link < all; ++link) expected_[t] = (expected_[t] * 3 + link) % 1009;
    }
  }
  void expect_passing(int all) {
    for (int link = 0, value = 1; link < all; ++link) {
      value = value * 5 % 1009 + link;
      expected_[link] += value;
    }
  }
  void compare(gpu::Report& report, const char* what) {
    gpu::wait(what);
    report.expect_equal(what, buffer_.to_host(), expected_);
  }
  // The first wrong cell, or nothing. For a thread that has waited for its own work.
  [[nodiscard]] std::string mistake() const {
    const std::vector<int> cells = buffer_.to_host();
    const auto [got, want] = std::mismatch(cells.begin(), cells.end(), expected_.begin());
    if (got == cells.end()) return "";
    return "cell " + std::to_string(got - cells.begin()) + " is " + std::to_string(*got) + " instead of " +
           std::to_string(*want);
  }

 private:
  gpu::Buffer<int> buffer_;
  std::vector<int> expected_;
};

class Stream {
 public:
  Stream() { gpu::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { gpu::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

// What `work` puts into the stream, as a graph.
template <class Work>
cudaGraph_t capture(cudaStream_t stream, const Work& work,
                    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  cudaGraph_t graph = nullptr;
  gpu::check(cudaStreamBeginCapture(stream, mode), "cudaStreamBeginCapture");
  work();
  gpu::check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  return graph;
}

cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  gpu::check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  return executable;
}

void launch(cudaGraphExec_t executable, cudaStream_t stream) {
  gpu::check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
}

void destroy(cudaGraphExec_t executable) {
  gpu::check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
}
void destroy(cudaGraph_t graph) { gpu::check(cudaGraphDestroy(graph), "cudaGraphDestroy"); }

// A launch of `parent` as parameters of a node.
struct ParentNode {
  ParentNode(int* to, int by, int blocks = kBlocks) : cells(to), amount(by) {
    params.func = reinterpret_cast<void*>(parent);
    params.gridDim = dim3(blocks);
    params.blockDim = dim3(kBlockSize);
    params.kernelParams = arguments;
  }
  ParentNode(const ParentNode&) = delete;
  ParentNode& operator=(const ParentNode&) = delete;
  cudaGraphNode_t add(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& after = {}) const {
    cudaGraphNode_t node = nullptr;
    gpu::check(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params),
               "cudaGraphAddKernelNode");
    return node;
  }

  int* cells;
  int amount;
  void* arguments[2] = {&cells, &amount};
  cudaKernelNodeParams params{};
};

cudaGraphNode_t add_square(cudaGraph_t graph, int* cells, const std::vector<cudaGraphNode_t>& after) {
  cudaKernelNodeParams params{};
  void* arguments[] = {&cells};
  params.func = reinterpret_cast<void*>(square);
  params.gridDim = dim3(kBlocks);
  params.blockDim = dim3(kBlockSize);
  params.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  gpu::check(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params),
             "cudaGraphAddKernelNode");
  return node;
}
