// Chains whose links hand on what another thread than the one that launches has stored or read, ordered by
// every kind of synchronisation: links that overlap must not miss that.
#include "order_cells.h"

namespace klap::differential::chains {

constexpr int kLinks = 20;
constexpr int kWidth = 96;
constexpr int kFlag = 500;
constexpr int kShift = 17;
KLAP_SHARED static inline int next_value(int value, int link) { return value * 5 % 1009 + link; }

#ifdef __CUDACC__

constexpr unsigned kAll = 0xffffffffU;

// A link reads what the link before has written, and writes over what that one has read.
__device__ __forceinline__ void do_link(int* cells, int link) {
  cells[100 + link] = cells[0];
  cells[0] = next_value(cells[link], link);
  cells[link + 1] = cells[0];
}

#define CHAIN(name) extern "C" __global__ void name(int* cells, int link, int links)

CHAIN(order_chain_barrier_link) {
  const int thread = threadIdx.x;
  if (thread == 70) do_link(cells, link);
  __syncthreads();
  if (thread == 0 && link + 1 < links) order_chain_barrier_link<<<1, kWidth>>>(cells, link + 1, links);
}
// Each of two warps has its own barrier.
CHAIN(order_chain_branches_link) {
  const int thread = threadIdx.x;
  if (thread < 32) {
    __syncthreads();
    if (thread == 0 && link + 1 < links) order_chain_branches_link<<<1, kWidth>>>(cells, link + 1, links);
  } else {
    if (thread == 70) do_link(cells, link);
    __syncthreads();
  }
}
CHAIN(order_chain_lanes_link) {
  const int lane = threadIdx.x;
  if (lane == 0) {
    __syncwarp(3);
    if (link + 1 < links) order_chain_lanes_link<<<1, 32>>>(cells, link + 1, links);
  } else if (lane == 1) {
    do_link(cells, link);
    __syncwarp(3);
  }
}
CHAIN(order_chain_warp_link) {
  const int lane = threadIdx.x;
  if (lane == 9) do_link(cells, link);
  __syncwarp();
  if (lane == 0 && link + 1 < links) order_chain_warp_link<<<1, 32>>>(cells, link + 1, links);
}
CHAIN(order_chain_named_link) {
  const int thread = threadIdx.x;
  if (thread < 32) return;
  if (thread == 70) do_link(cells, link);
  asm volatile("bar.sync 3, 64;" ::: "memory");
  if (thread == 32 && link + 1 < links) order_chain_named_link<<<1, kWidth>>>(cells, link + 1, links);
}
CHAIN(order_chain_flag_link) {
  __shared__ volatile int flag;
  const int thread = threadIdx.x;
  if (thread == 0) flag = 0;
  __syncthreads();
  if (thread == 70) {
    do_link(cells, link);
    __threadfence();
    flag = 1;
  }
  if (thread != 0) return;
  while (flag == 0) {
  }
  __threadfence();
  if (link + 1 < links) order_chain_flag_link<<<1, kWidth>>>(cells, link + 1, links);
}
// The thread that counts last launches the next link.
CHAIN(order_chain_counter_link) {
  __shared__ int done;
  const int thread = threadIdx.x;
  if (thread == 0) done = 0;
  __syncthreads();
  if (thread == 70) do_link(cells, link);
  __threadfence();
  const int before = atomicAdd(&done, 1);
  __threadfence();
  if (before == kWidth - 1 && link + 1 < links)
    order_chain_counter_link<<<1, kWidth>>>(cells, link + 1, links);
}
CHAIN(order_chain_global_counter_link) {
  const int thread = threadIdx.x;
  if (thread == 70) do_link(cells, link);
  __threadfence();
  if (atomicAdd(cells + kFlag, 1) != kWidth - 1) return;
  __threadfence();
  cells[kFlag] = 0;
  if (link + 1 < links) order_chain_global_counter_link<<<1, kWidth>>>(cells, link + 1, links);
}
CHAIN(order_chain_release_link) {
  const int thread = threadIdx.x;
  if (thread == 70) {
    do_link(cells, link);
    asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(__cvta_generic_to_global(cells + kFlag))
                 : "memory");
  }
  if (thread != 0) return;
  int seen = 0;
  while (seen == 0) {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];"
                 : "=r"(seen)
                 : "l"(__cvta_generic_to_global(cells + kFlag))
                 : "memory");
  }
  cells[kFlag] = 0;
  if (link + 1 < links) order_chain_release_link<<<1, kWidth>>>(cells, link + 1, links);
}
// Here a link only reads what the one before has written, and writes words of its own: links could overlap.
__device__ __forceinline__ void do_link_ahead(int* cells, int link) {
  cells[link + 1] = next_value(cells[link], link);
}
CHAIN(order_chain_ahead_barrier_link) {
  const int thread = threadIdx.x;
  if (thread == 70) do_link_ahead(cells, link);
  __syncthreads();
  if (thread == 0 && link + 1 < links) order_chain_ahead_barrier_link<<<1, kWidth>>>(cells, link + 1, links);
}
CHAIN(order_chain_ahead_branches_link) {
  const int thread = threadIdx.x;
  if (thread < 32) {
    __syncthreads();
    if (thread == 0 && link + 1 < links)
      order_chain_ahead_branches_link<<<1, kWidth>>>(cells, link + 1, links);
  } else {
    if (thread == 70) do_link_ahead(cells, link);
    __syncthreads();
  }
}
CHAIN(order_chain_ahead_warp_link) {
  const int lane = threadIdx.x;
  if (lane == 9) do_link_ahead(cells, link);
  __syncwarp();
  if (lane == 0 && link + 1 < links) order_chain_ahead_warp_link<<<1, 32>>>(cells, link + 1, links);
}
CHAIN(order_chain_ahead_lanes_link) {
  const int lane = threadIdx.x;
  if (lane == 0) {
    __syncwarp();
    if (link + 1 < links) order_chain_ahead_lanes_link<<<1, 32>>>(cells, link + 1, links);
  } else {
    if (lane == 9) do_link_ahead(cells, link);
    __syncwarp();
  }
}
CHAIN(order_chain_ahead_counter_link) {
  __shared__ int done;
  const int thread = threadIdx.x;
  if (thread == 0) done = 0;
  __syncthreads();
  if (thread == 70) do_link_ahead(cells, link);
  __threadfence();
  const int before = atomicAdd(&done, 1);
  __threadfence();
  if (before == kWidth - 1 && link + 1 < links)
    order_chain_ahead_counter_link<<<1, kWidth>>>(cells, link + 1, links);
}
__global__ void do_link_ahead_in_child(int* cells, int link) {
  if (threadIdx.x == 0) do_link_ahead(cells, link);
}
CHAIN(order_chain_ahead_child_link) {
  const int thread = threadIdx.x;
  if (thread == 70) do_link_ahead_in_child<<<1, 32>>>(cells, link);
  __syncthreads();
  if (thread == 0 && link + 1 < links) order_chain_ahead_child_link<<<1, kWidth>>>(cells, link + 1, links);
}
// Each link moves its tile to a later place, once all of it has been read: no thread of the next link may
// write before that, and what is written behind the launch may overlap.
#define SHIFT(name) extern "C" __global__ void name(int* cells, int tile, int)

