// Barnes-Hut: the gravitational pull of all stars of a cluster on each of them, with CUDA dynamic
// parallelism.
//
// A parent thread per leaf cell of the octree launches a child grid over the cell's bodies; a thread of the
// child walks the tree for its body, and takes what is far away for a single point (octree.h tells how the
// tree is laid out). Bodies of one cell walk nearly the same way, which is why the cell is the natural unit
// of work; how many bodies a cell has is known only when the tree is there. Here children are few and long,
// where most programs with device-side launches have many short ones.
//
// `--variant flat` is one kernel with a thread per body, neighbouring bodies in neighbouring threads. The
// other way such programs are written, a warp that walks for its 32 bodies together and votes at each cell,
// visits 1.5 times as many elements; on an H200 it took 0.98 ms where this takes 0.58.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/harness.h"
#include "../common/parallel.h"
#include "octree.h"

constexpr int kParentBlock = 128;
constexpr int kChildBlock = 32;
constexpr int kFlatBlock = 256;
constexpr float kSoftening = 0.0025F;  // added to squared distances, so that close pairs stay finite

struct Tree {
  const float4* centre;
  const Extent* extent;
  int elements;
};

// Whether an element is opened hangs on this number, so processor and device must agree on its last bit:
// fused operations are spelled out, and none are left for a compiler to fuse.
__host__ __device__ inline float squared_distance(float4 a, float4 b) {
  const float dx = b.x - a.x;
  const float dy = b.y - a.y;
  const float dz = b.z - a.z;
  return fmaf(dx, dx, fmaf(dy, dy, dz * dz));
}

__device__ __forceinline__ void add_pull(float4& sum, float4 body, float4 centre, float distance2) {
  const float inverse = rsqrtf(distance2 + kSoftening);
  const float pull = centre.w * inverse * inverse * inverse;
  sum.x += pull * (centre.x - body.x);
  sum.y += pull * (centre.y - body.y);
  sum.z += pull * (centre.z - body.z);
}

__device__ __forceinline__ float4 walk_alone(const Tree& tree, float4 body) {
  float4 sum = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  int element = 0;
  while (element < tree.elements) {
    const float4 centre = tree.centre[element];
    const Extent extent = tree.extent[element];
    const float distance2 = squared_distance(body, centre);
    if (distance2 >= extent.opening) {
      add_pull(sum, body, centre, distance2);
      element = extent.next;
    } else {
      ++element;
    }
  }
  return sum;
}

__global__ void walk(Tree tree, const float4* bodies, int first, int count, float4* acceleration) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) acceleration[first + i] = walk_alone(tree, bodies[first + i]);
}

template <bool kCount>
__global__ void walk_from_leaves(Tree tree, const float4* bodies, const Leaf* leaves, int leaf_count,
                                 float4* acceleration, unsigned long long* lost) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < leaf_count) {
    const Leaf leaf = leaves[i];
    walk<<<(leaf.count + kChildBlock - 1) / kChildBlock, kChildBlock>>>(tree, bodies, leaf.first, leaf.count,
                                                                        acceleration);
    bench::count_if_lost<kCount>(lost);
  }
}

namespace {

struct Sizes {
  long long bodies = 65536;
  long long leaf = 32;
  long long theta = 50;  // hundredths
};

// What the device must find for one body.
struct Expected {
  double x = 0;
  double y = 0;
  double z = 0;
  double pulls = 0;  // sum of all pulls' magnitudes: the scale of rounding errors
  long long interactions = 0;
};

// The same walk, summed in double precision.
Expected cpu_walk(const Octree& tree, float4 body) {
  Expected sum;
  const int elements = static_cast<int>(tree.centres.size());
  for (int element = 0; element < elements;) {
    const float4 centre = tree.centres[element];
    if (squared_distance(body, centre) < tree.extents[element].opening) {
      ++element;
      continue;
    }
    element = tree.extents[element].next;
    const double dx = static_cast<double>(centre.x) - body.x;
    const double dy = static_cast<double>(centre.y) - body.y;
    const double dz = static_cast<double>(centre.z) - body.z;
    const double square = dx * dx + dy * dy + dz * dz;
    const double pull = centre.w / ((square + kSoftening) * std::sqrt(square + kSoftening));
    sum.x += pull * dx;
    sum.y += pull * dy;
    sum.z += pull * dz;
    sum.pulls += pull * std::sqrt(square);
    ++sum.interactions;
  }
  return sum;
}

std::vector<Expected> cpu_walks(const Octree& tree) {
  std::vector<Expected> all(tree.bodies.size());
  constexpr size_t kSteps = 1024;  // a walk is long: worth a thread where that many loop rounds are
  bench::parallel_ranges(all.size() * kSteps, [&](size_t begin, size_t end) {
    for (size_t i = begin / kSteps; i < end / kSteps; ++i) all[i] = cpu_walk(tree, tree.bodies[i]);
  });
  return all;
}

class BarnesHut : public bench::Benchmark {
 public:
  BarnesHut(const Sizes& sizes, const bench::CommonOptions& options)
      : sizes_(sizes),
        variant_(options.variant),
        tree_(OctreeBuilder(star_cluster(static_cast<int>(sizes.bodies), options.seed),
                            static_cast<int>(sizes.leaf), static_cast<double>(sizes.theta) / 100)
                  .build()),
        expected_(cpu_walks(tree_)),
        bodies_(tree_.bodies),
        leaves_(tree_.leaves),
        centres_(tree_.centres),
        extents_(tree_.extents),
        acceleration_(tree_.bodies.size()),
        lost_(1) {}

