// Children whose dynamic shared memory differs from launch to launch, where only the executor can run them:
// in recursion, behind each other, and as tail launches. A block of the executor has room for the largest.
//
// Kernels use the last bytes that they ask for. So memory that is too small shows up as a wrong access.
#include "case.h"

constexpr int kRow = 64;
constexpr int kBlock = 32;
KLAP_SHARED static constexpr int lower(int a, int b) { return a < b ? a : b; }

#ifdef __CUDACC__

extern __shared__ int tile[];

// Turns up to a row of cells around in the last part of `n` cells of shared memory.
__device__ static void turn_row(int* cells, int n) {
  const int used = lower(n, kRow);
  for (int i = static_cast<int>(threadIdx.x); i < used; i += static_cast<int>(blockDim.x))
    tile[n - 1 - i] = cells[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < used; i += static_cast<int>(blockDim.x))
    cells[i] = tile[n - used + i] + 1;
  __syncthreads();
}

// Sizes from memory, some of which CUDA refuses. Then the next one is launched, which it takes.
extern "C" __global__ void turns(int* errors, const int* bytes, int* cells, int at, int count) {
  if (at > 0) turn_row(cells + at * kRow, bytes[at - 1] / 4);
  if (threadIdx.x != 0 || at == count) return;
  turns<<<1, kBlock, bytes[at]>>>(errors, bytes, cells, at + 1, count);
  errors[at] = cudaGetLastError();
  if (errors[at] == cudaSuccess) return;
  turns<<<1, kBlock, bytes[at + 1]>>>(errors, bytes, cells, at + 2, count);
  errors[at + 1] = cudaGetLastError();
}

// Two kernels that launch each other, in blocks of any size, one of them with variables of its own.
__global__ void second_half(int* cells, int begin, int end);
extern "C" __global__ void first_half(int* cells, int begin, int end) {
  __shared__ int sum[1];
  const int t = static_cast<int>(threadIdx.x), n = end - begin;
  if (t == 0) sum[0] = cells[begin] + cells[end - 1];
  tile[t] = cells[begin + t];
  __syncthreads();
  cells[begin + t] = tile[(t + 1) % n] + sum[0] % 7;
  __syncthreads();
  if (t != 0 || n < 2) return;
  second_half<<<1, n / 2, n / 2 * sizeof(int)>>>(cells, begin, begin + n / 2);
  first_half<<<1, n - n / 2, (n - n / 2) * sizeof(int)>>>(cells, begin + n / 2, end);
}
__global__ void second_half(int* cells, int begin, int end) {
  const int t = static_cast<int>(threadIdx.x), n = end - begin;
  tile[t] = 3 * cells[begin + t] % 1000;
  __syncthreads();
  cells[begin + t] = tile[n - 1 - t];
  __syncthreads();
  if (t != 0 || n < 2) return;
  first_half<<<1, n / 2, n / 2 * sizeof(int)>>>(cells, begin, begin + n / 2);
  first_half<<<1, n - n / 2, (n - n / 2) * sizeof(int)>>>(cells, begin + n / 2, end);
}
extern "C" __global__ void begin_halves(int* cells, int n) {
  second_half<<<1, n, n * sizeof(int)>>>(cells, 0, n);
}

// The block's size bounds what is asked for.
extern "C" __global__ void as_blocks(int* cells, int depth) {
  const int t = static_cast<int>(threadIdx.x), n = static_cast<int>(blockDim.x);
  if (depth < 3) {
    tile[t] = cells[t];
    __syncthreads();
    cells[t] = tile[n - 1 - t] + t;
  }
  __syncthreads();
  if (t == 0 && depth > 0) {
    as_blocks<<<1, blockDim.x, blockDim.x * sizeof(int)>>>(cells, depth - 1);
    as_blocks<<<1, blockDim.x, blockDim.x * sizeof(int)>>>(cells, depth - 1);
  }
}

// Constants that differ.
extern "C" __global__ void wide_and_narrow(int* cells, int wide, int depth) {
  turn_row(cells, depth == 3 ? 0 : wide ? 64 : 40);
  if (threadIdx.x != 0 || depth == 0) return;
  wide_and_narrow<<<1, kBlock, 64 * sizeof(int)>>>(cells, 1, depth - 1);
  wide_and_narrow<<<1, kBlock, 40 * sizeof(int)>>>(cells, 0, depth - 1);
}

