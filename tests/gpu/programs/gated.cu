// Launches behind a kernel that does not end: the driver holds the host when its queue is full. A parent is
// one of its operations, as natively. So the host gets about as far with parents as with kernels that launch
// nothing, until somebody opens the gate. It may be held for half a second on its way.
//
// The argument is the number of launches behind the gate.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "program.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads = 64, kChildren = 8, kBefore = 600, kMostFewer = 160;
constexpr std::chrono::milliseconds kClosed{2000};

__global__ void gate(const volatile int* is_open) {
  while (*is_open == 0) {
  }
}

__global__ void child(int* count) {
  if (threadIdx.x == 0) atomicAdd(count, 1);
}

__global__ void parent(int* count) {
  if (threadIdx.x < kChildren) child<<<1, 32>>>(count);
}

__global__ void plain(int* count) {
  if (threadIdx.x < kChildren) atomicAdd(count, 1);
}

using Kernel = void (*)(int*);

// How many launches the host makes before the gate opens, which is some time later.
int launches_before_open(Kernel kernel, int most, int* count, volatile int* is_open, cudaStream_t stream) {
  *is_open = 0;
  gate<<<1, 1, 0, stream>>>(const_cast<int*>(is_open));
  std::atomic<int> made = 0, made_before = 0;
  std::thread opener([&] {
    const auto end = Clock::now() + kClosed;
    while (made < most && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    made_before = made.load();
    *is_open = 1;
  });
  for (; made < most; ++made) kernel<<<1, kThreads, 0, stream>>>(count);
  opener.join();
  gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return made_before;
}

}  // namespace

int main(int argc, char** argv) {
  gpu::Report report("gated");
  const int launches = argc > 1 ? std::atoi(argv[1]) : 2000;
  gpu::Buffer<int> count(1);
  int* is_open = nullptr;
  gpu::check(cudaMallocHost(&is_open, sizeof *is_open), "cudaMallocHost");
  cudaStream_t stream = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  for (int i = 0; i < kBefore; ++i) {
    parent<<<1, kThreads, 0, stream>>>(count.data());
    plain<<<1, kThreads, 0, stream>>>(count.data());
  }
  gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const int of_plain = launches_before_open(plain, launches, count.data(), is_open, stream);
  const int of_parents = launches_before_open(parent, launches, count.data(), is_open, stream);
  std::printf("launches before the gate opens: %d without children, %d with\n", of_plain, of_parents);
  report.expect(of_parents >= of_plain - kMostFewer,
                "the host is held after %d parents, and %d other kernels", of_parents, of_plain);
  report.expect_equal("count", count.to_host(), {2 * kChildren * (kBefore + launches)});
  gpu::check(cudaStreamDestroy(stream), "cudaStreamDestroy");
  gpu::check(cudaFreeHost(is_open), "cudaFreeHost");
  return report.finish();
}
