// Children whose blocks or dynamic shared memory differ between the launches of one site: tiny ones beside
// ones of 1,024 threads, in one to three dimensions, with barriers, shared memory and warp operations, and
// with sizes that CUDA refuses between good ones.
#include "case.h"

constexpr int kThreads = 48;       // of a parent's grid, in blocks of 16
constexpr int kMost = 1024;        // threads of the largest child
constexpr int kShared = 49152;     // bytes that a block may have
constexpr int kStaticShared = 64;  // of which so many are a variable

// Most are small, and the large ones are far apart.
KLAP_SHARED static constexpr int size_of(int t) {
  return t == 37 ? kMost : t % 16 == 3 ? 256 : t % 7 == 1 ? 33 : t % 5 == 2 ? 64 : 1 + t % 31;
}
KLAP_SHARED static constexpr int width_of(int t) { return 1 + t % 9; }
KLAP_SHARED static constexpr int height_of(int t) { return 1 + t / 3 % 5; }
KLAP_SHARED static constexpr int depth_of(int t) { return t == 11 ? 20 : 1 + t % 4; }
// Dynamic shared memory in bytes, too much for some.
KLAP_SHARED static constexpr int bytes_of_shared(int t) {
  return t == 20 ? kShared - kStaticShared : t % 11 == 6 ? kShared + 4 : 4 * size_of(t);
}

#ifdef __CUDACC__

// Threads that have nothing to do with each other.
__global__ void place(int* cells) {
  const int in_block = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  const int block = blockIdx.x + gridDim.x * blockIdx.y;
  cells[block * threads + in_block] +=
      1 + threadIdx.x + 16 * threadIdx.y + 256 * threadIdx.z + 4096 * (blockIdx.x + 2 * blockIdx.y);
}
extern "C" __global__ void sizes_cubes_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  place<<<dim3(1 + t % 2, 1 + t % 3), dim3(width_of(t), height_of(t), depth_of(t))>>>(cells + t * 6 * kMost);
}
// One extent is the same for all.
extern "C" __global__ void sizes_rows_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  place<<<dim3(1 + t % 2, 1 + t % 3), dim3(width_of(t), 3, 1)>>>(cells + t * 6 * kMost);
}

// All threads of the block meet twice, and the first half of them alone.
__global__ void reverse_halves(int* cells) {
  __shared__ int tile[kMost];
  const int n = blockDim.x, i = threadIdx.x;
  int* const own = cells + blockIdx.x * n;
  tile[i] = own[i];
  __syncthreads();
  const int reversed = tile[n - 1 - i];
  __syncthreads();
  if (i >= (n + 1) / 2) {
    own[i] = reversed;
    return;
  }
  tile[i] = reversed;
  __syncthreads();
  own[i] = tile[(n + 1) / 2 - 1 - i];
}
extern "C" __global__ void sizes_meet_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  reverse_halves<<<1 + t % 2, size_of(t)>>>(cells + 2 * kMost * t);
}

// A template's block is a variable of the module, which nvcc fills.
__global__ void reverse(int* cells) {
  __shared__ int tile[64];
  const int i = threadIdx.x;
  tile[i] = cells[64 * blockIdx.x + i];
  __syncthreads();
  cells[64 * blockIdx.x + i] = tile[63 - i];
}
template <class Number>
__device__ __forceinline__ void launch_pairs(Number* cells) {
  reverse<<<dim3(2), dim3(64)>>>(cells);
}
extern "C" __global__ void sizes_in_template_parent(int* cells) {
  launch_pairs(cells + 128 * (blockIdx.x * blockDim.x + threadIdx.x));
}

// The lanes of each warp, of which the last one is not full; then the first two warps, where there are two.
__global__ void sum_warps(int* sums, int* lanes) {
  const int n = blockDim.x, i = threadIdx.x, rest = n - i / 32 * 32;
  const unsigned mask = rest >= 32 ? 0xffffffffU : (1U << rest) - 1;
  const int above = __shfl_down_sync(mask, i, 1);
  atomicAdd(sums, i % 32 + 1 < rest && i % 32 != 31 ? above : 0);
  atomicAdd(lanes, __popc(__ballot_sync(mask, i % 3 != 0)));
  if (n < 64 || i >= 64) return;
  __shared__ int met;
  if (i == 63) met = 1;
  asm volatile("bar.sync 1, 64;" : : : "memory");
  if (i == 0) atomicAdd(sums + 1, met);
}
extern "C" __global__ void sizes_warps_parent(int* sums) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  sum_warps<<<1, size_of(t)>>>(sums + 3 * t, sums + 3 * t + 2);
}

