// Grids that the executor runs in the order of their streams: a thread's launches with their subtrees, tail
// launches of tail launches, wide grids one after another, streams beside each other. Each writes into a log
// without atomics, and reads what the grid before it left by a pointer that says nobody writes there
// meanwhile.
#include "program.h"

constexpr int kLog = 200, kLogs = 8, kCells = 6, kLeaves = 70, kWidth = 400, kRounds = 3, kLanes = 64;

// An entry behind the last one, which depends on that.
__host__ __device__ void note(int* log, int value) {
  const int entries = log[0];
  log[1 + entries] = entries == 0 ? value : log[entries] * 3 % 1009 + value;
  log[0] = entries + 1;
}

__global__ void one_note(int* log, int value) {
  if (threadIdx.x == 0) note(log, value);
}

// Both halves one after another, then a note, and another one when all is done.
__global__ void halves(int* log, int value, int depth) {
  if (depth == 0) return note(log, value);
  one_note<<<1, 1, 0, cudaStreamTailLaunch>>>(log, value + 5);
  halves<<<1, 1>>>(log, value + 1, depth - 1);
  halves<<<1, 1>>>(log, value + 2, depth - 1);
  one_note<<<1, 32>>>(log, value + 7);
}

// Tail launches by tail launches.
__global__ void ends(int* log, int value, int depth) {
  note(log, value);
  for (int i = 0; i < 2 && depth > 0; ++i)
    ends<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 3 * value + i, depth - 1);
}

// Every cell of one array from two of the other.
__global__ void shift(const int* __restrict__ from, int* __restrict__ to) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kWidth) to[i] = from[i] * 3 % 1009 + from[(i + 37) % kWidth];
}
__global__ void shift_twice(int* a, int* b) {
  shift<<<(kWidth + 31) / 32, 32>>>(a, b);
  shift<<<(kWidth + 7) / 8, 8>>>(b, a);
}
__global__ void shifts(int* a, int* b, int times) {
  for (int i = 0; i < times; ++i) shift_twice<<<1, 1>>>(a, b);
}

// Streams beside each other: the end of the block's stream sees all that came before.
__global__ void add(int* cells, int depth) {
  if (threadIdx.x != 0) return;
  atomicAdd(cells + blockIdx.x, 1);
  if (depth > 0) add<<<1 + depth % 2, 32, 0, cudaStreamFireAndForget>>>(cells, depth - 1);
}
__global__ void note_cells(int* log, const int* __restrict__ cells) { note(log, cells[0] + 100 * cells[1]); }
__global__ void mixed(int* log, int* cells, int depth) {
  add<<<2, 32, 0, cudaStreamFireAndForget>>>(cells, 3);
  add<<<2, 32>>>(cells, 2);
  if (depth > 0) mixed<<<1, 1>>>(log, cells, depth - 1);
}
__global__ void mixed_then_note(int* log, int* cells) {
  note_cells<<<1, 1, 0, cudaStreamTailLaunch>>>(log, cells);
  mixed<<<1, 1>>>(log, cells, 2);
  note_cells<<<1, 1>>>(log, cells);
}

// Cells that are stored by grids without order, and noted at the end; one of them in the block's stream.
__global__ void fill(int* cell, int value) { *cell = *cell * 3 % 1009 + value; }
__global__ void note_all(int* log, const int* __restrict__ cells) {
  int sum = 0;
  for (int i = 0; i < kCells; ++i) sum = sum * 5 % 1009 + cells[i];
  note(log, sum);
}
__global__ void gather(int* log, int* cells, int value) {
  note_all<<<1, 1, 0, cudaStreamTailLaunch>>>(log, cells);
  for (int i = 1; i < kCells; ++i) fill<<<1, 1, 0, cudaStreamFireAndForget>>>(cells + i, value + i);
  fill<<<1, 1>>>(cells, value);
}
__global__ void gather_twice(int* log, int* cells, int value) {
  gather<<<1, 1>>>(log, cells, value);
  gather<<<1, 1>>>(log, cells, value + 3);
}

