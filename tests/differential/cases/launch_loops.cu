// Launches in loops: as many as each thread likes, those of one thread one after another where their stream
// has an order. Children read what the one before wrote, by pointers that promise nobody writes there.
#include "case.h"

constexpr int kThreads = 40;
constexpr int kBlocks = 2;
constexpr int kMostRounds = 7;
constexpr int kTile = 64;
constexpr int kInvalidConfiguration = 9;

// How often a thread launches: also not at all.
KLAP_SHARED static constexpr int rounds_of(int thread) { return thread * 5 % (kMostRounds + 1); }
// Blocks of its children: one, a few, more than a child's blocks are shared out over.
KLAP_SHARED static constexpr int blocks_of(int thread, int round) {
  return thread % 20 == 3 ? 66 + 3 * round : 1 + (thread + round) % 5;
}

// A thread makes launches of 256 blocks or more itself, until it has recorded a smaller one.
constexpr int kLargeRounds = 5;
KLAP_SHARED static constexpr int blocks_of_large(int thread, int round) {
  return (thread + round) % 3 == 2 ? 2 + thread : 256 + round;
}

#ifdef __CUDACC__

__device__ int own_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

__global__ void follow(const int* __restrict__ from, int* __restrict__ to, int round) {
  if (threadIdx.x == 0) *to = *from * 3 % 1009 + round;
}
extern "C" __global__ void order_parent(int* cells) {
  int* const own = cells + own_index() * (kMostRounds + 1);
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i) follow<<<1, 32>>>(own + i, own + i + 1, i);
}
// The same cell each time.
__global__ void step(int* cell, int factor) {
  if (threadIdx.x == 0) *cell = *cell * factor % 1009 + 1;
}
extern "C" __global__ void own_stream_parent(int* cells) {
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i)
    step<<<1, 32, 0, cudaStreamPerThread>>>(cells + own_index(), i + 2);
}
__global__ void add(int* cell, int amount) { atomicAdd(cell, amount); }
extern "C" __global__ void forget_parent(int* cells) {
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i)
    add<<<blocks_of(own_index(), i), 16, 0, cudaStreamFireAndForget>>>(cells + own_index(), i + 1);
}

// Every block needs what other blocks of the child before wrote.
__global__ void spread(const int* __restrict__ from, int* __restrict__ to, int before) {
  const int block = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 0) to[block] = (from[(7 * block + 5) % before] * 3 + from[before - 1] + block) % 1009;
}
extern "C" __global__ void grids_parent(int* cells) {
  const int t = own_index();
  int* own = cells + t * (kMostRounds + 1) * 140;
  int before = 1;
#pragma unroll 1
  for (int i = 0; i < rounds_of(t); ++i, own += 140) {
    spread<<<blocks_of(t, i), 32>>>(own, own + 140, before);
    before = blocks_of(t, i);
  }
}

// Turns a tile around in shared memory, once as often as it has threads.
__global__ void turn(const int* __restrict__ from, int* __restrict__ to, int round) {
  __shared__ int tile[kTile];
  const int begin = static_cast<int>(blockIdx.x) * kTile, t = static_cast<int>(threadIdx.x);
  tile[t] = from[begin + t];
  __syncthreads();
  to[begin + t] = tile[kTile - 1 - t] + round;
}
extern "C" __global__ void tiles_parent(int* cells) {
  const int cells_of_round = 3 * kTile, t = static_cast<int>(threadIdx.x);
  int* own = cells + t * (kMostRounds + 1) * cells_of_round;
#pragma unroll 1
  for (int i = 0; i < rounds_of(t); ++i, own += cells_of_round)
    turn<<<3, kTile>>>(own, own + cells_of_round, i);
}