// Sizes that are refused, and what the program is told.
__global__ void __launch_bounds__(64) count_small(int* count) { atomicAdd(count, 1); }
extern "C" __global__ void sizes_refused_parent(const int* sizes, int* counts, int* failed) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  count_small<<<dim3(t % 13 == 5 ? 0 : 2), dim3(sizes[2 * t], sizes[2 * t + 1])>>>(counts + t);
  failed[3 * t] = cudaPeekAtLastError() != cudaSuccess;
  failed[3 * t + 1] = cudaGetLastError() != cudaSuccess;
  failed[3 * t + 2] = cudaGetLastError() != cudaSuccess;
}

// Shared memory and blocks differ together; the last word that was asked for is used.
__global__ void shift_in_shared(int* cells, int bytes) {
  extern __shared__ int dynamic[];
  __shared__ int fixed[kStaticShared / 4];
  const int n = blockDim.x, i = threadIdx.x;
  if (i < kStaticShared / 4) fixed[i] = 1000 + i;
  dynamic[bytes / 4 - 1 - i] = cells[i];
  __syncthreads();
  cells[i] = dynamic[bytes / 4 - 1 - (i + 1) % n] + fixed[i % (n < 16 ? n : 16)];
}
extern "C" __global__ void sizes_shared_parent(int* cells, int* failed) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  shift_in_shared<<<1, size_of(t), bytes_of_shared(t)>>>(cells + t * kMost, bytes_of_shared(t));
  failed[t] = cudaGetLastError() != cudaSuccess;
}
// The same in blocks of one size.
extern "C" __global__ void sizes_shared_only_parent(int* cells, int* failed) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int bytes = bytes_of_shared(t) + 4 * 40;
  shift_in_shared<<<1, 40, bytes>>>(cells + t * kMost, bytes);
  failed[t] = cudaGetLastError() != cudaSuccess;
}

// Children of 2^16 blocks and more beside small ones; of more threads they would take long in an emulator.
__global__ void count_threads(unsigned* counts) {
  if (threadIdx.x == blockDim.x - 1) atomicAdd(counts, 10 * threadIdx.x + blockIdx.x % 2);
}
extern "C" __global__ void sizes_big_parent(unsigned* counts) {
  const int t = threadIdx.x;
  count_threads<<<t == 3 ? 65600 : 2 + t, 1 + t % 3>>>(counts + t);
}

// Two sites: what the second one's children do comes behind the first one's. The first has blocks of one
// size, and grids that are refused.
__global__ void add_to(int* cell, int value) {
  if (threadIdx.x == blockDim.x - 1) atomicAdd(cell, value);
}
__global__ void multiply(int* cell) {
  if (threadIdx.x == blockDim.x - 1) atomicExch(cell, 2 * *static_cast<volatile int*>(cell));
}
extern "C" __global__ void sizes_two_sites_parent(int* cells, int* failed) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  add_to<<<t % 5 == 4 ? 0 : 1, 32>>>(cells + t, 1 + t);
  failed[2 * t] = cudaGetLastError() != cudaSuccess;
  multiply<<<1, t % 7 == 6 ? 0 : size_of(t)>>>(cells + t);
  failed[2 * t + 1] = cudaGetLastError() != cudaSuccess;
}

#else