// Blocks that launch while what they have launched before runs, or has run, and launches as well.
__global__ void note_and_fill(int* log, int* cell, int value) {
  note(log, value);
  fill<<<1, 1, 0, cudaStreamFireAndForget>>>(cell, value);
}
__global__ void go_on(int* logs, int* cells, int value) {
  const int block = static_cast<int>(blockIdx.x);
  for (int i = 0; i < 4; ++i) {
    note_and_fill<<<1, 1>>>(logs + kLog * block, cells + 8 * block + 6, value + i);
    fill<<<1, 1, 0, cudaStreamFireAndForget>>>(cells + 8 * block + i, value);
    int waited = 0;
    for (int at = 0; at < 40 * (i % 3); ++at) waited += *static_cast<volatile int*>(cells + 8 * block + 4);
    cells[8 * block + 5] = waited;
  }
}
__global__ void go_on_twice(int* logs, int* cells, int value) {
  go_on<<<kLogs, 1>>>(logs, cells, value);
  go_on<<<kLogs, 1>>>(logs, cells, value + 50);
}

// A stream that is created, stored, used by the next grid in it, and destroyed while it is busy.
__global__ void in_created(int* log, cudaStream_t* stream, int value) {
  cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
  halves<<<1, 1, 0, *stream>>>(log, value, 2);
  one_note<<<1, 1, 0, *stream>>>(log, value + 1);
  halves<<<1, 1, 0, *stream>>>(log, value + 2, 1);
  one_note<<<1, 1, 0, *stream>>>(log, value + 3);
  cudaStreamDestroy(*stream);
}

__global__ void in_created_twice(int* log, cudaStream_t* stream, int value) {
  in_created<<<1, 1>>>(log, stream, value);
  in_created<<<1, 1>>>(log, stream, value + 10);
}

// Lanes of two warps that launch at one place, every `step`th into the block's stream and others into their
// own.
__global__ void count_later(int* cell, int depth) {
  if (depth == 0) {
    ++*cell;
  } else {
    count_later<<<1, 1>>>(cell, depth - 1);
  }
}
__global__ void by_lanes(int* cells, const cudaStream_t* streams, int step) {
  const int t = static_cast<int>(threadIdx.x), is_own = t % step == 0 ? 0 : 1;
  count_later<<<1, 1, 0, streams[is_own]>>>(cells + t, 3 * is_own);
}
__global__ void note_lanes(int* log, const int* __restrict__ cells) {
  int sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += cells[i] * (i + 1);
  note(log, sum);
}
__global__ void by_lanes_often(int* log, int* cells, const cudaStream_t* streams) {
  for (int i = 0; i < 4; ++i) {
    by_lanes<<<1, i % 2 == 0 ? kLanes : kLanes / 2>>>(cells, streams, i % 2 == 0 ? 2 : kLanes);
    note_lanes<<<1, 1>>>(log, cells);
  }
}

// Many blocks that launch: more than there is room for at a time.
__global__ void leaf(int* cells, int value) {
  int* const cell = cells + blockIdx.x;
  fill<<<1, 1>>>(cell, value);
  fill<<<1, 1>>>(cell, value + 1);
}
__global__ void leaves(int* cells, int value) {
  leaf<<<kLeaves, 1>>>(cells, value);
  leaf<<<kLeaves / 2, 1>>>(cells, value + 7);
}

// Blocks that each have a stream of their own.
__global__ void roots(int* logs, int value) {
  int* const log = logs + kLog * static_cast<int>(blockIdx.x);
  halves<<<1, 1>>>(log, value + static_cast<int>(blockIdx.x), 3);
  one_note<<<1, 1>>>(log, 11);
}
__global__ void all_roots(int* logs, int value) {
  roots<<<kLogs, 1>>>(logs, value);
  roots<<<kLogs, 1>>>(logs, value + 20);
}

void expect_halves(int* log, int value, int depth) {
  if (depth == 0) return note(log, value);
  expect_halves(log, value + 1, depth - 1);
  expect_halves(log, value + 2, depth - 1);
  note(log, value + 7);
  note(log, value + 5);
}
void expect_ends(int* log, int value, int depth) {
  note(log, value);
  for (int i = 0; i < 2 && depth > 0; ++i) expect_ends(log, 3 * value + i, depth - 1);
}
void expect_add(int* cells, int blocks, int depth) {
  for (int block = 0; block < blocks; ++block) {
    ++cells[block];
    if (depth > 0) expect_add(cells, 1 + depth % 2, depth - 1);
  }
}

void expect_fill(int& cell, int value) { cell = cell * 3 % 1009 + value; }
void expect_gather(int* log, std::vector<int>& cells, int value) {
  int sum = 0;
  for (int i = 0; i < kCells; ++i) expect_fill(cells[i], value + i);
  for (int i = 0; i < kCells; ++i) sum = sum * 5 % 1009 + cells[i];
  note(log, sum);
}

