// Loops as compilers leave them: unrolled, so that one loop's launches stand at several places; and launches
// in branches of a loop, beside it, and of several kernels. A thread's launches keep one order over all of
// these.
#include "loop_threads.h"

constexpr int kTile = 64;
constexpr int kInvalidConfiguration = 9;

#ifdef __CUDACC__

// Four launches in a loop, one in the loop of what is left over.
extern "C" __global__ void unrolled_parent(int* cells, int* codes) {
  int* const own = cells + own_index() * (kMostRounds + 1);
  int* const code = codes + own_index() * kMostRounds;
#pragma unroll 4
  for (int i = 0; i < rounds_of(own_index()); ++i) {
    follow<<<1, 32>>>(own + i, own + i + 1, i);
    code[i] = error();
  }
}

// No loop is left of the first one, nor of what stands in the second one.
extern "C" __global__ void wholly_parent(int* cells, int* codes) {
  int* const own = cells + own_index() * 4;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    follow<<<1, 32>>>(own + i, own + i + 1, i);
    codes[own_index() * 3 + i] = error();
  }
}
extern "C" __global__ void inner_parent(int* cells, int* codes) {
  int* own = cells + own_index() * (kMostRounds * 3 + 1);
  int code = 0;
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i) {
#pragma unroll
    for (int k = 0; k < 3; ++k, ++own) {
      follow<<<1, 32>>>(own, own + 1, i + k);
      code += error();
    }
  }
  codes[own_index()] = code;
}

// In a loop at one of two places, grids of several blocks at one; before the loop and behind it.
__global__ void spread(const int* __restrict__ from, int* __restrict__ to, int round) {
  const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  if (threadIdx.x == 0) to[block] = follow_up(from[(3 * block + 1) % 4], round + block);
}
extern "C" __global__ void branches_parent(int* cells, int* codes) {
  int* own = cells + own_index() * (kMostRounds + 3) * 4;
  int code = 0;
  if (own_index() % 3 == 0) {
    spread<<<4, 32>>>(own, own + 4, 100);
    code += error();
    own += 4;
  }
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i, own += 4) {
    if ((own_index() + i) % 2 == 0) {
      spread<<<4, 32>>>(own, own + 4, i);
      code += error();
    } else {
      spread<<<dim3(2, 2, 1), 32>>>(own, own + 4, 2 * i);
      spread<<<dim3(4, 1, 1), 32>>>(own, own + 4, 3 * i);  // anew
      code += error();
    }
  }
  if (own_index() % 5 != 0) {
    spread<<<4, 32>>>(own, own + 4, 200);
    code += error();
  }
  codes[own_index()] = code;
}

// One kernel and another, whose blocks, arguments and shared memory differ.
__global__ void turn(const int* __restrict__ from, int* __restrict__ to) {
  __shared__ int tile[kTile];
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = from[t];
  __syncthreads();
  to[t] = tile[kTile - 1 - t];
}
__global__ void increase(const int* __restrict__ from, int rounds, short amount, int* __restrict__ to) {
  const int t = static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x);
  to[t] = (from[t] * 2 + rounds * amount + t) % 1009;
}
extern "C" __global__ void two_children_parent(int* cells, int* codes) {
  int* own = cells + own_index() * (2 * kMostRounds + 1) * kTile;
  int code = 0;
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i, own += 2 * kTile) {
    turn<<<1, kTile>>>(own, own + kTile);
    code += error();
    increase<<<4, kTile / 4>>>(own + kTile, i, 3, own + 2 * kTile);
    code += error();
  }
  codes[own_index()] = code;
}
// One kernel with several blocks and different dynamic shared memory.
__global__ void pass(const int* __restrict__ from, int* __restrict__ to, int round) {
  extern __shared__ int kept[];
  const int t = static_cast<int>(threadIdx.x);
  kept[t] = from[t % 16];
  __syncwarp();
  if (t < 16) to[t] = follow_up(kept[t ^ 1], round + static_cast<int>(blockDim.x));
}
extern "C" __global__ void two_blocks_parent(int* cells, int* codes) {
  int* own = cells + own_index() * (2 * kMostRounds + 1) * 16;
  int code = 0;
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i, own += 32) {
    pass<<<1, 32, 32 * sizeof(int)>>>(own, own + 16, i);
    code += error();
    pass<<<1, 64, 64 * sizeof(int)>>>(own + 16, own + 32, i);
    code += error();
  }
  codes[own_index()] = code;
}

