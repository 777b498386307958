// Parents launched by several host threads at once: eight threads with a stream each, then four that share
// one stream. Launch contexts belong to streams, so this is where a record of one launch could end up in
// another's.
#include <thread>

#include "program.h"

constexpr int kBlocks = 2;
constexpr int kBlockSize = 64;
constexpr int kThreads = kBlocks * kBlockSize;
constexpr int kLaunches = 30;

__global__ void add_to(int* cell, int amount) {
  if (threadIdx.x % 32 == 0) atomicAdd(cell, amount);
}

__global__ void parent(int* cells, int amount) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t % 5 != 4) add_to<<<t % 4 + 1, 64>>>(cells + t, amount);
}

// What kLaunches launches with the amounts first, first + 1, ... leave in the cells.
std::vector<int> expected_cells(int first) {
  std::vector<int> cells(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kLaunches; ++i) cells[t] += t % 5 != 4 ? 2 * (t % 4 + 1) * (first + i) : 0;
  }
  return cells;
}

void launch_all(int* cells, int first, cudaStream_t stream) {
  for (int i = 0; i < kLaunches; ++i) parent<<<kBlocks, kBlockSize, 0, stream>>>(cells, first + i);
  gpu::check(cudaGetLastError(), "launching parents");
}

void run_threads(gpu::Report& report, const char* what, int count, const std::vector<cudaStream_t>& streams) {
  std::vector<gpu::Buffer<int>*> buffers;
  for (int i = 0; i < count; ++i) buffers.push_back(new gpu::Buffer<int>(kThreads));
  gpu::wait("clearing the cells");
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] { launch_all(buffers[i]->data(), 10 * i, streams[i % streams.size()]); });
  }
  for (std::thread& thread : threads) thread.join();
  gpu::wait(what);
  for (int i = 0; i < count; ++i) {
    report.expect_equal(what, buffers[i]->to_host(), expected_cells(10 * i));
    delete buffers[i];
  }
}

int main() {
  gpu::Report report("host_threads");
  std::vector<cudaStream_t> streams(8);
  for (cudaStream_t& stream : streams) {
    gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  run_threads(report, "eight host threads, a stream each", 8, streams);
  run_threads(report, "four host threads in one stream", 4, {streams[0]});
  run_threads(report, "four host threads in the default stream", 4, {nullptr});
  for (cudaStream_t stream : streams) gpu::check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return report.finish();
}
