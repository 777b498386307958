// The Mandelbrot set by the algorithm of Mariani and Silver. A block launches a grid that computes the border
// of its square, and waits for it. If the border has one value, the block fills its square with it. Otherwise
// it launches blocks for the four quarters, or a grid for all pixels of a small square.
//
// The tail launch that decides is for all squares of a grid. `--variant flat` has a list of the squares of
// each size, and the host reads how long the next one is.
#include <string>
#include <vector>

#include "waiting_program.h"

namespace {

constexpr int kBlock = 32;
constexpr int kMostSteps = 256;

// Some squares of one extent: the quarters of a larger one, or just one.
struct Squares {
  int corner, extent;

  __host__ __device__ int corner_of(int which, int side) const {
    return corner + which / 2 * extent * side + which % 2 * extent;
  }
};

struct Picture {
  int* pixels;
  int side, smallest;
};

// Counts the steps until a point leaves the circle of radius 2, with 12 binary places.
__host__ __device__ inline int steps_at(int pixel, int side) {
  const int x = 3 * 4096 * (pixel % side) / side - 8192, y = 3 * 4096 * (pixel / side) / side - 6144;
  int a = 0, b = 0, steps = 0;
  while (steps < kMostSteps && a * a + b * b <= 4 * 4096 * 4096) {
    const int next = (a * a - b * b) / 4096 + x;
    b = 2 * a * b / 4096 + y;
    a = next;
    ++steps;
  }
  return steps;
}

// Numbers the pixels of a square's border, in four runs that begin at the corners.
__host__ __device__ inline int on_border(int corner, int extent, int side, int k) {
  const int run = k / (extent - 1), offset = k % (extent - 1), end = extent - 1;
  if (run == 0) return corner + offset;
  if (run == 1) return corner + end + offset * side;
  if (run == 2) return corner + end * side + end - offset;
  return corner + (end - offset) * side;
}

__host__ __device__ inline int border_length(int extent) { return 4 * (extent - 1); }

// Whether the border has one value. All threads of the block call this.
__device__ bool is_even(const Picture& picture, int corner, int extent) {
  bool same = true;
  for (int k = static_cast<int>(threadIdx.x); k < border_length(extent); k += kBlock) {
    same = same && picture.pixels[on_border(corner, extent, picture.side, k)] == picture.pixels[corner];
  }
  return __syncthreads_and(same) != 0;
}

__device__ void fill(const Picture& picture, int corner, int extent) {
  const int value = picture.pixels[corner];
  for (int k = static_cast<int>(threadIdx.x); k < extent * extent; k += kBlock) {
    picture.pixels[corner + k / extent * picture.side + k % extent] = value;
  }
}

__global__ void border(Picture picture, int corner, int extent) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= border_length(extent)) return;
  const int pixel = on_border(corner, extent, picture.side, k);
  picture.pixels[pixel] = steps_at(pixel, picture.side);
}

__global__ void all_pixels(Picture picture, int corner, int extent) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= extent * extent) return;
  const int pixel = corner + k / extent * picture.side + k % extent;
  picture.pixels[pixel] = steps_at(pixel, picture.side);
}

__host__ __device__ inline unsigned pixel_blocks(int extent) {
  return bench::blocks_for(static_cast<long long>(extent) * extent, kBlock);
}

__host__ __device__ inline unsigned border_blocks(int extent) {
  return bench::blocks_for(border_length(extent), kBlock);
}

#ifdef BENCH_WAITS

