// Kernels that the first, narrow list of legal rewrites leaves out, each for another reason, beside one that
// it takes. Whatever becomes of them, the results must be those of CUDA; several depend on the order of
// launches, on barriers after early exits, or on children of children.
#include "program.h"

constexpr int kThreads = 128;

__global__ void set_cell(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}

// One that can be rewritten.
__global__ void simple_parent(int* cells) {
  set_cell<<<1, 32>>>(cells + threadIdx.x, 100 + static_cast<int>(threadIdx.x));
}

// The child has a barrier.
__global__ void reverse_in_block(int* cells) {
  const int value = cells[63 - threadIdx.x];
  __syncthreads();
  cells[threadIdx.x] = value;
}
__global__ void barrier_parent(int* cells) {
  if (threadIdx.x < 2) reverse_in_block<<<1, 64>>>(cells + 64 * threadIdx.x);
}

// The child has a barrier that some of its threads never reach.
__global__ void count_after_exit(int* cell, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  atomicAdd(cell, 1);
  __syncthreads();
  if (threadIdx.x == 0) *cell *= 2;
}
__global__ void early_exit_parent(int* cells) {
  count_after_exit<<<1, 96>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x) % 96 + 1);
}

// The child has static shared memory.
__global__ void copy_through_shared(int* cells) {
  __shared__ int held[32];
  held[threadIdx.x] = cells[threadIdx.x] + 1;
  cells[threadIdx.x] = held[threadIdx.x] * 2;
}
__global__ void static_shared_parent(int* cells) {
  if (threadIdx.x < 4) copy_through_shared<<<1, 32>>>(cells + 32 * threadIdx.x);
}

// The children of a block count without atomics, which is right because the block's NULL stream runs them one
// after another.
__device__ int tally;
__global__ void count_plainly(int* cells) {
  if (threadIdx.x == 0) cells[tally++] = 4;
}
__global__ void counting_parent(int* cells) {
  if (threadIdx.x < 512) count_plainly<<<1, 32>>>(cells);
}

// A barrier lies between the launches of the block's two halves, so the first half's children come first.
__global__ void set_or_double(int* cells, int t) {
  if (threadIdx.x == 0) cells[t] = t < 64 ? 10 + t : 2 * cells[t - 64];
}
__global__ void ordered_parent(int* cells) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= 64) __syncthreads();
  set_or_double<<<1, 32>>>(cells, t);
  if (t < 64) __syncthreads();
}

// The child uses a warp shuffle.
__global__ void sum_warp(int* cell, int value) {
  int sum = value + static_cast<int>(threadIdx.x);
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  if (threadIdx.x == 0) *cell = sum;
}
__global__ void shuffle_parent(int* cells) {
  sum_warp<<<1, 32>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x));
}

// The child uses dynamic shared memory.
__global__ void rotate(int* cells) {
  extern __shared__ int copy[];
  const unsigned i = threadIdx.x;
  copy[i] = cells[i];
  __syncthreads();
  cells[i] = copy[(i + 1) % blockDim.x];
}
__global__ void shared_parent(int* cells) {
  if (threadIdx.x < 4) rotate<<<1, 32, 32 * sizeof(int)>>>(cells + 32 * threadIdx.x);
}

// Two launch sites; the second child of a thread comes after its first.
__global__ void double_cell(int* cell) {
  if (threadIdx.x == 0) *cell *= 2;
}
__global__ void two_sites_parent(int* cells) {
  set_cell<<<1, 32>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x) + 1);
  double_cell<<<1, 32>>>(cells + threadIdx.x);
}

// A launch in a loop; each child depends on the one before it.
__global__ void step(int* cell, int factor) {
  if (threadIdx.x == 0) *cell = *cell * factor + 1;
}
__global__ void loop_parent(int* cells) {
#pragma unroll 1
  for (int i = 1; i <= 4; ++i) step<<<1, 32>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x) % 3 + i);
}

// A stream the parent created.
__global__ void stream_parent(int* cells) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  set_cell<<<1, 32, 0, stream>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x) + 3);
  cudaStreamDestroy(stream);
}

// The tail-launch stream: the child runs after the parent, whatever the parent does after launching it.
__global__ void tail_parent(int* cells) {
  cells[threadIdx.x] = 1;
  if (threadIdx.x == 0) double_cell<<<1, 32, 0, cudaStreamTailLaunch>>>(cells);
  cells[threadIdx.x] = 21;
}

// Children that launch children, and a kernel that launches itself.
__global__ void middle(int* cell, int value) {
  if (threadIdx.x == 0) set_cell<<<1, 32>>>(cell, value * 3);
}
__global__ void nested_parent(int* cells) {
  middle<<<1, 32>>>(cells + threadIdx.x, static_cast<int>(threadIdx.x));
}
__global__ void count_down(int* cells, int depth) {
  cells[depth] = depth + 1;
  if (depth > 0) count_down<<<1, 1>>>(cells, depth - 1);
}

// The launch is in a function that is really called.
__noinline__ __device__ void launch_for(int* cell, int value) { set_cell<<<1, 32>>>(cell, value); }
__global__ void calling_parent(int* cells) {
  launch_for(cells + threadIdx.x, static_cast<int>(threadIdx.x) * 5);
}

// The block size is not constant.
__global__ void count_threads(int* cell) { atomicAdd(cell, 1); }
__global__ void variable_block_parent(int* cells) {
  count_threads<<<2, threadIdx.x + 1>>>(cells + threadIdx.x);
}

