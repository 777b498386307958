// Kernels of version 1 whose blocks wait for their children, with too small a heap for all blocks that stop.
// A wait without room returns cudaErrorSyncDepthExceeded, and its thread goes on. A later wait of the same
// block may find room. Where the program does not look at the result, the kernel ends with an error instead.
#include <algorithm>

#include "program.h"

namespace {

constexpr int kThreads = 64, kWords = 256, kMostTries = 3;
constexpr size_t kHeap = size_t{1} << 20, kFrame = size_t{4} * kThreads * kWords;

enum class Role { Ends, WaitsOnce, WaitsAgain, Meets };

__host__ __device__ Role role_of(int thread) {
  if (thread % 8 == 5) return Role::Ends;
  if (thread % 32 == 0) return Role::WaitsAgain;
  return thread % 32 == 2 ? Role::WaitsOnce : Role::Meets;
}
__host__ __device__ bool has_child(int thread) {
  return role_of(thread) == Role::WaitsOnce || role_of(thread) == Role::WaitsAgain;
}

__host__ __device__ int changed(int value) { return value * 3 + 1; }
__host__ __device__ int mixed(int value, int kept) { return (value ^ kept) * 5 + (value >> 3); }

__global__ void change(int* cell) { *cell = changed(*cell); }

struct Results {
  int *values, *codes, *votes;
};

// Some threads have ended, some wait once or again, and the others meet them at a barrier that counts.
__global__ void wait_for_room(const int* places, int* cells, Results results) {
  int local[kWords];
  const int thread = static_cast<int>(threadIdx.x);
  const int t = static_cast<int>(blockIdx.x) * kThreads + thread;
  const int before = cells[t];
  for (int i = 0; i < kWords; ++i) local[places[i]] = before + i;
  if (role_of(thread) == Role::Ends) return;
  int code = 0;
  if (has_child(thread)) {
    change<<<1, 1>>>(cells + t);
    const int tries = role_of(thread) == Role::WaitsAgain ? kMostTries : 1;
    int tried = 0;
    do {
      code = static_cast<int>(cudaDeviceSynchronize());
    } while (code != 0 && ++tried < tries);
  }
  const int failed = __syncthreads_count(code != 0);
  results.votes[t] = __syncthreads_and(code == 0 || failed > 0) ? failed : -1;
  int value = code == 0 ? cells[t] : -1;
  for (int i = 0; i < kWords; ++i) value = mixed(value, local[places[(i + thread) % kWords]]);
  results.values[t] = value;
  results.codes[t] = code;
}

// One thread a block waits and does not look. What is kept is in shared memory.
__global__ void wait_without_looking(const int* places, int* cells, int* values) {
  extern __shared__ int kept[];
  const int t = static_cast<int>(blockIdx.x);
  for (int i = 0; i < kWords; ++i) kept[places[i]] = cells[t] + i;
  change<<<1, 1>>>(cells + t);
  cudaDeviceSynchronize();
  values[t] = mixed(cells[t], kept[places[t % kWords]]);
}

int first_of(int t) { return t * 7 + 3; }

std::vector<int> first_cells(int count) {
  std::vector<int> cells(count);
  for (int t = 0; t < count; ++t) cells[t] = first_of(t);
  return cells;
}

// A permutation that the compiler does not know.
std::vector<int> places_of_words() {
  std::vector<int> places(kWords);
  for (int i = 0; i < kWords; ++i) places[i] = (i * 37 + 11) % kWords;
  return places;
}

int value_on_cpu(const std::vector<int>& places, int t, int code) {
  const int thread = t % kThreads, before = first_of(t);
  std::vector<int> local(kWords);
  for (int i = 0; i < kWords; ++i) local[places[i]] = before + i;
  int value = code != 0 ? -1 : has_child(thread) ? changed(before) : before;
  for (int i = 0; i < kWords; ++i) value = mixed(value, local[places[(i + thread) % kWords]]);
  return value;
}

// Returns how many waits had no room.
int run(gpu::Report& report, int blocks) {
  const int count = blocks * kThreads;
  const std::vector<int> places = places_of_words();
  const gpu::Buffer<int> in(places), cells(first_cells(count)), values(count), codes(count), votes(count);
  wait_for_room<<<blocks, kThreads>>>(in.data(), cells.data(), {values.data(), codes.data(), votes.data()});
  gpu::wait("wait_for_room");
  const std::vector<int> code = codes.to_host(), value = values.to_host(), vote = votes.to_host(),
                         cell = cells.to_host();
  int refused = 0;
  for (int t = 0; t < count; ++t) {
    const bool ends = role_of(t % kThreads) == Role::Ends;
    const auto block = code.begin() + t / kThreads * kThreads;
    const auto failed = std::count_if(block, block + kThreads, [](int each) { return each != 0; });
    refused += code[t] != 0 ? 1 : 0;
    report.expect(cell[t] == (has_child(t % kThreads) ? changed(first_of(t)) : first_of(t)), "cell %d is %d",
                  t, cell[t]);
    report.expect(code[t] == 0 || (code[t] == cudaErrorSyncDepthExceeded && has_child(t % kThreads)),
                  "thread %d has code %d", t, code[t]);
    report.expect(ends || vote[t] == failed, "thread %d counts %d errors of %d", t, vote[t],
                  static_cast<int>(failed));
    report.expect(ends || value[t] == value_on_cpu(places, t, code[t]), "thread %d with code %d has %d", t,
                  code[t], value[t]);
  }
  return refused;
}

void run_without_looking(gpu::Report& report, int blocks) {
  const gpu::Buffer<int> in(places_of_words()), cells(first_cells(blocks)), values(blocks);
  wait_without_looking<<<blocks, 1, kFrame / 2>>>(in.data(), cells.data(), values.data());
  report.expect(cudaGetLastError() == cudaSuccess, "wait_without_looking was not launched");
  const cudaError_t error = cudaDeviceSynchronize();
  report.expect(error == cudaErrorLaunchFailure, "wait_without_looking ended with %s",
                cudaGetErrorName(error));
}

}  // namespace

int main(int count, char** arguments) {
  gpu::Report report("no_room");
  const bool looks = count < 2 || std::string(arguments[1]) != "ignored";
  gpu::check(cudaDeviceSetLimit(cudaLimitMallocHeapSize, kHeap), "heap size");
  size_t heap = 0;
  gpu::check(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize), "heap size");
  const int too_many = static_cast<int>(2 * heap / kFrame);
  if (!looks) {
    run_without_looking(report, 2 * too_many);
    return report.finish();
  }
  report.expect(run(report, too_many) > 0, "every wait had room");
  report.expect(run(report, 4) == 0, "a wait had no room although the heap's frames are free");
  report.expect(run(report, too_many) > 0, "every wait had room the second time");
  return report.finish();
}