// Block b works on square b.
__global__ void square(Picture picture, Squares squares) {
  const int extent = squares.extent, thread = static_cast<int>(threadIdx.x);
  const int corner = squares.corner_of(static_cast<int>(blockIdx.x), picture.side);
  if (thread == 0) {
    border<<<border_blocks(extent), kBlock>>>(picture, corner, extent);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  if (is_even(picture, corner, extent)) {
    fill(picture, corner, extent);
  } else if (thread == 0) {
    if (extent == picture.smallest) {
      all_pixels<<<pixel_blocks(extent), kBlock>>>(picture, corner, extent);
    } else {
      square<<<4, kBlock>>>(picture, Squares{corner, extent / 2});
    }
  }
}

void launch_square(const Picture& picture, bool, unsigned long long*) {
  square<<<1, kBlock>>>(picture, Squares{0, picture.side});
}
class Lists {
 public:
  Lists(const Picture&, int) {}
  void run() {}
};

#else

template <bool kCount>
__global__ void square(Picture picture, Squares squares, unsigned long long* lost);

// Block b decides about square b.
template <bool kCount>
__global__ void decide(Picture picture, Squares squares, unsigned long long* lost) {
  const int extent = squares.extent;
  const int corner = squares.corner_of(static_cast<int>(blockIdx.x), picture.side);
  if (is_even(picture, corner, extent)) {
    fill(picture, corner, extent);
  } else if (threadIdx.x == 0) {
    if (extent == picture.smallest) {
      all_pixels<<<pixel_blocks(extent), kBlock, 0, cudaStreamFireAndForget>>>(picture, corner, extent);
    } else {
      square<kCount><<<1, 4, 0, cudaStreamFireAndForget>>>(picture, Squares{corner, extent / 2}, lost);
    }
    bench::count_if_lost<kCount>(lost);
  }
}

// Thread t works on square t.
template <bool kCount>
__global__ void square(Picture picture, Squares squares, unsigned long long* lost) {
  const int extent = squares.extent;
  const int corner = squares.corner_of(static_cast<int>(threadIdx.x), picture.side);
  border<<<border_blocks(extent), kBlock, 0, cudaStreamFireAndForget>>>(picture, corner, extent);
  bench::count_if_lost<kCount>(lost);
  if (threadIdx.x != 0) return;
  decide<kCount><<<blockDim.x, kBlock, 0, cudaStreamTailLaunch>>>(picture, squares, lost);
  bench::count_if_lost<kCount>(lost);
}

void launch_square(const Picture& picture, bool counts, unsigned long long* lost) {
  (counts ? square<true> : square<false>)<<<1, 1>>>(picture, Squares{0, picture.side}, lost);
}

// A row of blocks for each square of the list.
__global__ void borders(Picture picture, const int* corners, int extent) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (k >= border_length(extent)) return;
  const int pixel = on_border(corners[blockIdx.y], extent, picture.side, k);
  picture.pixels[pixel] = steps_at(pixel, picture.side);
}

// A block for each square of the list.
__global__ void decide_list(Picture picture, const int* corners, int extent, int* next, int* next_count) {
  const int corner = corners[blockIdx.x], thread = static_cast<int>(threadIdx.x);
  if (is_even(picture, corner, extent)) {
    fill(picture, corner, extent);
    return;
  }
  if (extent == picture.smallest) {
    for (int k = thread; k < extent * extent; k += kBlock) {
      const int pixel = corner + k / extent * picture.side + k % extent;
      picture.pixels[pixel] = steps_at(pixel, picture.side);
    }
    return;
  }
  __shared__ int place;
  if (thread == 0) place = atomicAdd(next_count, 4);
  __syncthreads();
  if (thread < 4) next[place + thread] = Squares{corner, extent / 2}.corner_of(thread, picture.side);
}

// The corners of the squares of one extent, and of half that extent.
class Lists {
 public:
  Lists(const Picture& picture, int squares)
      : picture_(picture),
        corners_(static_cast<size_t>(squares)),
        next_(static_cast<size_t>(squares)),
        count_(1) {}

