// Memory that parents take for their children, in kernels and by lanes as they come, with
// KLAP_AGGREGATE_MALLOC on in preloaded runs: used by children, freed by them or by later kernels, one piece
// at a time and in another order, through pointers to functions, until the heap has no more, and again and
// again, so that what is not given back would be missed.
//
// Requests for no bytes are made by a run of their own ("device_memory no_size"): compute-sanitizer reports
// each one.
#include <cstring>

#include "program.h"

constexpr int kThreads = 1000, kBlock = 125;  // the last warp of each block is not full

__host__ __device__ int words_of(int t) { return t % 97 + 1; }
__host__ __device__ int word_of(int t, int i) { return t * 100 + i; }

__device__ int own_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ bool is_aligned(const void* memory) { return reinterpret_cast<size_t>(memory) % 16 == 0; }

__global__ void fill(int* memory, int t) {
  for (int i = threadIdx.x; i < words_of(t); i += blockDim.x) memory[i] = word_of(t, i);
}
__device__ int wrong_words(const int* memory, int t) {
  int wrong = 0;
  for (int i = 0; i < words_of(t); ++i) wrong += memory[i] != word_of(t, i);
  return wrong;
}
// What its parent wrote.
__global__ void check_and_free(int* memory, int t, int* wrong) {
  if (threadIdx.x != 0) return;
  atomicAdd(wrong, wrong_words(memory, t));
  free(memory);
}

__global__ void take_for_fill(int** memory, int* wrong) {
  const int t = own_thread();
  memory[t] = static_cast<int*>(malloc(words_of(t) * sizeof(int)));
  if (memory[t] == nullptr || !is_aligned(memory[t])) atomicAdd(wrong, 1);
  if (memory[t] != nullptr) fill<<<1, 32>>>(memory[t], t);
}
__global__ void take_by_runtime(int** memory, int* wrong) {
  const int t = own_thread();
  void* mine = nullptr;
  if (t % 3 != 0) {
    if (cudaMalloc(&mine, words_of(t) * sizeof(int)) != cudaSuccess || !is_aligned(mine)) atomicAdd(wrong, 1);
  }
  memory[t] = static_cast<int*>(mine);
  if (mine != nullptr) fill<<<1, 32>>>(memory[t], t);
}
__global__ void take_for_check(int* wrong) {
  const int t = own_thread();
  int* const memory = static_cast<int*>(malloc(words_of(t) * sizeof(int)));
  if (memory == nullptr) {
    atomicAdd(wrong, 1);
    return;
  }
  for (int i = 0; i < words_of(t); ++i) memory[i] = word_of(t, i);
  check_and_free<<<1, 32>>>(memory, t, wrong);
}

// Every third thread's, from the last one on.
__global__ void free_third(int** memory, int* wrong, int which) {
  const int t = kThreads - 1 - own_thread();
  if (t % 3 != which || memory[t] == nullptr) return;
  atomicAdd(wrong, wrong_words(memory[t], t));
  free(memory[t]);
  free(nullptr);
}
__global__ void free_third_by_runtime(int** memory, int* wrong, int which) {
  const int t = kThreads - 1 - own_thread();
  if (t % 3 != which || memory[t] == nullptr) return;
  atomicAdd(wrong, wrong_words(memory[t], t));
  if (cudaFree(memory[t]) != cudaSuccess || cudaFree(nullptr) != cudaSuccess) atomicAdd(wrong, 1);
}
__device__ __noinline__ void free_it(void* memory) { free(memory); }
__device__ void (*give)(void*) = nullptr;
__global__ void set_pointer() { give = free_it; }
__global__ void free_by_pointer(int** memory) { give(memory[own_thread()]); }

// Lists that grow and shrink by rounds of a loop that lanes leave one after another; and pointers that change
// hands by a shuffle and by an atomic.
__global__ void rounds(unsigned long long* places, int* wrong) {
  const int t = own_thread();
  int* last = nullptr;
  for (int round = 0; round < t % 9 + 1; ++round) {
    int* const next = static_cast<int*>(malloc((round + 2) * sizeof(int)));
    if (next == nullptr) {
      atomicAdd(wrong, 1);
      break;
    }
    next[0] = last == nullptr ? 0 : last[0] + 1;
    next[round + 1] = t;
    free(last);
    last = next;
  }
  if (last != nullptr && last[0] != t % 9) atomicAdd(wrong, 1);
  const unsigned long long before = atomicExch(places + t % 17, reinterpret_cast<unsigned long long>(last));
  free(reinterpret_cast<void*>(before));
}
__global__ void free_places(unsigned long long* places) {
  free(reinterpret_cast<void*>(places[threadIdx.x]));
  places[threadIdx.x] = 0;
}
__global__ void shuffled() {
  const auto mine = reinterpret_cast<unsigned long long>(malloc(words_of(own_thread()) * sizeof(int)));
  free(reinterpret_cast<void*>(__shfl_xor_sync(0xffffffffu, mine, 13)));
}