// One launch in four has a grid of nothing; what was launched before and is launched behind it does not mind.
extern "C" __global__ void refused_parent(int* cells, int* codes) {
  const int t = own_index();
  int* own = cells + t * (kMostRounds + 1);
#pragma unroll 1
  for (int i = 0; i < rounds_of(t); ++i) {
    const bool refused = (t + i) % 4 == 0;
    follow<<<refused ? 0 : 1, 32>>>(own, own + 1, i);
    codes[t * kMostRounds + i] = 100 * cudaPeekAtLastError() + cudaGetLastError();
    if (!refused) ++own;
  }
}

__global__ void cube(const int* __restrict__ from, int* __restrict__ to, int round) {
  const int block = static_cast<int>((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x);
  const int thread = static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
  const int i = block * 12 + thread;
  to[i] = from[i] * 2 % 1009 + 10 * block + thread + round;
}
extern "C" __global__ void cubes_parent(int* cells) {
  int* own = cells + threadIdx.x * 5 * 24 * 12;
#pragma unroll 1
  for (int i = 0; i < 4; ++i, own += 24 * 12) cube<<<dim3(2, 3, 4), dim3(2, 3, 2)>>>(own, own + 24 * 12, i);
}

// Launches again and again until there is room.
extern "C" __global__ void retry_parent(int* cells) {
  int* const own = cells + own_index() * (kMostRounds + 1);
#pragma unroll 1
  for (int i = 0; i < rounds_of(own_index()); ++i) {
    do {
      follow<<<1, 32>>>(own + i, own + i + 1, i);
    } while (cudaGetLastError() == cudaErrorLaunchPendingCountExceeded);
  }
}

// Every other launch has no order.
__global__ void follow_or_add(const int* __restrict__ from, int* __restrict__ to, int* sum, int round) {
  if (threadIdx.x != 0) return;
  if (round % 2 == 0) {
    *to = *from * 3 % 1009 + round;
  } else {
    atomicAdd(sum, round);
  }
}
extern "C" __global__ void two_streams_parent(int* cells, int* sums) {
  const int t = own_index();
  int* const own = cells + t * (kMostRounds + 2);
#pragma unroll 1
  for (int i = 0; i < rounds_of(t); ++i) {
    const cudaStream_t stream = i % 2 == 0 ? nullptr : cudaStreamFireAndForget;
    follow_or_add<<<1, 32, 0, stream>>>(own + i, own + i + 2, sums + t, i);
  }
}

// An atomic behind the launch, whose result only the next child uses.
__global__ void put(int* cell, int ticket, int round) {
  if (threadIdx.x == 0) cell[ticket * kMostRounds + round] = 1000 * ticket + round + 1;
}
extern "C" __global__ void tickets_parent(int* cells, int* tickets) {
  int ticket = own_index();
#pragma unroll 1
  for (int i = 0; i < 3; ++i) {
    put<<<1, 32>>>(cells, ticket, i);
    ticket = atomicAdd(tickets + i, 1);
  }
  if (ticket < 0) cells[0] = -1;
}

// A launch that is refused is not made again, so how many there are nobody knows, but those that are made
// come one after another.
__global__ void come_after(int* last, int* mistakes, int round) {
  if (threadIdx.x != 0) return;
  if (*last >= round) atomicAdd(mistakes, 1);
  *last = round;
}
extern "C" __global__ void giving_up_parent(int* last, int* mistakes) {
#pragma unroll 1
  for (int i = 0; i < kMostRounds; ++i)
    come_after<<<1, 32, 0, cudaStreamPerThread>>>(last + own_index(), mistakes, i + 1);
}

// One that launches itself, for the queue that loops use as well.
__global__ void count_blocks(int* counts, int* seen, int round) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0 && round > 0) seen[round] = counts[round - 1];
  atomicAdd(counts + round, 1);
}
extern "C" __global__ void large_parent(int* counts, int* seen) {
  const int own = own_index() * kLargeRounds;
#pragma unroll 1
  for (int i = 0; i < kLargeRounds; ++i)
    count_blocks<<<blocks_of_large(own_index(), i), 32>>>(counts + own, seen + own, i);
}
extern "C" __global__ void chain(int* cells, int depth) {
  if (threadIdx.x == 0) cells[depth] = 3 * depth + 1;
  if (depth > 0 && threadIdx.x == 0) chain<<<1, 32>>>(cells, depth - 1);
}