// Other device-runtime calls beside the launch: memory operations in the same stream.
__global__ void memory_parent(int* cells, const int* source) {
  cudaMemcpyAsync(cells + threadIdx.x, source + threadIdx.x, sizeof(int), cudaMemcpyDeviceToDevice, nullptr);
  double_cell<<<1, 32>>>(cells + threadIdx.x);
}

// The child reads a texture.
__global__ void read_texture(int* cell, cudaTextureObject_t texture, int i) {
  if (threadIdx.x == 0) *cell = tex1Dfetch<int>(texture, i);
}
__global__ void texture_parent(int* cells, cudaTextureObject_t texture) {
  read_texture<<<1, 32>>>(cells + threadIdx.x, texture, static_cast<int>(threadIdx.x));
}

template <class Launch, class Expected>
void run(gpu::Report& report, const char* what, const Launch& launch, const Expected& expected_of) {
  std::vector<int> start;
  std::vector<int> expected;
  for (int t = 0; t < kThreads; ++t) start.push_back(t % 10);
  for (int t = 0; t < kThreads; ++t) expected.push_back(expected_of(t));
  const gpu::Buffer<int> cells(start);
  launch(cells.data());
  gpu::wait(what);
  report.expect_equal(what, cells.to_host(), expected);
}

void test_children(gpu::Report& report) {
  run(
      report, "simple_parent", [](int* c) { simple_parent<<<1, kThreads>>>(c); },
      [](int t) { return 100 + t; });
  run(
      report, "barrier_parent", [](int* c) { barrier_parent<<<1, kThreads>>>(c); },
      [](int t) { return (t / 64 * 64 + 63 - t % 64) % 10; });
  run(
      report, "early_exit_parent", [](int* c) { early_exit_parent<<<1, kThreads>>>(c); },
      [](int t) { return 2 * (t % 10 + t % 96 + 1); });
  run(
      report, "static_shared_parent", [](int* c) { static_shared_parent<<<1, kThreads>>>(c); },
      [](int t) { return 2 * (t % 10 + 1); });
  run(
      report, "counting_parent", [](int* c) { counting_parent<<<1, kThreads>>>(c); }, [](int) { return 4; });
  run(
      report, "shuffle_parent", [](int* c) { shuffle_parent<<<1, kThreads>>>(c); },
      [](int t) { return 32 * t + 31 * 32 / 2; });
  run(
      report, "shared_parent", [](int* c) { shared_parent<<<1, kThreads>>>(c); },
      [](int t) { return (t / 32 * 32 + (t + 1) % 32) % 10; });
  run(
      report, "variable_block_parent", [](int* c) { variable_block_parent<<<1, kThreads>>>(c); },
      [](int t) { return t % 10 + 2 * (t + 1); });
}

void test_parents(gpu::Report& report) {
  run(
      report, "two_sites_parent", [](int* c) { two_sites_parent<<<1, kThreads>>>(c); },
      [](int t) { return 2 * (t + 1); });
  run(
      report, "loop_parent", [](int* c) { loop_parent<<<1, kThreads>>>(c); },
      [](int t) {
        int cell = t % 10;
        for (int i = 1; i <= 4; ++i) cell = cell * (t % 3 + i) + 1;
        return cell;
      });
  run(
      report, "stream_parent", [](int* c) { stream_parent<<<1, kThreads>>>(c); },
      [](int t) { return t + 3; });
  run(
      report, "ordered_parent", [](int* c) { ordered_parent<<<1, kThreads>>>(c); },
      [](int t) { return t < 64 ? 10 + t : 2 * (10 + t - 64); });
  run(
      report, "tail_parent", [](int* c) { tail_parent<<<1, kThreads>>>(c); },
      [](int t) { return t == 0 ? 42 : 21; });
  run(
      report, "nested_parent", [](int* c) { nested_parent<<<1, kThreads>>>(c); },
      [](int t) { return 3 * t; });
  run(
      report, "count_down", [](int* c) { count_down<<<1, 1>>>(c, 20); },
      [](int t) { return t <= 20 ? t + 1 : t % 10; });
  run(
      report, "calling_parent", [](int* c) { calling_parent<<<1, kThreads>>>(c); },
      [](int t) { return 5 * t; });
}

void test_memory(gpu::Report& report) {
  std::vector<int> values;
  for (int t = 0; t < kThreads; ++t) values.push_back(7 * t + 2);
  const gpu::Buffer<int> source(values);
  run(
      report, "memory_parent", [&](int* c) { memory_parent<<<1, kThreads>>>(c, source.data()); },
      [&](int t) { return 2 * values[t]; });
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = source.data();
  resource.res.linear.desc = cudaCreateChannelDesc<int>();
  resource.res.linear.sizeInBytes = source.bytes();
  const cudaTextureDesc description{};
  cudaTextureObject_t texture = 0;
  gpu::check(cudaCreateTextureObject(&texture, &resource, &description, nullptr), "cudaCreateTextureObject");
  run(
      report, "texture_parent", [&](int* c) { texture_parent<<<1, kThreads>>>(c, texture); },
      [&](int t) { return values[t]; });
  gpu::check(cudaDestroyTextureObject(texture), "cudaDestroyTextureObject");
}

int main() {
  gpu::Report report("left_alone");
  test_children(report);
  test_parents(report);
  test_memory(report);
  return report.finish();
}