  void reset() override {
    acceleration_.fill_bytes(0xff);
    lost_.fill_bytes(0);
  }

  void run() override {
    const unsigned blocks = bench::blocks_for(body_count(), kFlatBlock);
    if (variant_ == "flat") {
      walk<<<blocks, kFlatBlock>>>(device_tree(), bodies_.data(), 0, body_count(), acceleration_.data());
    } else {
      walk_with_children<false>();
    }
    bench::check(cudaGetLastError(), "launching the walks");
  }

  long long count_lost_launches() override {
    walk_with_children<true>();
    bench::check(cudaGetLastError(), "launching the walks");
    return static_cast<long long>(lost_.to_host()[0]);
  }

  // Single precision over a few thousand pulls: at worst 1e-4 of the sum of their magnitudes, 4e-6 where
  // roundings are as often up as down. One pull left out is some 5e-4.
  std::string verify() override {
    constexpr double kTolerance = 2e-5;
    const std::vector<float4> found = acceleration_.to_host();
    size_t different = 0;
    size_t example = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const Expected& e = expected_[i];
      const double error = std::hypot(found[i].x - e.x, found[i].y - e.y, found[i].z - e.z);
      if (error <= kTolerance * e.pulls) continue;  // NaN goes on
      if (different++ == 0) example = i;
    }
    if (different == 0) return "";
    return std::to_string(different) + " accelerations differ, number " + std::to_string(example) +
           " begins with " + std::to_string(found[example].x) + " instead of " +
           std::to_string(expected_[example].x);
  }

  void describe(bench::JsonObject& report) const override {
    long long interactions = 0;
    for (const Expected& e : expected_) interactions += e.interactions;
    const auto elements = static_cast<long long>(tree_.centres.size());
    const auto leaves = static_cast<long long>(tree_.leaves.size());
    report.add("bodies", body_count()).add("theta", static_cast<double>(sizes_.theta) / 100);
    report.add("leaf_size", sizes_.leaf).add("leaves", leaves).add("cells", elements - body_count());
    report.add("interactions", interactions);
    report.add("child_launches", variant_ == "cdp" ? leaves : 0LL);
    // Each body and its acceleration; each element of the tree.
    report.add("bytes_to_move", 32LL * body_count() + 24LL * elements);
    report.add("float_operations", 20 * interactions);  // of each about so many
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    return bench::HostWork{.kernels = 1, .parents = variant_ == "cdp" ? 1 : 0};
  }

 private:
  [[nodiscard]] int body_count() const { return static_cast<int>(tree_.bodies.size()); }
  [[nodiscard]] Tree device_tree() const {
    return {centres_.data(), extents_.data(), static_cast<int>(tree_.centres.size())};
  }

  template <bool kCount>
  void walk_with_children() {
    const int leaves = static_cast<int>(tree_.leaves.size());
    walk_from_leaves<kCount><<<bench::blocks_for(leaves, kParentBlock), kParentBlock>>>(
        device_tree(), bodies_.data(), leaves_.data(), leaves, acceleration_.data(), lost_.data());
  }

  Sizes sizes_;
  std::string variant_;
  Octree tree_;
  std::vector<Expected> expected_;
  bench::DeviceArray<float4> bodies_;
  bench::DeviceArray<Leaf> leaves_;
  bench::DeviceArray<float4> centres_;
  bench::DeviceArray<Extent> extents_;
  bench::DeviceArray<float4> acceleration_;
  bench::DeviceArray<unsigned long long> lost_;
};

[[noreturn]] void give_up(const char* message) {
  std::fprintf(stderr, "bh: %s\n", message);
  std::exit(2);
}

// At larger angles than this a cell could act as a point on a body inside it.
constexpr long long kLargestTheta = 57;  // hundredths; 1 / sqrt(3)

void check_sizes(const Sizes& sizes) {
  if (sizes.bodies > 1 << 22) give_up("--bodies: at most 4194304");
  if (sizes.leaf > 1 << 20) give_up("--leaf: at most 1048576");
  if (sizes.theta > kLargestTheta) give_up("--theta: at most 57");
}

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  Sizes sizes;
  bench::Options options("bh", "Barnes-Hut forces with one child kernel per leaf cell of the octree");
  options.integer("bodies", sizes.bodies, 2, "number of bodies");
  options.integer("leaf", sizes.leaf, 1, "bodies above which a cell is divided");
  options.integer("theta", sizes.theta, 10, "opening angle in hundredths");
  common.add_to(options);
  options.parse(argc, argv);
  check_sizes(sizes);
  bench::require_device("bh");
  BarnesHut barnes_hut(sizes, common);
  return bench::run_benchmark("bh", common, barnes_hut);
}
