// Control flow around the launch: code after it, launches by some lanes only, early returns, also beside a
// barrier, launches in one branch, parents of three dimensions, empty children among real ones, arguments
// that need the code before the launch. Also built with -G, where every launch goes through a local wrapper
// function.
#include "program.h"

constexpr int kThreads = 384;

// Adds 1 + tag to each of `count` cells; the grid may be larger than that.
__global__ void add_tag(int* cells, int count, int tag) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(&cells[i], tag + 1);
}

// The code after the launch runs whether or not the launch got its buffer: the edge taken when it did not
// must not lead out of the kernel.
__global__ void launch_then_work(int* cells, int* flags) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  flags[t] = 1;
  add_tag<<<1, 32>>>(cells + t, 1, t);
  flags[t] += 2 * t;
}

__global__ void launch_by_third_lanes(int* cells, int* flags) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t % 3 == 0) {
    add_tag<<<2, 32>>>(cells + t, 3, t);
  } else {
    flags[t] = 7;
  }
  flags[t] += 1;
}

__global__ void launch_after_returns(int* cells, const int* wanted, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  if (wanted[t] == 0) return;
  if (wanted[t] < 0) {
    cells[t] = -1;
    return;
  }
  add_tag<<<(wanted[t] + 31) / 32, 32>>>(cells + t, 1, wanted[t]);
}

// Every fourth child has an empty grid, which CUDA refuses; its neighbours must not be touched by that.
__global__ void launch_some_empty(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add_tag<<<t % 4, 32>>>(cells + t, 1, t);
}

// The parent's grid and block have three dimensions; each thread launches once.
__global__ void launch_3d(int* cells) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int t = block * blockDim.x * blockDim.y * blockDim.z + thread;
  add_tag<<<1, 64>>>(cells + t, 1, t);
}

__global__ void launch_once(int* cells) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, static_cast<int>(threadIdx.x));
  __syncthreads();
  if (threadIdx.x == 0) add_tag<<<4, 96>>>(cells, kThreads, total);
}

// Threads that return early beside threads of the same warp that meet at a barrier, which must not wait for
// them.
__global__ void launch_behind_barrier(int* cells, int n) {
  __shared__ int numbers[128];
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n || t % 3 == 0) return;
  numbers[threadIdx.x] = t;
  __syncthreads();
  if (numbers[threadIdx.x] % 5 == 0) {
    cells[t] = -2;
    return;
  }
  add_tag<<<1, 32>>>(cells + t, 1, numbers[threadIdx.x]);
}

// What the parent wrote before the launch must be there when the child runs.
__global__ void double_cell(int* cells, int t) {
  if (threadIdx.x == 0) cells[t] *= 2;
}
__global__ void write_then_launch(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  cells[t] = t + 5;
  double_cell<<<1, 32>>>(cells, t);
}

// A loop with two ways in. So the compiler does not know where lanes come together again, and groups of them
// launch at the same places.
__global__ void launch_from_middle(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int round = 0;
  if (t % 3 == 1) goto middle;
  for (; round < 3 + t % 5; ++round) {
    if ((t + round) % 2 == 0) add_tag<<<1, 32>>>(cells + t, 1, round);
  middle:
    if ((t + round) % 3 != 0) add_tag<<<1, 32>>>(cells + t, 1, t);
  }
}

__device__ __noinline__ void add_in_called(int* cell, int tag) { add_tag<<<1, 32>>>(cell, 1, tag); }

__global__ void launch_in_called(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  switch (t * 7 % 5) {
    case 0:
      add_in_called(cells + t, t);
      break;
    case 1:
      add_in_called(cells + t, 5);
      break;
    case 2:
      add_in_called(cells + t, 2 * t);
      break;
    case 3:
      cells[t] = 3;
      break;
    default:
      add_in_called(cells + t, 0);
      break;
  }
}

void test_code_after(gpu::Report& report) {
  const gpu::Buffer<int> cells(kThreads);
  const gpu::Buffer<int> flags(kThreads);
  launch_then_work<<<3, 128>>>(cells.data(), flags.data());
  gpu::wait("launch_then_work");
  std::vector<int> expected_cells;
  std::vector<int> expected_flags;
  for (int t = 0; t < kThreads; ++t) {
    expected_cells.push_back(t + 1);
    expected_flags.push_back(1 + 2 * t);
  }
  report.expect_equal("children of launch_then_work", cells.to_host(), expected_cells);
  report.expect_equal("flags of launch_then_work", flags.to_host(), expected_flags);
}

void test_third_lanes(gpu::Report& report) {
  const gpu::Buffer<int> cells(kThreads + 3);
  const gpu::Buffer<int> flags(kThreads);
  launch_by_third_lanes<<<3, 128>>>(cells.data(), flags.data());
  gpu::wait("launch_by_third_lanes");
  std::vector<int> expected_cells(kThreads + 3);
  std::vector<int> expected_flags;
  for (int t = 0; t < kThreads; ++t) {
    if (t % 3 == 0) {
      for (int i = 0; i < 3; ++i) expected_cells[t + i] += t + 1;
    }
    expected_flags.push_back(t % 3 == 0 ? 1 : 8);
  }
  report.expect_equal("children of every third lane", cells.to_host(), expected_cells);
  report.expect_equal("flags of launch_by_third_lanes", flags.to_host(), expected_flags);
}

