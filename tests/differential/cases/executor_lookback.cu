// Blocks of a child that wait for blocks before them (analysis/executed/earlier_blocks.h), in grids that the
// executor runs: scans in one pass, whose blocks look back at what the ones before have published. Also the
// older pair of launch calls, by which libraries make such launches, in kernels that the executor runs.
//
// Blocks of the scans are small, and a wide kernel beside them makes the executor's own blocks few. So most
// blocks of a scan have not begun when the first ones wait.
#include "case.h"

constexpr int kTile = 8, kTiles = 12, kScans = 6;
constexpr int kMessages = 6;
KLAP_SHARED static constexpr int scanned_value(int i) { return (i * 7) % 13 + 1; }

#ifdef __CUDACC__

using Status = unsigned long long;
constexpr Status kOwnSum = 1ull << 62, kWholeSum = 1ull << 63;

// The tile's running totals. Its status is first the sum of its own values, then that of all before it, too.
__device__ void scan_tile(int tile, int* values, volatile Status* status) {
  __shared__ int before;
  int own = 0;
  for (int i = 0; i < kTile; ++i) own += values[kTile * tile + i];
  if (threadIdx.x == 0) {
    int sum = 0;
    if (tile > 0) {
      status[tile] = kOwnSum | static_cast<unsigned>(own);
      for (int earlier = tile - 1;; --earlier) {
        Status seen;
        do {
          seen = status[earlier];
        } while (seen == 0);
        sum += static_cast<int>(seen);
        if ((seen & kWholeSum) != 0) break;
      }
    }
    status[tile] = kWholeSum | static_cast<unsigned>(sum + own);
    before = sum;
  }
  __syncthreads();
  int total = before;
  for (int i = 0; i <= threadIdx.x; ++i) total += values[kTile * tile + i];
  __syncthreads();
  values[kTile * tile + threadIdx.x] = total;
}

__global__ void scan_by_block(int* values, Status* status) { scan_tile(blockIdx.x, values, status); }
__global__ void scan_by_rows(int* values, Status* status) {
  scan_tile(blockIdx.y * gridDim.x + blockIdx.x, values, status);
}
__global__ void scan_by_columns(int* values, Status* status) {
  scan_tile(blockIdx.x * gridDim.y + blockIdx.y, values, status);
}
__global__ void scan_by_ticket(int* values, Status* status, unsigned* counter) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(counter, 1);
  __syncthreads();
  scan_tile(ticket, values, status);
}
__global__ void mark(int* marks) { atomicAdd(&marks[threadIdx.x], 1); }

extern "C" __global__ void scans_by_block(int* values, Status* status, int* marks) {
  const int i = threadIdx.x;
  scan_by_block<<<kTiles, kTile, 0, cudaStreamFireAndForget>>>(values + i * kTile * kTiles,
                                                               status + i * kTiles);
  mark<<<1, 256, 0, cudaStreamFireAndForget>>>(marks);
}
extern "C" __global__ void scans_by_rows(int* values, Status* status, int* marks, int width) {
  const int i = threadIdx.x;
  scan_by_rows<<<dim3(width, kTiles / width), kTile, 0, cudaStreamFireAndForget>>>(
      values + i * kTile * kTiles, status + i * kTiles);
  mark<<<1, 256, 0, cudaStreamFireAndForget>>>(marks);
}
extern "C" __global__ void scans_by_columns(int* values, Status* status, int* marks, int width) {
  const int i = threadIdx.x;
  scan_by_columns<<<dim3(width, kTiles / width), kTile, 0, cudaStreamFireAndForget>>>(
      values + i * kTile * kTiles, status + i * kTiles);
  mark<<<1, 256, 0, cudaStreamFireAndForget>>>(marks);
}
extern "C" __global__ void scans_by_ticket(int* values, Status* status, unsigned* counters, int* marks) {
  const int i = threadIdx.x;
  scan_by_ticket<<<kTiles, kTile, 0, cudaStreamFireAndForget>>>(values + i * kTile * kTiles,
                                                                status + i * kTiles, counters + i);
  mark<<<1, 256, 0, cudaStreamFireAndForget>>>(marks);
}

// Each of two blocks waits for the other one.
__global__ void meet_other(volatile int* cells) {
  if (threadIdx.x != 0) return;
  cells[blockIdx.x] = 1;
  while (cells[1 - blockIdx.x] == 0) {
  }
}
extern "C" __global__ void pairs_meet(int* cells) { meet_other<<<2, 32>>>(cells + 2 * threadIdx.x); }

// The first block takes messages that the second one sends. What it counts tells it how many are left.
__global__ void send_and_take(int* box, int* taken) {
  if (blockIdx.x == 1) {
    for (int i = 0; i < kMessages; ++i) atomicExch(box + i, i + 5);
    return;
  }
  for (int got = 0; got < kMessages;) {
    const int message = atomicExch(box + got, 0);
    if (message != 0) {
      taken[got] = 2 * message;
      ++got;
    }
  }
}
extern "C" __global__ void pairs_send(int* boxes, int* taken) {
  send_and_take<<<2, 1>>>(boxes + kMessages * threadIdx.x, taken + kMessages * threadIdx.x);
}