  void run() {
    int* corners = corners_.data();
    int* next = next_.data();
    bench::check(cudaMemsetAsync(corners, 0, sizeof(int)), "cudaMemsetAsync");
    int count = 1;
    for (int extent = picture_.side; count > 0; extent /= 2) {
      bench::check(cudaMemsetAsync(count_.data(), 0, sizeof(int)), "cudaMemsetAsync");
      borders<<<dim3(border_blocks(extent), count), kBlock>>>(picture_, corners, extent);
      decide_list<<<count, kBlock>>>(picture_, corners, extent, next, count_.data());
      bench::check(cudaMemcpy(&count, count_.data(), sizeof(int), cudaMemcpyDeviceToHost), "reading a count");
      int* const old = corners;
      corners = next;
      next = old;
    }
  }

 private:
  Picture picture_;
  bench::DeviceArray<int> corners_;
  bench::DeviceArray<int> next_;
  bench::DeviceArray<int> count_;
};

#endif

// Repeats the decisions on the CPU, and counts them. A square that is filled may hold pixels whose own values
// are others.
struct Decisions {
  std::vector<int> pixels;
  int side, smallest;
  int squares = 0, small_ones = 0, extents = 0;

  void decide(int corner, int extent, int depth) {
    ++squares;
    extents = depth > extents ? depth : extents;
    bool same = true;
    for (int k = 0; k < border_length(extent); ++k) {
      same = same && pixels[on_border(corner, extent, side, k)] == pixels[corner];
    }
    if (same) {
      fill(corner, extent);
      return;
    }
    if (extent == smallest) {
      ++small_ones;
      return;
    }
    for (int i = 0; i < 4; ++i) decide(Squares{corner, extent / 2}.corner_of(i, side), extent / 2, depth + 1);
  }
  void fill(int corner, int extent) {
    for (int k = 0; k < extent * extent; ++k) {
      pixels[corner + k / extent * side + k % extent] = pixels[corner];
    }
  }
};

std::vector<int> cpu_pixels(int side) {
  std::vector<int> pixels(static_cast<size_t>(side) * side);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = steps_at(static_cast<int>(i), side);
  return pixels;
}

Decisions decisions_of(int side, int smallest) {
  Decisions decisions{cpu_pixels(side), side, smallest};
  decisions.decide(0, side, 1);
  return decisions;
}

class Mandelbrot final : public bench::StreamProgram {
 public:
  Mandelbrot(int side, int smallest, const bench::CommonOptions& options)
      : StreamProgram(options),
        decisions_(decisions_of(side, smallest)),
        pixels_(decisions_.pixels.size()),
        picture_{pixels_.data(), side, smallest},
        lists_(picture_, decisions_.squares) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("pixels", decisions_.pixels, pixels_.to_host());
  }

 private:
  void restore() override { pixels_.fill_bytes(0xff); }
  void launch(bool count) override { launch_square(picture_, count, lost()); }
  void launch_flat() override { lists_.run(); }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("side", picture_.side).add("smallest", picture_.smallest).add("squares", decisions_.squares);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    const int quartered = decisions_.squares / 4;
    // A border for each square, a launch for each square that is divided, and the tail launches.
    const int launches = decisions_.squares + quartered + decisions_.small_ones;
    return {.child_launches = launches + (bench::kWaits ? 0 : 1 + quartered),
            .bytes_to_move = static_cast<long long>(pixels_.bytes()),
            .flat_kernels = 2LL * decisions_.extents,
            .flat_fills = 1 + decisions_.extents,
            .flat_reads = decisions_.extents};
  }

  Decisions decisions_;
  bench::DeviceArray<int> pixels_;
  Picture picture_;
  Lists lists_;
};

}  // namespace

int main(int argc, char** argv) {
  long long log2_side = 10, log2_smallest = 3;
  bench::WaitingOptions options("mandelbrot", "the Mandelbrot set by blocks that wait for borders");
  options.integer("log2-side", log2_side, 2, "logarithm of the picture's width and height");
  options.integer("log2-smallest", log2_smallest, 1, "logarithm of the smallest squares' width");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "log2-side", log2_side, 12);
  bench::require_at_most(options.name(), "log2-smallest", log2_smallest, log2_side < 5 ? log2_side : 5);
  Mandelbrot program(1 << log2_side, 1 << log2_smallest, options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