SHIFT(order_chain_shift_warp_link) {
  const int lane = threadIdx.x;
  const int value = cells[tile * 32 + lane];
  __syncwarp();
  if (lane == 0 && tile > 0) order_chain_shift_warp_link<<<1, 32>>>(cells, tile - 1, 0);
  cells[tile * 32 + lane + kShift] = value;
}
SHIFT(order_chain_shift_lanes_link) {
  const int lane = threadIdx.x;
  int value = 0;
  if (lane == 0) {
    value = cells[tile * 32];
    __syncwarp();
    if (tile > 0) order_chain_shift_lanes_link<<<1, 32>>>(cells, tile - 1, 0);
  } else {
    value = cells[tile * 32 + lane];
    __syncwarp();
  }
  cells[tile * 32 + lane + kShift] = value;
}
SHIFT(order_chain_shift_branches_link) {
  const int thread = threadIdx.x;
  int value = 0;
  if (thread < 32) {
    value = cells[tile * 64 + thread];
    __syncthreads();
    if (thread == 0 && tile > 0) order_chain_shift_branches_link<<<1, 64>>>(cells, tile - 1, 0);
  } else {
    value = cells[tile * 64 + thread];
    __syncthreads();
  }
  cells[tile * 64 + thread + kShift] = value;
}
// Half of the tile is read by threads that launch nothing, in a loop.
SHIFT(order_chain_shift_twice_link) {
  const int thread = threadIdx.x;
  int values[2] = {};
#pragma unroll 1
  for (int i = 0; i < 2; ++i) {
    values[0] = values[1];
    values[1] = cells[tile * 64 + i * 32 + thread];
    __syncwarp();
  }
  if (thread == 0 && tile > 0) order_chain_shift_twice_link<<<1, 32>>>(cells, tile - 1, 0);
  cells[tile * 64 + thread + kShift] = values[0];
  cells[tile * 64 + 32 + thread + kShift] = values[1];
}
// One thread, which launches as soon as it has done its part.
CHAIN(order_chain_thread_link) {
  if (threadIdx.x != 5) return;
  do_link(cells, link);
  if (link + 1 < links) order_chain_thread_link<<<1, 32>>>(cells, link + 1, links);
}
// The link's work is that of a child, which comes before the next link.
__global__ void do_link_in_child(int* cells, int link) {
  if (threadIdx.x == 0) do_link(cells, link);
}
CHAIN(order_chain_child_link) {
  if (threadIdx.x != 5) return;
  do_link_in_child<<<1, 32>>>(cells, link);
  if (link + 1 < links) order_chain_child_link<<<1, 32>>>(cells, link + 1, links);
}
CHAIN(order_chain_child_barrier_link) {
  const int thread = threadIdx.x;
  if (thread == 70) do_link_in_child<<<1, 32>>>(cells, link);
  __syncthreads();
  if (thread == 0 && link + 1 < links) order_chain_child_barrier_link<<<1, kWidth>>>(cells, link + 1, links);
}
CHAIN(order_chain_child_lanes_link) {
  const int lane = threadIdx.x;
  if (lane == 0) {
    __syncwarp(3);
    if (link + 1 < links) order_chain_child_lanes_link<<<1, 32>>>(cells, link + 1, links);
  } else if (lane == 1) {
    do_link_in_child<<<1, 32>>>(cells, link);
    __syncwarp(3);
  }
}

