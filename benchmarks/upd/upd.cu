// Unpadding, in place: the rows of a matrix move together over the unused columns after each.
//
// One of the "data sliding" algorithms of Gomez-Luna et al. that the KLAP paper promotes, and the inverse of
// `pd`. A link of the chain reads a tile's elements where they are, launches the next link, and writes them
// to where they belong. Nothing is computed for the next link; it only has to come after this one's reading.
//
// `--variant flat` is one kernel in which a block waits only for the tiles that it overwrites. `--variant
// library` is cudaMemcpy2DAsync into a second array: the same bytes, but not in place.
#include "../common/device.cuh"
#include "../common/padded_matrix.cuh"

using bench::kTileBlock;
using bench::Link;
using bench::RowShape;

template <int kPerThread>
__device__ __forceinline__ void read_padded(const int* data, int elements, RowShape shape, int tile,
                                            int (&value)[kPerThread]) {
  bench::with_places<kPerThread>(shape, tile,
                                 [&](int i, int k, int p) { value[i] = k < elements ? data[p] : 0; });
}

template <int kPerThread>
__device__ __forceinline__ void write_packed(int* data, int elements, int tile,
                                             const int (&value)[kPerThread]) {
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int index = bench::element_index<kPerThread>(tile, i);
    if (index < elements) data[index] = value[i];
  }
}

// One link, for a tile before which all others have been read. It is safe in place although links overlap: an
// element that is still in a place before this tile's packed end has its packed place there too, so it
// belongs to this tile, which the whole block has read when it passes the barrier, or to earlier links'
// tiles, which they have read. So nothing is overwritten unread; and a late write of this link can not meet a
// later link's accesses, which read and write at or after this tile's packed end.
template <int kPerThread, Link kLink>
__global__ void __launch_bounds__(kTileBlock)
    unpad(int* data, int elements, RowShape shape, int tile, unsigned long long* lost) {
  int value[kPerThread];
  read_padded(data, elements, shape, tile, value);
  __syncthreads();
  bench::mark_overlap<kLink>();
  if (threadIdx.x == 0 && tile + 1 < bench::tiles_for<kPerThread>(elements)) {
    unpad<kPerThread, kLink><<<1, kTileBlock>>>(data, elements, shape, tile + 1, lost);
    bench::count_if_lost<kLink == Link::Counting>(lost);
  }
  write_packed(data, elements, tile, value);
}

template <int kPerThread>
__global__ void __launch_bounds__(kTileBlock, bench::kFlatBlocksPerSm)
    unpad_flat(int* data, int elements, RowShape shape, bench::TileWords words) {
  const int tile = bench::draw_number(words);
  int value[kPerThread];
  read_padded(data, elements, shape, tile, value);
  bench::announce_read(words, tile, value);
  const int begin = tile * bench::kTile<kPerThread>;
  const int end = min(begin + bench::kTile<kPerThread>, elements);
  bench::await_read(words, bench::elements_before(shape, begin) / bench::kTile<kPerThread>,
                    min((bench::elements_before(shape, end) - 1) / bench::kTile<kPerThread>, tile - 1));
  write_packed(data, elements, tile, value);
}

namespace {

template <int kPerThread>
class Unpadding final : public bench::RowChain<kPerThread> {
  using Chain = bench::RowChain<kPerThread>;

 public:
  Unpadding(const bench::RowOptions& rows, const bench::ChainOptions& chain,
            const bench::CommonOptions& options)
      : Chain(rows, /*starts_padded=*/true, chain, options) {}

 protected:
  void run_chain(Link kind, unsigned long long* lost) override {
    auto* kernel = this->chosen(kind, &unpad<kPerThread, Link::Plain>, &unpad<kPerThread, Link::Counting>,
                                &unpad<kPerThread, Link::Marked>);
    kernel<<<1, kTileBlock>>>(this->data(), this->elements(), this->shape(), 0, lost);
  }
  void run_flat(const bench::TileWords& words) override {
    unpad_flat<kPerThread>
        <<<this->tiles(), kTileBlock>>>(this->data(), this->elements(), this->shape(), words);
  }
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "library"});
  bench::RowOptions rows;
  bench::Options options("upd",
                         "unpadding a matrix in place, a chain of kernels that launch the next tile's");
  bench::ChainOptions chain;
  rows.add_to(options);
  chain.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  rows.require_valid("upd");
  bench::require_device("upd");
  return bench::run_chain_benchmark<Unpadding>("upd", common, chain, rows);
}
