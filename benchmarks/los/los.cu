// Line of sight: which points of a terrain, whose heights are given along a line, an observer at its begin
// sees. A point is visible if its viewing angle is above that of every point before it.
//
// One of the programs whose recursion the KLAP paper promotes. A link of the chain reads a tile, finds its
// highest angle, launches the next link with the highest one so far, and then decides for each of its points.
//
// `--variant flat` is one kernel with decoupled look-back over maxima. `--variant library` is CUB's
// DeviceScan::ExclusiveScan with iterators that compute the angles and compare: the whole problem in one
// pass.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../common/compare.h"
#include "../common/device.cuh"
#include "../common/parallel.h"
#include "../common/tile_chain.cuh"
#include "library.h"
#include "slope.h"

using bench::Highest;
using bench::kTileBlock;
using bench::Link;

// Consecutive points that a thread reads at once.
template <int kPerThread>
constexpr int kVector = kPerThread < 4 ? kPerThread : 4;
template <int kPerThread>
constexpr int kRows = kPerThread / kVector<kPerThread>;

// Arrays are padded to whole tiles.
struct Terrain {
  const float* heights;
  unsigned char* visible;  // 1 or 0 for each point
  int tiles;
};

__device__ __forceinline__ void load(const float* heights, int vector, float (&to)[4]) {
  const float4 loaded = reinterpret_cast<const float4*>(heights)[vector];
  to[0] = loaded.x, to[1] = loaded.y, to[2] = loaded.z, to[3] = loaded.w;
}
__device__ __forceinline__ void load(const float* heights, int vector, float (&to)[1]) {
  to[0] = heights[vector];
}
__device__ __forceinline__ void store(unsigned char* visible, int vector, const unsigned char (&flags)[4]) {
  reinterpret_cast<uchar4*>(visible)[vector] = make_uchar4(flags[0], flags[1], flags[2], flags[3]);
}
__device__ __forceinline__ void store(unsigned char* visible, int vector, const unsigned char (&flags)[1]) {
  visible[vector] = flags[0];
}

// Which of the vectors the thread's row `row` is: a warp's points are consecutive, and so are a row's.
template <int kPerThread>
__device__ __forceinline__ int vector_index(int tile, int row) {
  const int warp_begin =
      tile * bench::kTile<kPerThread> + bench::warp_index() * bench::kWarpElements<kPerThread>;
  return warp_begin / kVector<kPerThread> + row * 32 + bench::lane_index();
}

// Reads the thread's heights and makes them slopes. Returns the highest of the warp.
template <int kPerThread>
__device__ __forceinline__ float read_slopes(const Terrain& terrain, int tile, float (&slope)[kPerThread]) {
  constexpr int kWide = kVector<kPerThread>;
  float height[kRows<kPerThread>][kWide];
#pragma unroll
  for (int row = 0; row < kRows<kPerThread>; ++row)
    load(terrain.heights, vector_index<kPerThread>(tile, row), height[row]);
  const float observer = terrain.heights[0];
  float highest = Highest::kIdentity;
#pragma unroll
  for (int row = 0; row < kRows<kPerThread>; ++row) {
    const int i = kWide * vector_index<kPerThread>(tile, row);
#pragma unroll
    for (int c = 0; c < kWide; ++c) {
      slope[kWide * row + c] = slope_to(height[row][c], observer, i + c);
      highest = fmaxf(highest, slope[kWide * row + c]);
    }
  }
  return bench::reduce_warp<Highest>(highest);
}

// The highest value of the lanes up to this one.
__device__ __forceinline__ float highest_so_far(float value) {
  for (int distance = 1; distance < 32; distance *= 2) {
    const float lower = __shfl_up_sync(bench::kAllLanes, value, distance);
    if (bench::lane_index() >= distance) value = fmaxf(value, lower);
  }
  return value;
}

__device__ __forceinline__ unsigned char raise(float& highest, float slope) {
  const bool above = slope > highest;
  highest = fmaxf(highest, slope);
  return above ? 1 : 0;
}

// `highest` is the highest slope before the warp's points.
template <int kPerThread>
__device__ __forceinline__ void write_visible(const Terrain& terrain, int tile,
                                              const float (&slope)[kPerThread], float highest) {
  constexpr int kWide = kVector<kPerThread>;
#pragma unroll
  for (int row = 0; row < kRows<kPerThread>; ++row) {
    const float* mine = slope + kWide * row;
    float of_mine = mine[0];
#pragma unroll
    for (int c = 1; c < kWide; ++c) of_mine = fmaxf(of_mine, mine[c]);
    const float up_to_here = highest_so_far(of_mine);
    const float of_lower_lanes = __shfl_up_sync(bench::kAllLanes, up_to_here, 1);
    float before = bench::lane_index() == 0 ? highest : fmaxf(highest, of_lower_lanes);
    unsigned char flags[kWide];
#pragma unroll
    for (int c = 0; c < kWide; ++c) flags[c] = raise(before, mine[c]);
    store(terrain.visible, vector_index<kPerThread>(tile, row), flags);
    highest = fmaxf(highest, __shfl_sync(bench::kAllLanes, up_to_here, 31));
  }
}

