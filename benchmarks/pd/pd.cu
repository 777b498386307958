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

using bench::kTileBlock;
using bench::Link;
using bench::RowShape;

template <int kPerThread>
__device__ __forceinline__ void read_packed(const int* data, int elements, int tile,
                                            int (&value)[kPerThread]) {
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int index = bench::element_index<kPerThread>(tile, i);
    value[i] = index < elements ? data[index] : 0;
  }
}

template <int kPerThread>
__device__ __forceinline__ void write_padded(int* data, int elements, RowShape shape, int tile,
                                             const int (&value)[kPerThread]) {
  bench::with_places<kPerThread>(shape, tile, [&](int i, int k, int p) {
    if (k < elements) data[p] = value[i];
  });
}

// One link, for a tile after which all others have been read. It is safe in place although links overlap: a
// tile's padded places come at or after the tile's begin, in this tile, which the whole block has read when
// it passes the barrier, or in later tiles, which earlier links have read. So nothing is overwritten unread;
// and a late write of this link can not meet a later link's accesses, which read before this tile's begin and
// write other elements' places.
template <int kPerThread, Link kLink>
__global__ void __launch_bounds__(kTileBlock)
    pad(int* data, int elements, RowShape shape, int tile, unsigned long long* lost) {
  int value[kPerThread];
  read_packed(data, elements, tile, value);
  __syncthreads();
  bench::mark_overlap<kLink>();
  if (threadIdx.x == 0 && tile > 0) {
    pad<kPerThread, kLink><<<1, kTileBlock>>>(data, elements, shape, tile - 1, lost);
    bench::count_if_lost<kLink == Link::Counting>(lost);
  }
  write_padded(data, elements, shape, tile, value);
}

template <int kPerThread>
__global__ void __launch_bounds__(kTileBlock, bench::kFlatBlocksPerSm)
    pad_flat(int* data, int elements, RowShape shape, bench::TileWords words) {
  const int tiles = bench::tiles_for<kPerThread>(elements);
  const int tile = tiles - 1 - bench::draw_number(words);
  int value[kPerThread];
  read_packed(data, elements, tile, value);
  bench::announce_read(words, tile, value);
  const int begin = tile * bench::kTile<kPerThread>;
  const int end = min(begin + bench::kTile<kPerThread>, elements);
  bench::await_read(words, max(bench::padded_place(shape, begin) / bench::kTile<kPerThread>, tile + 1),
                    min(bench::padded_place(shape, end - 1) / bench::kTile<kPerThread>, tiles - 1));
  write_padded(data, elements, shape, tile, value);
}

namespace {

template <int kPerThread>
class Padding final : public bench::RowChain<kPerThread> {
  using Chain = bench::RowChain<kPerThread>;

 public:
  Padding(const bench::RowOptions& rows, const bench::ChainOptions& chain,
          const bench::CommonOptions& options)
      : Chain(rows, /*starts_padded=*/false, chain, options) {}

 protected:
  void run_chain(Link kind, unsigned long long* lost) override {
    auto* kernel = this->chosen(kind, &pad<kPerThread, Link::Plain>, &pad<kPerThread, Link::Counting>,
                                &pad<kPerThread, Link::Marked>);
    kernel<<<1, kTileBlock>>>(this->data(), this->elements(), this->shape(), this->tiles() - 1, lost);
  }
  void run_flat(const bench::TileWords& words) override {
    pad_flat<kPerThread><<<this->tiles(), kTileBlock>>>(this->data(), this->elements(), this->shape(), words);
  }
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "library"});
  bench::RowOptions rows;
  bench::Options options("pd", "padding a matrix in place, a chain of kernels that launch the next tile's");
  bench::ChainOptions chain;
  rows.add_to(options);
  chain.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  rows.require_valid("pd");
  bench::require_device("pd");
  return bench::run_chain_benchmark<Padding>("pd", common, chain, rows);
}
