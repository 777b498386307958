// Connected components of binary images (several frames with several channels each), with CUDA dynamic
// parallelism in streams that the device creates.
//
// Every image is cut into strips of rows. A parent thread per strip creates a stream, launches into it a
// child grid that joins the strip's pixels, and destroys the stream: so its child need not wait for those of
// the block's other threads, which the NULL stream would make it do. Kernels after the parent join the strips
// along their borders and replace each label by its component's.
//
// Pixels are joined in a forest: a pixel's label is the number of another pixel of its component that is not
// larger, or its own number. Joining hangs the larger of two roots under the smaller, so in the end a label
// is the smallest number in the component, whatever came first, and the check is equality.
//
// `--variant flat` joins all the pixels in one kernel; strips are only there for the children.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/harness.h"
#include "images.h"

constexpr int kParentBlock = 64;
constexpr int kBlock = 256;  // of the children and of the other kernels
constexpr int kRun = 32;     // pixels of a row that one warp starts with

struct Problem {
  const unsigned char* pixel;
  int* label;
  int width;
  int height;
  int images;
  int strip_rows;
  int strips;  // of one image

  __host__ __device__ int pixels() const { return images * height * width; }
  __host__ __device__ int runs_per_row() const { return (width + kRun - 1) / kRun; }
};

// Only a root's label changes, and only to a smaller number. So an old label that a cache still holds leads
// to a pixel of the same component all the same, and what is found is a root or was one.
__device__ int find_root(const int* label, int p) {
  for (int next = label[p]; next != p; next = label[p]) p = next;
  return p;
}

// Joins the components of a and b: hangs the larger of their roots under the smaller one. If somebody else
// hung it somewhere in the meantime, that is where to go on; the numbers fall with every attempt, so this
// ends.
__device__ void join(int* label, int a, int b) {
  while (true) {
    a = find_root(label, a);
    b = find_root(label, b);
    if (a == b) return;
    const int larger = max(a, b);
    const int smaller = min(a, b);
    const int before = atomicCAS(&label[larger], larger, smaller);
    if (before == larger) return;
    a = before;
    b = smaller;
  }
}

// Foreground pixels that follow each other within a warp's part of a row get the number of the first of them.
__global__ void begin_runs(Problem problem) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = thread % kRun;
  const int row = thread / kRun / problem.runs_per_row();
  const int x = thread / kRun % problem.runs_per_row() * kRun + lane;
  const bool inside = row < problem.images * problem.height && x < problem.width;
  const int p = row * problem.width + x;
  const bool set = inside && problem.pixel[p] != 0;
  const unsigned clear_before = ~__ballot_sync(~0U, set) & ((1U << lane) - 1);
  const int run_begin = kRun - __clz(static_cast<int>(clear_before));  // 0 where all before are set
  if (inside) problem.label[p] = set ? p - lane + run_begin : -1;
}

// The pixel above a set pixel p at column x. Where the pixels to the left of both are set too, joining those
// is enough.
__device__ void join_above(const unsigned char* pixel, int* label, int p, int x, int width) {
  if (pixel[p - width] == 0) return;
  if (x > 0 && pixel[p - 1] != 0 && pixel[p - width - 1] != 0) return;
  join(label, p, p - width);
}

// What begin_runs could not see: the pixel to the left in another warp's part of the row.
__device__ void join_left(const unsigned char* pixel, int* label, int p, int x) {
  if (x > 0 && x % kRun == 0 && pixel[p - 1] != 0) join(label, p, p - 1);
}

// A strip: `size` pixels from `begin` on, whole rows.
__global__ void join_strip(const unsigned char* pixel, int* label, int begin, int size, int width) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size && pixel[begin + i] != 0) {
    join_left(pixel, label, begin + i, i % width);
    if (i >= width) join_above(pixel, label, begin + i, i % width, width);
  }
}

template <bool kCount>
__global__ void join_strips(Problem problem, unsigned long long* lost) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < problem.images * problem.strips) {
    const int first_row = i % problem.strips * problem.strip_rows;
    const int rows = min(problem.strip_rows, problem.height - first_row);
    const int begin = (i / problem.strips * problem.height + first_row) * problem.width;
    const int size = rows * problem.width;
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    join_strip<<<(size + kBlock - 1) / kBlock, kBlock, 0, stream>>>(problem.pixel, problem.label, begin, size,
                                                                    problem.width);
    bench::count_if_lost<kCount>(lost);
    cudaStreamDestroy(stream);
  }
}

// The first rows of all strips but each image's first one, with the rows above them.
__global__ void join_borders(Problem problem) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int borders = problem.strips - 1;
  const int border = i / problem.width;
  if (border < problem.images * borders) {
    const int y = (border % borders + 1) * problem.strip_rows;
    const int x = i % problem.width;
    const int p = (border / borders * problem.height + y) * problem.width + x;
    if (problem.pixel[p] != 0) join_above(problem.pixel, problem.label, p, x, problem.width);
  }
}

__global__ void join_all(Problem problem) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < problem.pixels() && problem.pixel[p] != 0) {
    const int x = p % problem.width;
    join_left(problem.pixel, problem.label, p, x);
    const bool first_row = p / problem.width % problem.height == 0;
    if (!first_row) join_above(problem.pixel, problem.label, p, x, problem.width);
  }
}

__global__ void take_roots(Problem problem) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < problem.pixels() && problem.pixel[p] != 0) problem.label[p] = find_root(problem.label, p);
}

