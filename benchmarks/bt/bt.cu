// Tessellation of quadratic Bezier lines with CUDA dynamic parallelism and device-side malloc.
//
// A parent thread per line measures its curvature, from which follows how many points it is drawn with,
// allocates the array that holds them, and launches a child grid that computes them. This is the textbook
// example of work whose size is known only on the device: neither the memory nor the grids could be prepared
// by the host. The children are tiny, nearly always one block with a part of its threads idle.
//
// `--variant flat` gives a warp 32 lines: each lane measures and allocates for one, then all lanes compute
// the points of one line after another.
//
// `--variant klap` is the program aggregated by hand as the KLAP paper does it (common/aggregated.cuh): a
// parent block allocates once for all of its lines, and one grid computes the points of all lines.
//
// What a run allocated is freed by the next reset. It is overwritten first, so that a line whose child was
// lost can not show the points of an earlier run, left in memory that malloc hands out again.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../common/aggregated.cuh"
#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/harness.h"
#include "../common/parallel.h"
#include "../common/random.h"

constexpr int kParentBlock = 64;
constexpr int kChildBlock = 32;
constexpr int kFlatBlock = 128;
constexpr int kFewestPoints = 4;
constexpr unsigned kAllLanes = 0xffffffffU;

struct Line {
  float2 control[3];
  float2* points;  // nullptr until allocated
  int count;       // of points
};

// How finely lines are drawn.
struct Fineness {
  int density;  // points for a curvature of 1
  int most;     // points of any line
};

__host__ __device__ inline float length(float x, float y) { return sqrtf(x * x + y * y); }

// How far the middle control point is from the middle of the chord, in chord lengths, times the density. The
// control points' coordinates have few enough bits (see random_lines) that squares and sums are exact, and
// square roots and quotients are correctly rounded: processor and device find the same number.
__host__ __device__ inline int points_for(const float2* control, Fineness fineness) {
  const float2 a = control[0];
  const float2 b = control[1];
  const float2 c = control[2];
  const float bend = length(b.x - 0.5F * (a.x + c.x), b.y - 0.5F * (a.y + c.y));
  const float curvature = bend / length(c.x - a.x, c.y - a.y);
  const int wanted = static_cast<int>(curvature * static_cast<float>(fineness.density));
  return wanted < kFewestPoints ? kFewestPoints : wanted > fineness.most ? fineness.most : wanted;
}

// Point number i of a line of `count` points.
__device__ __forceinline__ float2 point_on(float2 a, float2 b, float2 c, int i, int count) {
  const float u = static_cast<float>(i) / static_cast<float>(count - 1);
  const float v = 1.0F - u;
  const float weight_a = v * v;
  const float weight_b = 2.0F * u * v;
  const float weight_c = u * u;
  return make_float2(weight_a * a.x + weight_b * b.x + weight_c * c.x,
                     weight_a * a.y + weight_b * b.y + weight_c * c.y);
}

__global__ void compute_points(const Line* lines, int line, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    const Line& l = lines[line];
    l.points[i] = point_on(l.control[0], l.control[1], l.control[2], i, count);
  }
}

template <bool kCount>
__global__ void tessellate(Line* lines, int line_count, Fineness fineness, unsigned long long* lost) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line < line_count) {
    const int count = points_for(lines[line].control, fineness);
    auto* points = static_cast<float2*>(malloc(count * sizeof(float2)));
    lines[line].points = points;
    lines[line].count = count;
    if (points != nullptr) {
      compute_points<<<(count + kChildBlock - 1) / kChildBlock, kChildBlock>>>(lines, line, count);
      bench::count_if_lost<kCount>(lost);
    }
  }
}

__device__ __forceinline__ float2 from_lane(float2 value, int lane) {
  return make_float2(__shfl_sync(kAllLanes, value.x, lane), __shfl_sync(kAllLanes, value.y, lane));
}

// All lanes of a warp stay to the end, also those without a line.
__global__ void tessellate_flat(Line* lines, int line_count, Fineness fineness) {
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  float2 control[3] = {};
  float2* points = nullptr;
  int count = 0;
  if (line < line_count) {
    for (int i = 0; i < 3; ++i) control[i] = lines[line].control[i];
    count = points_for(control, fineness);
    points = static_cast<float2*>(malloc(count * sizeof(float2)));
    lines[line].points = points;
    lines[line].count = count;
    if (points == nullptr) count = 0;
  }
  __syncwarp();
  for (int owner = 0; owner < 32; ++owner) {
    const float2 a = from_lane(control[0], owner);
    const float2 b = from_lane(control[1], owner);
    const float2 c = from_lane(control[2], owner);
    const int its_count = __shfl_sync(kAllLanes, count, owner);
    auto* its_points = reinterpret_cast<float2*>(
        __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(points), owner));
    for (int i = lane; i < its_count; i += 32) its_points[i] = point_on(a, b, c, i, its_count);
  }
}

