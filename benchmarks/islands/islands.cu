// Islands of a map, tile by tile: a block finds those of its tile, and one thread of each launches its
// measurement.
//
// Land that touches by its sides is an island. The threads of a block have a pixel each, and join what
// touches by compare and swap on trees in shared memory: a root is hung below a smaller one, and who finds it
// changed tries again. Then the thread of each island's root launches a kernel that measures the island. So
// threads wait for others of their block, in loops and at barriers, and none for a child.
//
// `--variant flat` measures in the same kernel, pixel by pixel.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kSide = 16;
constexpr int kTile = kSide * kSide;
constexpr int kSea = -1;

// Tiles one after another. A pixel is the tile's number of its island's first pixel, or kSea.
struct Map {
  int* island;
  int* area;   // of each island, at its first pixel
  int* shore;  // sides of its pixels with sea or the tile's border behind them
};

// Others may change the trees at the same time.
__device__ int root_of(const volatile int* parent, int pixel) {
  while (parent[pixel] != pixel) pixel = parent[pixel];
  return pixel;
}

__device__ void join(int* parent, int a, int b) {
  a = root_of(parent, a);
  b = root_of(parent, b);
  while (a != b) {
    const int low = min(a, b);
    const int high = max(a, b);
    if (atomicCAS(&parent[high], high, low) == high) return;
    a = root_of(parent, high);
    b = root_of(parent, low);
  }
}

// Sides of a pixel, without the island's own pixels behind them.
__device__ int shore_of(const int* island, int pixel) {
  const int x = pixel % kSide;
  const int y = pixel / kSide;
  int sides = 0;
  sides += x == 0 || island[pixel - 1] == kSea ? 1 : 0;
  sides += x == kSide - 1 || island[pixel + 1] == kSea ? 1 : 0;
  sides += y == 0 || island[pixel - kSide] == kSea ? 1 : 0;
  sides += y == kSide - 1 || island[pixel + kSide] == kSea ? 1 : 0;
  return sides;
}

// Finds the islands of a tile, and writes them to the map; true for the thread of an island's first pixel.
__device__ bool find_islands(int* island, int* parent) {
  const int pixel = static_cast<int>(threadIdx.x);
  const bool is_land = island[pixel] != kSea;
  parent[pixel] = is_land ? pixel : kSea;
  __syncthreads();
  if (is_land && pixel % kSide > 0 && island[pixel - 1] != kSea) join(parent, pixel, pixel - 1);
  if (is_land && pixel >= kSide && island[pixel - kSide] != kSea) join(parent, pixel, pixel - kSide);
  __syncthreads();
  if (is_land) island[pixel] = root_of(parent, pixel);
  __syncthreads();
  return is_land && parent[pixel] == pixel;
}

// A thread for each pixel of the tile.
__global__ void __launch_bounds__(kTile) measure(Map map, int tile, int first_pixel) {
  const int* const island = map.island + static_cast<size_t>(tile) * kTile;
  const int pixel = static_cast<int>(threadIdx.x);
  if (island[pixel] != first_pixel) return;
  const size_t at = static_cast<size_t>(tile) * kTile + first_pixel;
  atomicAdd(&map.area[at], 1);
  atomicAdd(&map.shore[at], shore_of(island, pixel));
}

template <bool kCount>
__global__ void __launch_bounds__(kTile) survey(Map map, unsigned long long* lost) {
  __shared__ int parent[kTile];
  const int tile = static_cast<int>(blockIdx.x);
  if (find_islands(map.island + static_cast<size_t>(tile) * kTile, parent)) {
    measure<<<1, kTile>>>(map, tile, static_cast<int>(threadIdx.x));
    bench::count_if_lost<kCount>(lost);
  }
}

__global__ void __launch_bounds__(kTile) survey_flat(Map map) {
  __shared__ int parent[kTile];
  const size_t tile = static_cast<size_t>(blockIdx.x) * kTile;
  const int* const island = map.island + tile;
  find_islands(map.island + tile, parent);
  const int pixel = static_cast<int>(threadIdx.x);
  if (island[pixel] == kSea) return;
  atomicAdd(&map.area[tile + island[pixel]], 1);
  atomicAdd(&map.shore[tile + island[pixel]], shore_of(island, pixel));
}