namespace {

using klap::differential::Builder;

constexpr klap::differential::Dim3 kGrid{3, 1, 1}, kBlock{kThreads / 3, 1, 1};

void places_case(Builder& c, const char* parent, const std::function<std::array<int, 3>(int)>& block_of) {
  std::vector<int> cells(kThreads * 6 * kMost);
  for (int t = 0; t < kThreads; ++t) {
    const auto [width, height, depth] = block_of(t);
    int* cell = cells.data() + t * 6 * kMost;
    for (int block = 0; block < (1 + t % 2) * (1 + t % 3); ++block) {
      const int place = 4096 * (block % (1 + t % 2) + 2 * (block / (1 + t % 2)));
      for (int z = 0; z < depth; ++z)
        for (int y = 0; y < height; ++y)
          for (int x = 0; x < width; ++x) *cell++ = 1 + x + 16 * y + 256 * z + place;
    }
  }
  const auto m = c.buffer("cells", std::vector<int>(cells.size()), cells);
  c.launch(parent, kGrid, kBlock, c.address(m));
}

// What shift_in_shared() makes of a child's cells.
void shift(int* cells, int n) {
  const std::vector<int> before(cells, cells + n);
  for (int i = 0; i < n; ++i) cells[i] = before[(i + 1) % n] + 1000 + i % std::min(n, 16);
}

void shared_case(Builder& c, const char* parent, const std::function<int(int)>& threads_of, int more_bytes) {
  std::vector<int> cells(kThreads * kMost);
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<int>(7 * i);
  const std::vector<int> before = cells;
  std::vector<int> failed;
  for (int t = 0; t < kThreads; ++t) {
    failed.push_back(bytes_of_shared(t) + more_bytes + kStaticShared > kShared);
    if (failed.back() == 0) shift(cells.data() + t * kMost, threads_of(t));
  }
  const auto m = c.buffer("cells", before, cells);
  const auto f = c.buffer("failed", std::vector<int>(kThreads, -1), failed);
  c.launch(parent, kGrid, kBlock, c.address(m), c.address(f));
  c.rewritten(parent);
}

// Of the parent's thread: blocks of sizes[2 * t] times sizes[2 * t + 1] threads.
std::vector<int> some_sizes() {
  std::vector<int> sizes;
  for (int t = 0; t < kThreads; ++t) {
    constexpr std::array<std::array<int, 2>, 8> kSizes = {
        {{64, 1}, {65, 1}, {8, 8}, {0, 1}, {1, 1}, {32, 3}, {-1, 1}, {4, 2048}}};
    for (const int extent : kSizes.at(t % kSizes.size())) sizes.push_back(extent);
  }
  return sizes;
}

void refused_step(Builder& c, const char* name) {
  const std::vector<int> sizes = some_sizes();
  std::vector<int> counts, failed;
  for (int t = 0; t < kThreads; ++t) {
    const int x = sizes[2 * t], y = sizes[2 * t + 1];
    const bool refused = t % 13 == 5 || x <= 0 || y > kMost || x * y > 64;
    counts.push_back(refused ? 0 : 2 * x * y);
    failed.insert(failed.end(), {refused, refused, 0});
  }
  const auto s = c.input(std::string("sizes") + name, sizes);
  const auto n = c.buffer(std::string("counts") + name, std::vector<int>(kThreads), counts);
  const auto f = c.buffer(std::string("failed") + name, std::vector<int>(3 * kThreads, -1), failed);
  c.launch("sizes_refused_parent", kGrid, kBlock, c.address(s), c.address(n), c.address(f));
}

std::vector<int> reversed_halves(std::vector<int>& before) {
  std::vector<int> after;
  for (int t = 0; t < kThreads; ++t) {
    const int n = size_of(t), half = (n + 1) / 2;
    std::vector<int> cells(2 * kMost);
    for (int& cell : cells)
      cell = static_cast<int>(before.size() + static_cast<size_t>(&cell - cells.data()));
    before.insert(before.end(), cells.begin(), cells.end());
    for (int block = 0; block < 1 + t % 2; ++block) {
      const auto own = cells.begin() + block * n;
      std::reverse(own, own + n);
      std::reverse(own, own + half);
    }
    after.insert(after.end(), cells.begin(), cells.end());
  }
  return after;
}

void meet_step(Builder& c) {
  std::vector<int> before;
  const std::vector<int> after = reversed_halves(before);
  const auto m = c.buffer("cells", before, after);
  c.launch("sizes_meet_parent", kGrid, kBlock, c.address(m));
}

}  // namespace

