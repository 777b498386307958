// The edit distance of two strings by dynamic programming. A block launches a grid for each diagonal of
// tiles, waits for it, and takes the least value among the corners of these tiles. It goes on as long as that
// is within a limit.
//
// A tail launch of the block takes the least value. In `--variant flat` the host launches all diagonals, and
// their blocks stop if the diagonal before has gone beyond the limit.
#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "../common/random.h"
#include "waiting_program.h"

namespace {

constexpr int kTile = 16;   // rows and columns of a tile
constexpr int kBlock = 64;  // threads that take the least value

// Both strings have `tiles` times kTile characters. The table has a row and a column more.
struct Problem {
  const char* a;
  const char* b;
  int* table;
  int* least;  // of each diagonal; as great as can be at first
  int tiles, limit;

  __host__ __device__ int width() const { return tiles * kTile + 1; }
  __host__ __device__ int diagonals() const { return 2 * tiles - 1; }
  __host__ __device__ int first_row(int diagonal) const {
    return diagonal < tiles ? 0 : diagonal - tiles + 1;
  }
  __host__ __device__ int rows(int diagonal) const {
    return diagonal < tiles ? diagonal + 1 : 2 * tiles - 1 - diagonal;
  }
};

// Computes one tile of the table. In each step, the threads compute one diagonal of the tile.
__device__ void compute_tile(const Problem& problem, int diagonal) {
  const int thread = static_cast<int>(threadIdx.x), width = problem.width();
  const int tile_row = problem.first_row(diagonal) + static_cast<int>(blockIdx.x);
  const int row = tile_row * kTile + thread + 1, first_column = (diagonal - tile_row) * kTile + 1;
  for (int step = 0; step < 2 * kTile - 1; ++step) {
    const int offset = step - thread, column = first_column + offset;
    if (offset >= 0 && offset < kTile) {
      int* const at = problem.table + row * width + column;
      const int replaced = at[-width - 1] + (problem.a[row - 1] == problem.b[column - 1] ? 0 : 1);
      at[0] = min(replaced, 1 + min(at[-1], at[-width]));
    }
    __syncthreads();
  }
}

// The value at the last corner of a tile of the diagonal.
__host__ __device__ inline int corner(const Problem& problem, const int* table, int diagonal, int which) {
  const int row = problem.first_row(diagonal) + which;
  return table[(row + 1) * kTile * problem.width() + (diagonal - row + 1) * kTile];
}

__global__ void tile(Problem problem, int diagonal) { compute_tile(problem, diagonal); }

// The least corner, for all threads of the block, which all call this.
__device__ int take_least(const Problem& problem, int diagonal, int* least) {
  if (threadIdx.x == 0) *least = INT_MAX;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < problem.rows(diagonal); i += kBlock) {
    atomicMin(least, corner(problem, problem.table, diagonal, i));
  }
  __syncthreads();
  if (threadIdx.x == 0) problem.least[diagonal] = *least;
  return *least;
}

#ifdef BENCH_WAITS

__global__ void drive(Problem problem) {
  __shared__ int least;
  int value = 0;
  for (int diagonal = 0; diagonal < problem.diagonals() && value <= problem.limit; ++diagonal) {
    if (threadIdx.x == 0) {
      tile<<<problem.rows(diagonal), kTile>>>(problem, diagonal);
      cudaDeviceSynchronize();
    }
    __syncthreads();
    value = take_least(problem, diagonal, &least);
    __syncthreads();
  }
}

void launch_drive(const Problem& problem, bool, unsigned long long*) { drive<<<1, kBlock>>>(problem); }
void launch_diagonals(const Problem&) {}

#else

// The tiles of the diagonal before this one are done.
template <bool kCount>
__global__ void drive(Problem problem, int diagonal, unsigned long long* lost) {
  __shared__ int least;
  if (diagonal > 0 && take_least(problem, diagonal - 1, &least) > problem.limit) return;
  if (diagonal == problem.diagonals() || threadIdx.x != 0) return;
  tile<<<problem.rows(diagonal), kTile, 0, cudaStreamFireAndForget>>>(problem, diagonal);
  bench::count_if_lost<kCount>(lost);
  drive<kCount><<<1, kBlock, 0, cudaStreamTailLaunch>>>(problem, diagonal + 1, lost);
  bench::count_if_lost<kCount>(lost);
}

void launch_drive(const Problem& problem, bool counts, unsigned long long* lost) {
  (counts ? drive<true> : drive<false>)<<<1, kBlock>>>(problem, 0, lost);
}

// Tiles behind the end leave the least value of their diagonal as great as it is.
__global__ void tile_within_limit(Problem problem, int diagonal) {
  if (diagonal > 0 && problem.least[diagonal - 1] > problem.limit) return;
  compute_tile(problem, diagonal);
  if (threadIdx.x != 0) return;
  atomicMin(&problem.least[diagonal], corner(problem, problem.table, diagonal, static_cast<int>(blockIdx.x)));
}

