// Parents whose records have no room at once: their grids run in slices, and every block must find its own
// place in the whole grid, every child must run once, and what blocks count together must come out right.
#include "case.h"

constexpr unsigned kValues = 7;  // that a child writes of its parent's thread

#ifdef __CUDACC__

struct Place {
  unsigned block[3], grid[3];
};
// The first dimension of the child's own grid stands behind what its parent saw.
__global__ void write_place(unsigned* out, Place place) {
  const unsigned t = threadIdx.x;
  if (t < 6) atomicAdd(out + t, t < 3 ? place.block[t] : place.grid[t - 3]);
  if (t == 6) atomicAdd(out + t, gridDim.x);
}
extern "C" __global__ void places_parent(unsigned* out, unsigned* own) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned t = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  own[t] += t;
  const Place place = {{blockIdx.x, blockIdx.y, blockIdx.z}, {gridDim.x, gridDim.y, gridDim.z}};
  if (t % 5 != 4) write_place<<<t % 3 + 1, 8>>>(out + kValues * t, place);
}

__global__ void put(int* cell, int value) {
  if (threadIdx.x == 0) *cell = value;
}
struct Wide {
  int values[12];
};
__global__ void scale(int* cell, Wide wide) {
  if (threadIdx.x == 0) *cell = *cell * wide.values[11] + 1;
}
extern "C" __global__ void two_queues_parent(int* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  put<<<1, 32>>>(cells + t, t);
  Wide wide = {};
  wide.values[11] = t % 4;
  if (t % 2 == 0) scale<<<1, 32>>>(cells + t, wide);
}

// The last block to come by, whichever it is, launches for all of them.
__global__ void report(unsigned* out, unsigned sum, unsigned blocks) {
  out[0] = sum;
  out[1] = blocks;
}
extern "C" __global__ void last_block_parent(unsigned* sum, unsigned* tickets, unsigned* out) {
  if (threadIdx.x != 0) return;
  atomicAdd(sum, blockIdx.x + 1);
  __threadfence();
  const unsigned ticket = atomicAdd(tickets, 1);
  if (ticket != gridDim.x - 1) return;
  __threadfence();
  report<<<1, 1>>>(out, atomicAdd(sum, 0), gridDim.x);
}

// The function is called, and no part of the kernel's body.
__device__ __noinline__ void count_here(unsigned* own) { own[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
extern "C" __global__ void function_place_parent(unsigned* out, unsigned* own) {
  count_here(own);
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  const Place place = {{t, 0, 0}, {1, 1, 1}};
  write_place<<<1, 8>>>(out + kValues * t, place);
}

#else

namespace {

void places(klap::differential::Builder& c, klap::differential::Dim3 grid, klap::differential::Dim3 block,
            const char* pool_bytes, const std::vector<uint32_t>& streams = {0}) {
  const unsigned threads = block[0] * block[1] * block[2];
  const unsigned all = grid[0] * grid[1] * grid[2] * threads;
  std::vector<unsigned> before(kValues * all, 0), after = before, own_before(all, 1), own_after;
  for (unsigned t = 0; t < all; ++t) {
    own_after.push_back(1 + t);
    if (t % 5 == 4) continue;
    const unsigned b = t / threads, blocks = t % 3 + 1;
    const unsigned values[] = {
        b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1], grid[0], grid[1], grid[2], blocks};
    for (unsigned i = 0; i < kValues; ++i) after[kValues * t + i] = blocks * values[i];
  }
  for (const uint32_t stream : streams) {
    const auto out = c.buffer("out" + std::to_string(stream), before, after);
    const auto own = c.buffer("own" + std::to_string(stream), own_before, own_after);
    c.launch_in(stream, "places_parent", grid, block, c.address(out), c.address(own));
  }
  c.rewritten("places_parent");
  c.setting("KLAP_POOL_BYTES", pool_bytes);
}

}  // namespace

KLAP_CASE(slices_line, "blocks of a line do not know where in the grid they are") {
  places(c, {37, 1, 1}, {32, 1, 1}, "8K");
}
KLAP_CASE(slices_blocks, "slices of one block do not know where in the grid they are") {
  places(c, {5, 3, 2}, {8, 2, 2}, "4K");
}
KLAP_CASE(slices_rows, "rows of a plane do not know where in the grid they are") {
  places(c, {5, 7, 1}, {16, 2, 1}, "24K");
}
KLAP_CASE(slices_parts_of_rows, "parts of rows do not know where in the grid they are") {
  places(c, {5, 2, 3}, {32, 1, 1}, "7K");
}
KLAP_CASE(slices_layers, "layers do not know where in the grid they are") {
  places(c, {3, 2, 5}, {4, 2, 4}, "28K");
}
KLAP_CASE(slices_two_streams, "slices in different streams use each other's queues") {
  places(c, {9, 1, 1}, {32, 1, 1}, "6K", {1, 2, 1});
}

KLAP_CASE(slices_two_queues,
          "the launches of one thread lose their order, or records of one queue stay behind") {
  constexpr int kThreads = 11 * 32;
  std::vector<int> before(kThreads, -1), after;
  for (int t = 0; t < kThreads; ++t) after.push_back(t % 2 == 0 ? t * (t % 4) + 1 : t);
  const auto cells = c.buffer("cells", before, after);
  c.launch("two_queues_parent", {11, 1, 1}, {32, 1, 1}, c.address(cells));
  c.launch("two_queues_parent", {2, 1, 1}, {32, 1, 1}, c.address(cells));  // the queues are empty again
  c.rewritten("two_queues_parent");
  c.setting("KLAP_POOL_BYTES", "4K");
}

KLAP_CASE(slices_last_block, "blocks of different slices do not count together") {
  constexpr unsigned kBlocks = 23;
  const auto sum = c.buffer<unsigned>("sum", {0}, {kBlocks * (kBlocks + 1) / 2});
  const auto tickets = c.buffer<unsigned>("tickets", {0}, {kBlocks});
  const auto out = c.buffer<unsigned>("out", {0, 0}, {kBlocks * (kBlocks + 1) / 2, kBlocks});
  c.launch("last_block_parent", {kBlocks, 1, 1}, {32, 1, 1}, c.address(sum), c.address(tickets),
           c.address(out));
  c.rewritten("last_block_parent");
  c.setting("KLAP_POOL_BYTES", "6K");
}

KLAP_CASE(slices_place_in_function, "a grid runs in slices although a called function asks for the block") {
  const unsigned threads = 12 * 32;
  std::vector<unsigned> before(kValues * threads, 0), after = before, own_before(threads, 0), own_after;
  for (unsigned t = 0; t < threads; ++t) {
    const unsigned rounds = t < 32 ? 2 : 1;
    const unsigned values[] = {t, 0, 0, 1, 1, 1, 1};
    for (unsigned i = 0; i < kValues; ++i) after[kValues * t + i] = rounds * values[i];
    own_after.push_back(rounds);
  }
  const auto out = c.buffer("out", before, after), own = c.buffer("own", own_before, own_after);
  for (const unsigned blocks : {12u, 1u})  // the original, and what has room
    c.launch("function_place_parent", {blocks, 1, 1}, {32, 1, 1}, c.address(out), c.address(own));
  c.rewritten("function_place_parent");
  c.setting("KLAP_POOL_BYTES", "6K");
}

#endif