KLAP_CASE(sizes_cubes, "a thread has another place in its block, or another block, than the record says") {
  places_case(c, "sizes_cubes_parent", [](int t) {
    return std::array{width_of(t), height_of(t), depth_of(t)};
  });
  c.rewritten("sizes_cubes_parent");
  c.children_never_meet();
}
KLAP_CASE(sizes_rows, "an extent that is constant is taken from the record, or one that is not is constant") {
  places_case(c, "sizes_rows_parent", [](int t) { return std::array{width_of(t), 3, 1}; });
  c.rewritten("sizes_rows_parent");
  c.children_never_meet();
}
KLAP_CASE(sizes_in_order, "children of several sizes overlap that are not shown to be apart") {
  places_case(c, "sizes_rows_parent", [](int t) { return std::array{width_of(t), 3, 1}; });
  c.left("sizes_rows_parent", "block-not-constant");
  c.executed();
  c.by_warp("order-kept");
}
KLAP_CASE(sizes_meet, "a small block waits for threads that only the largest one has, or is cut off") {
  meet_step(c);
  c.left_on_host("sizes_meet_parent", "block-not-constant");
  c.children_never_meet();
}
KLAP_CASE(sizes_in_template, "a block is of another size than the template says") {
  std::vector<int> before, after;
  for (int i = 0; i < 128 * kThreads; ++i) before.push_back(i);
  for (int i = 0; i < 128 * kThreads; ++i) after.push_back(i - i % 64 + 63 - i % 64);
  const auto m = c.buffer("cells", before, after);
  c.launch("sizes_in_template_parent", kGrid, kBlock, c.address(m));
  c.rewritten("sizes_in_template_parent");
}
KLAP_CASE(sizes_warps, "lanes that a block does not have take part, or barriers with a count miss some") {
  std::vector<int> sums;
  for (int t = 0; t < kThreads; ++t) {
    const int n = size_of(t);
    int above = 0, ballots = 0;
    for (int i = 0; i < n; ++i) {
      if (i + 1 < n && i % 32 != 31) above += i + 1;
      for (int lane = i / 32 * 32; lane < std::min(i / 32 * 32 + 32, n); ++lane) ballots += lane % 3 != 0;
    }
    sums.insert(sums.end(), {above, n >= 64 ? 1 : 0, ballots});
  }
  const auto m = c.buffer("sums", std::vector<int>(sums.size()), sums);
  c.launch("sizes_warps_parent", kGrid, kBlock, c.address(m));
  c.left_on_host("sizes_warps_parent", "block-not-constant");
}
KLAP_CASE(sizes_refused, "a size that CUDA refuses runs or goes unnoticed, or spoils those beside it") {
  refused_step(c, "");
  c.rewritten("sizes_refused_parent");
}
KLAP_CASE(sizes_one_after_another, "the largest block of one parent is still the largest of the next") {
  refused_step(c, "1");
  meet_step(c);
  refused_step(c, "2");
  c.rewritten("sizes_refused_parent");
  c.left_on_host("sizes_meet_parent", "block-not-constant");
  c.children_never_meet();
}
KLAP_CASE(sizes_shared, "a child has less shared memory than it asked for, or more than CUDA allows") {
  shared_case(c, "sizes_shared_parent", size_of, 0);
}
KLAP_CASE(sizes_shared_only, "shared memory that differs in blocks of one size is another child's") {
  shared_case(
      c, "sizes_shared_only_parent", [](int) { return 40; }, 4 * 40);
}
KLAP_CASE(sizes_big, "children of very many blocks have the size of others") {
  constexpr unsigned kParents = 8;
  std::vector<unsigned> counts;
  for (unsigned t = 0; t < kParents; ++t) {
    const unsigned blocks = t == 3 ? 65600 : 2 + t;
    counts.push_back(blocks * 10 * (t % 3) + blocks / 2);
  }
  const auto m = c.buffer("counts", std::vector<unsigned>(kParents), counts);
  c.launch("sizes_big_parent", {1, 1, 1}, {kParents, 1, 1}, c.address(m));
  c.rewritten("sizes_big_parent");
}
KLAP_CASE(sizes_two_sites, "launches of differing sizes come before others of the thread, or mix up errors") {
  std::vector<int> cells, failed;
  for (int t = 0; t < kThreads; ++t) {
    const bool first_fails = t % 5 == 4, second_fails = t % 7 == 6;
    cells.push_back((5 + (first_fails ? 0 : 1 + t)) * (second_fails ? 1 : 2));
    failed.insert(failed.end(), {first_fails, second_fails});
  }
  const auto m = c.buffer("cells", std::vector<int>(kThreads, 5), cells);
  const auto f = c.buffer("failed", std::vector<int>(2 * kThreads, -1), failed);
  c.launch("sizes_two_sites_parent", kGrid, kBlock, c.address(m), c.address(f));
  c.rewritten("sizes_two_sites_parent");
}

#endif