// One link. The output is not read and every point has its own flag, so links may overlap.
template <int kPerThread, Link kLink>
__global__ void __launch_bounds__(kTileBlock)
    look(Terrain terrain, int tile, float highest, unsigned long long* lost) {
  float slope[kPerThread];
  const auto in_tile = bench::share_in_block<Highest>(read_slopes(terrain, tile, slope));
  bench::mark_overlap<kLink>();
  if (threadIdx.x == 0 && tile + 1 < terrain.tiles) {
    look<kPerThread, kLink><<<1, kTileBlock>>>(terrain, tile + 1, fmaxf(highest, in_tile.total), lost);
    bench::count_if_lost<kLink == Link::Counting>(lost);
  }
  write_visible(terrain, tile, slope, fmaxf(highest, in_tile.before));
}

template <int kPerThread>
__global__ void __launch_bounds__(kTileBlock, bench::kFlatBlocksPerSm)
    look_flat(Terrain terrain, bench::TileWords words) {
  const int tile = bench::draw_number(words);
  float slope[kPerThread];
  const auto in_tile = bench::share_in_block<Highest>(read_slopes(terrain, tile, slope));
  const float highest = bench::prefix_of_tile<Highest, false>(words, tile, in_tile.total);
  write_visible(terrain, tile, slope, fmaxf(highest, in_tile.before));
}

namespace {

// A slope that grows over the whole line from 1/1024 to 1024, and random ups and downs of 16 steps' growth:
// so a good part of the points is visible everywhere. Padded to whole tiles with points that nobody sees.
template <int kPerThread>
std::vector<float> random_heights(int elements, uint64_t seed) {
  const size_t tiles = bench::tiles_for<kPerThread>(elements);
  std::vector<float> heights(tiles * bench::kTile<kPerThread>, -INFINITY);
  const double doublings = 20.0 / elements;  // of the slope, from one point to the next
  bench::parallel_for(elements, [&](size_t i) {
    const double place = static_cast<double>(i);
    const double ups = 16 * doublings * bench::Random(seed, i).uniform();
    heights[i] = static_cast<float>(place * std::exp2(doublings * place - 10 + ups));
  });
  return heights;
}

std::vector<unsigned char> cpu_visible(const std::vector<float>& heights, int elements) {
  std::vector<unsigned char> visible(elements);
  float highest = -INFINITY;
  for (int i = 0; i < elements; ++i) {
    const float slope = slope_to(heights[i], heights[0], i);
    visible[i] = slope > highest ? 1 : 0;
    highest = std::max(highest, slope);
  }
  return visible;
}

template <int kPerThread>
class LineOfSight final : public bench::TileChain<kPerThread> {
  using Chain = bench::TileChain<kPerThread>;

 public:
  LineOfSight(int elements, const bench::ChainOptions& chain, const bench::CommonOptions& options)
      : LineOfSight(elements, random_heights<kPerThread>(elements, options.seed), chain, options) {}

  std::string verify() override {
    std::vector<unsigned char> found = visible_.to_host();
    found.resize(this->elements());
    return bench::differences("points", expected_, found);
  }

 protected:
  void restore() override { visible_.fill_bytes(0xff); }
  void run_chain(Link kind, unsigned long long* lost) override {
    auto* kernel = this->chosen(kind, &look<kPerThread, Link::Plain>, &look<kPerThread, Link::Counting>,
                                &look<kPerThread, Link::Marked>);
    kernel<<<1, kTileBlock>>>(on_device(), 0, Highest::kIdentity, lost);
  }
  void run_flat(const bench::TileWords& words) override {
    look_flat<kPerThread><<<this->tiles(), kTileBlock>>>(on_device(), words);
  }
  cudaError_t library(void* memory, size_t& bytes) override {
    return library_look(memory, bytes, heights_.data(), this->elements(), visible_.data());
  }
  void describe_problem(bench::JsonObject& report) const override {
    const auto visible = std::count(expected_.begin(), expected_.end(), 1);
    report.add("visible", static_cast<long long>(visible));
  }
  long long bytes_to_move() const override { return 5LL * this->elements(); }

 private:
  LineOfSight(int elements, const std::vector<float>& heights, const bench::ChainOptions& chain,
              const bench::CommonOptions& options)
      : Chain(elements, chain, options),
        expected_(cpu_visible(heights, elements)),
        heights_(heights),
        visible_(heights.size()) {
    this->prepare_library();
  }
  [[nodiscard]] Terrain on_device() const { return {heights_.data(), visible_.data(), this->tiles()}; }

  std::vector<unsigned char> expected_;
  bench::DeviceArray<float> heights_;
  bench::DeviceArray<unsigned char> visible_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "library"});
  long long elements = bench::kMediumElements;
  bench::Options options("los", "line of sight as a chain of kernels that launch the next tile's");
  bench::ChainOptions chain;
  options.integer("elements", elements, 1, "points along the line");
  chain.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  if (elements > bench::kMostElements) bench::refuse_option("los", "too many elements");
  bench::require_device("los");
  return bench::run_chain_benchmark<LineOfSight>("los", common, chain, static_cast<int>(elements));
}