void launch_diagonals(const Problem& problem) {
  for (int diagonal = 0; diagonal < problem.diagonals(); ++diagonal) {
    tile_within_limit<<<problem.rows(diagonal), kTile>>>(problem, diagonal);
  }
}

#endif

std::vector<char> random_text(int n, long long seed) {
  std::vector<char> text;
  bench::Random random(static_cast<uint64_t>(seed));
  for (int i = 0; i < n; ++i) text.push_back("acgt"[random.below(4)]);
  return text;
}

// A copy in which about one character in eight is another one.
std::vector<char> with_changes(std::vector<char> text, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed) + 1);
  for (char& character : text) {
    if (random.below(8) == 0) character = "acgt"[random.below(4)];
  }
  return text;
}

// The table before a run: its first row and column.
std::vector<int> empty_table(size_t width) {
  std::vector<int> table(width * width);
  for (size_t i = 0; i < width; ++i) table[i] = table[i * width] = static_cast<int>(i);
  return table;
}

std::vector<int> cpu_table(const std::vector<char>& a, const std::vector<char>& b) {
  const size_t width = a.size() + 1;
  std::vector<int> table = empty_table(width);
  for (size_t i = 1; i < width; ++i) {
    for (size_t j = 1; j < width; ++j) {
      const int replaced = table[(i - 1) * width + j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i * width + j] =
          std::min({replaced, table[(i - 1) * width + j] + 1, table[i * width + j - 1] + 1});
    }
  }
  return table;
}

// Of each diagonal to the first that goes beyond the limit.
std::vector<int> cpu_least(const Problem& problem, const std::vector<int>& table) {
  std::vector<int> least(static_cast<size_t>(problem.diagonals()), INT_MAX);
  for (int diagonal = 0; diagonal < problem.diagonals(); ++diagonal) {
    int& value = least[static_cast<size_t>(diagonal)];
    for (int i = 0; i < problem.rows(diagonal); ++i) {
      value = std::min(value, corner(problem, table.data(), diagonal, i));
    }
    if (value > problem.limit) break;
  }
  return least;
}

class EditDistance final : public bench::StreamProgram {
 public:
  EditDistance(int tiles, int limit, const std::vector<char>& a, const std::vector<char>& b,
               const bench::CommonOptions& options)
      : StreamProgram(options),
        a_(a),
        b_(b),
        empty_(empty_table(a.size() + 1)),
        table_((a.size() + 1) * (a.size() + 1)),
        no_least_(std::vector<int>(2 * static_cast<size_t>(tiles) - 1, INT_MAX)),
        least_(2 * static_cast<size_t>(tiles) - 1),
        problem_{a_.data(), b_.data(), table_.data(), least_.data(), tiles, limit},
        expected_(cpu_least(problem_, cpu_table(a, b))) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("least values", expected_, least_.to_host());
  }

 private:
  void restore() override {
    copy(table_, empty_);
    copy(least_, no_least_);
  }
  void launch(bool count) override { launch_drive(problem_, count, lost()); }
  void launch_flat() override { launch_diagonals(problem_); }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("tiles", problem_.tiles).add("limit", problem_.limit);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    const auto reached =
        std::count_if(expected_.begin(), expected_.end(), [](int least) { return least != INT_MAX; });
    return {.child_launches = (bench::kWaits ? 1LL : 2LL) * reached,
            .bytes_to_move = static_cast<long long>(table_.bytes()),
            .flat_kernels = problem_.diagonals()};
  }
  static void copy(const bench::DeviceArray<int>& to, const bench::DeviceArray<int>& from) {
    bench::check(cudaMemcpy(to.data(), from.data(), to.bytes(), cudaMemcpyDeviceToDevice),
                 "restoring the table");
  }

  bench::DeviceArray<char> a_;
  bench::DeviceArray<char> b_;
  bench::DeviceArray<int> empty_;
  bench::DeviceArray<int> table_;
  bench::DeviceArray<int> no_least_;
  bench::DeviceArray<int> least_;
  Problem problem_;
  std::vector<int> expected_;
};

}  // namespace

int main(int argc, char** argv) {
  long long tiles = 128, limit = 1 << 20;
  bench::WaitingOptions options("editdistance", "an edit distance by a block that waits for each diagonal");
  options.integer("tiles", tiles, 1, "tiles of 16 characters of each string");
  options.integer("limit", limit, 0, "greatest distance of interest");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "tiles", tiles, 1024);
  bench::require_at_most(options.name(), "limit", limit, 1 << 20);
  const std::vector<char> text = random_text(static_cast<int>(tiles) * kTile, options.common.seed);
  EditDistance program(static_cast<int>(tiles), static_cast<int>(limit), text,
                       with_changes(text, options.common.seed), options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
