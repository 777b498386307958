// Moving the rows of a matrix apart or together in place: what `pd` (padding) and `upd` (its inverse) share.
//
// The packed form has the rows one after another, the padded form `padding` unused elements after each. Tiles
// are cut from the packed form: tile t has the elements t * kTile and on, wherever they are now. An element's
// padded place never comes before its packed one, so padding must go from the last tile to the first, and
// unpadding from the first to the last.
#pragma once

#include <climits>
#include <string>
#include <utility>
#include <vector>

#include "compare.h"
#include "tile_chain.cuh"

namespace bench {

struct RowShape {
  int columns;
  int padding;
};

// Where packed element `k` is in the padded form.
__host__ __device__ constexpr int padded_place(RowShape shape, int k) {
  return k + k / shape.columns * shape.padding;
}

// How many elements of the packed form come before the padded form's place `p`.
__host__ __device__ constexpr int elements_before(RowShape shape, int p) {
  const int width = shape.columns + shape.padding;
  const int column = p % width;
  return p / width * shape.columns + (column < shape.columns ? column : shape.columns);
}

// Calls body(i, packed place, padded place) for the thread's elements of a tile: one division, then steps.
template <int kPerThread, class Body>
__device__ __forceinline__ void with_places(RowShape shape, int tile, const Body& body) {
  int k = element_index<kPerThread>(tile, 0);
  int p = padded_place(shape, k);
  int column = k % shape.columns;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    body(i, k, p);
    k += 32;
    p += 32;
    column += 32;
    while (column >= shape.columns) {
      column -= shape.columns;
      p += shape.padding;
    }
  }
}

// In the flat kernels a tile's word is set when the tile has been read; a block writes when the tiles that it
// is about to overwrite have been. Every block announces its own before it waits, and waits only for tiles
// whose blocks started before it, so none waits for ever.
//
// `value` is what the thread read: the barrier takes something that depends on all of it, so no load can
// still be under way when a block elsewhere starts to overwrite the tile.
template <int kPerThread>
__device__ __forceinline__ void announce_read(const TileWords& words, int tile,
                                              const int (&value)[kPerThread]) {
  int all_bits = 0;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) all_bits |= value[i];
  __syncthreads_or(all_bits);
  if (threadIdx.x == 0) store_word<true>(words.tile + tile, 1);
}

// Returns, in all threads, when tiles `first` to `last` have been read.
__device__ __forceinline__ void await_read(const TileWords& words, int first, int last) {
  for (int tile = first + static_cast<int>(threadIdx.x); tile <= last; tile += kTileBlock) {
    while (load_word<true>(words.tile + tile) == 0) {
    }
  }
  __syncthreads();
}

struct RowOptions {
  long long elements = kMediumElements;
  long long columns = 1024;
  long long padding = 1;

  void add_to(Options& options) {
    options.integer("elements", elements, 1, "elements of the matrix, without padding");
    options.integer("columns", columns, 1, "columns of the matrix, without padding");
    options.integer("padding", padding, 0, "columns of padding");
  }
  void require_valid(const char* program) const {
    if (elements > kMostElements || columns > elements)
      refuse_option(program, "too many elements or columns");
    if (elements % columns != 0) refuse_option(program, "--elements must be a multiple of --columns");
    const long long computed =
        elements + 2 * kTile<16>;  // places are computed for whole tiles and a step more
    if (padding > INT_MAX || computed + (computed / columns + 1) * padding > INT_MAX) {
      refuse_option(program, "the padded matrix is too large");
    }
  }
};

// The matrix on the device; the programs add the kernels.
template <int kPerThread>
class RowChain : public TileChain<kPerThread> {
 public:
  RowChain(const RowOptions& rows, bool starts_padded, const ChainOptions& chain,
           const CommonOptions& options)
      : TileChain<kPerThread>(static_cast<int>(rows.elements), chain, options),
        shape_{static_cast<int>(rows.columns), static_cast<int>(rows.padding)},
        starts_padded_(starts_padded),
        values_(random_values(rows.elements, options.seed)),
        original_(starts_padded ? padded_form(values_) : values_),
        data_(padded_elements()) {}

  std::string verify() final {
    std::vector<int> found = data_.to_host();
    if (!starts_padded_) {
      for (int k = 0; k < this->elements(); ++k) found[k] = found[padded_place(shape_, k)];
    }
    found.resize(this->elements());
    return differences("elements", values_, found);
  }

 protected:
  [[nodiscard]] int* data() const { return data_.data(); }
  [[nodiscard]] RowShape shape() const { return shape_; }

  void restore() final {
    data_.fill_bytes(0xff);
    if (this->is_library()) return;  // it copies from the original
    check(cudaMemcpy(data_.data(), original_.data(), original_.bytes(), cudaMemcpyDeviceToDevice),
          "restoring the matrix");
  }
  // Not in place: a copy between two arrays.
  cudaError_t library(void* /*memory*/, size_t& /*bytes*/) final {
    const size_t packed_pitch = sizeof(int) * static_cast<size_t>(shape_.columns);
    const size_t padded_pitch = packed_pitch + sizeof(int) * static_cast<size_t>(shape_.padding);
    return cudaMemcpy2DAsync(data_.data(), starts_padded_ ? packed_pitch : padded_pitch, original_.data(),
                             starts_padded_ ? padded_pitch : packed_pitch, packed_pitch, rows(),
                             cudaMemcpyDeviceToDevice);
  }
  void describe_problem(JsonObject& report) const final {
    report.add("rows", rows()).add("columns", shape_.columns).add("padding", shape_.padding);
  }
  [[nodiscard]] long long bytes_to_move() const final { return 8LL * this->elements(); }

 private:
  [[nodiscard]] int rows() const { return this->elements() / shape_.columns; }
  [[nodiscard]] size_t padded_elements() const {
    return static_cast<size_t>(rows()) * (static_cast<size_t>(shape_.columns) + shape_.padding);
  }
  [[nodiscard]] std::vector<int> padded_form(const std::vector<int>& packed) const {
    std::vector<int> padded(padded_elements(), -1);
    for (int k = 0; k < this->elements(); ++k) padded[padded_place(shape_, k)] = packed[k];
    return padded;
  }

  RowShape shape_;
  bool starts_padded_;
  std::vector<int> values_;  // packed
  DeviceArray<int> original_;
  DeviceArray<int> data_;
};

}  // namespace bench
