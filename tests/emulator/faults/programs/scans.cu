// Scans in one pass, whose blocks look back at those before them, in grids that count by columns. Several run
// at a time, beside a wide kernel that makes the executor's blocks few. The kernels have shared variables of
// different sizes, which lie in one place.
#include <numeric>

#include "program.h"

using Status = unsigned long long;
constexpr int kTile = 32, kColumns = 6, kRows = 5, kTiles = kColumns * kRows, kScans = 8, kWide = 256;
constexpr Status kWhole = 1ull << 63, kOwn = 1ull << 62;

__global__ void scan(int* values, volatile Status* status) {
  __shared__ int tile_values[kTile];
  __shared__ int before;
  const int tile = blockIdx.x * gridDim.y + blockIdx.y, at = kTile * tile + threadIdx.x;
  tile_values[threadIdx.x] = values[at];
  __syncthreads();
  if (threadIdx.x == 0) {
    int own = 0, sum = 0;
    for (const int value : tile_values) own += value;
    if (tile > 0) {
      status[tile] = kOwn | static_cast<unsigned>(own);
      Status seen = 0;
      for (int earlier = tile - 1; (seen & kWhole) == 0; --earlier) {
        do {
          seen = status[earlier];
        } while (seen == 0);
        sum += static_cast<int>(seen);
      }
    }
    status[tile] = kWhole | static_cast<unsigned>(sum + own);
    before = sum;
  }
  __syncthreads();
  int total = before;
  for (int i = 0; i <= threadIdx.x; ++i) total += tile_values[i];
  values[at] = total;
}

__global__ void turn_around(int* marks) {
  __shared__ short places[kWide];
  __shared__ int copy[kWide];
  places[threadIdx.x] = static_cast<short>(kWide - 1 - threadIdx.x);
  copy[threadIdx.x] = marks[threadIdx.x];
  __syncthreads();
  marks[threadIdx.x] = copy[places[threadIdx.x]];
}

__global__ void begin(int* values, Status* status, int* marks, int columns) {
  const int i = threadIdx.x;
  scan<<<dim3(columns, kTiles / columns), kTile, 0, cudaStreamFireAndForget>>>(values + i * kTile * kTiles,
                                                                               status + i * kTiles);
  turn_around<<<1, kWide, 0, cudaStreamFireAndForget>>>(marks + kWide * i);
}

int main() {
  gpu::Report report("scans");
  std::vector<int> values(kScans * kTile * kTiles), marks(kScans * kWide);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 7 % 13) + 1;
  std::iota(marks.begin(), marks.end(), 0);
  const gpu::Buffer<int> of_values(values), of_marks(marks);
  const gpu::Buffer<Status> status(kScans * kTiles);
  begin<<<1, kScans>>>(of_values.data(), status.data(), of_marks.data(), kColumns);
  gpu::wait("begin");
  const std::vector<int> scanned = of_values.to_host(), turned = of_marks.to_host();
  for (int scan = 0; scan < kScans; ++scan) {
    int total = 0;
    for (int i = scan * kTile * kTiles; i < (scan + 1) * kTile * kTiles; ++i) {
      total += values[i];
      report.expect(scanned[i] == total, "total %d is %d instead of %d", i, scanned[i], total);
    }
    for (int i = 0; i < kWide; ++i) {
      const int found = turned[kWide * scan + i], expected = marks[kWide * scan + kWide - 1 - i];
      report.expect(found == expected, "mark %d of %d is %d instead of %d", i, scan, found, expected);
    }
  }
  return report.finish();
}
