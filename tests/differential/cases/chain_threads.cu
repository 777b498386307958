// Chains in which the threads of a link differ: another one than the first launches, some leave before, and
// blocks have three dimensions. And what a launch is to its threads: its result, its shared memory, and its
// place in a grid.
#include "chain_links.h"

KLAP_SHARED static inline int placed(int link, int thread, int block, int blocks, int threads) {
  return ((link * 100 + block) * 100 + blocks) * 10000 + thread * 100 + threads;
}

#ifdef __CUDACC__

// The last thread launches; threads leave before; blocks of three dimensions.
extern "C" __global__ void chain_last_thread(int* cells, int link, int links, int sum) {
  const int t = static_cast<int>(threadIdx.x);
  const int mine = cells[link * 32 + t];
  __syncthreads();
  if (t == 31 && link + 1 < links) chain_last_thread<<<1, 32>>>(cells, link + 1, links, sum + mine);
  cells[link * 32 + t] = sum + mine;
}
extern "C" __global__ void chain_leaving(int* cells, int link, int links, int sum) {
  const int t = static_cast<int>(threadIdx.x);
  if (t > link) return;
  cells[link * 32 + t] = sum + t;
  if (t == 0 && link + 1 < links) chain_leaving<<<1, 32>>>(cells, link + 1, links, sum + link);
}
extern "C" __global__ void chain_cubes(int* cells, int link, int links, int sum) {
  const int t = static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
  __shared__ int total;
  if (t == 5) total = chain_value(link);
  __syncthreads();
  cells[link * 32 + t] = sum + t;
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0 && link + 1 < links)
    chain_cubes<<<1, dim3(4, 4, 2)>>>(cells, link + 1, links, sum + total);
}

// Dynamic shared memory, written and read by other threads in every link.
extern "C" __global__ void chain_dynamic(const int* values, int* out, int link, int links, int sum) {
  extern __shared__ int tile[];
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = values[link * kWidth + t];
  __syncthreads();
  const int other = tile[kWidth - 1 - t];
  __syncthreads();
  if (t == 0 && link + 1 < links)
    chain_dynamic<<<1, kWidth, kWidth * sizeof(int)>>>(values, out, link + 1, links, sum + other);
  tile[t] = other + sum;
  __syncthreads();
  out[link * kWidth + t] = tile[kWidth - 1 - t];
}

// What the launch returned is looked at.
extern "C" __global__ void chain_result(int* errors, int link, int links) {
  if (threadIdx.x != 0) return;
  int error = 0;
  if (link + 1 < links) {
    chain_result<<<1, 32>>>(errors, link + 1, links);
    error = static_cast<int>(cudaGetLastError());
  }
  errors[link] = error;
}

// Each link does a read-modify-write at one place, behind its launch or before it.
extern "C" __global__ void chain_counts(int* total, int* seen, int link, int links) {
  if (threadIdx.x == 0) {
    const int before = *total;
    *total = before + link;
    seen[link] = before;
    if (link + 1 < links) chain_counts<<<1, 32>>>(total, seen, link + 1, links);
  }
}

// A link's place is that of the only block of a grid, and its block is the launch's.
extern "C" __global__ void chain_placed(int* cells, int link, int links) {
  const int t = static_cast<int>(threadIdx.x);
  const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  if (t < 32) cells[(link + block) * 32 + t] = placed(link, t, block, blocks, static_cast<int>(blockDim.x));
  if (t == 0 && link + 1 < links) chain_placed<<<1, 32>>>(cells, link + 1, links);
}

#else

KLAP_CASE(chain_by_last_thread, "only a first thread can launch the next link") {
  const int links = 20;
  std::vector<int> after;
  for (int link = 0, sum = 4; link < links; sum += chain_value(link * 32 + 31), ++link) {
    for (int t = 0; t < 32; ++t) after.push_back(sum + chain_value(link * 32 + t));
  }
  const auto cells = c.buffer("cells", chain_values(links * 32), after);
  c.launch("chain_last_thread", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, links, 4);
  c.rewritten("chain_last_thread");
}

KLAP_CASE(chain_left_by_threads, "threads that leave a link do not come back for the next one") {
  const int links = 32;
  std::vector<int> after(static_cast<size_t>(links) * 32, -1);
  for (int link = 0, sum = 9; link < links; sum += link, ++link) {
    for (int t = 0; t <= link; ++t) after[static_cast<size_t>(link * 32 + t)] = sum + t;
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size(), -1), after);
  c.launch("chain_leaving", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, links, 9);
  c.rewritten("chain_leaving");
}

