// What the threads of a block launch into its NULL stream runs one after another. The children meet in memory
// that they find through data: blocks of the parent meet there as well, in no order, so ordering "auto" lets
// them overlap where there are several blocks. Ordering "stream" never does.
#include "case.h"

constexpr int kThreads = 96;
constexpr int kTallies = 5;

KLAP_SHARED static inline int tally_of(int t) { return t * t % kTallies; }

#ifdef __CUDACC__

__global__ void count(int* tallies, const int* choices, int t) {
  if (threadIdx.x == 0) tallies[choices[t]] += t + 1;
}
extern "C" __global__ void all_count(int* tallies, const int* choices) {
  const int t = static_cast<int>(threadIdx.x);
  count<<<1, 32>>>(tallies, choices, t);
}
extern "C" __global__ void all_blocks_count(int* tallies, const int* choices) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  count<<<1, 32>>>(tallies, choices, t);
}
// So many threads of the grid launch, or so many blocks.
extern "C" __global__ void some_threads_count(int* tallies, const int* choices, int n) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t < n) count<<<1, 32>>>(tallies, choices, t);
}
extern "C" __global__ void some_threads_count_widely(int* tallies, const int* choices, size_t n) {
  const size_t t = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t < n) count<<<1, 32>>>(tallies, choices, static_cast<int>(t));
}
extern "C" __global__ void some_threads_count_up_to(int* tallies, const int* choices, int last) {
  const int t = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (last - 1 >= t) count<<<1, 32>>>(tallies, choices, t);
}
extern "C" __global__ void some_blocks_count(int* tallies, const int* choices, int blocks) {
  if (static_cast<int>(blockIdx.x) >= blocks) return;
  count<<<1, 32>>>(tallies, choices, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}
extern "C" __global__ void some_cells_count(int* tallies, const int* choices, int rows, int columns) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t + 1 <= rows * columns) count<<<1, 32>>>(tallies, choices, t);
}
extern "C" __global__ void threads_between_count(int* tallies, const int* choices, int first, int end) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t >= first && t < end) count<<<1, 32>>>(tallies, choices, t);
}
__device__ __noinline__ int rounded(int t, int to) { return (t + to - 1) / to * to; }
__device__ __noinline__ int place_in_grid() {
  return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}
extern "C" __global__ void threads_by_call_count(int* tallies, const int* choices, int n, int to) {
  const int t = place_in_grid();
  if (rounded(t, to) < n) count<<<1, 32>>>(tallies, choices, t);
}

// Children that know their block meet others of that block alone.
__global__ void count_for(int* tallies, const int* choices, int t, int block) {
  if (threadIdx.x == 0 && block == 2) tallies[choices[t]] += t + 1;
}
__global__ void count_some(int* tallies, const int* choices, int t, int times) {
  for (int i = 0; i < times; ++i) tallies[choices[t]] += t + 1;
}
__global__ void count_here_or_there(int* even, int* odd, const int* choices, int t, int block) {
  if (threadIdx.x != 0) return;
  int* tallies = even;
  if (block % 2 != 0) {
    __threadfence();
    tallies = odd;
  }
  tallies[choices[t]] += t + 1;
}
__global__ void count_by_grid(int* tallies, const int* choices, int t) {
  if (threadIdx.x == 0 && blockIdx.x == 0)
    tallies[choices[t] + kTallies * static_cast<int>(gridDim.x - 1)] += t + 1;
}
__global__ void count_in_own(int* tallies, const int* choices, const int* first, int t, int block) {
  if (threadIdx.x == 0) tallies[first[block] + choices[t]] += t + 1;
}
extern "C" __global__ void blocks_count_in_own(int* tallies, const int* choices, const int* first) {
  count_in_own<<<1, 32>>>(tallies, choices, first, static_cast<int>(threadIdx.x),
                          static_cast<int>(blockIdx.x));
}
extern "C" __global__ void chosen_blocks_count(int* tallies, const int* choices, const int* kinds) {
  const int t = static_cast<int>(threadIdx.x);
  if (kinds[blockIdx.x] == 1) count<<<1, 32>>>(tallies, choices, t);
}
extern "C" __global__ void blocks_of_kinds_count(int* tallies, const int* choices, const int* kinds) {
  count_for<<<1, 32>>>(tallies, choices, static_cast<int>(threadIdx.x), kinds[blockIdx.x]);
}
extern "C" __global__ void blocks_count_for(int* tallies, const int* choices) {
  count_for<<<1, 32>>>(tallies, choices, static_cast<int>(threadIdx.x), static_cast<int>(blockIdx.x));
}
extern "C" __global__ void blocks_count_some(int* tallies, const int* choices, int most) {
  count_some<<<1, 1>>>(tallies, choices, static_cast<int>(threadIdx.x), most >> blockIdx.x);
}
extern "C" __global__ void blocks_count_here_or_there(int* tallies, int* others, const int* choices) {
  count_here_or_there<<<1, 32>>>(tallies, others, choices, static_cast<int>(threadIdx.x),
                                 static_cast<int>(blockIdx.x));
}
extern "C" __global__ void blocks_count_by_grid(int* tallies, const int* choices, unsigned grid) {
  count_by_grid<<<grid + blockIdx.x, 32>>>(tallies, choices, static_cast<int>(threadIdx.x));
}
// One thread of a block has no other to be ordered with.
extern "C" __global__ void one_counts(int* tallies, const int* choices) {
  if (threadIdx.x != 7 || threadIdx.y != 0 || threadIdx.z != 0) return;
  count<<<1, 32>>>(tallies + kTallies * blockIdx.x, choices, static_cast<int>(blockIdx.x));
}

