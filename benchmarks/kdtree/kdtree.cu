// A k-d tree of points in the plane, built in place: each half is worked on in a stream of its own.
//
// To divide a range is to bring its median to the middle, by x or by y in turn, with smaller points before it
// and larger ones behind it. For a range that is divided, a kernel of one thread creates two streams, which
// it holds in an array. Into each it launches a kernel that divides that half, and behind it itself for what
// is below. Then it destroys both streams. Both halves may run at the same time. Short ranges stay as they
// are: the tree's leaves.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kLargestLeaf = 16;
constexpr int kHalves = 2;

// x in the low half and y in the high half.
using Point = unsigned long long;

__host__ __device__ inline unsigned coordinate(Point point, int axis) {
  return static_cast<unsigned>(point >> (32 * axis));
}

struct Range {
  int begin;
  int end;

  [[nodiscard]] __host__ __device__ int size() const { return end - begin; }
  [[nodiscard]] __host__ __device__ int middle() const { return begin + size() / 2; }
  [[nodiscard]] __host__ __device__ Range half(int i) const {
    return i == 0 ? Range{begin, middle()} : Range{middle() + 1, end};
  }
};

// Partitions what the middle is in, again and again, until that is one point or points that are all alike.
__device__ void bring_median_to_middle(Point* points, const Range& range, int axis) {
  const int middle = range.middle();
  int begin = range.begin;
  int last = range.end - 1;
  while (begin < last) {
    const unsigned pivot = coordinate(points[middle], axis);
    int left = begin;
    int right = last;
    while (left <= right) {
      while (coordinate(points[left], axis) < pivot) ++left;
      while (coordinate(points[right], axis) > pivot) --right;
      if (left > right) break;
      const Point point = points[left];
      points[left++] = points[right];
      points[right--] = point;
    }
    if (right < middle) begin = left;
    if (left > middle) last = right;
  }
}

__host__ __device__ inline bool has_more_below(const Range& range) {
  return range.size() / kHalves > kLargestLeaf;
}

__global__ void divide(Point* points, Range range, int axis) { bring_median_to_middle(points, range, axis); }

// Builds what is below a range that is divided along the other axis. The loops are not unrolled, so that the
// streams stay an array in memory, as they do if there are many.
template <bool kCount>
__global__ void build_below(Point* points, Range range, int axis, unsigned long long* lost) {
  cudaStream_t streams[kHalves];
#pragma unroll 1
  for (int half = 0; half < kHalves; ++half) cudaStreamCreateWithFlags(&streams[half], cudaStreamNonBlocking);
#pragma unroll 1
  for (int half = 0; half < kHalves; ++half) {
    const Range below = range.half(half);
    divide<<<1, 1, 0, streams[half]>>>(points, below, axis);
    bench::count_if_lost<kCount>(lost);
    if (has_more_below(below)) {
      build_below<kCount><<<1, 1, 0, streams[half]>>>(points, below, 1 - axis, lost);
      bench::count_if_lost<kCount>(lost);
    }
  }
#pragma unroll 1
  for (int half = 0; half < kHalves; ++half) cudaStreamDestroy(streams[half]);
}

template <bool kCount>
__global__ void build(Point* points, Range all, unsigned long long* lost) {
  divide<<<1, 1>>>(points, all, 0);
  bench::count_if_lost<kCount>(lost);
  if (has_more_below(all)) {
    build_below<kCount><<<1, 1>>>(points, all, 1, lost);
    bench::count_if_lost<kCount>(lost);
  }
}

namespace {

std::vector<Point> random_points(long long n, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<Point> points(static_cast<size_t>(n));
  for (Point& point : points) point = random.next();
  return points;
}

std::vector<Point> sorted(std::vector<Point> points) {
  std::sort(points.begin(), points.end());
  return points;
}

// To divide a range and to build what is below it.
long long launches_for(const Range& range) {
  if (!has_more_below(range)) return 1;
  return 2 + launches_for(range.half(0)) + launches_for(range.half(1));
}

// The place of a node that has points on the wrong side; -1 if there is none.
int wrong_node(const std::vector<Point>& points, const Range& range, int axis) {
  if (range.size() < 2) return -1;
  const unsigned median = coordinate(points[range.middle()], axis);
  for (int i = range.begin; i < range.end; ++i) {
    const unsigned value = coordinate(points[i], axis);
    if (i < range.middle() ? value > median : value < median) return range.middle();
  }
  if (!has_more_below(range)) return -1;
  const int first = wrong_node(points, range.half(0), 1 - axis);
  return first >= 0 ? first : wrong_node(points, range.half(1), 1 - axis);
}

class KdTree final : public bench::ArrayProgram<Point> {
 public:
  KdTree(const std::vector<Point>& input, const bench::CommonOptions& options)
      : ArrayProgram(options, "points", input, sorted(input)), all_{0, static_cast<int>(input.size())} {}

  // All points are still there, and every node divides those below it.
  [[nodiscard]] std::string verify() override {
    std::vector<Point> found(expected().size());
    bench::check(cudaMemcpy(found.data(), data(), found.size() * sizeof(Point), cudaMemcpyDeviceToHost),
                 "copy from the device");
    const int node = wrong_node(found, all_, 0);
    if (node >= 0) return "points on the wrong side of number " + std::to_string(node);
    return bench::differences(what(), expected(), sorted(std::move(found)));
  }

 private:
  void launch(bool count) override { (count ? build<true> : build<false>)<<<1, 1>>>(data(), all_, lost()); }
  void describe_sizes(bench::JsonObject& report) const override { report.add("points", all_.size()); }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = launches_for(all_), .bytes_to_move = 16LL * all_.size()};
  }

  Range all_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp"});
  long long points = 20000;
  bench::Options options("kdtree", "a k-d tree, with a created stream for each half of each range");
  options.integer("points", points, 2, "points in the plane");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("kdtree", "points", points, 1 << 28);
  bench::require_device("kdtree");
  KdTree program(random_points(points, common.seed), common);
  return bench::run_benchmark("kdtree", common, program);
}
