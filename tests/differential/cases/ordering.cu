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
  const std::vector<std::string> parents = {"some_threads_count", "some_threads_count_widely",
                                            "some_threads_count_up_to", "some_blocks_count"};
  for (size_t i = 0; i < parents.size(); ++i) {
    for (int t = 0; t < kAll; ++t) after[static_cast<size_t>(apart[static_cast<size_t>(t)])] += t + 1;
    for (int t = 0; t < kThreads; ++t) after[static_cast<size_t>(tally_of(t))] += t + 1;
  }
  const auto tallies = c.buffer("tallies", std::vector<int>(kAll), after);
  const auto own = c.address(c.input("apart", apart)), shared = c.address(c.input("together", together));
  const auto run = [&](const std::string& parent, const auto& all, const auto& one_block) {
    c.launch(parent, {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(tallies), own, all);
    c.launch(parent, {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(tallies), shared, one_block);
    c.rewritten(parent);
  };
  run(parents[0], kAll, kThreads);
  run(parents[1], uint64_t{kAll}, uint64_t{kThreads});
  run(parents[2], kAll, kThreads);
  run(parents[3], kBlocks, 1);
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
