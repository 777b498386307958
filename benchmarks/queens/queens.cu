// The queens puzzle: in how many ways n queens stand on a board of n rows without attacking each other.
//
// The kernel places the queen of one row, with a thread for each free square. A thread launches the kernel
// for the next row, in a block of as many threads as there are free squares. The first rows are placed by
// launches. Behind them a thread counts all ways by itself.
//
// `--variant flat` has a thread for each way to place the first rows, legal or not.
#include <algorithm>
#include <cstdint>
#include <string>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"

constexpr int kLargestBoard = 16;
constexpr int kFlatBlock = 128;

// Squares of a row, a bit each, that the queens above attack.
struct Attacked {
  unsigned column, left, right;

  __host__ __device__ unsigned any() const { return column | left | right; }
  __host__ __device__ Attacked below(unsigned queen) const {
    return {column | queen, (left | queen) << 1, (right | queen) >> 1};
  }
};

__host__ __device__ inline unsigned lowest(unsigned squares) { return squares & (0U - squares); }

// The ways to fill all rows from one on, which is `row` rows below the first.
__host__ __device__ inline unsigned long long ways_below(int n, int row, const Attacked& first) {
  const unsigned all = (1U << n) - 1;
  Attacked attacked[kLargestBoard];
  unsigned open[kLargestBoard];
  unsigned long long ways = 0;
  int depth = 0;
  attacked[0] = first;
  open[0] = all & ~first.any();
  while (depth >= 0) {
    if (row + depth == n) {
      ++ways;
      --depth;
      continue;
    }
    if (open[depth] == 0) {
      --depth;
      continue;
    }
    const unsigned queen = lowest(open[depth]);
    open[depth] ^= queen;
    attacked[depth + 1] = attacked[depth].below(queen);
    open[depth + 1] = all & ~attacked[depth + 1].any();
    ++depth;
  }
  return ways;
}

// `row` is the row of this block; those before `launched_rows` have launches.
template <bool kCount>
__global__ void __launch_bounds__(kLargestBoard) place(int n, int row, int launched_rows, Attacked attacked,
                                                       unsigned long long* ways, unsigned long long* lost) {
  const unsigned all = (1U << n) - 1;
  unsigned open = all & ~attacked.any();
  for (unsigned i = 0; i < threadIdx.x; ++i) open ^= lowest(open);
  const Attacked next = attacked.below(lowest(open));
  if (row + 1 == launched_rows || row + 1 == n) {
    const unsigned long long found = ways_below(n, row + 1, next);
    if (found > 0) atomicAdd(ways, found);
    return;
  }
  const unsigned next_open = all & ~next.any();
  if (next_open != 0) {
    place<kCount><<<1, __popc(next_open)>>>(n, row + 1, launched_rows, next, ways, lost);
    bench::count_if_lost<kCount>(lost);
  }
}

// A thread's number, to the base n, says where the first queens stand.
__global__ void count_flat(int n, int first_rows, int threads, unsigned long long* ways) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (thread >= threads) return;
  Attacked attacked = {0, 0, 0};
  int rest = thread;
  for (int row = 0; row < first_rows; ++row) {
    const unsigned queen = 1U << (rest % n);
    if ((attacked.any() & queen) != 0) return;
    attacked = attacked.below(queen);
    rest /= n;
  }
  const unsigned long long found = ways_below(n, first_rows, attacked);
  if (found > 0) atomicAdd(ways, found);
}

namespace {

// From the literature: the number of ways for boards of 0, 1, 2 and so on rows.
constexpr unsigned long long kWays[kLargestBoard + 1] = {
    1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};

struct Sizes {
  long long queens = 10;
  long long launched_rows = 5;
};

class Queens final : public bench::StreamProgram {
 public:
  Queens(const Sizes& sizes, const bench::CommonOptions& options)
      : StreamProgram(options),
        n_(static_cast<int>(sizes.queens)),
        launched_rows_(static_cast<int>(std::min(sizes.launched_rows, sizes.queens))),
        ways_(1) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("numbers of ways", {kWays[n_]}, ways_.to_host());
  }

 private:
  void restore() override { ways_.fill_bytes(0); }

  void launch(bool count) override {
    const Attacked none = {0, 0, 0};
    (count ? place<true> : place<false>)<<<1, n_>>>(n_, 0, launched_rows_, none, ways_.data(), lost());
  }

  void launch_flat() override {
    int threads = 1;
    for (int row = 0; row < launched_rows_; ++row) threads *= n_;
    count_flat<<<bench::blocks_for(threads, kFlatBlock), kFlatBlock>>>(n_, launched_rows_, threads,
                                                                       ways_.data());
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("queens", n_).add("launched_rows", launched_rows_);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = launches_from(0, {0, 0, 0}), .bytes_to_move = 8, .flat_kernels = 1};
  }

  // The launches by the block of a row, and by all that follow from them.
  [[nodiscard]] long long launches_from(int row, const Attacked& attacked) const {
    if (row + 1 >= launched_rows_) return 0;
    const unsigned all = (1U << n_) - 1;
    long long launches = 0;
    for (unsigned open = all & ~attacked.any(); open != 0; open ^= lowest(open)) {
      const Attacked next = attacked.below(lowest(open));
      if ((all & ~next.any()) != 0) launches += 1 + launches_from(row + 1, next);
    }
    return launches;
  }

  int n_;
  int launched_rows_;
  bench::DeviceArray<unsigned long long> ways_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("queens",
                         "the queens puzzle, with a launch of as many threads as a row has free squares");
  options.integer("queens", sizes.queens, 1, "queens, and rows and columns of the board");
  options.integer("launched-rows", sizes.launched_rows, 1, "rows whose queens are placed by launches");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("queens", "queens", sizes.queens, kLargestBoard - 1);
  bench::require_at_most("queens", "launched-rows", sizes.launched_rows, 6);
  bench::require_device("queens");
  Queens program(sizes, common);
  return bench::run_benchmark("queens", common, program);
}