// The klap variant records these arguments of a child.
struct PointsOf {
  int line;
  int count;
};

// A parent block of the klap variant allocated this for all of its lines.
struct BlockPoints {
  float2* points;
  int count;
};

// The sum of the values of the threads before the caller's, and of the whole block.
struct BlockScan {
  int before;
  int all;
};

// For blocks of kParentBlock threads, all of which come here. To be called once in a kernel.
__device__ __forceinline__ BlockScan scan_block(int value) {
  __shared__ int of_warp[kParentBlock / 32];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  int sum = value;  // of the lanes up to this one
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(kAllLanes, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) of_warp[warp] = sum;
  __syncthreads();
  BlockScan scan = {sum - value, 0};
  for (unsigned w = 0; w < kParentBlock / 32; ++w) {
    if (w < warp) scan.before += of_warp[w];
    scan.all += of_warp[w];
  }
  return scan;
}

// All threads of a block stay to the end, also those without a line.
__global__ void tessellate_recording(Line* lines, int line_count, Fineness fineness, BlockPoints* of_blocks,
                                     bench::Recorder<PointsOf> recorder) {
  __shared__ float2* points_of_block;
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  const int count = line < line_count ? points_for(lines[line].control, fineness) : 0;
  const BlockScan scan = scan_block(count);
  if (threadIdx.x == 0) {
    points_of_block = static_cast<float2*>(malloc(scan.all * sizeof(float2)));
    of_blocks[blockIdx.x] = {points_of_block, scan.all};
  }
  __syncthreads();
  if (line < line_count) {
    lines[line].points = points_of_block == nullptr ? nullptr : points_of_block + scan.before;
    lines[line].count = count;
    if (points_of_block != nullptr) {
      recorder.record((count + kChildBlock - 1) / kChildBlock, {line, count});
    }
  }
}

__global__ void compute_recorded(const Line* lines, bench::Recorder<PointsOf> recorder, unsigned children) {
  const unsigned child = bench::child_of_block(recorder.first_block, children, blockIdx.x);
  const PointsOf of_child = recorder.arguments[child];
  const int i = (blockIdx.x - recorder.first_block[child]) * blockDim.x + threadIdx.x;
  if (i < of_child.count) {
    const Line& l = lines[of_child.line];
    l.points[i] = point_on(l.control[0], l.control[1], l.control[2], i, of_child.count);
  }
}

// A block for each parent block: overwrites the points of its lines with NaN and frees them all at once.
__global__ void release_blocks(Line* lines, int line_count, BlockPoints* of_blocks) {
  const BlockPoints mine = of_blocks[blockIdx.x];
  const int line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line < line_count) {
    lines[line].points = nullptr;
    lines[line].count = 0;
  }
  if (mine.points == nullptr) return;
  const float nan = __int_as_float(-1);
  for (int i = threadIdx.x; i < mine.count; i += blockDim.x) mine.points[i] = make_float2(nan, nan);
  __syncthreads();
  if (threadIdx.x == 0) {
    free(mine.points);
    of_blocks[blockIdx.x].points = nullptr;
  }
}

// A warp for each line: overwrites its points with NaN and frees them.
__global__ void release(Line* lines, int line_count) {
  const int line = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (line >= line_count) return;
  float2* points = lines[line].points;
  const int count = lines[line].count;
  if (points == nullptr) return;
  const float nan = __int_as_float(-1);
  for (int i = lane; i < count; i += 32) points[i] = make_float2(nan, nan);
  __syncwarp();
  if (lane == 0) {
    free(points);
    lines[line].points = nullptr;
    lines[line].count = 0;
  }
}

// A warp for each line: copies its points to where the host can read them.
__global__ void gather(const Line* lines, const long long* first, int line_count, float2* all) {
  const int line = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (line >= line_count) return;
  for (int i = threadIdx.x % 32; i < lines[line].count; i += 32) {
    all[first[line] + i] = lines[line].points[i];
  }
}

namespace {

struct Sizes {
  long long lines = 25600;
  long long density = 16;
  long long most = 32;
};

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "bt: %s\n", message.c_str());
  std::exit(2);
}

