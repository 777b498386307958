// Children that use everything a kernel can reach besides its arguments: __device__, __constant__ and static
// variables, static variables of functions, device functions that are really called, arrays in local memory,
// and printf. The host reads and writes the variables through the runtime, so a second copy of any of them
// shows.
#include "program.h"

constexpr int kParents = 250;

__device__ int total;
__device__ int history[kParents];
__constant__ int weights[8];
static __device__ int own_total;

__noinline__ __device__ int weigh(int t, int i) { return weights[(t + i) & 7] * (i + 1); }

__noinline__ __device__ int next_ticket() {
  static __device__ int tickets;
  return atomicAdd(&tickets, 1);
}

__global__ void add_weight(int t) {
  if (threadIdx.x != 0) return;
  const int w = weigh(t, static_cast<int>(blockIdx.x));
  atomicAdd(&total, w);
  atomicAdd(&own_total, 2 * w);
  atomicAdd(&history[t], next_ticket() >= 0 ? w : 0);
}

__global__ void launch_add_weight() {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < kParents) add_weight<<<t % 5 + 1, 32>>>(t);
}

__global__ void read_tickets(int* out) { *out = next_ticket(); }

// A small sort in local memory: the array's indices are not constant, so it cannot live in registers.
__global__ void sort_local(int* out, int t) {
  int values[24];
  for (int i = 0; i < 24; ++i) values[i] = (i * 7 + t * 5 + static_cast<int>(threadIdx.x)) % 29;
  for (int i = 1; i < 24; ++i) {
    const int v = values[i];
    int at = i;
    while (at > 0 && values[at - 1] > v) {
      values[at] = values[at - 1];
      --at;
    }
    values[at] = v;
  }
  out[threadIdx.x] = values[threadIdx.x % 24];
}

__global__ void launch_sort(int* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < kParents) sort_local<<<1, 32>>>(out + 32 * t, t);
}

__global__ void say(int t) {
  if (threadIdx.x == 0) printf("child %d of block %u says hello\n", t, blockIdx.x);
}

__global__ void launch_say() {
  if (threadIdx.x < 4) say<<<2, 32>>>(static_cast<int>(threadIdx.x));
}

template <class T>
T read_symbol(const T& symbol) {
  T value{};
  gpu::check(cudaMemcpyFromSymbol(&value, symbol, sizeof value), "reading a variable");
  return value;
}

void test_variables(gpu::Report& report) {
  int expected_total = 1000;
  int expected_tickets = 0;
  std::vector<int> expected_history(kParents);
  int host_weights[8];
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 8; ++i) host_weights[i] = i * 3 + round + 1;
    gpu::check(cudaMemcpyToSymbol(weights, host_weights, sizeof host_weights), "writing the weights");
    if (round == 0) gpu::check(cudaMemcpyToSymbol(total, &expected_total, sizeof(int)), "writing the total");
    launch_add_weight<<<2, 128>>>();
    gpu::wait("launch_add_weight");
    for (int t = 0; t < kParents; ++t) {
      for (int i = 0; i <= t % 5; ++i) {
        const int w = host_weights[(t + i) & 7] * (i + 1);
        expected_total += w;
        expected_history[t] += w;
        ++expected_tickets;
      }
    }
  }
  const int own = read_symbol(own_total);
  report.expect(read_symbol(total) == expected_total, "total is not %d", expected_total);
  report.expect(own == 2 * (expected_total - 1000), "the static total is %d", own);
  std::vector<int> got(kParents);
  gpu::check(cudaMemcpyFromSymbol(got.data(), history, sizeof(int) * kParents), "reading the history");
  report.expect_equal("history", got, expected_history);
  const gpu::Buffer<int> tickets(1);
  read_tickets<<<1, 1>>>(tickets.data());
  gpu::wait("read_tickets");
  report.expect(tickets.to_host()[0] == expected_tickets, "%d tickets were taken instead of %d",
                tickets.to_host()[0], expected_tickets);
}

void test_sort(gpu::Report& report) {
  std::vector<int> expected;
  for (int t = 0; t < kParents; ++t) {
    for (int thread = 0; thread < 32; ++thread) {
      int count[29] = {};
      for (int i = 0; i < 24; ++i) ++count[(i * 7 + t * 5 + thread) % 29];
      int value = 0;
      for (int left = thread % 24; left >= count[value]; ++value) left -= count[value];
      expected.push_back(value);
    }
  }
  const gpu::Buffer<int> out(expected.size());
  launch_sort<<<2, 128>>>(out.data());
  gpu::wait("launch_sort");
  report.expect_equal("local arrays", out.to_host(), expected);
}

int main() {
  gpu::Report report("variables");
  test_variables(report);
  test_sort(report);
  launch_say<<<1, 32>>>();
  gpu::wait("launch_say");
  return report.finish();
}