KLAP_CASE(chain_in_three_dimensions, "threads are counted in one dimension only") {
  const int links = 18;
  std::vector<int> after;
  for (int link = 0, sum = 0; link < links; sum += chain_value(link), ++link) {
    for (int t = 0; t < 32; ++t) after.push_back(sum + t);
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size(), -1), after);
  c.launch("chain_cubes", {1, 1, 1}, {4, 4, 2}, c.address(cells), 0, links, 0);
  c.rewritten("chain_cubes");
}

namespace {
void run_dynamic(klap::differential::Builder& c, uint32_t shared) {
  const int links = 20;
  const std::vector<int> values = chain_values(links * kWidth);
  std::vector<int> after;
  for (int link = 0, sum = 0; link < links; ++link) {
    const auto* const of_link = &values[static_cast<size_t>(link * kWidth)];
    for (int t = 0; t < kWidth; ++t) after.push_back(of_link[t] + sum);
    sum += of_link[kWidth - 1];
  }
  const auto in = c.input("values", values);
  const auto out = c.buffer("out", std::vector<int>(after.size(), 0), after);
  c.launch("chain_dynamic", {1, 1, 1}, {kWidth, 1, 1}, c.address(in), c.address(out), 0, links, 0)
      .launch.shared = shared;
}
}  // namespace

KLAP_CASE(chain_of_dynamic_memory, "links overwrite each other's shared memory") {
  run_dynamic(c, kWidth * sizeof(int));
  c.rewritten("chain_dynamic");
}
KLAP_CASE(chain_with_more_memory, "a launch with other shared memory than the chain's becomes the chain") {
  run_dynamic(c, 2 * kWidth * sizeof(int));
}

KLAP_CASE(chain_result_used, "a launch that became a link returns something else") {
  const auto errors = c.buffer("errors", std::vector<int>(12, -1), std::vector<int>(12, 0));
  c.launch("chain_result", {1, 1, 1}, {32, 1, 1}, c.address(errors), 0, 12);
  c.rewritten("chain_result");
}

KLAP_CASE(chain_counting, "what a link wrote before its launch is lost") {
  const int links = 30;
  std::vector<int> seen;
  int total = 100;
  for (int link = 0; link < links; ++link) seen.push_back(total), total += link;
  const auto of_all = c.buffer("total", std::vector<int>{100}, std::vector<int>{total});
  const auto of_each = c.buffer("seen", std::vector<int>(links, -1), seen);
  c.launch("chain_counts", {1, 1, 1}, {32, 1, 1}, c.address(of_all), c.address(of_each), 0, links);
  c.rewritten("chain_counts");
}

// Launches that are not the chain's: of another block, and of several.
KLAP_CASE(chain_of_another_form, "another launch of the kernel becomes the chain") {
  const int links = 10;
  const auto cells_for = [](int first_block, int first_blocks, int count) {
    std::vector<int> after;
    for (int link = 0; link < count; ++link) {
      for (int t = 0; t < 32; ++t) after.push_back(placed(link, t, 0, 1, link == 0 ? first_block : 32));
    }
    for (int block = 1; block < first_blocks; ++block) {
      for (int t = 0; t < 32; ++t) after.push_back(placed(0, t, block, first_blocks, 32));
    }
    if (first_blocks > 1) {
      for (int t = 0; t < 32; ++t) after[static_cast<size_t>(t)] = placed(0, t, 0, first_blocks, 32);
    }
    return after;
  };
  const auto run = [&](const char* name, int block, int blocks, int count) {
    const std::vector<int> after = cells_for(block, blocks, count);
    const auto cells = c.buffer(name, std::vector<int>(after.size(), -1), after);
    c.launch("chain_placed", {static_cast<uint32_t>(blocks), 1, 1}, {static_cast<uint32_t>(block), 1, 1},
             c.address(cells), 0, count);
  };
  run("of one block", 32, 1, links);
  run("of another block", 64, 1, links);
  run("of three blocks", 32, 3, 1);
  run("of one block again", 32, 1, links);
  c.rewritten("chain_placed");
}

#endif
