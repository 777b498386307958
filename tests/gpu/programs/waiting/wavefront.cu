// The edit distance of two strings by dynamic programming. One thread launches a grid for each diagonal of
// tiles and waits for it. It then takes the least value among the corners of these tiles.
#include "sizes.h"

namespace {

constexpr int extent = 8;

}  // namespace

// Both strings have n characters, which fill `tiles` tiles. The table has n + 1 rows and columns.
extern "C" __global__ void edit_distance(const char* a, const char* b, int* table, int n, int* least);

#ifdef __CUDACC__
namespace {

// Computes one tile of the table. In each step, the threads compute one diagonal of the tile.
__global__ void tile(const char* a, const char* b, int* table, int n, int diagonal, int first) {
  const int tile_row = first + static_cast<int>(blockIdx.x);
  const int row = tile_row * extent + static_cast<int>(threadIdx.x) + 1;
  const int first_column = (diagonal - tile_row) * extent + 1, width = n + 1;
  for (int step = 0; step < 2 * extent - 1; ++step) {
    const int offset = step - static_cast<int>(threadIdx.x), column = first_column + offset;
    if (offset >= 0 && offset < extent) {
      int* at = table + row * width + column;
      const int replaced = at[-width - 1] + (a[row - 1] == b[column - 1] ? 0 : 1);
      at[0] = min(replaced, 1 + min(at[-1], at[-width]));
    }
    __syncthreads();
  }
}

}  // namespace

extern "C" __global__ void edit_distance(const char* a, const char* b, int* table, int n, int* least) {
  const int tiles = n / extent, width = n + 1;
  for (int i = 0; i <= n; ++i) table[i] = table[i * width] = i;
  for (int diagonal = 0; diagonal < 2 * tiles - 1; ++diagonal) {
    const int first = max(0, diagonal - tiles + 1), last = min(diagonal, tiles - 1);
    tile<<<last - first + 1, extent>>>(a, b, table, n, diagonal, first);
    cudaDeviceSynchronize();
    int value = n;
    for (int row = first; row <= last; ++row) {
      value = min(value, table[(row + 1) * extent * width + (diagonal - row + 1) * extent]);
    }
    least[diagonal] = value;
  }
}
#endif

#ifndef __CUDACC_RTC__
#include <algorithm>

namespace {

std::vector<char> random_text(int n, unsigned state) {
  std::vector<char> text;
  for (int i = 0; i < n; ++i) {
    state = state * 1664525 + 1013904223;
    text.push_back("acgt"[state >> 30]);
  }
  return text;
}

// The whole table, row by row.
std::vector<int> on_cpu(const std::vector<char>& a, const std::vector<char>& b) {
  const size_t n = a.size(), width = n + 1;
  std::vector<int> table(width * width);
  for (size_t i = 0; i <= n; ++i) {
    for (size_t j = 0; j <= n; ++j) {
      int& value = table[i * width + j];
      value = static_cast<int>(i + j);
      if (i == 0 || j == 0) continue;
      value = table[(i - 1) * width + j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      value = std::min({value, table[(i - 1) * width + j] + 1, table[i * width + j - 1] + 1});
    }
  }
  return table;
}

std::vector<int> least_on_cpu(const std::vector<int>& table, int n) {
  const int tiles = n / extent;
  std::vector<int> least(2 * tiles - 1, n);
  for (int row = 0; row < tiles; ++row) {
    for (int column = 0; column < tiles; ++column) {
      const int value = table[(row + 1) * extent * (n + 1) + (column + 1) * extent];
      least[row + column] = std::min(least[row + column], value);
    }
  }
  return least;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("wavefront", argc, argv, [](gpu::Report& report, int size) {
    const int n = extent << (2 * size);
    const std::vector<char> a = random_text(n, 1), b = random_text(n, 2);
    gpu::Buffer<char> device_a(a), device_b(b);
    gpu::Buffer<int> table((n + 1) * (n + 1)), least(2 * n / extent - 1);
    WAITING_LAUNCH(edit_distance, 1, 1)(device_a.data(), device_b.data(), table.data(), n, least.data());
    gpu::wait("edit_distance");
    const std::vector<int> want = on_cpu(a, b);
    report.expect_equal("a value of the table", table.to_host(), want);
    report.expect_equal("the least value of a diagonal", least.to_host(), least_on_cpu(want, n));
  });
}
#endif
