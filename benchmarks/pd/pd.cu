// Padding, in place: the rows of a matrix move towards its end to make room for unused columns after each.
//
// One of the "data sliding" algorithms of Gomez-Luna et al. that the KLAP paper promotes. A link of the chain
// reads a tile, launches the next link, for the tile before it, and writes. Nothing is computed for the next
// link; it only has to come after this one's reading.
//
// `--variant flat` is one kernel in which a block waits only for the tiles that it overwrites. `--variant
// library` is cudaMemcpy2DAsync into a second array: the same bytes, but not in place.
#include "../common/device.cuh"
#include "../common/padded_matrix.cuh"

using bench::kPerThread;
using bench::kTile;
using bench::kTileBlock;
using bench::RowShape;

__device__ __forceinline__ void read_packed(const int* data, int elements, int tile,
                                            int (&value)[kPerThread]) {
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int index = bench::element_index(tile, i);
    value[i] = index < elements ? data[index] : 0;
  }
}

__device__ __forceinline__ void write_padded(int* data, int elements, RowShape shape, int tile,
                                             const int (&value)[kPerThread]) {
  bench::with_places(shape, tile, [&](int i, int k, int p) {
    if (k < elements) data[p] = value[i];
  });
}

// One link, for a tile after which all others have been read. It is safe in place although links overlap: a
// tile's padded places come at or after the tile's begin, in this tile, which the whole block has read when
// it passes the barrier, or in later tiles, which earlier links have read. So nothing is overwritten unread;
// and a late write of this link can not meet a later link's accesses, which read before this tile's begin and
// write other elements' places.
template <bool kCount>
__global__ void __launch_bounds__(kTileBlock)
    pad(int* data, int elements, RowShape shape, int tile, unsigned long long* lost) {
  int value[kPerThread];
  read_packed(data, elements, tile, value);
  __syncthreads();
  if (threadIdx.x == 0 && tile > 0) {
    pad<kCount><<<1, kTileBlock>>>(data, elements, shape, tile - 1, lost);
    bench::count_if_lost<kCount>(lost);
  }
  write_padded(data, elements, shape, tile, value);
}

__global__ void __launch_bounds__(kTileBlock, bench::kFlatBlocksPerSm)
    pad_flat(int* data, int elements, RowShape shape, bench::TileWords words) {
  const int tiles = bench::tiles_for(elements);
  const int tile = tiles - 1 - bench::draw_number(words);
  int value[kPerThread];
  read_packed(data, elements, tile, value);
  bench::announce_read(words, tile, value);
  const int begin = tile * kTile;
  const int end = min(begin + kTile, elements);
  bench::await_read(words, max(bench::padded_place(shape, begin) / kTile, tile + 1),
                    min(bench::padded_place(shape, end - 1) / kTile, tiles - 1));
  write_padded(data, elements, shape, tile, value);
}

namespace {

class Padding final : public bench::RowChain {
 public:
  Padding(const bench::RowOptions& rows, const bench::CommonOptions& options)
      : RowChain(rows, /*starts_padded=*/false, options) {}

 protected:
  void run_chain(bool count, unsigned long long* lost) override {
    auto* kernel = count ? &pad<true> : &pad<false>;
    kernel<<<1, kTileBlock>>>(data(), elements(), shape(), tiles() - 1, lost);
  }
  void run_flat(const bench::TileWords& words) override {
    pad_flat<<<tiles(), kTileBlock>>>(data(), elements(), shape(), words);
  }
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "library"});
  bench::RowOptions rows;
  bench::Options options("pd", "padding a matrix in place, a chain of kernels that launch the next tile's");
  rows.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  rows.require_valid("pd");
  bench::require_device("pd");
  Padding padding(rows, common);
  return bench::run_benchmark("pd", common, padding);
}