// Each tail launch has half of the shared memory of its grid.
extern "C" __global__ void shrinks(int* cells, int n, int is_first) {
  if (is_first == 0) turn_row(cells, n);
  if (threadIdx.x == 0 && n > 1)
    shrinks<<<1, kBlock, (is_first ? n : n / 2) * sizeof(int), cudaStreamTailLaunch>>>(
        cells, is_first ? n : n / 2, 0);
}

// The older pair of calls, which names sizes in the second one.
struct Half {
  int* cells;
  int* refused;
  int begin, end;
};
__global__ void older_half(Half half);
__device__ static cudaError_t launch_half(Half half, int threads, int bytes) {
  auto* const buffer = static_cast<Half*>(cudaGetParameterBuffer(alignof(Half), sizeof(Half)));
  *buffer = half;
  return cudaLaunchDevice(reinterpret_cast<void*>(older_half), buffer, dim3(1), dim3(threads), bytes,
                          nullptr);
}
__global__ void older_half(Half half) {
  const int t = static_cast<int>(threadIdx.x), begin = half.begin, n = half.end - begin;
  tile[t] = half.cells[begin + t];
  __syncthreads();
  half.cells[begin + t] = tile[n - 1 - t] + 1;
  __syncthreads();
  if (t != 0 || n < 2) return;
  half.end = begin + n / 2;
  if (launch_half(half, n / 2, n / 2 * 4) != cudaSuccess) atomicAdd(half.refused, 1000);
  if (launch_half(half, n / 2, n << 20) != cudaSuccess) atomicAdd(half.refused, 1);
  if (launch_half(half, n == 7 ? 1025 : 0, 4) != cudaSuccess) atomicAdd(half.refused, 1);
  half.begin = half.end;
  half.end = begin + n;
  if (launch_half(half, n - n / 2, (n - n / 2) * 4) != cudaSuccess) atomicAdd(half.refused, 1000);
}
extern "C" __global__ void begin_older_halves(int* cells, int* refused, int n) {
  if (launch_half({cells, refused, 0, n}, n, n * 4) != cudaSuccess) atomicAdd(refused, 1000);
}

#else

namespace {

using klap::differential::Builder;

void turn_row(int* cells, int n) {
  const int used = lower(n, kRow);
  std::reverse(cells, cells + used);
  for (int i = 0; i < used; ++i) ++cells[i];
}

void executed(Builder& c, const char* parent, const char* on_device, const char* by_warp) {
  c.left_on_device(parent, on_device);
  c.by_warp(by_warp);
}

std::vector<int> numbered(int n) {
  std::vector<int> cells;
  for (int i = 0; i < n; ++i) cells.push_back(i * 37 % 101);
  return cells;
}

void first_half(int* cells, int n);
void second_half(int* cells, int n) {
  for (int t = 0; t < n; ++t) cells[t] = 3 * cells[t] % 1000;
  std::reverse(cells, cells + n);
  if (n < 2) return;
  first_half(cells, n / 2);
  first_half(cells + n / 2, n - n / 2);
}
void first_half(int* cells, int n) {
  const int sum = cells[0] + cells[n - 1];
  std::rotate(cells, cells + 1, cells + n);
  for (int t = 0; t < n; ++t) cells[t] += sum % 7;
  if (n < 2) return;
  second_half(cells, n / 2);
  first_half(cells + n / 2, n - n / 2);
}

void as_blocks(std::vector<int>& cells, int depth) {
  if (depth < 3) {
    std::reverse(cells.begin(), cells.end());
    for (size_t t = 0; t < cells.size(); ++t) cells[t] += static_cast<int>(t);
  }
  for (int i = 0; i < 2 && depth > 0; ++i) as_blocks(cells, depth - 1);
}

void wide_and_narrow(int* cells, int wide, int depth) {
  turn_row(cells, depth == 3 ? 0 : wide ? 64 : 40);
  if (depth == 0) return;
  wide_and_narrow(cells, 1, depth - 1);
  wide_and_narrow(cells, 0, depth - 1);
}

// Returns the launches that are refused.
int older_half(int* cells, int n) {
  std::reverse(cells, cells + n);
  for (int t = 0; t < n; ++t) ++cells[t];
  return n < 2 ? 0 : 2 + older_half(cells, n / 2) + older_half(cells + n / 2, n - n / 2);
}

}  // namespace

