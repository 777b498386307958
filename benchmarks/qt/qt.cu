// Quadtree over random points in the unit square, with CUDA dynamic parallelism: the recursion of the CUDA
// samples, where a node's block sorts its points into quadrants and launches a grid of four blocks for them.
//
// A node's points are a range of one of two buffers; sorting them moves them to the other one, so the depth
// says where a node's points are. A leaf copies its points to the first buffer if they are not there. Sorting
// keeps the points' order, hence the final order of all points does not depend on which block ran when; only
// the numbers that nodes get do.
//
// Coordinates are multiples of 2^-20 and so are the centres of all squares, down to the deepest that is
// allowed: comparing them is exact, on the CPU as on the GPU.
//
// `--variant flat` is the same without recursion: a launch for each level and a team of threads for each node
// that is split, as large as suits the number of points; leaves need no team of their own.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/harness.h"
#include "../common/parallel.h"
#include "../common/random.h"

constexpr int kWarp = 32;
constexpr int kNodeWarps = 4;  // of the block that builds a node
constexpr int kFlatBlock = 128;
constexpr int kPointBits = 20;
constexpr long long kMostPoints = 1 << 24;
constexpr int kNoQuadrant = 4;
constexpr int kLeaf = -1;
constexpr int kUnbuilt = -2;  // nobody has looked at the node yet

struct alignas(16) Node {
  float low_x, low_y, high_x, high_y;
  int begin, end;   // its points
  int depth;        // of the root: 0
  int first_child;  // of four that follow one another, or kLeaf or kUnbuilt
};

struct Tree {
  Node* nodes;
  int* node_count;
  float2* points[2];
  int max_depth;
  int leaf_points;  // a node with more points is split
};

__host__ __device__ inline bool is_leaf(const Node& node, int max_depth, int leaf_points) {
  return node.depth >= max_depth || node.end - node.begin <= leaf_points;
}

// Quadrant 1 is right of quadrant 0; 2 and 3 are above them.
__host__ __device__ inline int quadrant_of(const Node& node, float2 point) {
  const float x = 0.5F * (node.low_x + node.high_x);
  const float y = 0.5F * (node.low_y + node.high_y);
  return (point.x >= x ? 1 : 0) + (point.y >= y ? 2 : 0);
}

__host__ __device__ inline Node child_of(const Node& node, int quadrant, int begin, int end) {
  const float x = 0.5F * (node.low_x + node.high_x);
  const float y = 0.5F * (node.low_y + node.high_y);
  const bool right = (quadrant & 1) != 0;
  const bool above = (quadrant & 2) != 0;
  return {right ? x : node.low_x,
          above ? y : node.low_y,
          right ? node.high_x : x,
          above ? node.high_y : y,
          begin,
          end,
          node.depth + 1,
          kUnbuilt};
}

