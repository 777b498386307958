// Launches of a loop into several streams: without an order beside ordered ones, with two orders, and into
// streams that the thread creates.
#include "loop_threads.h"

#ifdef __CUDACC__

__global__ void add(int* cell, int amount) { atomicAdd(cell, amount); }
__global__ void add_once(int* cell, long long amount, int* other) {
  if (threadIdx.x == 0) atomicAdd(blockIdx.x == 0 ? cell : other, static_cast<int>(amount));
}

// Launches without any order beside others.
extern "C" __global__ void mixed_streams_parent(int* cells, int* sums, int* codes) {
  int* own = cells + own_index() * (kMostRounds + 1);
  int code = 0;
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i, ++own) {
    add<<<1 + i % 3, 16, 0, cudaStreamFireAndForget>>>(sums + own_index(), i + 1);
    code += error();
    follow<<<1, 32>>>(own, own + 1, i);
    code += error();
  }
  codes[own_index()] = code;
}
extern "C" __global__ void unordered_parent(int* sums, int* codes) {
  int code = 0;
#pragma unroll 2
  for (int i = 0; i < rounds_of(own_index()); ++i) {
    add<<<1 + i % 3, 16, 0, cudaStreamFireAndForget>>>(sums + own_index(), i + 1);
    code += error();
    add_once<<<2, 48, 0, cudaStreamFireAndForget>>>(sums + own_index(), 1000 * i, sums + own_index());
    code += error();
  }
  codes[own_index()] = code;
}
// The stricter of two orders for both.
extern "C" __global__ void two_orders_parent(int* cells, int* codes) {
  int* own = cells + own_index() * 2 * (kMostRounds + 1);
  int code = 0;
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i, ++own) {
    follow<<<1, 32>>>(own, own + 1, i);
    code += error();
    branch<<<1, 32, 0, cudaStreamPerThread>>>(own + kMostRounds + 1, i, own + kMostRounds + 2);
    code += error();
  }
  codes[own_index()] = code;
}

// A stream for all rounds, in which the launches have an order; and a stream for each round, where they have
// none. The streams are gone before what was launched into them can be taken back.
extern "C" __global__ void own_streams_parent(int* cells, int* codes) {
  int* own = cells + own_index() * 2 * (kMostRounds + 1);
  int code = 0;
  cudaStream_t one = nullptr, other = nullptr;
  code += cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
  code += cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i, ++own) {
    follow<<<1, 32, 0, one>>>(own, own + 1, i);
    code += error();
    branch<<<1, 32, 0, other>>>(own + kMostRounds + 1, i, own + kMostRounds + 2);
    code += error();
  }
  cudaStreamDestroy(one);
  cudaStreamDestroy(other);
  codes[own_index()] = code;
}
extern "C" __global__ void streams_anew_parent(int* sums, int* codes) {
  int code = 0;
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i) {
    cudaStream_t stream = nullptr;
    code += cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (i % 2 == 0) {
      add<<<1 + i % 3, 16, 0, stream>>>(sums + own_index(), i + 1);
    } else {
      add_once<<<2, 48, 0, stream>>>(sums + own_index(), 1000 * i, sums + own_index());
    }
    code += error();
    cudaStreamDestroy(stream);
  }
  codes[own_index()] = code;
}

#else

KLAP_CASE(loop_mixed_streams, "launches without an order break the order of others, or are lost") {
  std::vector<int> after = starts(kMostRounds + 1), sums(kAll);
  for (int t = 0; t < kAll; ++t) {
    int* const own = &after[static_cast<size_t>(t * (kMostRounds + 1))];
    for (int i = 0; i < rounds_of(t); ++i) {
      own[i + 1] = follow_up(own[i], i);
      sums[static_cast<size_t>(t)] += 16 * (1 + i % 3) * (i + 1);
    }
  }
  const auto cells = c.buffer("cells", starts(kMostRounds + 1), after);
  const auto added = c.buffer("sums", std::vector<int>(kAll), sums);
  const auto errors = c.buffer("codes", std::vector<int>(kAll, -1), no_errors());
  launch(c, "mixed_streams_parent", c.address(cells), c.address(added), c.address(errors));
  in_loop(c, "mixed_streams_parent");
  c.children_never_meet();
}

KLAP_CASE(loop_unordered_sites, "children of two kernels without an order are lost, or run twice") {
  std::vector<int> sums(kAll);
  for (int t = 0; t < kAll; ++t) {
    for (int i = 0; i < rounds_of(t); ++i)
      sums[static_cast<size_t>(t)] += 16 * (1 + i % 3) * (i + 1) + 2 * 1000 * i;
  }
  const auto added = c.buffer("sums", std::vector<int>(kAll), sums);
  const auto errors = c.buffer("codes", std::vector<int>(kAll, -1), no_errors());
  launch(c, "unordered_parent", c.address(added), c.address(errors));
  in_loop(c, "unordered_parent");
}

KLAP_CASE(loop_two_orders, "launches into two streams that have an order each lose it") {
  constexpr int kLinks = kMostRounds + 1;
  std::vector<int> after = starts(2 * kLinks);
  for (int t = 0; t < kAll; ++t) {
    int* const own = &after[static_cast<size_t>(t * 2 * kLinks)];
    for (int i = 0; i < rounds_of(t); ++i) {
      own[i + 1] = follow_up(own[i], i);
      own[kLinks + i + 1] = branch_off(own[kLinks + i], i);
    }
  }
  const auto cells = c.buffer("cells", starts(2 * kLinks), after);
  const auto errors = c.buffer("codes", std::vector<int>(kAll, -1), no_errors());
  launch(c, "two_orders_parent", c.address(cells), c.address(errors));
  in_loop(c, "two_orders_parent", "some");
  c.children_never_meet();
}

KLAP_CASE(loop_own_streams, "launches of a loop into a stream that the thread created lose their order") {
  constexpr int kLinks = kMostRounds + 1;
  std::vector<int> after = starts(2 * kLinks);
  for (int t = 0; t < kAll; ++t) {
    int* const own = &after[static_cast<size_t>(t * 2 * kLinks)];
    for (int i = 0; i < rounds_of(t); ++i) {
      own[i + 1] = follow_up(own[i], i);
      own[kLinks + i + 1] = branch_off(own[kLinks + i], i);
    }
  }
  const auto cells = c.buffer("cells", starts(2 * kLinks), after);
  const auto errors = c.buffer("codes", std::vector<int>(kAll, -1), no_errors());
  launch(c, "own_streams_parent", c.address(cells), c.address(errors));
  in_loop(c, "own_streams_parent", "stream-unsupported");
}

KLAP_CASE(loop_streams_anew, "launches of a loop into streams of their own are lost, or run twice") {
  std::vector<int> sums(kAll);
  for (int t = 0; t < kAll; ++t) {
    for (int i = 0; i < rounds_of(t); ++i)
      sums[static_cast<size_t>(t)] += i % 2 == 0 ? 16 * (1 + i % 3) * (i + 1) : 2 * 1000 * i;
  }
  const auto added = c.buffer("sums", std::vector<int>(kAll), sums);
  const auto errors = c.buffer("codes", std::vector<int>(kAll, -1), no_errors());
  launch(c, "streams_anew_parent", c.address(added), c.address(errors));
  in_loop(c, "streams_anew_parent", "stream-unsupported");
}

#endif