#else

#include <utility>

namespace {

constexpr int kAll = kThreads * kBlocks;

using klap::differential::Builder;

// Cells of `size` for each thread, the first of which is set.
std::vector<int> starts(int threads, int size) {
  std::vector<int> cells(static_cast<size_t>(threads * size));
  for (int t = 0; t < threads; ++t) cells[static_cast<size_t>(t * size)] = t + 5;
  return cells;
}

void followed(std::vector<int>& cells, int threads = kAll) {
  for (int t = 0; t < threads; ++t) {
    int* const own = &cells[static_cast<size_t>(t * (kMostRounds + 1))];
    for (int i = 0; i < rounds_of(t); ++i) own[i + 1] = own[i] * 3 % 1009 + i;
  }
}

void in_loop(Builder& c, const char* parent, const char* by_warp) {
  c.rewritten(parent);
  c.by_warp(by_warp);
}

}  // namespace

static void add_loop_order(klap::differential::Builder& c) {
  const std::vector<int> before = starts(kAll, kMostRounds + 1);
  std::vector<int> after = before;
  followed(after);
  const auto cells = c.buffer("cells", before, after);
  c.launch("order_parent", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(cells));
}

KLAP_CASE(loop_order, "a child does not see what the child before it wrote") {
  add_loop_order(c);
  in_loop(c, "order_parent", "rewritten");
  c.children_never_meet();
}
KLAP_CASE(loop_in_order,
          "the loops of a block's threads overlap, of which nothing shows that they are apart") {
  add_loop_order(c);
  in_loop(c, "order_parent", "order-kept");
}

KLAP_CASE(groups_of_loops, "a group runs what another one recorded, or counts with one of another grid") {
  const std::pair<unsigned, unsigned> shapes[] = {{23, 9}, {3, 70}, {90, 2}, {1, 33}};  // blocks, threads
  for (const auto& [blocks, threads] : shapes) {
    const int all = static_cast<int>(blocks * threads);
    const std::vector<int> before = starts(all, kMostRounds + 1);
    std::vector<int> after = before;
    followed(after, all);
    const auto cells = c.buffer("cells", before, after);
    c.launch("order_parent", {blocks, 1, 1}, {threads, 1, 1}, c.address(cells));
  }
  in_loop(c, "order_parent", "rewritten");
  c.children_never_meet();
}