void test_returns(gpu::Report& report) {
  const int n = kThreads - 50;
  std::vector<int> wanted;
  std::vector<int> expected;
  for (int t = 0; t < kThreads; ++t) {
    wanted.push_back(t * 7 % 5 - 1);
    int cell = wanted[t] + 1;
    if (t >= n || wanted[t] == 0) cell = 0;
    if (t < n && wanted[t] < 0) cell = -1;
    expected.push_back(cell);
  }
  const gpu::Buffer<int> cells(kThreads);
  const gpu::Buffer<int> on_device(wanted);
  launch_after_returns<<<3, 128>>>(cells.data(), on_device.data(), n);
  gpu::wait("launch_after_returns");
  report.expect_equal("children after early returns", cells.to_host(), expected);
}

void test_empty(gpu::Report& report) {
  const gpu::Buffer<int> cells(kThreads);
  launch_some_empty<<<3, 128>>>(cells.data());
  gpu::wait("launch_some_empty");
  std::vector<int> expected;
  for (int t = 0; t < kThreads; ++t) expected.push_back(t % 4 == 0 ? 0 : t + 1);
  report.expect_equal("children beside empty ones", cells.to_host(), expected);
}

void test_3d(gpu::Report& report) {
  const gpu::Buffer<int> cells(3 * 2 * 2 * 5 * 3 * 2);
  launch_3d<<<dim3(3, 2, 2), dim3(5, 3, 2)>>>(cells.data());
  gpu::wait("launch_3d");
  std::vector<int> expected;
  for (int t = 0; t < 3 * 2 * 2 * 5 * 3 * 2; ++t) expected.push_back(t + 1);
  report.expect_equal("children of a three-dimensional parent", cells.to_host(), expected);
}

void test_once(gpu::Report& report) {
  const gpu::Buffer<int> cells(kThreads);
  launch_once<<<1, 100>>>(cells.data());
  gpu::wait("launch_once");
  report.expect_equal("child of one thread", cells.to_host(), std::vector<int>(kThreads, 99 * 100 / 2 + 1));
}

// Several launches in a row, of which the first has no child at all: each must find everything as if it were
// alone.
void test_barrier(gpu::Report& report) {
  const int n = kThreads - 30;
  const gpu::Buffer<int> cells(kThreads);
  for (const int threads : {0, n, n, n}) launch_behind_barrier<<<3, 128>>>(cells.data(), threads);
  gpu::wait("launch_behind_barrier");
  std::vector<int> expected;
  for (int t = 0; t < kThreads; ++t) {
    const bool returns = t >= n || t % 3 == 0;
    expected.push_back(returns ? 0 : t % 5 == 0 ? -2 : 3 * (t + 1));
  }
  report.expect_equal("children launched behind a barrier", cells.to_host(), expected);
}

void test_write(gpu::Report& report) {
  const gpu::Buffer<int> cells(kThreads);
  write_then_launch<<<3, 128>>>(cells.data());
  gpu::wait("write_then_launch");
  std::vector<int> expected;
  for (int t = 0; t < kThreads; ++t) expected.push_back(2 * (t + 5));
  report.expect_equal("children that read what the parent wrote", cells.to_host(), expected);
}

void test_ways(gpu::Report& report) {
  const gpu::Buffer<int> from_middle(128);
  const gpu::Buffer<int> in_called(kThreads);
  launch_from_middle<<<1, 128>>>(from_middle.data());  // of more threads, CUDA would lose launches
  launch_in_called<<<3, 128>>>(in_called.data());
  gpu::wait("launch_from_middle and launch_in_called");
  std::vector<int> expected_from_middle;
  std::vector<int> expected_in_called;
  for (int t = 0; t < kThreads; ++t) {
    const int way = t * 7 % 5;
    expected_in_called.push_back(way == 0 ? t + 1 : way == 1 ? 6 : way == 2 ? 2 * t + 1 : way == 3 ? 3 : 1);
    if (t >= 128) continue;
    int cell = 0;
    for (int round = 0; round < 3 + t % 5 || (round == 0 && t % 3 == 1); ++round) {
      if ((t + round) % 2 == 0 && !(round == 0 && t % 3 == 1)) cell += round + 1;
      if ((t + round) % 3 != 0) cell += t + 1;
    }
    expected_from_middle.push_back(cell);
  }
  report.expect_equal("children of a loop with two ways in", from_middle.to_host(), expected_from_middle);
  report.expect_equal("children of a called function", in_called.to_host(), expected_in_called);
}

int main() {
  gpu::Report report("control");
  test_ways(report);
  test_code_after(report);
  test_third_lanes(report);
  test_returns(report);
  test_empty(report);
  test_3d(report);
  test_once(report);
  test_barrier(report);
  test_write(report);
  return report.finish();
}