#else

KLAP_CASE(ordering_stream, "launches of a block overlap, and an update without atomics is lost") {
  std::vector<int> choices, after(kTallies);
  for (int t = 0; t < kThreads; ++t) {
    choices.push_back(tally_of(t));
    after[static_cast<size_t>(tally_of(t))] += t + 1;
  }
  const auto tallies = c.buffer("tallies", std::vector<int>(kTallies), after);
  c.launch("all_count", {1, 1, 1}, {kThreads, 1, 1}, c.address(tallies),
           c.address(c.input("choices", choices)));
  c.setting("KLAP_ORDERING", "stream");
  c.rewritten("all_count");
  c.by_warp("order-kept");
}

KLAP_CASE(ordering_auto, "children of one block alone overlap, or those of several are lost") {
  constexpr int kBlocks = 4, kAll = kBlocks * kThreads;
  std::vector<int> apart, together, after(kAll);
  for (int t = 0; t < kAll; ++t) {
    apart.push_back(t * 5 % kAll);  // each its own
    after[static_cast<size_t>(apart.back())] += t + 1;
  }
  for (int t = 0; t < kThreads; ++t) {
    together.push_back(tally_of(t));
    after[static_cast<size_t>(tally_of(t))] += t + 1;
  }
  const auto tallies = c.buffer("tallies", std::vector<int>(kAll), after);
  c.launch("all_blocks_count", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(tallies),
           c.address(c.input("apart", apart)));
  c.launch("all_blocks_count", {1, 1, 1}, {kThreads, 1, 1}, c.address(tallies),
           c.address(c.input("together", together)));
  c.rewritten("all_blocks_count");
}

