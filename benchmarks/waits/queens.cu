// The queens puzzle: in how many ways n queens stand on a board of n rows without attacking each other.
//
// A block places the queen of one row, with a thread for each column. In the first rows a thread launches a
// block for the next row, waits for it, and the block adds the counts of its threads. In later rows a thread
// counts by itself. A tail launch adds the counts of the blocks below.
//
// `--variant flat` has a thread for each way to place the first queens, legal or not.
#include <string>
#include <vector>

#include "waiting_program.h"

namespace {

constexpr int kMost = 16;  // rows of the largest board

// Columns that are taken in the next row: by queens above it, and along both diagonals.
struct Taken {
  unsigned columns, left, right;

  __host__ __device__ bool has(unsigned queen) const { return ((columns | left | right) & queen) != 0; }
  __host__ __device__ Taken with(unsigned queen) const {
    return {columns | queen, (left | queen) << 1, (right | queen) >> 1};
  }
};

// The blocks below the block at `place` count into n * place + 1 to n * place + n.
struct Board {
  int n, launching_rows;
  unsigned* counts;
};

// Counts the ways to fill the rows from this one on.
__device__ unsigned count_below(int n, const Taken& taken, int row) {
  if (row == n) return 1;
  const unsigned all = (1U << n) - 1;
  Taken above[kMost];
  unsigned open[kMost];
  int depth = 0;
  unsigned count = 0;
  above[0] = taken;
  open[0] = all & ~(taken.columns | taken.left | taken.right);
  while (depth >= 0) {
    const unsigned queen = open[depth] & -open[depth];
    if (queen == 0) {
      --depth;
      continue;
    }
    open[depth] ^= queen;
    if (row + depth + 1 == n) {
      ++count;
      continue;
    }
    const Taken next = above[depth].with(queen);
    above[++depth] = next;
    open[depth] = all & ~(next.columns | next.left | next.right);
  }
  return count;
}

// Adds the values of a block's threads. All threads of the block call this.
__device__ void store_sum(const Board& board, int place, unsigned* of_thread, unsigned value) {
  of_thread[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x != 0) return;
  unsigned sum = 0;
  for (int i = 0; i < board.n; ++i) sum += of_thread[i];
  board.counts[place] = sum;
}

#ifdef BENCH_WAITS

__global__ void count_queens(Board board, Taken taken, int row, int place) {
  __shared__ unsigned of_thread[kMost];
  const unsigned queen = 1U << threadIdx.x;
  unsigned count = 0;
  if (!taken.has(queen)) {
    const Taken next = taken.with(queen);
    if (row < board.launching_rows) {
      const int below = board.n * place + 1 + static_cast<int>(threadIdx.x);
      cudaStream_t stream;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      count_queens<<<1, board.n, 0, stream>>>(board, next, row + 1, below);
      cudaStreamDestroy(stream);
      cudaDeviceSynchronize();
      count = board.counts[below];
    } else {
      count = count_below(board.n, next, row + 1);
    }
  }
  store_sum(board, place, of_thread, count);
}

void launch_first_row(const Board& board, bool, unsigned long long*) {
  count_queens<<<1, board.n>>>(board, Taken{}, 0, 0);
}
void launch_flat_kernel(const Board&, int) {}

#else

__global__ void add_counts(Board board, Taken taken, int place) {
  __shared__ unsigned of_thread[kMost];
  const int below = board.n * place + 1 + static_cast<int>(threadIdx.x);
  store_sum(board, place, of_thread, taken.has(1U << threadIdx.x) ? 0 : board.counts[below]);
}

template <bool kCount>
__global__ void count_queens(Board board, Taken taken, int row, int place, unsigned long long* lost) {
  __shared__ unsigned of_thread[kMost];
  const unsigned queen = 1U << threadIdx.x;
  const Taken next = taken.with(queen);
  if (row >= board.launching_rows) {
    store_sum(board, place, of_thread, taken.has(queen) ? 0 : count_below(board.n, next, row + 1));
    return;
  }
  if (threadIdx.x == 0) {
    add_counts<<<1, board.n, 0, cudaStreamTailLaunch>>>(board, taken, place);
    bench::count_if_lost<kCount>(lost);
  }
  if (taken.has(queen)) return;
  const int below = board.n * place + 1 + static_cast<int>(threadIdx.x);
  count_queens<kCount><<<1, board.n, 0, cudaStreamFireAndForget>>>(board, next, row + 1, below, lost);
  bench::count_if_lost<kCount>(lost);
}

void launch_first_row(const Board& board, bool counts, unsigned long long* lost) {
  (counts ? count_queens<true> : count_queens<false>)<<<1, board.n>>>(board, Taken{}, 0, 0, lost);
}

constexpr int kFlatBlock = 128;

// A thread's number, to the base n, says where the first queens stand.
__global__ void count_flat(Board board, int first_rows, int threads) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (thread >= threads) return;
  Taken taken{};
  int rest = thread;
  for (int row = 0; row < first_rows; ++row, rest /= board.n) {
    const unsigned queen = 1U << (rest % board.n);
    if (taken.has(queen)) return;
    taken = taken.with(queen);
  }
  const unsigned found = count_below(board.n, taken, first_rows);
  if (found > 0) atomicAdd(board.counts, found);
}

