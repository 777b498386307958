// Many lanes of a warp launch into the same stream, before and behind waits, together and apart.
//
// Code that goes on behind a wait is entered in its middle. From there the compiler may not bring lanes
// together again that go the same way, so several groups of them launch at the same place. The numbers of
// threads are those of part of a warp, of a whole one, and of both.
#include "sizes.h"

namespace {
constexpr int kCells = 4;  // that each thread's children fill
}

extern "C" __global__ void together(int* sums, int* cells, int rounds);
extern "C" __global__ void apart(int* sums, int* cells, int rounds);
extern "C" __global__ void from_called(int* sums, int* cells, int rounds);

#ifdef __CUDACC__
extern "C" __global__ void add(int* cells, int count, int first) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) cells[i] += first + i;
}

__device__ int sum_of(const int* cells, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += cells[i];
  return sum;
}

// All threads launch, and one of them waits.
extern "C" __global__ void together(int* sums, int* cells, int rounds) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int round = 1; round <= rounds; ++round) {
    add<<<1, kCells>>>(cells + t * kCells, kCells, t * round);
    __syncthreads();
    if (threadIdx.x == round % blockDim.x) cudaDeviceSynchronize();
    __syncthreads();
    sums[t] += sum_of(cells + t * kCells, kCells);
    __syncthreads();
  }
}

// Each thread launches and waits as often as its number says.
extern "C" __global__ void apart(int* sums, int* cells, int rounds) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 1; round <= rounds + t % 3; ++round) {
    if ((t + round) % 2 == 0) {
      add<<<1, kCells>>>(cells + t * kCells, kCells, t);
      cudaDeviceSynchronize();
      sums[t] += sum_of(cells + t * kCells, kCells);
    } else {
      add<<<1, kCells>>>(cells + t * kCells, kCells, round);
      add<<<1, 1>>>(cells + t * kCells, 1, t);
    }
  }
  cudaDeviceSynchronize();
  sums[t] += sum_of(cells + t * kCells, kCells);
}

__device__ __noinline__ void add_by_two(int* cells, int first) {
  add<<<1, kCells>>>(cells, kCells, first);
  add<<<2, 2>>>(cells, kCells, 1);
}

// The launches are in a function that is called in several places.
extern "C" __global__ void from_called(int* sums, int* cells, int rounds) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  int* const own = cells + t * kCells;
  for (int round = 1; round <= rounds; ++round) {
    switch ((t * 7 + round) % 4) {
      case 0:
        add_by_two(own, t);
        break;
      case 1:
        add_by_two(own, round);
        break;
      case 2:
        add_by_two(own, t + round);
        break;
      default:
        own[0] += 1;
        break;
    }
    cudaDeviceSynchronize();
    sums[t] += sum_of(own, kCells);
  }
}
#endif

#ifndef __CUDACC_RTC__
namespace {

int sum_of_numbers(int first) { return kCells * first + kCells * (kCells - 1) / 2; }  // that add() adds

// What a thread has when the rounds are done.
int right_together(int t, int rounds) {
  int sum = 0, now = 0;
  for (int round = 1; round <= rounds; ++round) sum += now += sum_of_numbers(t * round);
  return sum;
}

int right_apart(int t, int rounds) {
  int sum = 0, now = 0;
  for (int round = 1; round <= rounds + t % 3; ++round) {
    if ((t + round) % 2 == 0) {
      sum += now += sum_of_numbers(t);
    } else {
      now += sum_of_numbers(round) + t;
    }
  }
  return sum + now;
}

int right_from_called(int t, int rounds) {
  int sum = 0, now = 0;
  for (int round = 1; round <= rounds; ++round) {
    const int way = (t * 7 + round) % 4;
    now += way == 3 ? 1 : sum_of_numbers(way == 0 ? t : way == 1 ? round : t + round) + sum_of_numbers(1);
    sum += now;
  }
  return sum;
}

template <class Kernel>
void test(gpu::Report& report, const char* name, const Kernel& kernel, int (*right)(int, int), int size,
          int threads) {
  const int blocks = 1 + 5 * size, rounds = 2 + size, count = blocks * threads;
  gpu::Buffer<int> sums(count), cells(static_cast<size_t>(count) * kCells);
  kernel(blocks, sums.data(), cells.data(), rounds);
  gpu::wait(name);
  std::vector<int> expected;
  for (int t = 0; t < count; ++t) expected.push_back(right(t, rounds));
  report.expect_equal(name, sums.to_host(), expected);
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("lanes", argc, argv, [](gpu::Report& report, int size) {
    for (const int threads : {24, 32, 33, 64}) {
#define TEST(kernel)                                                  \
  test(                                                               \
      report, #kernel,                                                \
      [threads](int blocks, int* sums, int* cells, int rounds) {      \
        WAITING_LAUNCH(kernel, blocks, threads)(sums, cells, rounds); \
      },                                                              \
      right_##kernel, size, threads)
      TEST(together);
      TEST(apart);
      TEST(from_called);
#undef TEST
    }
  });
}
#endif