// One launch in four has a grid of nothing, at either place.
extern "C" __global__ void refused_sites_parent(int* cells, int* codes) {
  int* own = cells + own_index() * (2 * kMostRounds + 1);
  int* code = codes + own_index() * 2 * kMostRounds;
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i, code += 2) {
    const bool first = (own_index() + i) % 4 == 0, second = (own_index() + i) % 4 == 2;
    follow<<<first ? 0 : 1, 32>>>(own, own + 1, i);
    code[0] = error();
    if (!first) ++own;
    branch<<<dim3(1, second ? 0 : 1, 1), 32>>>(own, i, own + 1);
    code[1] = error();
    if (!second) ++own;
  }
}

// Launches again and again until there is room, one kernel and then another.
extern "C" __global__ void retry_sites_parent(int* cells) {
  int* own = cells + own_index() * (2 * kMostRounds + 1);
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i, own += 2) {
    do {
      follow<<<1, 32>>>(own, own + 1, i);
    } while (cudaGetLastError() == cudaErrorLaunchPendingCountExceeded);
    do {
      branch<<<1, 32>>>(own + 1, i, own + 2);
    } while (cudaGetLastError() == cudaErrorLaunchPendingCountExceeded);
  }
}

// What all launches of one place write, those of another one read: a barrier stands between them.
extern "C" __global__ void barrier_sites_parent(int* cells) {
  const int t = static_cast<int>(threadIdx.x);
  follow<<<1, 32>>>(cells + t, cells + kThreads + (t + 7) % kThreads, 3);
  __syncthreads();
#pragma unroll 1
  for (int i = 1; i <= 3; ++i) follow<<<1, 32>>>(cells + i * kThreads + t, cells + (i + 1) * kThreads + t, i);
}

// Threads update each other's cells, at one place in a loop and at another behind it. The NULL stream keeps
// them apart.
__global__ void update(int* cell, int amount) {
  if (threadIdx.x == 0) *cell = *cell + amount;
}
extern "C" __global__ void updating_sites_parent(int* cells) {
  const int t = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int i = 0; i < rounds_of(t); ++i) update<<<1, 32>>>(cells + t, i + 1);
  update<<<1, 32>>>(cells + kThreads - 1 - t, 1000);
}

#else

KLAP_CASE(loop_unrolled, "launches of one loop that stand at several places overtake each other") {
  std::vector<int> after = starts(kMostRounds + 1), codes(static_cast<size_t>(kAll * kMostRounds), -1);
  for (int t = 0; t < kAll; ++t) {
    int* const own = &after[static_cast<size_t>(t * (kMostRounds + 1))];
    for (int i = 0; i < rounds_of(t); ++i) {
      own[i + 1] = follow_up(own[i], i);
      codes[static_cast<size_t>(t * kMostRounds + i)] = 0;
    }
  }
  const auto cells = c.buffer("cells", starts(kMostRounds + 1), after);
  const auto errors = c.buffer("codes", std::vector<int>(codes.size(), -1), codes);
  launch(c, "unrolled_parent", c.address(cells), c.address(errors));
  in_loop(c, "unrolled_parent");
  c.children_never_meet();
}

KLAP_CASE(loop_unrolled_wholly, "launches of which no loop is left overtake each other") {
  std::vector<int> after = starts(4);
  for (int t = 0; t < kAll; ++t) {
    int* const own = &after[static_cast<size_t>(t * 4)];
    for (int i = 0; i < 3; ++i) own[i + 1] = follow_up(own[i], i);
  }
  const auto cells = c.buffer("cells", starts(4), after);
  const auto errors = c.buffer("codes", std::vector<int>(3 * kAll, -1), std::vector<int>(3 * kAll, 0));
  launch(c, "wholly_parent", c.address(cells), c.address(errors));
  c.rewritten("wholly_parent");
  c.by_warp("rewritten");
}