void launch_flat_kernel(const Board& board, int first_rows) {
  int threads = 1;
  for (int row = 0; row < first_rows; ++row) threads *= board.n;
  count_flat<<<bench::blocks_for(threads, kFlatBlock), kFlatBlock>>>(board, first_rows, threads);
}

#endif

// From the literature: the number of ways for boards of 0, 1, 2 and so on rows.
constexpr unsigned kWays[kMost + 1] = {1,   1,   0,    0,     2,     10,     4,       40,      92,
                                       352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};

class Queens final : public bench::StreamProgram {
 public:
  Queens(int n, int launching_rows, const bench::CommonOptions& options)
      : StreamProgram(options), n_(n), launching_rows_(launching_rows), counts_(places(n, launching_rows)) {}

  [[nodiscard]] std::string verify() override {
    const std::vector<unsigned> found{counts_.to_host().front()};
    return bench::differences("numbers of ways", std::vector<unsigned>{kWays[n_]}, found);
  }

 private:
  void restore() override { counts_.fill_bytes(0); }
  void launch(bool count) override { launch_first_row(board(), count, lost()); }
  void launch_flat() override { launch_flat_kernel(board(), launching_rows_ + 1); }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("queens", n_).add("launching_rows", launching_rows_);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = launches_from(0, Taken{}), .bytes_to_move = 8, .flat_kernels = 1};
  }

  // The launches by the block of a row, and by all that follow from them.
  [[nodiscard]] long long launches_from(int row, const Taken& taken) const {
    if (row >= launching_rows_) return 0;
    long long launches = bench::kWaits ? 0 : 1;
    for (int column = 0; column < n_; ++column) {
      const unsigned queen = 1U << column;
      if (!taken.has(queen)) launches += 1 + launches_from(row + 1, taken.with(queen));
    }
    return launches;
  }
  static size_t places(int n, int launching_rows) {
    size_t count = 1;
    for (int row = 0; row < launching_rows; ++row) count = n * count + 1;
    return count;
  }
  [[nodiscard]] Board board() const { return {n_, launching_rows_, counts_.data()}; }

  int n_;
  int launching_rows_;
  bench::DeviceArray<unsigned> counts_;
};

}  // namespace

int main(int argc, char** argv) {
  long long queens = 12, launching_rows = 4;
  bench::WaitingOptions options("queens", "the queens puzzle, by blocks that wait for the next rows");
  options.integer("queens", queens, 4, "queens, and rows and columns of the board");
  options.integer("launching-rows", launching_rows, 0, "rows whose blocks launch blocks");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "queens", queens, kMost - 1);
  bench::require_at_most(options.name(), "launching-rows", launching_rows, queens < 6 ? queens - 1 : 5);
  Queens program(static_cast<int>(queens), static_cast<int>(launching_rows), options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