namespace {

std::vector<int> random_map(long long tiles, long long land, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<int> pixels(static_cast<size_t>(tiles) * kTile);
  for (int& pixel : pixels) pixel = random.below(100) < land ? 0 : kSea;
  return pixels;
}

struct Survey {
  std::vector<int> area;
  std::vector<int> shore;
  long long islands = 0;
};

// Floods each island from its first pixel on.
class CpuSurveyor {
 public:
  explicit CpuSurveyor(std::vector<int> map) : map_(std::move(map)) {
    found_.area.resize(map_.size());
    found_.shore.resize(map_.size());
  }

  Survey survey() && {
    for (size_t pixel = 0; pixel < map_.size(); ++pixel) {
      if (map_[pixel] != kSea && map_[pixel] != kFlooded) flood(pixel);
    }
    return std::move(found_);
  }

 private:
  static constexpr int kFlooded = 1;

  void flood(size_t first) {
    ++found_.islands;
    reach(first);
    while (!open_.empty()) {
      const size_t pixel = open_.back();
      open_.pop_back();
      ++found_.area[first];
      const size_t x = pixel % kSide;
      const size_t y = pixel % kTile / kSide;
      look_over(first, x > 0, pixel - 1);
      look_over(first, x + 1 < kSide, pixel + 1);
      look_over(first, y > 0, pixel - kSide);
      look_over(first, y + 1 < kSide, pixel + kSide);
    }
  }

  void reach(size_t pixel) {
    map_[pixel] = kFlooded;
    open_.push_back(pixel);
  }

  // Over a side of a pixel of the island that begins at `first`.
  void look_over(size_t first, bool is_in_tile, size_t pixel) {
    if (!is_in_tile || map_[pixel] == kSea) {
      ++found_.shore[first];
    } else if (map_[pixel] != kFlooded) {
      reach(pixel);
    }
  }

  std::vector<int> map_;
  std::vector<size_t> open_;
  Survey found_;
};

class Islands final : public bench::StreamProgram {
 public:
  Islands(const std::vector<int>& map, const bench::CommonOptions& options)
      : StreamProgram(options),
        input_(map),
        island_(map.size()),
        area_(map.size()),
        shore_(map.size()),
        expected_(CpuSurveyor(map).survey()),
        tiles_(static_cast<int>(map.size() / kTile)) {}

  [[nodiscard]] std::string verify() override {
    const std::string mistake = bench::differences("areas", expected_.area, area_.to_host());
    return mistake.empty() ? bench::differences("shores", expected_.shore, shore_.to_host()) : mistake;
  }

 private:
  [[nodiscard]] Map map() const { return {island_.data(), area_.data(), shore_.data()}; }

  void restore() override {
    bench::check(cudaMemcpy(island_.data(), input_.data(), island_.bytes(), cudaMemcpyDeviceToDevice),
                 "restoring the map");
    area_.fill_bytes(0);
    shore_.fill_bytes(0);
  }
  void launch(bool count) override {
    (count ? survey<true> : survey<false>)<<<static_cast<unsigned>(tiles_), kTile>>>(map(), lost());
  }
  void launch_flat() override { survey_flat<<<static_cast<unsigned>(tiles_), kTile>>>(map()); }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("tiles", tiles_).add("islands", expected_.islands);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = expected_.islands,
            .bytes_to_move = 4LL * kTile * tiles_ + 8 * expected_.islands,
            .flat_kernels = 1};
  }

  bench::DeviceArray<int> input_;
  bench::DeviceArray<int> island_;
  bench::DeviceArray<int> area_;
  bench::DeviceArray<int> shore_;
  Survey expected_;
  int tiles_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long tiles = 100;
  long long land = 55;
  bench::Options options("islands", "islands of a map, each measured by a launch of the thread that owns it");
  options.integer("tiles", tiles, 1, "tiles of 16 x 16 pixels");
  options.integer("land", land, 0, "percent of the pixels that are land");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("islands", "tiles", tiles, 1 << 20);
  bench::require_at_most("islands", "land", land, 100);
  bench::require_device("islands");
  Islands program(random_map(tiles, land, common.seed), common);
  return bench::run_benchmark("islands", common, program);
}
