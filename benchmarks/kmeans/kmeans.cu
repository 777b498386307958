// k-means clustering: a round is a fork of many children and two tail launches that join them.
//
// Each thread of a block launches a child that assigns some points to their nearest centres and adds them up.
// Behind all children, in the tail-launch stream, a kernel moves the centres to the means of their points.
// Behind that comes the block's own kernel for the next round. Coordinates are whole numbers and means are
// rounded down, so the result is exact.
//
// `--variant flat` launches two kernels for each round from the host.
#include <cstdint>
#include <string>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kChildBlock = 64;
constexpr int kCentres = 16;
constexpr int kMostChildren = 1024;
constexpr int kPlane = 4096;  // length of its sides

// Arrays of x and y, one after the other.
struct Clusters {
  const int* points;
  int* centres;
  int* sums;
  int* counts;
  int size;  // of the points
};

__host__ __device__ inline int nearest_centre(const int* centres, int x, int y) {
  int nearest = 0;
  int shortest = 0;
  for (int i = 0; i < kCentres; ++i) {
    const int dx = centres[i] - x;
    const int dy = centres[kCentres + i] - y;
    const int distance = dx * dx + dy * dy;
    if (i > 0 && distance >= shortest) continue;
    nearest = i;
    shortest = distance;
  }
  return nearest;
}

__device__ void assign_point(const Clusters& clusters, int i) {
  if (i >= clusters.size) return;
  const int x = clusters.points[i];
  const int y = clusters.points[clusters.size + i];
  const int centre = nearest_centre(clusters.centres, x, y);
  atomicAdd(&clusters.sums[centre], x);
  atomicAdd(&clusters.sums[kCentres + centre], y);
  atomicAdd(&clusters.counts[centre], 1);
}

__global__ void assign(Clusters clusters, int first) {
  assign_point(clusters, first + static_cast<int>(threadIdx.x));
}

// A thread for each centre. One without points stays where it is. The sums begin anew.
__global__ void __launch_bounds__(kCentres) move_centres(Clusters clusters) {
  const int i = static_cast<int>(threadIdx.x);
  const int count = clusters.counts[i];
  if (count > 0) {
    clusters.centres[i] = clusters.sums[i] / count;
    clusters.centres[kCentres + i] = clusters.sums[kCentres + i] / count;
  }
  clusters.sums[i] = 0;
  clusters.sums[kCentres + i] = 0;
  clusters.counts[i] = 0;
}

template <bool kCount>
__global__ void __launch_bounds__(kMostChildren)
    run_round(Clusters clusters, int rounds, unsigned long long* lost) {
  assign<<<1, kChildBlock>>>(clusters, static_cast<int>(threadIdx.x) * kChildBlock);
  bench::count_if_lost<kCount>(lost);
  if (threadIdx.x != 0) return;
  move_centres<<<1, kCentres, 0, cudaStreamTailLaunch>>>(clusters);
  bench::count_if_lost<kCount>(lost);
  if (rounds > 1) {
    run_round<kCount><<<1, blockDim.x, 0, cudaStreamTailLaunch>>>(clusters, rounds - 1, lost);
    bench::count_if_lost<kCount>(lost);
  }
}

__global__ void assign_flat(Clusters clusters) {
  assign_point(clusters, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

namespace {

struct Sizes {
  long long children = 1000;
  long long rounds = 10;

  [[nodiscard]] int points() const { return static_cast<int>(children) * kChildBlock; }
};

std::vector<int> random_points(const Sizes& sizes, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<int> points(size_t{2} * sizes.points());
  for (int& coordinate : points) coordinate = static_cast<int>(random.below(kPlane));
  return points;
}

// The first points.
std::vector<int> first_centres(const std::vector<int>& points) {
  std::vector<int> centres;
  for (const size_t begin : {size_t{0}, points.size() / 2}) {
    for (size_t i = 0; i < kCentres; ++i) centres.push_back(points[begin + i]);
  }
  return centres;
}

std::vector<int> cpu_centres(const std::vector<int>& points, long long rounds) {
  std::vector<int> centres = first_centres(points);
  const size_t size = points.size() / 2;
  for (long long round = 0; round < rounds; ++round) {
    std::vector<int> sums(2 * kCentres);
    std::vector<int> counts(kCentres);
    for (size_t i = 0; i < size; ++i) {
      const int centre = nearest_centre(centres.data(), points[i], points[size + i]);
      sums[centre] += points[i];
      sums[kCentres + centre] += points[size + i];
      ++counts[centre];
    }
    for (int i = 0; i < 2 * kCentres; ++i) {
      if (counts[i % kCentres] > 0) centres[i] = sums[i] / counts[i % kCentres];
    }
  }
  return centres;
}

// The centres are what changes in place.
class KMeans final : public bench::ArrayProgram<int> {
 public:
  KMeans(const Sizes& sizes, const std::vector<int>& points, const bench::CommonOptions& options)
      : ArrayProgram(options, "coordinates of centres", first_centres(points),
                     cpu_centres(points, sizes.rounds)),
        sizes_(sizes),
        points_(points),
        sums_(2 * kCentres),
        counts_(kCentres) {}

 private:
  [[nodiscard]] Clusters clusters() const {
    return {points_.data(), data(), sums_.data(), counts_.data(), sizes_.points()};
  }

  void restore() override {
    ArrayProgram::restore();
    sums_.fill_bytes(0);
    counts_.fill_bytes(0);
  }

  void launch(bool count) override {
    (count ? run_round<true> : run_round<false>)<<<1, static_cast<unsigned>(sizes_.children)>>>(
        clusters(), static_cast<int>(sizes_.rounds), lost());
  }

  void launch_flat() override {
    for (long long round = 0; round < sizes_.rounds; ++round) {
      assign_flat<<<static_cast<unsigned>(sizes_.children), kChildBlock>>>(clusters());
      move_centres<<<1, kCentres>>>(clusters());
    }
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("points", sizes_.points()).add("rounds", sizes_.rounds);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = sizes_.rounds * (sizes_.children + 2) - 1,
            .bytes_to_move = 8LL * sizes_.points(),
            .flat_kernels = 2 * sizes_.rounds};
  }

  Sizes sizes_;
  bench::DeviceArray<int> points_;
  bench::DeviceArray<int> sums_;
  bench::DeviceArray<int> counts_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("kmeans",
                         "k-means clustering, with children and two tail launches behind them each round");
  options.integer("children", sizes.children, 1, "children of a round, which have 64 points each");
  options.integer("rounds", sizes.rounds, 1, "rounds");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("kmeans", "children", sizes.children, kMostChildren);
  bench::require_at_most("kmeans", "rounds", sizes.rounds, 1 << 16);
  bench::require_device("kmeans");
  KMeans program(sizes, random_points(sizes, common.seed), common);
  return bench::run_benchmark("kmeans", common, program);
}
