// The Mandelbrot set by the algorithm of Mariani and Silver, and its picture as a PNG file.
//
// A block computes the border of its square. If the border has one value, so has all that is inside, and the
// block launches a grid that fills it. Otherwise it launches four blocks for the quarters, or, where the
// square is small, a grid that computes each of its pixels.
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"
#include "mandelbrot.h"
#include "picture.h"

constexpr int kBlock = 128;

// A thread for each pixel of a square.
__global__ void fill(Picture p, Square s, uint8_t value) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k < s.pixels()) p.at(s, k) = value;
}

__global__ void draw_pixels(Picture p, Square s) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k < s.pixels()) draw_pixel(p, s, k);
}

// A block for each square.
template <bool kCount>
__global__ void draw(Picture p, Square first, unsigned long long* lost) {
  const int e = first.extent;
  const Square s = {first.x + static_cast<int>(blockIdx.x) * e, first.y + static_cast<int>(blockIdx.y) * e,
                    e};
  const uint8_t corner = steps_at(s.x, s.y, p.side);
  bool same = true;
  for (int k = static_cast<int>(threadIdx.x); k < e; k += kBlock) same = draw_border(p, s, k, corner) && same;
  same = __syncthreads_and(same) != 0;
  if (threadIdx.x != 0) return;
  if (same) {
    fill<<<bench::blocks_for(s.pixels(), kBlock), kBlock>>>(p, s, corner);
  } else if (e <= p.smallest) {
    draw_pixels<<<bench::blocks_for(s.pixels(), kBlock), kBlock>>>(p, s);
  } else {
    draw<kCount><<<dim3(2, 2), kBlock>>>(p, Square{s.x, s.y, e / 2}, lost);
  }
  bench::count_if_lost<kCount>(lost);
}

namespace {

class Mandelbrot final : public bench::StreamProgram {
 public:
  Mandelbrot(int side, int smallest, const bench::CommonOptions& options)
      : StreamProgram(options),
        side_(side),
        smallest_(smallest),
        expected_(static_cast<size_t>(side) * side),
        squares_(draw_on_cpu({expected_.data(), side, smallest}, {0, 0, side})),
        values_(expected_.size()) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("pixels", expected_, values_.to_host());
  }
  void write(const std::string& file) const { bench::write_png(file, values_.to_host(), side_); }

 private:
  void restore() override { values_.fill_bytes(0xee); }
  void launch(bool count) override {
    (count ? draw<true> : draw<false>)<<<1, kBlock>>>({values_.data(), side_, smallest_}, {0, 0, side_},
                                                      lost());
  }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("side", side_).add("squares", squares_);
  }
  // Each square launches one grid.
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = squares_, .bytes_to_move = static_cast<long long>(values_.bytes())};
  }

  int side_, smallest_;
  std::vector<uint8_t> expected_;
  int squares_;
  bench::DeviceArray<uint8_t> values_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp"});
  long long log2_side = 10, smallest = 16;
  std::string file;
  bench::Options options("mandelbrot",
                         "the Mandelbrot set by blocks that launch blocks for the quarters of their squares");
  options.integer("log2-side", log2_side, 2, "logarithm of the picture's width and height");
  options.integer("smallest", smallest, 2, "squares of this width or less are not divided");
  options.text("png", file, "file for the picture");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("mandelbrot", "log2-side", log2_side, 14);
  bench::require_device("mandelbrot");
  Mandelbrot program(1 << log2_side, static_cast<int>(smallest), common);
  const int code = bench::run_benchmark("mandelbrot", common, program);
  if (!file.empty()) program.write(file);
  return code;
}