KLAP_CASE(loop_unrolled_inner, "launches of a loop in a loop overtake each other") {
  constexpr int kSize = kMostRounds * 3 + 1;
  std::vector<int> after = starts(kSize);
  for (int t = 0; t < kAll; ++t) {
    int* own = &after[static_cast<size_t>(t * kSize)];
    for (int i = 0; i < rounds_of(t); ++i) {
      for (int k = 0; k < 3; ++k, ++own) own[1] = follow_up(own[0], i + k);
    }
  }
  const auto cells = c.buffer("cells", starts(kSize), after);
  const auto errors = c.buffer("codes", std::vector<int>(kAll, -1), no_errors());
  launch(c, "inner_parent", c.address(cells), c.address(errors));
  in_loop(c, "inner_parent");
  c.children_never_meet();
}

KLAP_CASE(loop_branches, "launches in a loop's branches, before it and behind it overtake each other") {
  constexpr int kSize = (kMostRounds + 3) * 4;
  std::vector<int> after = starts(kSize);
  const auto spread = [](int* from, int round) {
    for (int b = 0; b < 4; ++b) from[4 + b] = follow_up(from[(3 * b + 1) % 4], round + b);
  };
  for (int t = 0; t < kAll; ++t) {
    int* own = &after[static_cast<size_t>(t * kSize)];
    if (t % 3 == 0) {
      spread(own, 100);
      own += 4;
    }
    for (int i = 0; i < rounds_of(t); ++i, own += 4) {
      if ((t + i) % 2 == 0) {
        spread(own, i);
      } else {
        spread(own, 3 * i);
      }
    }
    if (t % 5 != 0) spread(own, 200);
  }
  const auto cells = c.buffer("cells", starts(kSize), after);
  const auto errors = c.buffer("codes", std::vector<int>(kAll, -1), no_errors());
  launch(c, "branches_parent", c.address(cells), c.address(errors));
  in_loop(c, "branches_parent");
  c.children_never_meet();
}

KLAP_CASE(loop_two_children, "a thread's children of two kernels run in another order, or as each other") {
  constexpr int kSize = (2 * kMostRounds + 1) * kTile;
  std::vector<int> before(static_cast<size_t>(kAll * kSize));
  for (int t = 0; t < kAll; ++t) {
    for (int k = 0; k < kTile; ++k) before[static_cast<size_t>(t * kSize + k)] = 3 * t + k * k % 101;
  }
  std::vector<int> after = before;
  for (int t = 0; t < kAll; ++t) {
    int* own = &after[static_cast<size_t>(t * kSize)];
    for (int i = 0; i < rounds_of(t); ++i, own += 2 * kTile) {
      for (int k = 0; k < kTile; ++k) own[kTile + k] = own[kTile - 1 - k];
      for (int k = 0; k < kTile; ++k) own[2 * kTile + k] = (own[kTile + k] * 2 + i * 3 + k) % 1009;
    }
  }
  const auto cells = c.buffer("cells", before, after);
  const auto errors = c.buffer("codes", std::vector<int>(kAll, -1), no_errors());
  launch(c, "two_children_parent", c.address(cells), c.address(errors));
  in_loop(c, "two_children_parent");
  c.children_never_meet();
}

