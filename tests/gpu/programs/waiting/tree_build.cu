// Builds a bounding volume hierarchy over sorted intervals, in blocks of two threads. Each thread launches
// the grid that builds one of the two subtrees and waits for it. After a barrier, the first thread takes the
// bounds of its node from those of the two children.
#include "sizes.h"

struct Interval {
  int low, high;
};

struct Node {
  Interval bounds;
  int left, right;  // nodes; 0 in leaves
};

struct Tree {
  const Interval* intervals;
  Node* nodes;
};

namespace {

constexpr int kLeaf = 3;  // the most intervals of a leaf

}  // namespace

// Builds the subtree of intervals first to last - 1. It has at most 2 * (last - first) - 1 nodes.
extern "C" __global__ void build(Tree tree, int node, int first, int last);

#ifdef __CUDACC__
namespace {

__device__ Interval join(const Interval& a, const Interval& b) {
  return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

// The first interval of the right subtree: the first whose low end lies beyond the middle of all low ends.
__device__ int split(const Interval* intervals, int first, int last) {
  const int middle = (intervals[first].low + intervals[last - 1].low) / 2;
  int at = first + 1;
  while (at < last - 1 && intervals[at].low <= middle) ++at;
  return at;
}

}  // namespace

extern "C" __global__ void build(Tree tree, int node, int first, int last) {
  Node& result = tree.nodes[node];
  if (last - first <= kLeaf) {
    if (threadIdx.x != 0) return;
    result.bounds = tree.intervals[first];
    for (int i = first + 1; i < last; ++i) result.bounds = join(result.bounds, tree.intervals[i]);
    return;
  }
  const int middle = split(tree.intervals, first, last);
  const int left = node + 1, right = node + 2 * (middle - first);
  const bool is_left = threadIdx.x == 0;
  build<<<1, 2>>>(tree, is_left ? left : right, is_left ? first : middle, is_left ? middle : last);
  cudaDeviceSynchronize();
  __syncthreads();
  if (is_left) result = {join(tree.nodes[left].bounds, tree.nodes[right].bounds), left, right};
}
#endif

#ifndef __CUDACC_RTC__
#include <algorithm>
#include <random>

namespace {

std::vector<Interval> random_intervals(int count) {
  std::mt19937 random(count);
  std::vector<Interval> intervals(count);
  for (Interval& interval : intervals) {
    interval.low = static_cast<int>(random() % 100000);
    interval.high = interval.low + static_cast<int>(random() % 20000);
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.low < b.low; });
  return intervals;
}

// Appends low end, high end and children of each node in the order of a walk from the root.
void on_cpu(const std::vector<Interval>& all, int node, int first, int last, std::vector<int>& walk) {
  int high = all[first].high;
  for (int i = first; i < last; ++i) high = std::max(high, all[i].high);
  const bool is_leaf = last - first <= kLeaf;
  const int middle_low = (all[first].low + all[last - 1].low) / 2;
  const auto beyond = std::partition_point(all.begin() + first + 1, all.begin() + last - 1,
                                           [&](const Interval& i) { return i.low <= middle_low; });
  const int middle = static_cast<int>(beyond - all.begin());
  const int left = is_leaf ? 0 : node + 1, right = is_leaf ? 0 : node + 2 * (middle - first);
  walk.insert(walk.end(), {all[first].low, high, left, right});
  if (is_leaf) return;
  on_cpu(all, left, first, middle, walk);
  on_cpu(all, right, middle, last, walk);
}

void walk_nodes(const std::vector<Node>& nodes, int node, std::vector<int>& walk) {
  const Node& at = nodes[node];
  walk.insert(walk.end(), {at.bounds.low, at.bounds.high, at.left, at.right});
  if (at.left != 0) walk_nodes(nodes, at.left, walk);
  if (at.right != 0) walk_nodes(nodes, at.right, walk);
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("tree_build", argc, argv, [](gpu::Report& report, int size) {
    const int count = 8 << (3 * size);
    const std::vector<Interval> intervals = random_intervals(count);
    const gpu::Buffer<Interval> input(intervals);
    const gpu::Buffer<Node> nodes(2 * intervals.size());
    WAITING_LAUNCH(build, 1, 2)(Tree{input.data(), nodes.data()}, 0, 0, count);
    gpu::wait("build");
    std::vector<int> got, want;
    walk_nodes(nodes.to_host(), 0, got);
    on_cpu(intervals, 0, 0, count, want);
    report.expect_equal("bounds and children", got, want);
  });
}
#endif