KLAP_CASE(ordering_few_threads, "children of the only block that input lets launch overlap") {
  constexpr int kBlocks = 4, kAll = kBlocks * kThreads;
  std::vector<int> apart, together, after(kAll);
  for (int t = 0; t < kAll; ++t) {
    apart.push_back(t * 5 % kAll);
    together.push_back(tally_of(t));
  }
  const std::vector<std::string> parents = {
      "some_threads_count", "some_threads_count_widely", "some_threads_count_up_to", "some_blocks_count",
      "some_cells_count",   "threads_between_count",     "threads_by_call_count"};
  for (size_t i = 0; i < parents.size(); ++i) {
    for (int t = 0; t < kAll; ++t) after[static_cast<size_t>(apart[static_cast<size_t>(t)])] += t + 1;
    for (int t = 0; t < kThreads; ++t) after[static_cast<size_t>(tally_of(t))] += t + 1;
  }
  const auto tallies = c.buffer("tallies", std::vector<int>(kAll), after);
  const auto own = c.address(c.input("apart", apart)), shared = c.address(c.input("together", together));
  const auto run = [&](const std::string& parent, const auto& all, const auto& one_block,
                       const auto&... more) {
    c.launch(parent, {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(tallies), own, all, more...);
    c.launch(parent, {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(tallies), shared, one_block, more...);
    c.rewritten(parent);
  };
  run(parents[0], kAll, kThreads);
  run(parents[1], uint64_t{kAll}, uint64_t{kThreads});
  run(parents[2], kAll, kThreads);
  run(parents[3], kBlocks, 1);
  run(parents[4], kAll / 8, kThreads / 8, 8);
  c.launch(parents[5], {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(tallies), own, 0, kAll);
  c.launch(parents[5], {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(tallies), shared, 0, kThreads);
  run(parents[6], kAll, kThreads, 1);
}

KLAP_CASE(ordering_told_block, "children that do something for one block of the parent overlap") {
  std::vector<int> choices, once(kTallies), after(kTallies);
  for (int t = 0; t < kThreads; ++t) {
    choices.push_back(tally_of(t));
    once[static_cast<size_t>(tally_of(t))] += t + 1;
  }
  for (size_t i = 0; i < after.size(); ++i) after[i] = 2 * once[i];
  const auto of_two = c.buffer("of two", std::vector<int>(kTallies), after);
  const auto of_kinds = c.buffer("of kinds", std::vector<int>(kTallies), after);
  const auto even = c.buffer("even", std::vector<int>(kTallies), once);
  const auto odd = c.buffer("odd", std::vector<int>(kTallies), once);
  std::vector<int> by_grid;
  for (int block = 0; block < 3; ++block) by_grid.insert(by_grid.end(), once.begin(), once.end());
  const auto of_grids = c.buffer("by grid", std::vector<int>(by_grid.size()), by_grid);
  const auto input = c.address(c.input("choices", choices));
  c.launch("blocks_count_for", {4, 1, 1}, {kThreads, 1, 1}, c.address(of_two), input);
  c.launch("blocks_count_some", {4, 1, 1}, {kThreads, 1, 1}, c.address(of_two), input, 1);
  c.launch("blocks_count_here_or_there", {2, 1, 1}, {kThreads, 1, 1}, c.address(even), c.address(odd), input);
  c.launch("blocks_count_by_grid", {3, 1, 1}, {kThreads, 1, 1}, c.address(of_grids), input, 1U);
  const auto kinds = c.address(c.input("kinds", std::vector<int>{0, 2, 1, 0}));
  for (const char* parent : {"chosen_blocks_count", "blocks_of_kinds_count"}) {
    c.launch(parent, {4, 1, 1}, {kThreads, 1, 1}, c.address(of_kinds), input, kinds);
    c.rewritten(parent);
  }
  // Each block finds its own part of the tallies in a table.
  const auto own = c.buffer("own", std::vector<int>(by_grid.size()), by_grid);
  c.launch("blocks_count_in_own", {3, 1, 1}, {kThreads, 1, 1}, c.address(own), input,
           c.address(c.input("first", std::vector<int>{kTallies, 2 * kTallies, 0})));
  for (const char* parent :
       {"blocks_count_for", "blocks_count_some", "blocks_count_here_or_there", "blocks_count_in_own"})
    c.rewritten(parent);
}

KLAP_CASE(ordering_stream_one_thread, "the launch of one thread of a block is lost where order is kept") {
  constexpr int kBlocks = 4;
  std::vector<int> choices, after(kBlocks * kTallies);
  for (int t = 0; t < kBlocks; ++t) {
    choices.push_back(tally_of(t));
    after[static_cast<size_t>(t * kTallies + tally_of(t))] = t + 1;
  }
  const auto tallies = c.buffer("tallies", std::vector<int>(kBlocks * kTallies), after);
  c.launch("one_counts", {kBlocks, 1, 1}, {32, 2, 1}, c.address(tallies),
           c.address(c.input("choices", choices)));
  c.setting("KLAP_ORDERING", "stream");
  c.rewritten("one_counts");
}

#endif