KLAP_CASE(loop_two_blocks, "a child runs with another launch's block") {
  constexpr int kSize = (2 * kMostRounds + 1) * 16;
  std::vector<int> before(static_cast<size_t>(kAll * kSize));
  for (int t = 0; t < kAll; ++t) {
    for (int k = 0; k < 16; ++k) before[static_cast<size_t>(t * kSize + k)] = 7 * t + k;
  }
  std::vector<int> after = before;
  for (int t = 0; t < kAll; ++t) {
    int* own = &after[static_cast<size_t>(t * kSize)];
    for (int i = 0; i < rounds_of(t); ++i, own += 32) {
      for (int k = 0; k < 16; ++k) own[16 + k] = follow_up(own[k ^ 1], i + 32);
      for (int k = 0; k < 16; ++k) own[32 + k] = follow_up(own[16 + (k ^ 1)], i + 64);
    }
  }
  const auto cells = c.buffer("cells", before, after);
  const auto errors = c.buffer("codes", std::vector<int>(kAll, -1), no_errors());
  launch(c, "two_blocks_parent", c.address(cells), c.address(errors));
  in_loop(c, "two_blocks_parent");
  c.children_never_meet();
}

KLAP_CASE(loop_refused_sites,
          "a launch that CUDA refuses breaks the chain of other places, or gives no error") {
  constexpr int kSize = 2 * kMostRounds + 1;
  std::vector<int> after = starts(kSize), codes(static_cast<size_t>(kAll * 2 * kMostRounds), -1);
  for (int t = 0; t < kAll; ++t) {
    int* own = &after[static_cast<size_t>(t * kSize)];
    int* code = &codes[static_cast<size_t>(t * 2 * kMostRounds)];
    for (int i = 0; i < rounds_of(t); ++i, code += 2) {
      const bool first = (t + i) % 4 == 0, second = (t + i) % 4 == 2;
      code[0] = first ? 101 * kInvalidConfiguration : 0;
      code[1] = second ? 101 * kInvalidConfiguration : 0;
      if (!first) {
        own[1] = follow_up(own[0], i);
        ++own;
      }
      if (!second) {
        own[1] = branch_off(own[0], i);
        ++own;
      }
    }
  }
  const auto cells = c.buffer("cells", starts(kSize), after);
  const auto errors = c.buffer("codes", std::vector<int>(codes.size(), -1), codes);
  launch(c, "refused_sites_parent", c.address(cells), c.address(errors));
  in_loop(c, "refused_sites_parent");
  c.children_never_meet();
}

KLAP_CASE(loop_retry_sites, "a thread that tries two launches until there is room loses their order") {
  constexpr int kSize = 2 * kMostRounds + 1;
  std::vector<int> after = starts(kSize);
  for (int t = 0; t < kAll; ++t) {
    int* own = &after[static_cast<size_t>(t * kSize)];
    for (int i = 0; i < rounds_of(t); ++i, own += 2) {
      own[1] = follow_up(own[0], i);
      own[2] = branch_off(own[1], i);
    }
  }
  const auto cells = c.buffer("cells", starts(kSize), after);
  launch(c, "retry_sites_parent", c.address(cells));
  in_loop(c, "retry_sites_parent");
  c.left_by_group("parent-waits");  // where its queue is full, nothing else makes room
  c.children_never_meet();
}

KLAP_CASE(loop_barrier_sites, "a barrier between a loop's launches and others is forgotten") {
  std::vector<int> before(5 * kThreads), after;
  for (int t = 0; t < kThreads; ++t) before[static_cast<size_t>(t)] = 3 * t + 1;
  after = before;
  for (int t = 0; t < kThreads; ++t) {
    after[static_cast<size_t>(kThreads + (t + 7) % kThreads)] = follow_up(after[static_cast<size_t>(t)], 3);
  }
  for (int i = 1; i <= 3; ++i) {
    for (int t = 0; t < kThreads; ++t)
      after[static_cast<size_t>((i + 1) * kThreads + t)] =
          follow_up(after[static_cast<size_t>(i * kThreads + t)], i);
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch("barrier_sites_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  in_loop(c, "barrier_sites_parent", "order-kept");
}

KLAP_CASE(loop_updating_sites, "children of two places update a cell at once") {
  std::vector<int> after(kThreads, 1000);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < rounds_of(t); ++i) after[static_cast<size_t>(t)] += i + 1;
  }
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), after);
  c.launch("updating_sites_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  in_loop(c, "updating_sites_parent");
}

#endif