KLAP_CASE(loop_own_stream, "two children of one thread change a cell at once") {
  std::vector<int> after(kAll);
  for (int t = 0; t < kAll; ++t) {
    int& cell = after[static_cast<size_t>(t)];
    for (int i = 0; i < rounds_of(t); ++i) cell = cell * (i + 2) % 1009 + 1;
  }
  const auto cells = c.buffer("cells", std::vector<int>(kAll), after);
  c.launch("own_stream_parent", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  in_loop(c, "own_stream_parent", "stream-unsupported");
}

KLAP_CASE(loop_forget, "a child without an order is lost, or runs twice") {
  std::vector<int> after(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < rounds_of(t); ++i) after[static_cast<size_t>(t)] += 16 * blocks_of(t, i) * (i + 1);
  }
  const auto cells = c.buffer("cells", std::vector<int>(kThreads), after);
  c.launch("forget_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  in_loop(c, "forget_parent", "rewritten");
}

KLAP_CASE(loop_grids, "a child begins before all blocks of the child before it are done") {
  const std::vector<int> before = starts(kThreads, (kMostRounds + 1) * 140);
  std::vector<int> after = before;
  for (int t = 0; t < kThreads; ++t) {
    int* own = &after[static_cast<size_t>(t * (kMostRounds + 1) * 140)];
    int last = 1;
    for (int i = 0; i < rounds_of(t); ++i, own += 140) {
      for (int b = 0; b < blocks_of(t, i); ++b)
        own[140 + b] = (own[(7 * b + 5) % last] * 3 + own[last - 1] + b) % 1009;
      last = blocks_of(t, i);
    }
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch("grids_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  in_loop(c, "grids_parent", "rewritten");
  c.children_never_meet();
}

KLAP_CASE(loop_in_tiles, "children in a loop disturb each other's shared memory") {
  const int size = 3 * kTile, threads = 12;
  std::vector<int> before(static_cast<size_t>(threads * (kMostRounds + 1) * size));
  for (size_t i = 0; i < before.size(); ++i) before[i] = static_cast<int>(i * 7 % 1000);
  std::vector<int> after = before;
  for (int t = 0; t < threads; ++t) {
    int* own = &after[static_cast<size_t>(t * (kMostRounds + 1) * size)];
    for (int i = 0; i < rounds_of(t); ++i, own += size) {
      for (int k = 0; k < size; ++k) own[size + k] = own[k / kTile * kTile + kTile - 1 - k % kTile] + i;
    }
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch("tiles_parent", {1, 1, 1}, {threads, 1, 1}, c.address(cells));
  in_loop(c, "tiles_parent", "rewritten");
  c.children_never_meet();
}

KLAP_CASE(loop_refused, "a launch that CUDA refuses breaks its thread's chain, or gives no error") {
  const std::vector<int> before = starts(kAll, kMostRounds + 1);
  std::vector<int> after = before, codes(static_cast<size_t>(kAll * kMostRounds), -1);
  for (int t = 0; t < kAll; ++t) {
    int* own = &after[static_cast<size_t>(t * (kMostRounds + 1))];
    for (int i = 0; i < rounds_of(t); ++i) {
      const bool refused = (t + i) % 4 == 0;
      codes[static_cast<size_t>(t * kMostRounds + i)] = refused ? 101 * kInvalidConfiguration : 0;
      if (refused) continue;
      own[1] = own[0] * 3 % 1009 + i;
      ++own;
    }
  }
  const auto cells = c.buffer("cells", before, after);
  const auto errors = c.buffer("codes", std::vector<int>(codes.size(), -1), codes);
  c.launch("refused_parent", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(errors));
  in_loop(c, "refused_parent", "rewritten");
  c.children_never_meet();
}

KLAP_CASE(loop_cubes, "a child's block in a loop gets another one's place in a grid of three dimensions") {
  const int size = 24 * 12, threads = 4;
  std::vector<int> before(static_cast<size_t>(threads * 5 * size));
  for (size_t i = 0; i < before.size(); ++i) before[i] = static_cast<int>(i % 97);
  std::vector<int> after = before;
  for (int t = 0; t < threads; ++t) {
    int* own = &after[static_cast<size_t>(t * 5 * size)];
    for (int i = 0; i < 4; ++i, own += size) {
      for (int k = 0; k < size; ++k) own[size + k] = own[k] * 2 % 1009 + 10 * (k / 12) + k % 12 + i;
    }
  }
  const auto cells = c.buffer("cells", before, after);
  c.launch("cubes_parent", {1, 1, 1}, {threads, 1, 1}, c.address(cells));
  in_loop(c, "cubes_parent", "rewritten");
  c.children_never_meet();
}

KLAP_CASE(loop_retry, "a thread that launches until there is room launches twice, never or out of order") {
  const std::vector<int> before = starts(kAll, kMostRounds + 1);
  std::vector<int> after = before;
  followed(after);
  const auto cells = c.buffer("cells", before, after);
  c.launch("retry_parent", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(cells));
  in_loop(c, "retry_parent", "rewritten");
  c.left_by_group("parent-waits");  // where its queue is full, nothing else makes room
  c.children_never_meet();
}

KLAP_CASE(loop_retry_never, "what a thread could not launch itself does not wait for what it could") {
  const auto last = c.buffer("last", std::vector<int>(4 * kAll), std::vector<int>());
  const auto mistakes = c.buffer("mistakes", std::vector<int>(1), std::vector<int>(1));
  c.launch("giving_up_parent", {4 * kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(last), c.address(mistakes));
  in_loop(c, "giving_up_parent", "stream-unsupported");
}

KLAP_CASE(loop_two_streams, "a launch goes into another stream than the program's") {
  std::vector<int> before = starts(kAll, kMostRounds + 2), sums(kAll);
  std::vector<int> after = before;
  for (int t = 0; t < kAll; ++t) {
    int* const own = &after[static_cast<size_t>(t * (kMostRounds + 2))];
    for (int i = 0; i < rounds_of(t); ++i) {
      if (i % 2 == 0) own[i + 2] = own[i] * 3 % 1009 + i;
      if (i % 2 == 1) sums[static_cast<size_t>(t)] += i;
    }
  }
  const auto cells = c.buffer("cells", before, after);
  const auto added = c.buffer("sums", std::vector<int>(kAll), sums);
  c.launch("two_streams_parent", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(added));
  in_loop(c, "two_streams_parent", "stream-unsupported");
  c.children_never_meet();
}

KLAP_CASE(loop_tickets, "a loop with an atomic behind the launch loses children") {
  std::vector<int> after(static_cast<size_t>(kAll * kMostRounds));
  for (int ticket = 0; ticket < kAll; ++ticket) {
    for (int i = 0; i < 3; ++i) after[static_cast<size_t>(ticket * kMostRounds + i)] = 1000 * ticket + i + 1;
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size()), after);
  const auto tickets = c.buffer("tickets", std::vector<int>(3), std::vector<int>(3, kAll));
  c.launch("tickets_parent", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(cells), c.address(tickets));
  in_loop(c, "tickets_parent", "rewritten");
  c.children_never_meet();
}

KLAP_CASE(large_in_loop,
          "a launch that a thread makes itself overtakes one that it has recorded, or is lost") {
  constexpr int kLaunching = 3;
  std::vector<int> counts, seen;
  for (int t = 0; t < kBlocks * kLaunching; ++t) {
    for (int i = 0; i < kLargeRounds; ++i) {
      seen.push_back(i == 0 ? 0 : counts.back());
      counts.push_back(blocks_of_large(t, i));
    }
  }
  const auto of_counts = c.buffer("counts", std::vector<int>(counts.size()), counts);
  const auto of_seen = c.buffer("seen", std::vector<int>(seen.size()), seen);
  c.launch("large_parent", {kBlocks, 1, 1}, {kLaunching, 1, 1}, c.address(of_counts), c.address(of_seen));
  in_loop(c, "large_parent", "rewritten");
  c.children_never_meet();
}

KLAP_CASE(loop_repeated, "a queue is not as it was when a loop or a recursion uses it again") {
  const std::vector<int> before = starts(kAll, kMostRounds + 1);
  std::vector<int> followed_once = before, forgotten(kThreads), links;
  followed(followed_once);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < rounds_of(t); ++i)
      forgotten[static_cast<size_t>(t)] += 2 * 16 * blocks_of(t, i) * (i + 1);
  }
  for (int i = 0; i <= 12; ++i) links.push_back(3 * i + 1);
  for (uint32_t stream : {1u, 2u}) {
    const auto cells = c.buffer("cells", before, followed_once);
    const auto sums = c.buffer("sums", std::vector<int>(kThreads), forgotten);
    const auto chain = c.buffer("chain", std::vector<int>(13), links);
    for (int i = 0; i < 2; ++i) {
      c.launch_in(stream, "order_parent", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(cells));
      c.launch_in(stream, "chain", {1, 1, 1}, {32, 1, 1}, c.address(chain), 12);
      c.launch_in(stream, "forget_parent", {1, 1, 1}, {kThreads, 1, 1}, c.address(sums));
    }
  }
  in_loop(c, "order_parent", "rewritten");
  in_loop(c, "forget_parent", "rewritten");
  c.left_on_device("chain", "child-launches");
  c.by_warp("child-launches");
  c.setting("KLAP_PROMOTION", "none");
  c.children_never_meet();
}

#endif