namespace {

struct CclOptions {
  bench::CommonOptions common;
  long long width = 512;
  long long height = 512;
  long long frames = 4;
  long long channels = 4;
  long long strip_rows = 8;
  long long density = 45;
  std::string data;

  void add_to(bench::Options& options) {
    options.integer("width", width, 1, "pixels in a row");
    options.integer("height", height, 1, "rows of an image");
    options.integer("frames", frames, 1, "frames");
    options.integer("channels", channels, 1, "images in each frame");
    options.integer("strip-rows", strip_rows, 1, "rows that one child works on");
    options.integer("density", density, 0, "percent of the pixels in the foreground, at most 99");
    options.text("data", data,
                 "read the images from this file: binary portable bitmaps (P4), one or several");
    common.add_to(options);
  }
};

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "ccl: %s\n", message.c_str());
  std::exit(2);
}

Images read_images(const CclOptions& options) {
  try {
    Images images = BitmapReader(options.data).read();
    if (images.count % options.channels != 0) give_up("the file's images do not make up whole frames");
    return images;
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

Images load(const CclOptions& options) {
  if (!options.data.empty()) return read_images(options);
  if (options.density > 99) give_up("--density: the discs would never cover everything; at most 99");
  const bool few = options.frames <= INT_MAX && options.channels <= INT_MAX;
  if (!few || !fits(options.width, options.height, options.frames * options.channels)) {
    give_up("too many pixels: they are numbered with 31 bits");
  }
  return drawn_images(static_cast<int>(options.width), static_cast<int>(options.height),
                      static_cast<int>(options.frames * options.channels),
                      static_cast<double>(options.density), static_cast<uint64_t>(options.common.seed));
}

class Ccl : public bench::Benchmark {
 public:
  explicit Ccl(const CclOptions& options)
      : images_(load(options)),
        expected_(cpu_labels(images_)),
        channels_(options.channels),
        variant_(options.common.variant),
        pixel_(images_.pixel),
        label_(images_.pixel.size()),
        lost_(1) {
    problem_.pixel = pixel_.data();
    problem_.label = label_.data();
    problem_.width = images_.width;
    problem_.height = images_.height;
    problem_.images = images_.count;
    problem_.strip_rows = static_cast<int>(std::min<long long>(options.strip_rows, images_.height));
    problem_.strips = (images_.height - 1) / problem_.strip_rows + 1;
  }

  void reset() override {
    label_.fill_bytes(0xff);
    lost_.fill_bytes(0);
  }

  void run() override {
    if (variant_ == "flat") {
      label_images([this] { join_all<<<bench::blocks_for(problem_.pixels(), kBlock), kBlock>>>(problem_); });
    } else {
      label_with_children<false>();
    }
  }

  long long count_lost_launches() override {
    label_with_children<true>();
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override { return bench::differences("labels", expected_, label_.to_host()); }

  void describe(bench::JsonObject& report) const override {
    int components = 0;
    int foreground = 0;
    for (int p = 0; p < problem_.pixels(); ++p) {
      components += expected_[p] == p ? 1 : 0;
      foreground += expected_[p] >= 0 ? 1 : 0;
    }
    report.add("width", images_.width).add("height", images_.height);
    report.add("frames", images_.count / channels_).add("channels", channels_);
    report.add("strips_per_image", problem_.strips);
    report.add("foreground", foreground).add("components", components);
    report.add("child_launches", variant_ == "cdp" ? problem_.images * problem_.strips : 0);
    report.add("bytes_to_move", 5LL * problem_.pixels());  // a pixel is read, its label is written
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    if (variant_ == "flat") return bench::HostWork{.kernels = 3};
    return bench::HostWork{.kernels = problem_.strips > 1 ? 4 : 3, .parents = 1};
  }

 private:
  template <bool kCount>
  void label_with_children() {
    label_images([this] {
      const int strips = problem_.images * problem_.strips;
      join_strips<kCount><<<bench::blocks_for(strips, kParentBlock), kParentBlock>>>(problem_, lost_.data());
      if (problem_.strips > 1) {
        const long long pixels = static_cast<long long>(strips - problem_.images) * problem_.width;
        join_borders<<<bench::blocks_for(pixels, kBlock), kBlock>>>(problem_);
      }
    });
  }

  template <class Join>
  void label_images(const Join& join) {
    const long long rows = static_cast<long long>(problem_.images) * problem_.height;
    begin_runs<<<bench::blocks_for(rows * problem_.runs_per_row() * kRun, kBlock), kBlock>>>(problem_);
    join();
    take_roots<<<bench::blocks_for(problem_.pixels(), kBlock), kBlock>>>(problem_);
    bench::check(cudaGetLastError(), "launching the kernels");
  }

  Images images_;
  std::vector<int> expected_;
  long long channels_;
  std::string variant_;
  bench::DeviceArray<unsigned char> pixel_;
  bench::DeviceArray<int> label_;
  bench::DeviceArray<unsigned long long> lost_;
  Problem problem_ = {};
};

}  // namespace

int main(int argc, char** argv) {
  CclOptions ccl_options;
  bench::Options options("ccl", "connected components of images, with one child kernel per strip of rows");
  ccl_options.add_to(options);
  options.parse(argc, argv);
  bench::require_device("ccl");
  Ccl ccl(ccl_options);
  return bench::run_benchmark("ccl", ccl_options.common, ccl);
}