// More than there is for all: some get it.
__global__ void take_much(int** memory, int* got) {
  const int t = own_thread();
  memory[t] = static_cast<int*>(malloc(1 << 20));
  if (memory[t] == nullptr) return;
  atomicExch(got, 1);
  fill<<<1, 32>>>(memory[t], t);
}
__global__ void free_much(int** memory) { free(memory[own_thread()]); }
// Sizes that overflow when they are added up, beside ordinary ones, and one that the host chooses. For
// nothing a device may give an address or none.
__global__ void take_odd_sizes(int** memory, int* wrong, const size_t* given) {
  const int t = own_thread();
  size_t bytes = words_of(t) * sizeof(int);
  if (t % 4 == 1) bytes = (size_t{1} << 62) - t;  // near 2^64 the device's own malloc gives an address
  if (t % 4 == 2) bytes = size_t{1} << 61;
  if (t % 4 == 3) bytes = *given;
  memory[t] = static_cast<int*>(malloc(bytes));
  if ((memory[t] != nullptr) != (t % 4 == 0) && bytes != 0) atomicAdd(wrong, 1);
  if (t % 4 == 0 && memory[t] != nullptr) fill<<<1, 32>>>(memory[t], t);
}

constexpr int kGrid = kThreads / kBlock;

struct Run {
  gpu::Report& report;
  gpu::Buffer<int*> memory{kThreads};
  gpu::Buffer<int> wrong{1};

  void right(const char* what) {
    gpu::wait(what);
    report.expect(wrong.to_host()[0] == 0, "%s: %d are wrong", what, wrong.to_host()[0]);
  }
  void take_odd(size_t given) {
    const gpu::Buffer<size_t> size(std::vector<size_t>{given});
    take_odd_sizes<<<kGrid, kBlock>>>(memory.data(), wrong.data(), size.data());
    right("take_odd_sizes");
    free_much<<<kGrid, kBlock>>>(memory.data());
    right("free_much");
  }
};

// What so many rounds take and do not give back would not fit.
void take_again_and_again(Run& run) {
  const gpu::Buffer<unsigned long long> places(17);
  int** const memory = run.memory.data();
  int* const wrong = run.wrong.data();
  for (int round = 0; round < 60; ++round) {
    take_for_fill<<<kGrid, kBlock>>>(memory, wrong);
    run.right("take_for_fill");
    for (const int which : {2, 0, 1}) free_third<<<kGrid, kBlock>>>(memory, wrong, which);
    run.right("free_third");
    take_by_runtime<<<kGrid, kBlock>>>(memory, wrong);
    run.right("take_by_runtime");
    for (const int which : {1, 2}) free_third_by_runtime<<<kGrid, kBlock>>>(memory, wrong, which);
    run.right("free_third_by_runtime");
    take_for_check<<<kGrid, kBlock>>>(wrong);
    run.right("take_for_check");
    rounds<<<kGrid, kBlock>>>(places.data(), wrong);
    free_places<<<1, 17>>>(places.data());
    run.right("rounds");
    shuffled<<<8, 128>>>();
    run.right("shuffled");
  }
}

void take_in_other_ways(Run& run) {
  const gpu::Buffer<int> got(1);
  int** const memory = run.memory.data();
  set_pointer<<<1, 1>>>();
  take_for_fill<<<kGrid, kBlock>>>(memory, run.wrong.data());
  free_by_pointer<<<kGrid, kBlock>>>(memory);
  run.right("free_by_pointer");
  take_much<<<4, 32>>>(memory, got.data());
  run.right("take_much");
  run.report.expect(got.to_host()[0] == 1, "nobody got anything of a full heap");
  free_much<<<4, 32>>>(memory);
}

int main(int argc, char** argv) {
  gpu::Report report("device_memory");
  gpu::check(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20), "heap size");
  Run run{report};
  if (argc > 1 && std::strcmp(argv[1], "no_size") == 0) {
    run.take_odd(0);
  } else {
    take_again_and_again(run);
    take_in_other_ways(run);
    run.take_odd(size_t{1} << 60);
  }
  return report.finish();
}
