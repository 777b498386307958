// The colours of tiles: the threads of a block collect them under a lock, and one thread for each launches
// its measure.
//
// A block has a tile with few different colours, and a thread for each pixel. A thread takes a lock in shared
// memory, by compare and swap in a loop, looks its colour up in the block's palette, and adds it if it is
// new. Behind a barrier there is a thread for each colour of the palette, which launches a kernel that counts
// the colour's pixels and adds up where they are. So a thread waits for others of its block, with fences in
// the loop, and never for a child.
//
// `--variant flat` measures in the same kernel, pixel by pixel.
#include <cstdint>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kSide = 8;
constexpr int kTile = kSide * kSide;
constexpr int kColours = 64;

// For each colour of each tile: the number of its pixels, and the sums of their columns and rows.
struct Tiles {
  const int* colours;
  int* counts;
  int* columns;
  int* rows;
};

__device__ void measure_pixel(const Tiles& tiles, int tile, int colour) {
  const int i = static_cast<int>(threadIdx.x);
  if (tiles.colours[tile * kTile + i] != colour) return;
  const int at = tile * kColours + colour;
  atomicAdd(&tiles.counts[at], 1);
  atomicAdd(&tiles.columns[at], i % kSide);
  atomicAdd(&tiles.rows[at], i / kSide);
}

// A thread for each pixel of the tile.
__global__ void __launch_bounds__(kTile) measure(Tiles tiles, int tile, int colour) {
  measure_pixel(tiles, tile, colour);
}

struct Palette {
  int colours[kColours];
  int count;
  int lock;  // 1 while a thread has it
};

__device__ void add_colour(Palette& palette, int colour) {
  for (int i = 0; i < palette.count; ++i) {
    if (palette.colours[i] == colour) return;
  }
  palette.colours[palette.count] = colour;
  palette.count += 1;
}

// A thread that has the lock goes on alone, so that others of its warp, which try again, do not hold it up.
__device__ void add_colour_locked(Palette& palette, int colour) {
  for (bool is_done = false; !is_done;) {
    if (atomicCAS(&palette.lock, 0, 1) != 0) continue;
    __threadfence_block();
    add_colour(palette, colour);
    __threadfence_block();
    atomicExch(&palette.lock, 0);
    is_done = true;
  }
}

template <bool kCount>
__global__ void __launch_bounds__(kTile) survey(Tiles tiles, unsigned long long* lost) {
  __shared__ Palette palette;
  const int tile = static_cast<int>(blockIdx.x);
  const int i = static_cast<int>(threadIdx.x);
  if (i == 0) {
    palette.count = 0;
    palette.lock = 0;
  }
  __syncthreads();
  add_colour_locked(palette, tiles.colours[tile * kTile + i]);
  __syncthreads();
  if (i < palette.count) {
    measure<<<1, kTile>>>(tiles, tile, palette.colours[i]);
    bench::count_if_lost<kCount>(lost);
  }
}

__global__ void __launch_bounds__(kTile) survey_flat(Tiles tiles) {
  const int tile = static_cast<int>(blockIdx.x);
  measure_pixel(tiles, tile, tiles.colours[tile * kTile + threadIdx.x]);
}

namespace {

// Eight colours at most to a tile, of all that there are.
std::vector<int> random_tiles(long long tiles, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<int> colours;
  for (long long tile = 0; tile < tiles; ++tile) {
    int own[8];
    for (int& colour : own) colour = static_cast<int>(random.below(kColours));
    for (int i = 0; i < kTile; ++i) colours.push_back(own[random.below(8)]);
  }
  return colours;
}

struct Measures {
  explicit Measures(const std::vector<int>& colours)
      : counts(colours.size() / kTile * kColours), columns(counts.size()), rows(counts.size()) {
    for (size_t i = 0; i < colours.size(); ++i) {
      const size_t at = i / kTile * kColours + static_cast<size_t>(colours[i]);
      distinct += counts[at]++ == 0 ? 1 : 0;
      columns[at] += static_cast<int>(i % kSide);
      rows[at] += static_cast<int>(i % kTile / kSide);
    }
  }

  std::vector<int> counts;
  std::vector<int> columns;
  std::vector<int> rows;
  long long distinct = 0;
};

class PaletteProgram final : public bench::StreamProgram {
 public:
  PaletteProgram(const std::vector<int>& colours, const bench::CommonOptions& options)
      : StreamProgram(options),
        expected_(colours),
        colours_(colours),
        counts_(expected_.counts.size()),
        columns_(expected_.counts.size()),
        rows_(expected_.counts.size()),
        tiles_(static_cast<unsigned>(colours.size() / kTile)) {}

  [[nodiscard]] std::string verify() override {
    std::string mistake = bench::differences("counts", expected_.counts, counts_.to_host());
    if (mistake.empty())
      mistake = bench::differences("sums of columns", expected_.columns, columns_.to_host());
    if (mistake.empty()) mistake = bench::differences("sums of rows", expected_.rows, rows_.to_host());
    return mistake;
  }

 private:
  [[nodiscard]] Tiles tiles() const {
    return {colours_.data(), counts_.data(), columns_.data(), rows_.data()};
  }

  void restore() override {
    counts_.fill_bytes(0);
    columns_.fill_bytes(0);
    rows_.fill_bytes(0);
  }
  void launch(bool count) override {
    (count ? survey<true> : survey<false>)<<<tiles_, kTile>>>(tiles(), lost());
  }
  void launch_flat() override { survey_flat<<<tiles_, kTile>>>(tiles()); }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("tiles", static_cast<long long>(tiles_)).add("colours", expected_.distinct);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = expected_.distinct,
            .bytes_to_move = static_cast<long long>(colours_.bytes()) + 12 * expected_.distinct,
            .flat_kernels = 1};
  }

  Measures expected_;
  bench::DeviceArray<int> colours_;
  bench::DeviceArray<int> counts_;
  bench::DeviceArray<int> columns_;
  bench::DeviceArray<int> rows_;
  unsigned tiles_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long tiles = 250;
  bench::Options options("palette",
                         "the colours of tiles, which the threads of a block collect under a lock");
  options.integer("tiles", tiles, 1, "tiles of 8 x 8 pixels");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("palette", "tiles", tiles, 1 << 20);
  bench::require_device("palette");
  PaletteProgram program(random_tiles(tiles, common.seed), common);
  return bench::run_benchmark("palette", common, program);
}
