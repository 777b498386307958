// Conway's game of life with two buffers: one thread launches each generation and copies it back.
//
// A generation reads the board and writes another one. A cudaMemcpyAsync() behind it copies that to the
// board, where the next generation reads it. Launches and copies are all in the NULL stream of the thread's
// block. The board's edges are joined to those on the other side.
//
// `--variant flat` launches and copies from the host.
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kBlockWidth = 64;
constexpr int kBlockHeight = 4;

using Cell = unsigned char;

struct Board {
  int width;
  int height;

  [[nodiscard]] __host__ __device__ size_t cells() const { return static_cast<size_t>(width) * height; }
  [[nodiscard]] __host__ __device__ dim3 grid() const {
    return {bench::blocks_for(width, kBlockWidth), bench::blocks_for(height, kBlockHeight)};
  }
};

__host__ __device__ inline Cell cell_after(const Cell* now, const Board& board, int x, int y) {
  int neighbours = 0;
  for (int dy = board.height - 1; dy <= board.height + 1; ++dy) {
    const size_t row = static_cast<size_t>((y + dy) % board.height) * board.width;
    for (int dx = board.width - 1; dx <= board.width + 1; ++dx)
      neighbours += now[row + (x + dx) % board.width];
  }
  const Cell own = now[static_cast<size_t>(y) * board.width + x];
  neighbours -= own;
  return neighbours == 3 || (neighbours == 2 && own == 1) ? 1 : 0;
}

__global__ void live(const Cell* now, Cell* next, Board board) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x < board.width && y < board.height)
    next[static_cast<size_t>(y) * board.width + x] = cell_after(now, board, x, y);
}

template <bool kCount>
__global__ void drive(Cell* now, Cell* next, Board board, int generations, unsigned long long* lost) {
  for (int i = 0; i < generations; ++i) {
    live<<<board.grid(), dim3(kBlockWidth, kBlockHeight)>>>(now, next, board);
    bench::count_if_lost<kCount>(lost);
    const cudaError_t error = cudaMemcpyAsync(now, next, board.cells(), cudaMemcpyDeviceToDevice, nullptr);
    if (kCount && error != cudaSuccess) atomicAdd(lost, 1ULL);
  }
}

namespace {

struct Sizes {
  long long width = 256;
  long long height = 256;
  long long generations = 100;
};

std::vector<Cell> random_board(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<Cell> cells(static_cast<size_t>(sizes.width * sizes.height));
  for (Cell& cell : cells) cell = random.below(3) == 0 ? 1 : 0;
  return cells;
}

std::vector<Cell> cpu_life(std::vector<Cell> now, const Sizes& sizes) {
  const Board board = {static_cast<int>(sizes.width), static_cast<int>(sizes.height)};
  std::vector<Cell> next(now.size());
  for (long long i = 0; i < sizes.generations; ++i) {
    for (int y = 0; y < board.height; ++y) {
      for (int x = 0; x < board.width; ++x)
        next[static_cast<size_t>(y) * board.width + x] = cell_after(now.data(), board, x, y);
    }
    now.swap(next);
  }
  return now;
}

class Life final : public bench::ArrayProgram<Cell> {
 public:
  Life(const Sizes& sizes, const std::vector<Cell>& input, const bench::CommonOptions& options)
      : ArrayProgram(options, "cells", input, cpu_life(input, sizes)),
        board_{static_cast<int>(sizes.width), static_cast<int>(sizes.height)},
        generations_(static_cast<int>(sizes.generations)),
        next_(input.size()) {}

 private:
  void launch(bool count) override {
    (count ? drive<true> : drive<false>)<<<1, 1>>>(data(), next_.data(), board_, generations_, lost());
  }

  void launch_flat() override {
    for (int i = 0; i < generations_; ++i) {
      live<<<board_.grid(), dim3(kBlockWidth, kBlockHeight)>>>(data(), next_.data(), board_);
      bench::check(cudaMemcpyAsync(data(), next_.data(), board_.cells(), cudaMemcpyDeviceToDevice),
                   "copying a generation back");
    }
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("width", board_.width).add("height", board_.height).add("generations", generations_);
    report.add("child_copies", generations_);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = generations_,
            .bytes_to_move = static_cast<long long>(2 * board_.cells()),
            .flat_kernels = generations_,
            .flat_fills = generations_};
  }

  Board board_;
  int generations_;
  bench::DeviceArray<Cell> next_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("life", "the game of life, with each generation copied back by cudaMemcpyAsync");
  options.integer("width", sizes.width, 2, "cells in a row");
  options.integer("height", sizes.height, 2, "rows");
  options.integer("generations", sizes.generations, 1, "generations");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("life", "width", sizes.width, 1 << 15);
  bench::require_at_most("life", "height", sizes.height, 1 << 15);
  bench::require_at_most("life", "generations", sizes.generations, 1 << 20);
  bench::require_device("life");
  Life program(sizes, random_board(sizes, common.seed), common);
  return bench::run_benchmark("life", common, program);
}