// A sum of one kernel, as NVIDIA's guide writes it: the last block adds up what the others have left.
__global__ void sum_with_last(const int* values, int count, volatile int* parts, unsigned* left, int* sum) {
  __shared__ int of_block;
  __shared__ bool is_last;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  int own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    own += values[i];
  atomicAdd(&of_block, own);
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = of_block;
    __threadfence();
    is_last = atomicInc(left, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  int all = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) all += parts[b];
  *sum = all;
  *left = 0;
}
extern "C" __global__ void sums_with_last(const int* values, int* parts, unsigned* left, int* sums) {
  const int i = threadIdx.x;
  sum_with_last<<<kTiles, kTile>>>(values + i * kTile * kTiles, kTile * kTiles, parts + i * kTiles, left + i,
                                   sums + i);
}

// Two kernels whose shared variables lie over each other, each with several of other sizes.
__global__ void turn_around(int* values) {
  __shared__ char places[64];
  __shared__ int copy[64];
  places[threadIdx.x] = static_cast<char>(63 - threadIdx.x);
  copy[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = copy[places[63 - threadIdx.x] ^ 63];
}
__global__ void add_neighbour(long long* values, int* other, int n) {
  __shared__ long long copy[64];
  __shared__ short steps[64];
  copy[threadIdx.x] = values[threadIdx.x];
  steps[threadIdx.x] = static_cast<short>(threadIdx.x);
  __syncthreads();
  values[threadIdx.x] = copy[(threadIdx.x + 1) % 64] + steps[63 - threadIdx.x];
  if (threadIdx.x == 0) turn_around<<<1, 64>>>(other);
  if (threadIdx.x == 0 && n % 2 != 0) turn_around<<<1, 64>>>(other);
}
extern "C" __global__ void share_in_turn(long long* values, int* others) {
  const int i = threadIdx.x;
  add_neighbour<<<1, 64, 0, cudaStreamFireAndForget>>>(values + 64 * i, others + 64 * i, i);
}

// ---- the older pair of calls ----

struct Growth {
  int* nodes;
  int* refused;
  int depth;
  short step;
};
__global__ void grow(Growth growth);

__device__ cudaError_t launch_growth(Growth growth, int blocks) {
  auto* const buffer = static_cast<Growth*>(cudaGetParameterBuffer(alignof(Growth), sizeof(Growth)));
  *buffer = growth;
  return cudaLaunchDevice(reinterpret_cast<void*>(grow), buffer, dim3(blocks), dim3(32), 0, nullptr);
}
// Each node's threads count, and one of them goes on: a launch of no blocks is refused.
__global__ void grow(Growth growth) {
  atomicAdd(&growth.nodes[growth.depth], growth.step);
  if (threadIdx.x != 0 || growth.depth == 0) return;
  --growth.depth;
  const int blocks = growth.depth % 2 + 1;
  if (launch_growth(growth, blocks) != cudaSuccess) atomicAdd(growth.refused, 1000);
  if (launch_growth(growth, 0) != cudaSuccess) atomicAdd(growth.refused, 1);
}
extern "C" __global__ void begin_growth(int* nodes, int* refused, int depth) {
  const Growth growth = {nodes, refused, depth, static_cast<short>(threadIdx.x + 1)};
  if (launch_growth(growth, 1) != cudaSuccess) atomicAdd(refused, 1000);
}

#else

namespace {

using klap::differential::Builder;

// The buffers of all scans, as the parents take them.
struct Scans {
  explicit Scans(Builder& c) {
    std::vector<int> before, after;
    for (int scan = 0; scan < kScans; ++scan) {
      int total = 0;
      for (int i = 0; i < kTile * kTiles; ++i) {
        before.push_back(scanned_value(i + scan));
        after.push_back(total += before.back());
      }
    }
    values = c.buffer("values", before, after);
    status = c.buffer("status", std::vector<uint64_t>(kScans * kTiles), std::vector<uint64_t>());
    marks = c.buffer("marks", std::vector<int>(256), std::vector<int>(256, kScans));
  }
  uint32_t values, status, marks;
};

void executed(Builder& c, const char* parent, const char* reason, const char* by_warp) {
  c.left(parent, reason);
  c.executed();
  c.by_warp(by_warp);
}

}  // namespace

KLAP_CASE(turns_by_block, "a block waits for one that has not begun") {
  const Scans scans(c);
  c.launch("scans_by_block", {1, 1, 1}, {kScans, 1, 1}, c.address(scans.values), c.address(scans.status),
           c.address(scans.marks));
  executed(c, "scans_by_block", "child-waits", "some");
}

KLAP_CASE(turns_by_rows, "blocks that count by rows begin in another order") {
  for (const int width : {3, 12}) {
    const Scans scans(c);
    c.launch("scans_by_rows", {1, 1, 1}, {kScans, 1, 1}, c.address(scans.values), c.address(scans.status),
             c.address(scans.marks), width);
  }
  executed(c, "scans_by_rows", "child-waits", "some");
}

KLAP_CASE(turns_by_columns, "blocks that count by columns begin in another order") {
  for (const int width : {4, 12, 1}) {
    const Scans scans(c);
    c.launch("scans_by_columns", {1, 1, 1}, {kScans, 1, 1}, c.address(scans.values), c.address(scans.status),
             c.address(scans.marks), width);
  }
  executed(c, "scans_by_columns", "child-waits", "some");
}

KLAP_CASE(executed_scans_by_ticket, "a block waits for one that has no ticket yet") {
  const Scans scans(c);
  const auto counters = c.buffer("counters", std::vector<int>(kScans), std::vector<int>(kScans, kTiles));
  c.launch("scans_by_ticket", {1, 1, 1}, {kScans, 1, 1}, c.address(scans.values), c.address(scans.status),
           c.address(counters), c.address(scans.marks));
  executed(c, "scans_by_ticket", "child-waits", "some");
}

KLAP_CASE(blocks_that_meet, "blocks that wait for each other run one after another") {
  const auto cells = c.buffer("cells", std::vector<int>(4), std::vector<int>(4, 1));
  c.launch("pairs_meet", {1, 1, 1}, {2, 1, 1}, c.address(cells));
  c.left("pairs_meet", "child-waits");
}

KLAP_CASE(blocks_that_send, "a block waits for messages of one that runs after it") {
  constexpr int kPairs = 3;
  std::vector<int> taken;
  for (int i = 0; i < kPairs * kMessages; ++i) taken.push_back(2 * (i % kMessages + 5));
  const auto boxes = c.buffer("boxes", std::vector<int>(taken.size()), std::vector<int>(taken.size()));
  const auto of_taken = c.buffer("taken", std::vector<int>(taken.size()), taken);
  c.launch("pairs_send", {1, 1, 1}, {kPairs, 1, 1}, c.address(boxes), c.address(of_taken));
  c.left("pairs_send", "child-waits");
}

KLAP_CASE(sums_with_last_block, "the last block adds up before the others have left their parts") {
  std::vector<int> values, parts(kScans * kTiles), sums(kScans);
  for (int i = 0; i < kScans * kTile * kTiles; ++i) {
    values.push_back(i * 7 % 101);
    parts[i / kTile] += values.back();
    sums[i / (kTile * kTiles)] += values.back();
  }
  const auto of_values = c.buffer("values", values, values);
  const auto of_parts = c.buffer("parts", std::vector<int>(parts.size()), parts);
  const auto left = c.buffer("left", std::vector<int>(kScans), std::vector<int>(kScans));
  const auto of_sums = c.buffer("sums", std::vector<int>(kScans), sums);
  for (int i = 0; i < 2; ++i) {
    c.launch("sums_with_last", {1, 1, 1}, {kScans, 1, 1}, c.address(of_values), c.address(of_parts),
             c.address(left), c.address(of_sums));
  }
}

KLAP_CASE(executed_overlaid_variables, "variables of different kernels overlap in one block") {
  std::vector<int64_t> values, after;
  std::vector<int> others, turned;
  for (int i = 0; i < kScans; ++i) {
    for (int at = 0; at < 64; ++at) {
      values.push_back(1000 * i + at);
      after.push_back(1000 * i + (at + 1) % 64 + 63 - at);
      others.push_back(100 * i + at);
      turned.push_back(100 * i + (i % 2 == 0 ? 63 - at : at));
    }
  }
  const auto of_values = c.buffer("values", values, after);
  const auto of_others = c.buffer("others", others, turned);
  c.launch("share_in_turn", {1, 1, 1}, {kScans, 1, 1}, c.address(of_values), c.address(of_others));
  c.left_on_device("share_in_turn", "child-launches");
  c.by_warp("child-launches");
}

KLAP_CASE(executed_older_calls, "a launch by the older pair of calls gets a wrong grid, or none") {
  constexpr int kDepth = 4, kRoots = 3;
  std::vector<int> nodes(kDepth + 1);
  int blocks = 1, launching = 0;
  for (int depth = kDepth; depth >= 0; --depth) {
    nodes[static_cast<size_t>(depth)] = 32 * blocks * (1 + 2 + 3);
    if (depth > 0) launching += blocks * kRoots;
    blocks *= (depth - 1) % 2 + 1;
  }
  const auto of_nodes = c.buffer("nodes", std::vector<int>(nodes.size()), nodes);
  const auto refused = c.buffer("refused", std::vector<int>(1), std::vector<int>{launching});
  c.launch("begin_growth", {1, 1, 1}, {kRoots, 1, 1}, c.address(of_nodes), c.address(refused), kDepth);
  executed(c, "begin_growth", "child-launches", "not-understood");
}

#endif
