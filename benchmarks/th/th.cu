// Tree heights: how many levels are below every node, by a kernel that recurses over the tree.
//
// The kernel works on one node with a thread per child; a child that has children of its own gets a launch of
// the same kernel. A node with children is one level higher than its children, its parent two and so on, so
// one thread of the node's grid raises the heights all the way up: a kernel can not wait for its children and
// collect.
//
// With `--threshold N`, a thread whose child has at most N children finishes everything below that child
// itself, level by level, which the numbering of the nodes makes a plain loop.
//
// `--variant flat` goes up the tree instead, a kernel per level: a group of threads per node finds its
// highest child.
#include "../common/device.cuh"
#include "../common/tree_benchmark.h"

constexpr int kChildBlock = 128;
constexpr int kFlatBlock = 256;

// Raises `node`, which has children, and its ancestors. Heights only grow, so one that was high enough when
// it was read needs no atomic operation.
__device__ void raise_upwards(const bench::DeviceTree& tree, int node) {
  int height = 1;
  for (int above = node; above >= 0; above = tree.parent[above], ++height) {
    if (tree.result[above] < height) atomicMax(&tree.result[above], height);
  }
}

// Does what launches would do for `root` and all below it: the descendants on one level are a range.
__device__ void finish_below(const bench::DeviceTree& tree, int root) {
  int begin = root;
  int end = root + 1;
  while (begin < end) {
    for (int node = begin; node < end; ++node) {
      if (tree.first[node + 1] > tree.first[node]) raise_upwards(tree, node);
    }
    begin = tree.first[begin];
    end = tree.first[end];
  }
}

template <bool kCount>
__global__ void descend(bench::DeviceTree tree, int node, unsigned long long* lost) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int begin = tree.first[node];
  const int children = tree.first[node + 1] - begin;
  if (i == 0) raise_upwards(tree, node);
  if (i < children) {
    const int child = begin + i;
    const int grandchildren = tree.first[child + 1] - tree.first[child];
    if (grandchildren > tree.threshold) {
      descend<kCount><<<(grandchildren + kChildBlock - 1) / kChildBlock, kChildBlock>>>(tree, child, lost);
      bench::count_if_lost<kCount>(lost);
    } else if (grandchildren > 0) {
      finish_below(tree, child);
    }
  }
}

// 2^lane_bits threads for each of the level's nodes, which are [begin, end).
__global__ void highest_child(bench::DeviceTree tree, int begin, int end, int lane_bits) {
  const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long node = begin + (thread >> lane_bits);
  const int lanes = 1 << lane_bits;
  const int lane = threadIdx.x & (lanes - 1);
  int height = 0;
  if (node < end) {
    const int last = tree.first[node + 1];
    for (int child = tree.first[node] + lane; child < last; child += lanes) {
      height = max(height, tree.result[child] + 1);
    }
  }
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    height = max(height, __shfl_xor_sync(0xffffffff, height, offset));
  }
  if (node < end && lane == 0) tree.result[node] = height;
}

namespace {

class Heights : public bench::TreeBenchmark {
 public:
  explicit Heights(const bench::TreeOptions& options)
      : TreeBenchmark(options, bench::cpu_heights, "heights") {}

  void run() override {
    if (flat()) {
      raise_level_by_level();
    } else {
      recurse<false>();
    }
  }

  long long count_lost_launches() override {
    recurse<true>();
    return lost_on_host();
  }

 private:
  template <bool kCount>
  void recurse() {
    if (tree().children(0) == 0) return;
    descend<kCount>
        <<<bench::blocks_for(tree().children(0), kChildBlock), kChildBlock>>>(on_device(), 0, lost());
    bench::check(cudaGetLastError(), "launching the recursion");
  }

  void raise_level_by_level() {
    for (int level = tree().levels() - 2; level >= 0; --level) {
      const int begin = tree().level[level];
      const int end = tree().level[level + 1];
      const long long threads = static_cast<long long>(end - begin) << lane_bits();
      highest_child<<<bench::blocks_for(threads, kFlatBlock), kFlatBlock>>>(on_device(), begin, end,
                                                                            lane_bits());
      bench::check(cudaGetLastError(), "launching a level");
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  bench::TreeOptions options;
  options.parse("th", "tree heights with a recursive launch for every node that has children", argc, argv);
  bench::require_device("th");
  Heights heights(options);
  return bench::run_benchmark("th", options.common, heights);
}
