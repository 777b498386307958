// One module in the contexts of all devices: queues, prepared variants and variables belong to a context, and
// a stream's handle says nothing without it. One host thread takes the devices in turn, then each has a
// thread of its own, and then one device waits for another one's parent.
#include <memory>
#include <thread>

#include "program.h"

constexpr int kBlocks = 3, kBlockSize = 64, kThreads = kBlocks * kBlockSize, kLaunches = 12;

__device__ int of_device;

__global__ void add_to(int* cell, int amount) {
  if (threadIdx.x == 0) atomicAdd(cell, amount + of_device);
}

__global__ void parent(int* cells, int amount) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t % 3 != 2) add_to<<<t % 4 + 1, 32>>>(cells + t, amount);
}

// What so many launches with the amounts first, first + 1, ... leave on a device.
std::vector<int> expected_cells(int device, int launches, int first) {
  std::vector<int> cells(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < launches && t % 3 != 2; ++i) cells[t] += (t % 4 + 1) * (first + i + 100 * device);
  }
  return cells;
}

struct Device {
  int number = 0;
  cudaStream_t stream = nullptr;
  std::unique_ptr<gpu::Buffer<int>> cells;
};

void use(const Device& device) { gpu::check(cudaSetDevice(device.number), "cudaSetDevice"); }

void launch(const Device& device, int amount) {
  parent<<<kBlocks, kBlockSize, 0, device.stream>>>(device.cells->data(), amount);
  gpu::check(cudaGetLastError(), "launching parents");
}

void clear(const std::vector<Device>& devices) {
  for (const Device& device : devices) {
    use(device);
    gpu::check(cudaMemset(device.cells->data(), 0, device.cells->bytes()), "clearing");
    gpu::wait("clearing");
  }
}

void expect(gpu::Report& report, const char* what, const std::vector<Device>& devices, int launches) {
  for (const Device& device : devices) {
    use(device);
    gpu::wait(what);
    report.expect_equal(what, device.cells->to_host(), expected_cells(device.number, launches, 1));
  }
}

void take_turns(gpu::Report& report, const std::vector<Device>& devices) {
  clear(devices);
  for (int i = 0; i < kLaunches; ++i) {
    for (const Device& device : devices) {
      use(device);
      launch(device, 1 + i);
    }
  }
  expect(report, "one host thread", devices, kLaunches);
}

void run_side_by_side(gpu::Report& report, const std::vector<Device>& devices) {
  clear(devices);
  std::vector<std::thread> threads;
  for (const Device& device : devices) {
    threads.emplace_back([&device] {
      use(device);
      for (int i = 0; i < kLaunches; ++i) launch(device, 1 + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect(report, "a host thread each", devices, kLaunches);
}

// A copy on the next device begins when the parent on this one is done, with all of its children.
void wait_for_each_other(gpu::Report& report, const std::vector<Device>& devices) {
  clear(devices);
  std::vector<int> seen(kThreads);
  for (size_t i = 0; i + 1 < devices.size(); ++i) {
    cudaEvent_t done = nullptr;
    use(devices[i]);
    gpu::check(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), "cudaEventCreate");
    launch(devices[i], 1);
    gpu::check(cudaEventRecord(done, devices[i].stream), "cudaEventRecord");
    use(devices[i + 1]);
    gpu::check(cudaStreamWaitEvent(devices[i + 1].stream, done), "cudaStreamWaitEvent");
    gpu::check(cudaMemcpyAsync(seen.data(), devices[i].cells->data(), devices[i].cells->bytes(),
                               cudaMemcpyDeviceToHost, devices[i + 1].stream),
               "copying");
    gpu::check(cudaStreamSynchronize(devices[i + 1].stream), "cudaStreamSynchronize");
    report.expect_equal("another device's children", seen, expected_cells(devices[i].number, 1, 1));
    gpu::check(cudaEventDestroy(done), "cudaEventDestroy");
  }
}

int main() {
  gpu::Report report("many_devices");
  int count = 0;
  gpu::check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  std::vector<Device> devices(static_cast<size_t>(count));
  for (int number = 0; number < count; ++number) {
    Device& device = devices[static_cast<size_t>(number)];
    device.number = number;
    use(device);
    gpu::check(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    device.cells = std::make_unique<gpu::Buffer<int>>(kThreads);
    const int hundreds = 100 * number;
    gpu::check(cudaMemcpyToSymbol(of_device, &hundreds, sizeof hundreds), "cudaMemcpyToSymbol");
  }
  take_turns(report, devices);
  run_side_by_side(report, devices);
  wait_for_each_other(report, devices);
  for (Device& device : devices) {
    use(device);
    device.cells.reset();
    gpu::check(cudaStreamDestroy(device.stream), "cudaStreamDestroy");
  }
  std::printf("%d devices\n", count);
  return report.finish();
}
