// Counts the ways to place N queens on a board of N by N. Each thread of a block tries one column of the
// block's row. In the first rows it launches a block for the next row and waits for it; in later rows it
// counts by itself. Then the block adds the counts of its threads in shared memory.
#include "sizes.h"

struct Board {
  int n, launching_rows;
};

// Which columns are taken in the next row: by queens above it, and along both diagonals.
struct Taken {
  unsigned columns, left, right;
};

namespace {

constexpr int kMost = 16;  // the largest board

}  // namespace

// The blocks for the next row have the nodes n * node + 1 to n * node + n.
extern "C" __global__ void count_queens(unsigned* counts, Board board, Taken taken, int row, int node);

#ifdef __CUDACC__
namespace {

__device__ Taken place(const Taken& taken, unsigned queen) {
  return {taken.columns | queen, (taken.left | queen) << 1, (taken.right | queen) >> 1};
}

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
    const Taken next = place(above[depth], queen);
    above[++depth] = next;
    open[depth] = all & ~(next.columns | next.left | next.right);
  }
  return count;
}

}  // namespace

extern "C" __global__ void count_queens(unsigned* counts, Board board, Taken taken, int row, int node) {
  __shared__ unsigned found[kMost];
  const int column = threadIdx.x;
  const unsigned queen = 1U << column;
  unsigned count = 0;
  if ((queen & (taken.columns | taken.left | taken.right)) == 0) {
    const Taken next = place(taken, queen);
    if (row < board.launching_rows) {
      const int child = board.n * node + 1 + column;
      count_queens<<<1, board.n>>>(counts, board, next, row + 1, child);
      cudaDeviceSynchronize();
      count = counts[child];
    } else {
      count = count_below(board.n, next, row + 1);
    }
  }
  found[column] = count;
  __syncthreads();
  if (column != 0) return;
  unsigned sum = 0;
  for (int i = 0; i < board.n; ++i) sum += found[i];
  counts[node] = sum;
}
#endif

#ifndef __CUDACC_RTC__
#include <cstdlib>

namespace {

// The columns of the queens so far are those of the first rows.
unsigned on_cpu(size_t n, std::vector<int>& columns) {
  if (columns.size() == n) return 1;
  unsigned count = 0;
  for (int column = 0; column < static_cast<int>(n); ++column) {
    bool is_safe = true;
    for (size_t row = 0; row < columns.size(); ++row) {
      const int apart = std::abs(columns[row] - column);
      if (apart == 0 || apart == static_cast<int>(columns.size() - row)) is_safe = false;
    }
    if (!is_safe) continue;
    columns.push_back(column);
    count += on_cpu(n, columns);
    columns.pop_back();
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("queens", argc, argv, [](gpu::Report& report, int size) {
    const Board boards[] = {{5, 1}, {6, 2}, {8, 3}};
    std::vector<int> columns;
    const gpu::Buffer<unsigned> counts(1000);  // 1 + 8 + 64 + 512 are the most nodes
    WAITING_LAUNCH(count_queens, 1, boards[size].n)(counts.data(), boards[size], Taken{}, 0, 0);
    gpu::wait("count_queens");
    report.expect_equal("the number of ways", std::vector<unsigned>{counts.to_host()[0]},
                        {on_cpu(boards[size].n, columns)});
  });
}
#endif
