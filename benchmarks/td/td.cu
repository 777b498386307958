// Tree descendants: how many nodes are below every node, by a kernel that recurses over the tree.
//
// The kernel works on one node with a thread per child; a child that has children of its own gets a launch of
// the same kernel. A node's number of children counts for the node and for everything above it, so one thread
// of the node's grid adds it all the way up: a kernel can not wait for its children and collect.
//
// With `--threshold N`, a thread whose child has at most N children finishes everything below that child
// itself, level by level, which the numbering of the nodes makes a plain loop.
//
// `--variant flat` goes up the tree instead, a kernel per level: a group of threads per node adds up the
// children's results.
#include "../common/device.cuh"
#include "../common/tree_benchmark.h"

constexpr int kChildBlock = 128;
constexpr int kFlatBlock = 256;

// Counts the children of `node` for it and for its ancestors.
__device__ void add_upwards(const bench::DeviceTree& tree, int node, int children) {
  for (int above = node; above >= 0; above = tree.parent[above]) atomicAdd(&tree.result[above], children);
}

// Does what launches would do for `root` and all below it: the descendants on one level are a range.
__device__ void finish_below(const bench::DeviceTree& tree, int root) {
  int begin = root;
  int end = root + 1;
  while (begin < end) {
    for (int node = begin; node < end; ++node) {
      const int children = tree.first[node + 1] - tree.first[node];
      if (children > 0) add_upwards(tree, node, children);
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
  if (i == 0) add_upwards(tree, node, children);
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
__global__ void add_children(bench::DeviceTree tree, int begin, int end, int lane_bits) {
  const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long node = begin + (thread >> lane_bits);
  const int lanes = 1 << lane_bits;
  const int lane = threadIdx.x & (lanes - 1);
  int sum = 0;
  if (node < end) {
    const int last = tree.first[node + 1];
    for (int child = tree.first[node] + lane; child < last; child += lanes) sum += tree.result[child] + 1;
  }
  for (int offset = lanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (node < end && lane == 0) tree.result[node] = sum;
}

namespace {

class Descendants : public bench::TreeBenchmark {
 public:
  explicit Descendants(const bench::TreeOptions& options)
      : TreeBenchmark(options, bench::cpu_descendants, "numbers of descendants") {}

  void run() override {
    if (flat()) {
      add_level_by_level();
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

  void add_level_by_level() {
    for (int level = tree().levels() - 2; level >= 0; --level) {
      const int begin = tree().level[level];
      const int end = tree().level[level + 1];
      const long long threads = static_cast<long long>(end - begin) << lane_bits();
      add_children<<<bench::blocks_for(threads, kFlatBlock), kFlatBlock>>>(on_device(), begin, end,
                                                                           lane_bits());
      bench::check(cudaGetLastError(), "launching a level");
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  bench::TreeOptions options;
  options.parse("td", "tree descendants with a recursive launch for every node that has children", argc,
                argv);
  bench::require_device("td");
  Descendants descendants(options);
  return bench::run_benchmark("td", options.common, descendants);
}