// Each line begins where the last one ended. Coordinates are multiples of 1/1024 in [0, 1); see points_for.
std::vector<Line> random_lines(int count, uint64_t seed) {
  bench::Random random(seed);
  const auto draw = [&random] {
    const float x = static_cast<float>(random.below(1024)) / 1024.0F;
    return make_float2(x, static_cast<float>(random.below(1024)) / 1024.0F);
  };
  std::vector<Line> lines(count);
  float2 last = draw();
  for (Line& line : lines) {
    line.points = nullptr;
    line.count = 0;
    line.control[0] = last;
    line.control[1] = draw();
    do {
      line.control[2] = draw();
    } while (line.control[2].x == last.x && line.control[2].y == last.y);
    last = line.control[2];
  }
  return lines;
}

// x and y of every point of every line, in double precision.
std::vector<float> cpu_points(const std::vector<Line>& lines, const std::vector<long long>& first) {
  std::vector<float> all(2 * first.back());
  bench::parallel_for(lines.size(), [&](size_t line) {
    const float2* control = lines[line].control;
    const long long count = first[line + 1] - first[line];
    for (long long i = 0; i < count; ++i) {
      const double u = static_cast<double>(i) / static_cast<double>(count - 1);
      const double v = 1.0 - u;
      float* point = &all[2 * (first[line] + i)];
      point[0] = static_cast<float>(v * v * control[0].x + 2 * u * v * control[1].x + u * u * control[2].x);
      point[1] = static_cast<float>(v * v * control[0].y + 2 * u * v * control[1].y + u * u * control[2].y);
    }
  });
  return all;
}

// The memory that device-side malloc gives out. CUDA fixes its size when it loads the first kernel that
// allocates, so it is set before anything else is done on the device.
class DeviceHeap {
 public:
  explicit DeviceHeap(size_t bytes) {
    bench::check(cudaDeviceSetLimit(cudaLimitMallocHeapSize, bytes), "setting the size of the device heap");
  }
};

class Tessellation : public bench::Benchmark {
 public:
  Tessellation(const Sizes& sizes, const bench::CommonOptions& options)
      : fineness_{static_cast<int>(sizes.density), static_cast<int>(sizes.most)},
        variant_(options.variant),
        input_(random_lines(static_cast<int>(sizes.lines), options.seed)),
        first_(first_points()),
        expected_(cpu_points(input_, first_)),
        heap_(heap_bytes()),
        lines_(input_),
        device_first_(first_),
        all_points_(first_.back()),
        of_blocks_(std::vector<BlockPoints>(is_klap() ? parent_blocks() : 0)),
        records_(is_klap() ? input_.size() : 0, is_klap() ? 1 : 0),
        lost_(1) {}

  void reset() override {
    if (is_klap()) {
      release_blocks<<<parent_blocks(), kParentBlock>>>(lines_.data(), line_count(), of_blocks_.data());
    } else {
      release<<<warps_for_lines(), kFlatBlock>>>(lines_.data(), line_count());
    }
    bench::check(cudaGetLastError(), "launching the release of points");
    records_.reset();
    lost_.fill_bytes(0);
  }

  void run() override {
    if (variant_ == "flat") {
      tessellate_flat<<<bench::blocks_for(line_count(), kFlatBlock), kFlatBlock>>>(lines_.data(),
                                                                                   line_count(), fineness_);
      bench::check(cudaGetLastError(), "launching the tessellation");
    } else if (is_klap()) {
      tessellate_aggregated();
    } else {
      tessellate_with_children<false>();
    }
  }