int main() {
  gpu::Report report("grids");
  std::vector<int> a(kWidth), b(kWidth), log(kLog), logs(kLog * kLogs), cells(2);
  for (int i = 0; i < kWidth; ++i) a[i] = i * 7 % 1000;
  std::vector<int> gathered(kCells), other_log(kLog), more_logs(kLog * kLogs), of_leaf(kLeaves);
  gpu::Buffer<int> of_a(a), of_b(kWidth), of_log(kLog), of_logs(kLog * kLogs), of_cells(2);
  std::vector<int> created_log(kLog);
  gpu::Buffer<int> of_created_log(kLog);
  gpu::Buffer<cudaStream_t> of_stream(1);
  gpu::Buffer<int> of_gathered(kCells), of_other_log(kLog), of_more_logs(kLog * kLogs), of_waiting(8 * kLogs),
      of_leaves(kLeaves);
  std::vector<int> lanes_log(kLog);
  int counted = 0;
  gpu::Buffer<int> of_lanes(kLanes), of_lanes_log(kLog);
  gpu::Buffer<cudaStream_t> of_streams(std::vector<cudaStream_t>{nullptr, cudaStreamPerThread});
  for (int round = 0; round < kRounds; ++round) {
    shifts<<<1, 1>>>(of_a.data(), of_b.data(), 2 + round);
    all_roots<<<1, 1>>>(of_logs.data(), round);
    ends<<<1, 1>>>(of_log.data(), round, 3);
    mixed_then_note<<<1, 1>>>(of_log.data(), of_cells.data());
    gather_twice<<<1, 1>>>(of_other_log.data(), of_gathered.data(), round);
    go_on_twice<<<1, 1>>>(of_more_logs.data(), of_waiting.data(), round);
    leaves<<<1, 1>>>(of_leaves.data(), round);
    in_created_twice<<<1, 1>>>(of_created_log.data(), of_stream.data(), round);
    by_lanes_often<<<1, 1>>>(of_lanes_log.data(), of_lanes.data(), of_streams.data());
  }
  gpu::wait("rounds");
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 2 * (2 + round); ++i) {
      for (int at = 0; at < kWidth; ++at) b[at] = a[at] * 3 % 1009 + a[(at + 37) % kWidth];
      std::swap(a, b);
    }
    for (int block = 0; block < kLogs; ++block) {
      for (const int value : {round, round + 20}) {
        expect_halves(logs.data() + kLog * block, value + block, 3);
        note(logs.data() + kLog * block, 11);
      }
    }
    expect_ends(log.data(), round, 3);
    for (int i = 0; i < 3; ++i) {
      expect_add(cells.data(), 2, 3);
      expect_add(cells.data(), 2, 2);
    }
    for (int i = 0; i < 2; ++i) note(log.data(), cells[0] + 100 * cells[1]);
    expect_gather(other_log.data(), gathered, round);
    expect_gather(other_log.data(), gathered, round + 3);
    for (int block = 0; block < kLogs; ++block) {
      for (const int value : {round, round + 50}) {
        for (int i = 0; i < 4; ++i) note(more_logs.data() + kLog * block, value + i);
      }
    }
    for (const int value : {round, round + 10}) {
      expect_halves(created_log.data(), value, 2);
      note(created_log.data(), value + 1);
      expect_halves(created_log.data(), value + 2, 1);
      note(created_log.data(), value + 3);
    }
    for (int i = 0; i < 4; ++i) {
      counted += i % 2 == 0 ? kLanes * (kLanes + 1) / 2 : kLanes / 2 * (kLanes / 2 + 1) / 2;
      note(lanes_log.data(), counted);
    }
    for (const int more : {0, 7}) {
      for (int block = 0; block < (more == 0 ? kLeaves : kLeaves / 2); ++block) {
        expect_fill(of_leaf[block], round + more);
        expect_fill(of_leaf[block], round + more + 1);
      }
    }
  }
  report.expect_equal("cells that are shifted", of_a.to_host(), a);
  report.expect_equal("logs of blocks", of_logs.to_host(), logs);
  report.expect_equal("log", of_log.to_host(), log);
  report.expect_equal("other log", of_other_log.to_host(), other_log);
  report.expect_equal("logs of blocks that go on", of_more_logs.to_host(), more_logs);
  report.expect_equal("log of created streams", of_created_log.to_host(), created_log);
  report.expect_equal("log of lanes", of_lanes_log.to_host(), lanes_log);
  report.expect_equal("leaves", of_leaves.to_host(), of_leaf);
  return report.finish();
}