// A team is one warp or a whole block.
template <int kWarps>
__device__ void sync_team() {
  if constexpr (kWarps == 1) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

// What the warps of a team tell one another: how many points of each quadrant a warp has, and where its first
// one goes.
template <int kWarps>
struct Split {
  int count[4][kWarps];
  int place[4][kWarps];

  [[nodiscard]] __device__ int begin(int quadrant) const { return place[quadrant][0]; }
  [[nodiscard]] __device__ int end(const Node& node, int quadrant) const {
    return quadrant < 3 ? place[quadrant + 1][0] : node.end;
  }
};

// A warp's share of a node's points.
struct Share {
  int begin;
  int end;
};

template <int kWarps>
__device__ Share share_of(const Node& node, int warp) {
  const int each = (node.end - node.begin + kWarps - 1) / kWarps;
  const int begin = min(node.begin + warp * each, node.end);
  return {begin, min(begin + each, node.end)};
}

// Moves a node's points from one buffer to the other, sorted by quadrant and otherwise in the same order. On
// return all threads of the team may read the points and the split.
template <int kWarps>
__device__ void sort_points(const Node& node, const float2* from, float2* to, int thread,
                            Split<kWarps>& split) {
  const int warp = thread / kWarp;
  const int lane = thread % kWarp;
  const Share share = share_of<kWarps>(node, warp);
  int count[4] = {0, 0, 0, 0};
  for (int i = share.begin; i < share.end; i += kWarp) {
    const int quadrant = i + lane < share.end ? quadrant_of(node, from[i + lane]) : kNoQuadrant;
    for (int q = 0; q < 4; ++q) count[q] += __popc(__ballot_sync(~0U, quadrant == q));
  }
  if (lane == 0) {
    for (int q = 0; q < 4; ++q) split.count[q][warp] = count[q];
  }
  sync_team<kWarps>();
  if (thread < 4 * kWarps) {
    const int* counts = &split.count[0][0];
    int place = node.begin;
    for (int i = 0; i < thread; ++i) place += counts[i];
    (&split.place[0][0])[thread] = place;
  }
  sync_team<kWarps>();
  int next[4];
  for (int q = 0; q < 4; ++q) next[q] = split.place[q][warp];
  for (int i = share.begin; i < share.end; i += kWarp) {
    const float2 point = i + lane < share.end ? from[i + lane] : float2{0, 0};
    const int quadrant = i + lane < share.end ? quadrant_of(node, point) : kNoQuadrant;
    for (int q = 0; q < 4; ++q) {
      const unsigned those = __ballot_sync(~0U, quadrant == q);
      if (quadrant == q) to[next[q] + __popc(those & ((1U << lane) - 1))] = point;
      next[q] += __popc(those);
    }
  }
  sync_team<kWarps>();
}

__device__ void copy_points(const Tree& tree, int begin, int end, int thread, int threads) {
  for (int i = begin + thread; i < end; i += threads) tree.points[0][i] = tree.points[1][i];
}

// Builds four siblings and what is below them, a block for each.
template <bool kCount>
__global__ void build(Tree tree, int first_sibling, unsigned long long* lost) {
  __shared__ Split<kNodeWarps> split;
  const int self = first_sibling + static_cast<int>(blockIdx.x);
  const Node node = tree.nodes[self];
  const int thread = static_cast<int>(threadIdx.x);
  const int buffer = node.depth % 2;
  if (is_leaf(node, tree.max_depth, tree.leaf_points)) {
    if (buffer == 1) copy_points(tree, node.begin, node.end, thread, kNodeWarps * kWarp);
    __syncthreads();  // all have read the node
    if (thread == 0) tree.nodes[self].first_child = kLeaf;
    return;
  }
  sort_points<kNodeWarps>(node, tree.points[buffer], tree.points[1 - buffer], thread, split);
  if (thread == 0) {
    const int child = atomicAdd(tree.node_count, 4);
    for (int q = 0; q < 4; ++q) {
      tree.nodes[child + q] = child_of(node, q, split.begin(q), split.end(node, q));
    }
    tree.nodes[self].first_child = child;
    build<kCount><<<4, kNodeWarps * kWarp>>>(tree, child, lost);
    bench::count_if_lost<kCount>(lost);
  }
}

// The nodes to split on one level, and where those of the next one go.
struct Level {
  const int* list;
  int size;
  int* next_list;
  int* next_size;
};

template <int kWarps>
__device__ void make_children(const Tree& tree, const Level& level, int self, const Node& node,
                              const Split<kWarps>& split) {
  const int child = atomicAdd(tree.node_count, 4);
  for (int q = 0; q < 4; ++q) {
    Node made = child_of(node, q, split.begin(q), split.end(node, q));
    if (is_leaf(made, tree.max_depth, tree.leaf_points)) {
      made.first_child = kLeaf;
    } else {
      level.next_list[atomicAdd(level.next_size, 1)] = child + q;
    }
    tree.nodes[child + q] = made;
  }
  tree.nodes[self].first_child = child;
}

template <int kWarps>
__global__ void split_level(Tree tree, Level level) {
  constexpr int kTeams = kWarps == 1 ? kFlatBlock / kWarp : 1;
  constexpr int kTeam = kWarps * kWarp;
  __shared__ Split<kWarps> splits[kTeams];
  const int team = static_cast<int>(threadIdx.x) / kTeam;
  const int thread = static_cast<int>(threadIdx.x) % kTeam;
  const int item = static_cast<int>(blockIdx.x) * kTeams + team;
  if (item >= level.size) return;  // the whole team
  Split<kWarps>& split = splits[team];
  const int self = level.list[item];
  const Node node = tree.nodes[self];
  const int buffer = node.depth % 2;
  sort_points<kWarps>(node, tree.points[buffer], tree.points[1 - buffer], thread, split);
  if (thread == 0) make_children<kWarps>(tree, level, self, node, split);
  if (buffer == 0) {
    for (int q = 0; q < 4; ++q) {
      const Node child = child_of(node, q, split.begin(q), split.end(node, q));
      if (is_leaf(child, tree.max_depth, tree.leaf_points)) {
        copy_points(tree, child.begin, child.end, thread, kTeam);
      }
    }
  }
}

namespace {

struct QtOptions {
  long long points = 40000;
  long long max_depth = 12;
  long long leaf_points = 1;

  void add_to(bench::Options& options) {
    options.integer("points", points, 1, "random points");
    options.integer("max-depth", max_depth, 0, "nodes at this depth are not split");
    options.integer("leaf-points", leaf_points, 1, "nodes with more points than this are split");
  }

  void check() const {
    if (points <= kMostPoints && max_depth <= kPointBits && leaf_points <= kMostPoints) return;
    std::fprintf(stderr, "qt: at most %lld points and depth %d\n", kMostPoints, kPointBits);
    std::exit(2);
  }
};

std::vector<float2> random_points(size_t count, uint64_t seed) {
  std::vector<float2> points(count);
  bench::parallel_for(count, [&](size_t i) {
    bench::Random random(seed, i);
    points[i].x = static_cast<float>(random.below(1U << kPointBits)) / (1U << kPointBits);
    points[i].y = static_cast<float>(random.below(1U << kPointBits)) / (1U << kPointBits);
  });
  return points;
}

// The tree built by the CPU.
struct Reference {
  Reference(std::vector<float2> unsorted, int max_depth, int leaf_points)
      : points(std::move(unsorted)), nodes{{0, 0, 1, 1, 0, static_cast<int>(points.size()), 0, kUnbuilt}} {
    std::vector<float2> quadrants[4];
    for (size_t self = 0; self < nodes.size(); ++self) {
      if (is_leaf(nodes[self], max_depth, leaf_points)) {
        nodes[self].first_child = kLeaf;
        continue;
      }
      nodes[self].first_child = static_cast<int>(nodes.size());
      split(nodes[self], quadrants);
      ++splits;
    }
  }

  std::vector<float2> points;
  std::vector<Node> nodes;
  int splits = 0;

 private:
  void split(const Node node, std::vector<float2> (&quadrants)[4]) {
    for (auto& quadrant : quadrants) quadrant.clear();
    for (int i = node.begin; i < node.end; ++i) quadrants[quadrant_of(node, points[i])].push_back(points[i]);
    int begin = node.begin;
    for (int q = 0; q < 4; ++q) {
      const int end = begin + static_cast<int>(quadrants[q].size());
      for (int i = begin; i < end; ++i) points[i] = quadrants[q][i - begin];
      nodes.push_back(child_of(node, q, begin, end));
      begin = end;
    }
  }
};

bool same_but_for_children(const Node& a, const Node& b) {
  return a.low_x == b.low_x && a.low_y == b.low_y && a.high_x == b.high_x && a.high_y == b.high_y &&
         a.begin == b.begin && a.end == b.end && a.depth == b.depth;
}

// Walks both trees from the root, since the numbers of nodes may differ; empty when they are the same.
std::string tree_differences(const std::vector<Node>& expected, const std::vector<Node>& found) {
  std::vector<std::pair<int, int>> pending = {{0, 0}};
  while (!pending.empty()) {
    const auto [e, f] = pending.back();
    pending.pop_back();
    const std::string name = "node " + std::to_string(f) + " at depth " + std::to_string(expected[e].depth);
    if (!same_but_for_children(expected[e], found[f])) return name + " has the wrong square or points";
    if (found[f].first_child == kUnbuilt) return name + " was never built";
    if (expected[e].first_child == kLeaf) {
      if (found[f].first_child != kLeaf) return name + " should be a leaf";
      continue;
    }
    if (found[f].first_child <= 0 || found[f].first_child > static_cast<int>(found.size()) - 4) {
      return name + " should have children";
    }
    for (int q = 0; q < 4; ++q) pending.emplace_back(expected[e].first_child + q, found[f].first_child + q);
  }
  return "";
}

std::vector<float> coordinates(const std::vector<float2>& points) {
  std::vector<float> values;
  values.reserve(2 * points.size());
  for (const float2& point : points) {
    values.push_back(point.x);
    values.push_back(point.y);
  }
  return values;
}

class Quadtree : public bench::Benchmark {
 public:
  Quadtree(const QtOptions& options, const bench::CommonOptions& common)
      : max_depth_(static_cast<int>(options.max_depth)),
        leaf_points_(static_cast<int>(options.leaf_points)),
        variant_(common.variant),
        points_(random_points(static_cast<size_t>(options.points), static_cast<uint64_t>(common.seed))),
        expected_(points_, max_depth_, leaf_points_),
        start_(points_),
        buffers_{bench::DeviceArray<float2>(points_.size()), bench::DeviceArray<float2>(points_.size())},
        nodes_(expected_.nodes.size()),
        node_count_(1),
        lists_{bench::DeviceArray<int>(expected_.splits + 1), bench::DeviceArray<int>(expected_.splits + 1)},
        sizes_(options.max_depth + 1),
        lost_(1) {
    bench::check(cudaMallocHost(&size_on_host_, sizeof(int)), "cudaMallocHost");
  }
  ~Quadtree() override { cudaFreeHost(size_on_host_); }
  Quadtree(const Quadtree&) = delete;
  Quadtree& operator=(const Quadtree&) = delete;

  void reset() override {
    const Node root = {0, 0, 1, 1, 0, static_cast<int>(points_.size()), 0, kUnbuilt};
    const int one = 1;
    bench::check(cudaMemcpy(buffers_[0].data(), start_.data(), start_.bytes(), cudaMemcpyDeviceToDevice),
                 "resetting the points");
    buffers_[1].fill_bytes(0);
    nodes_.fill_bytes(0);
    bench::check(cudaMemcpy(nodes_.data(), &root, sizeof root, cudaMemcpyHostToDevice), "resetting the root");
    bench::check(cudaMemcpy(node_count_.data(), &one, sizeof one, cudaMemcpyHostToDevice), "cudaMemcpy");
    lists_[0].fill_bytes(0);  // the root
    sizes_.fill_bytes(0);
    lost_.fill_bytes(0);
  }

  void run() override {
    if (variant_ == "flat") {
      build_by_level();
    } else {
      build<false><<<1, kNodeWarps * kWarp>>>(tree(), 0, lost_.data());
    }
  }

  long long count_lost_launches() override {
    build<true><<<1, kNodeWarps * kWarp>>>(tree(), 0, lost_.data());
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override {
    const int count = node_count_.to_host()[0];
    if (count != static_cast<int>(expected_.nodes.size())) {
      return std::to_string(count) + " nodes instead of " + std::to_string(expected_.nodes.size());
    }
    std::string mistake = tree_differences(expected_.nodes, nodes_.to_host());
    if (mistake.empty()) {
      mistake = bench::differences("coordinates", coordinates(expected_.points),
                                   coordinates(buffers_[0].to_host()));
    }
    return mistake;
  }

  void describe(bench::JsonObject& report) const override {
    const auto points = static_cast<long long>(points_.size());
    const auto nodes = static_cast<long long>(expected_.nodes.size());
    report.add("points", points).add("max_depth", max_depth_).add("leaf_points", leaf_points_);
    report.add("nodes", nodes).add("deepest", expected_.nodes.back().depth);
    report.add("child_launches", variant_ == "cdp" ? expected_.splits : 0);
    // Every point once in and once out, and every node out.
    report.add("bytes_to_move", 16 * points + static_cast<long long>(sizeof(Node)) * nodes);
  }

  // Without dynamic parallelism a level is split for each that there is below it.
  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    if (variant_ == "cdp") return bench::HostWork{.kernels = 1, .parents = 1};
    const long long levels = expected_.nodes.back().depth;
    return bench::HostWork{.kernels = levels, .fills = expected_.splits == 0 ? 1 : 0, .reads = levels};
  }

 private:
  [[nodiscard]] Tree tree() const {
    return {nodes_.data(),
            node_count_.data(),
            {buffers_[0].data(), buffers_[1].data()},
            max_depth_,
            leaf_points_};
  }

  // Teams of up to about as many threads as a node has points.
  void launch_level(const Level& level) const {
    const auto points_per_node = static_cast<int>(points_.size()) / level.size;
    if (points_per_node > 1024) {
      split_level<32><<<level.size, 32 * kWarp>>>(tree(), level);
    } else if (points_per_node > 128) {
      split_level<4><<<level.size, 4 * kWarp>>>(tree(), level);
    } else {
      split_level<1><<<bench::blocks_for(level.size, kFlatBlock / kWarp), kFlatBlock>>>(tree(), level);
    }
  }

  // A root that is a leaf is marked by the host, which knows it.
  void build_by_level() {
    if (expected_.splits == 0) {
      bench::check(cudaMemsetAsync(&nodes_.data()->first_child, 0xff, sizeof(int)), "cudaMemsetAsync");
      return;
    }
    *size_on_host_ = 1;
    for (int depth = 0; *size_on_host_ > 0 && depth < max_depth_; ++depth) {
      const Level level = {lists_[depth % 2].data(), *size_on_host_, lists_[(depth + 1) % 2].data(),
                           sizes_.data() + depth};
      launch_level(level);
      bench::check(cudaGetLastError(), "launching a level");
      bench::check(cudaMemcpy(size_on_host_, level.next_size, sizeof(int), cudaMemcpyDeviceToHost),
                   "a level");
    }
  }

  int max_depth_;
  int leaf_points_;
  std::string variant_;
  std::vector<float2> points_;
  Reference expected_;
  bench::DeviceArray<float2> start_;
  bench::DeviceArray<float2> buffers_[2];
  bench::DeviceArray<Node> nodes_;
  bench::DeviceArray<int> node_count_;
  bench::DeviceArray<int> lists_[2];
  bench::DeviceArray<int> sizes_;  // of the list that each level made
  bench::DeviceArray<unsigned long long> lost_;
  int* size_on_host_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  QtOptions input;
  bench::Options options("qt", "quadtree whose nodes launch a grid of four blocks for their children");
  input.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  input.check();
  bench::require_device("qt");
  Quadtree quadtree(input, common);
  return bench::run_benchmark("qt", common, quadtree);
}