  long long count_lost_launches() override {
    tessellate_with_children<true>();
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override {
    const std::string mistake = verify_allocations();
    if (!mistake.empty()) return mistake;
    all_points_.fill_bytes(0xff);
    gather<<<warps_for_lines(), kFlatBlock>>>(lines_.data(), device_first_.data(), line_count(),
                                              all_points_.data());
    bench::check(cudaGetLastError(), "launching the gathering of points");
    std::vector<float> found(expected_.size());
    bench::check(cudaMemcpy(found.data(), all_points_.data(), all_points_.bytes(), cudaMemcpyDeviceToHost),
                 "reading the points");
    // The roundings of a point in single precision add up to at most 4.5e-7, coordinates being below 1.
    return bench::differences_beyond("coordinates", expected_, found, 0.0, 5e-7);
  }

  void describe(bench::JsonObject& report) const override {
    report.add("lines", line_count()).add("density", fineness_.density).add("most_points", fineness_.most);
    report.add("points", first_.back());
    report.add("child_launches", variant_ == "cdp" ? line_count() : 0);
    // Three control points, the pointer and the count of each line; each point.
    report.add("bytes_to_move", 36LL * line_count() + 8LL * first_.back());
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    if (is_klap()) return bench::HostWork{.kernels = 2, .reads = 1};
    return bench::HostWork{.kernels = 1, .parents = variant_ == "cdp" ? 1 : 0};
  }

 private:
  [[nodiscard]] bool is_klap() const { return variant_ == "klap"; }
  [[nodiscard]] unsigned parent_blocks() const { return bench::blocks_for(line_count(), kParentBlock); }
  [[nodiscard]] int line_count() const { return static_cast<int>(input_.size()); }
  [[nodiscard]] unsigned warps_for_lines() const {
    return bench::blocks_for(32LL * line_count(), kFlatBlock);
  }

  // Where each line's points begin among those of all lines.
  [[nodiscard]] std::vector<long long> first_points() const {
    std::vector<long long> first(input_.size() + 1, 0);
    for (size_t i = 0; i < input_.size(); ++i) {
      first[i + 1] = first[i] + points_for(input_[i].control, fineness_);
    }
    return first;
  }

  // The allocator rounds sizes up, keeps pages for each size and spreads them over the processors, so it
  // needs a multiple of what is asked of it.
  [[nodiscard]] size_t heap_bytes() const {
    return (size_t{64} << 20) + 4 * (sizeof(float2) * first_.back() + 256 * input_.size());
  }

  template <bool kCount>
  void tessellate_with_children() {
    tessellate<kCount><<<bench::blocks_for(line_count(), kParentBlock), kParentBlock>>>(
        lines_.data(), line_count(), fineness_, lost_.data());
    bench::check(cudaGetLastError(), "launching the tessellation");
  }

  void tessellate_aggregated() {
    const bench::Recorder<PointsOf> recorder = records_.of_parent(0);
    tessellate_recording<<<parent_blocks(), kParentBlock>>>(lines_.data(), line_count(), fineness_,
                                                            of_blocks_.data(), recorder);
    bench::check(cudaGetLastError(), "launching the parent");
    const bench::Recorded recorded = records_.read(0);
    if (recorded.blocks > 0) {
      compute_recorded<<<recorded.blocks, kChildBlock>>>(lines_.data(), recorder, recorded.children);
    }
    bench::check(cudaGetLastError(), "launching the children");
  }

  // Every line must have its memory and the right number of points before these may be read.
  [[nodiscard]] std::string verify_allocations() const {
    const std::vector<Line> lines = lines_.to_host();
    std::vector<int> expected(lines.size());
    std::vector<int> found(lines.size());
    int without_memory = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      expected[i] = static_cast<int>(first_[i + 1] - first_[i]);
      found[i] = lines[i].count;
      without_memory += lines[i].points == nullptr ? 1 : 0;
    }
    if (without_memory > 0) return std::to_string(without_memory) + " lines got no memory";
    return bench::differences("numbers of points", expected, found);
  }

  Fineness fineness_;
  std::string variant_;
  std::vector<Line> input_;
  std::vector<long long> first_;
  std::vector<float> expected_;
  DeviceHeap heap_;
  bench::DeviceArray<Line> lines_;
  bench::DeviceArray<long long> device_first_;
  bench::DeviceArray<float2> all_points_;
  bench::DeviceArray<BlockPoints> of_blocks_;
  bench::Records<PointsOf> records_;
  bench::DeviceArray<unsigned long long> lost_;
};

void check_sizes(const Sizes& sizes) {
  if (sizes.lines > 1 << 24) give_up("--lines: at most 16777216");
  if (sizes.density > 4096) give_up("--density: at most 4096");
  if (sizes.most > 65536) give_up("--most: at most 65536");
  if (sizes.lines * sizes.most > 1LL << 28) give_up("too many points: at most 2^28 lines times --most");
}

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "klap"});
  Sizes sizes;
  bench::Options options("bt", "tessellation of Bezier lines with one child kernel per line");
  options.integer("lines", sizes.lines, 1, "number of lines");
  options.integer("density", sizes.density, 1, "points of a line whose curvature is 1");
  options.integer("most", sizes.most, kFewestPoints, "points of the finest line");
  common.add_to(options);
  options.parse(argc, argv);
  check_sizes(sizes);
  bench::require_device("bt");
  Tessellation tessellation(sizes, common);
  return bench::run_benchmark("bt", common, tessellation);
}