#else

namespace {

void run_chain(Builder& c, const char* kernel, uint32_t threads) {
  std::vector<int> after(kCells, 0);
  after[0] = 3;
  const std::vector<int> before = after;
  for (int link = 0; link < kLinks; ++link) {
    const auto at = static_cast<size_t>(link);
    after[100 + at] = after[0];
    after[0] = next_value(after[at], link);
    after[at + 1] = after[0];
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch(kernel, {1, 1, 1}, {threads, 1, 1}, c.address(cells), 0, kLinks);
}

void run_chain_ahead(Builder& c, const char* kernel, uint32_t threads) {
  std::vector<int> before(kCells, 0);
  before[0] = 3;
  std::vector<int> after = before;
  for (int link = 0; link < kLinks; ++link)
    after[static_cast<size_t>(link) + 1] = next_value(after[static_cast<size_t>(link)], link);
  const auto cells = c.buffer("cells", before, after);
  c.launch(kernel, {1, 1, 1}, {threads, 1, 1}, c.address(cells), 0, kLinks);
}

void run_shift(Builder& c, const char* kernel, uint32_t threads, int width) {
  const int tiles = 384 / width;
  std::vector<int> before(kCells, 0);
  for (int i = 0; i < 384 + kShift; ++i) before[static_cast<size_t>(i)] = next_value(i, 7 * i);
  std::vector<int> after = before;
  for (int i = 0; i < 384; ++i) after[static_cast<size_t>(i + kShift)] = before[static_cast<size_t>(i)];
  const auto cells = c.buffer("cells", before, after);
  c.launch(kernel, {1, 1, 1}, {threads, 1, 1}, c.address(cells), tiles - 1, 0);
}

}  // namespace

#define SHIFT_CASE(name, threads, width, about) \
  KLAP_CASE(name, about) { run_shift(c, #name "_link", threads, width); }
#define AHEAD_CASE(name, threads, about) \
  KLAP_CASE(name, about) { run_chain_ahead(c, #name "_link", threads); }
#define CHAIN_CASE(name, threads, about) \
  KLAP_CASE(name, about) { run_chain(c, #name "_link", threads); }

CHAIN_CASE(order_chain_barrier, kWidth, "a link misses what was stored before a barrier")
CHAIN_CASE(order_chain_branches, kWidth, "a link misses what was stored before the barrier of another branch")
CHAIN_CASE(order_chain_lanes, 32, "a link misses what a lane stored before a warp barrier of two")
CHAIN_CASE(order_chain_warp, 32, "a link misses what a lane stored before a warp barrier")
CHAIN_CASE(order_chain_named, kWidth, "a link misses what was stored before a named barrier")
CHAIN_CASE(order_chain_flag, kWidth, "a link misses what was stored before a shared flag")
CHAIN_CASE(order_chain_counter, kWidth, "a link misses what was stored before a shared counter")
CHAIN_CASE(order_chain_global_counter, kWidth, "a link misses what was stored before a global counter")
CHAIN_CASE(order_chain_release, kWidth, "a link misses what was released")
AHEAD_CASE(order_chain_ahead_barrier, kWidth, "a link overtakes what was stored before a barrier")
AHEAD_CASE(order_chain_ahead_branches, kWidth, "a link overtakes what another branch stored before a barrier")
AHEAD_CASE(order_chain_ahead_warp, 32, "a link overtakes what a lane stored before a warp barrier")
AHEAD_CASE(order_chain_ahead_lanes, 32, "a link overtakes what lanes of another branch stored")
AHEAD_CASE(order_chain_ahead_counter, kWidth, "a link overtakes what was stored before a counter")
AHEAD_CASE(order_chain_ahead_child, kWidth, "a link overtakes a child that a barrier orders before it")
SHIFT_CASE(order_chain_shift_warp, 32, 32, "a link writes what a lane has not read before a warp barrier")
SHIFT_CASE(order_chain_shift_lanes, 32, 32, "a link writes what lanes of another branch have not read")
SHIFT_CASE(order_chain_shift_branches, 64, 64, "a link writes what a warp of another branch has not read")
SHIFT_CASE(order_chain_shift_twice, 32, 64, "a link writes what a loop has not read")
CHAIN_CASE(order_chain_thread, 32, "a link misses what its thread stored before the launch")
CHAIN_CASE(order_chain_child, 32, "a link comes before a child that was launched before it")
CHAIN_CASE(order_chain_child_barrier, kWidth, "a link comes before a child that a barrier orders before it")
CHAIN_CASE(order_chain_child_lanes, 32, "a link comes before a child of another lane")

#endif

}  // namespace klap::differential::chains