KLAP_CASE(executed_shared_sizes,
          "a launch has less shared memory than it asks for, or more than CUDA gives") {
  c.contract(
      "A launch may ask for dynamic shared memory. One that asks for more than the kernel may have is "
      "refused "
      "with an error, and the launches around it keep their order.",
      "sizes from memory, some of which are refused");
  constexpr int kMost = 49152, kRefused = 9;  // cudaErrorInvalidConfiguration
  const std::vector<int> bytes = {256, kMost, kMost + 4, 4, 20000, -4, 128, 1 << 20, kMost, 0, 36};
  const int count = static_cast<int>(bytes.size());
  std::vector<int> cells = numbered(kRow * (count + 1)), errors;
  const std::vector<int> before = cells;
  for (int at = 1; at <= count; ++at) {
    const int n = bytes[static_cast<size_t>(at - 1)];
    const bool is_refused = n < 0 || n > kMost;
    errors.push_back(is_refused ? kRefused : 0);
    if (!is_refused) turn_row(cells.data() + at * kRow, n / 4);
  }
  const auto of_errors = c.buffer("errors", std::vector<int>(errors.size(), -1), errors);
  const auto of_bytes = c.input("bytes", bytes);
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("turns", {1, 1, 1}, {kBlock, 1, 1}, c.address(of_errors), c.address(of_bytes), c.address(of_cells),
           0, count);
  executed(c, "turns", "dynamic-shared-memory", "child-launches");
}

KLAP_CASE(executed_shared_kernels, "kernels of one consumer have each other's shared memory") {
  constexpr int kCells = 61;
  std::vector<int> cells = numbered(kCells);
  const std::vector<int> before = cells;
  second_half(cells.data(), kCells);
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("begin_halves", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), kCells);
  executed(c, "begin_halves", "child-launches", "child-launches");
}

KLAP_CASE(executed_shared_of_blocks, "memory as large as the block asks for is too small") {
  std::vector<int> cells = numbered(96);
  const std::vector<int> before = cells;
  as_blocks(cells, 3);
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("as_blocks", {1, 1, 1}, {96, 1, 1}, c.address(of_cells), 3);
  executed(c, "as_blocks", "dynamic-shared-memory", "child-launches");
}

KLAP_CASE(executed_shared_constants, "one constant size of shared memory is taken for another one") {
  std::vector<int> cells = numbered(kRow);
  const std::vector<int> before = cells;
  wide_and_narrow(cells.data(), 0, 3);
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("wide_and_narrow", {1, 1, 1}, {kBlock, 1, 1}, c.address(of_cells), 0, 3);
  executed(c, "wide_and_narrow", "child-launches", "child-launches");
}

KLAP_CASE(executed_shared_tails, "a tail launch has the shared memory of the grid before it") {
  constexpr int kCells = 3000;
  std::vector<int> cells = numbered(kRow);
  const std::vector<int> before = cells;
  for (int n = kCells; n > 0; n /= 2) turn_row(cells.data(), n);
  const auto of_cells = c.buffer("cells", before, cells);
  c.launch("shrinks", {1, 1, 1}, {kBlock, 1, 1}, c.address(of_cells), kCells, 1);
  executed(c, "shrinks", "stream-unsupported", "stream-unsupported");
}

KLAP_CASE(executed_older_sizes, "a launch by the older pair of calls has another block or shared memory") {
  constexpr int kCells = 77;
  std::vector<int> cells = numbered(kCells);
  const std::vector<int> before = cells;
  const int refused = older_half(cells.data(), kCells);
  const auto of_cells = c.buffer("cells", before, cells);
  const auto of_refused = c.buffer("refused", std::vector<int>(1), std::vector<int>{refused});
  c.launch("begin_older_halves", {1, 1, 1}, {1, 1, 1}, c.address(of_cells), c.address(of_refused), kCells);
  executed(c, "begin_older_halves", "dynamic-shared-memory", "not-understood");
}

#endif
