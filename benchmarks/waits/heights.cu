// Tree heights: how many levels are below every node, by a kernel that collects what its children have found.
//
// The kernel works on one node with a thread per child; a child that has children of its own gets a launch of
// the same kernel. The threads wait for them, and the block takes the greatest height. The tail launch of a
// block that has launched something does that last step.
//
// `--variant flat` goes up the tree, a kernel per level, with a warp for each node.
#include <algorithm>
#include <string>
#include <vector>

#include "../common/tree.h"
#include "waiting_program.h"

namespace {

constexpr int kBlock = 128;

// The children of node n are nodes first[n] to first[n + 1] - 1. Heights are 0 at first.
struct Heights {
  const int* first;
  int* height;
};

__device__ int children_of(const Heights& tree, int node) { return tree.first[node + 1] - tree.first[node]; }

__host__ __device__ inline unsigned blocks_of(int children) { return bench::blocks_for(children, kBlock); }

// Raises the node to the greatest of the block's values. All threads of the block call this.
__device__ void raise_to_greatest(const Heights& tree, int node, int* greatest, int value) {
  if (value > 0) atomicMax(greatest, value);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(&tree.height[node], *greatest);
}

#ifdef BENCH_WAITS

__global__ void find_height(Heights tree, int node) {
  __shared__ int greatest;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), child = tree.first[node] + i;
  if (threadIdx.x == 0) greatest = 0;
  __syncthreads();
  int value = 0;
  if (i < children_of(tree, node)) {
    const int grandchildren = children_of(tree, child);
    if (grandchildren > 0) {
      cudaStream_t stream;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      find_height<<<blocks_of(grandchildren), kBlock, 0, stream>>>(tree, child);
      cudaStreamDestroy(stream);
      cudaDeviceSynchronize();
    }
    value = tree.height[child] + 1;
  }
  raise_to_greatest(tree, node, &greatest, value);
}

void launch_root(const Heights& tree, int children, bool, unsigned long long*) {
  find_height<<<blocks_of(children), kBlock>>>(tree, 0);
}
void launch_level(const Heights&, int, int) {}

#else

// Works on the node's children from number `first` on.
__global__ void collect(Heights tree, int node, int first) {
  __shared__ int greatest;
  const int i = first + static_cast<int>(threadIdx.x);
  if (threadIdx.x == 0) greatest = 0;
  __syncthreads();
  const bool is_child = i < children_of(tree, node);
  raise_to_greatest(tree, node, &greatest, is_child ? tree.height[tree.first[node] + i] + 1 : 0);
}

template <bool kCount>
__global__ void find_height(Heights tree, int node, unsigned long long* lost) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), child = tree.first[node] + i;
  const int grandchildren = i < children_of(tree, node) ? children_of(tree, child) : 0;
  if (grandchildren > 0) {
    find_height<kCount><<<blocks_of(grandchildren), kBlock, 0, cudaStreamFireAndForget>>>(tree, child, lost);
    bench::count_if_lost<kCount>(lost);
  }
  const bool has_launched = __syncthreads_or(grandchildren > 0) != 0;
  if (threadIdx.x != 0) return;
  if (has_launched) {
    collect<<<1, kBlock, 0, cudaStreamTailLaunch>>>(tree, node, i);
    bench::count_if_lost<kCount>(lost);
  } else {
    atomicMax(&tree.height[node], 1);
  }
}

void launch_root(const Heights& tree, int children, bool counts, unsigned long long* lost) {
  (counts ? find_height<true> : find_height<false>)<<<blocks_of(children), kBlock>>>(tree, 0, lost);
}

constexpr int kWarp = 32;

// Works on the nodes begin to end - 1.
__global__ void raise(Heights tree, int begin, int end) {
  const int node = begin + static_cast<int>(blockIdx.x * (kBlock / kWarp) + threadIdx.x / kWarp);
  if (node >= end) return;
  int height = 0;
  for (int child = tree.first[node] + static_cast<int>(threadIdx.x % kWarp); child < tree.first[node + 1];
       child += kWarp) {
    height = max(height, tree.height[child] + 1);
  }
  height = __reduce_max_sync(~0U, height);
  if (threadIdx.x % kWarp == 0) tree.height[node] = height;
}

void launch_level(const Heights& tree, int begin, int end) {
  raise<<<bench::blocks_for(end - begin, kBlock / kWarp), kBlock>>>(tree, begin, end);
}

#endif

class TreeHeights final : public bench::StreamProgram {
 public:
  TreeHeights(const bench::Tree& tree, const bench::CommonOptions& options)
      : StreamProgram(options),
        tree_(tree),
        expected_(bench::cpu_heights(tree)),
        first_(tree.first),
        height_(tree.parent.size()) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("heights", expected_, height_.to_host());
  }

 private:
  void restore() override { height_.fill_bytes(0); }
  void launch(bool count) override { launch_root(on_device(), tree_.children(0), count, lost()); }
  void launch_flat() override {
    for (int level = tree_.levels() - 2; level >= 0; --level) {
      launch_level(on_device(), tree_.level[level], tree_.level[level + 1]);
    }
  }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("nodes", tree_.nodes()).add("levels", tree_.levels());
  }

  [[nodiscard]] bench::RunFacts facts() const override {
    long long launches = 0, internal = 0;
    for (int node = 0; node < tree_.nodes(); ++node) {
      if (tree_.children(node) == 0) continue;
      ++internal;
      launches += node == 0 ? 0 : 1;
      if (!bench::kWaits) launches += tails(node);
    }
    return {.child_launches = launches,
            .bytes_to_move = 4LL * tree_.nodes() + 8 * internal,
            .flat_kernels = tree_.levels() - 1};
  }

  // Blocks of the node that have a tail launch.
  [[nodiscard]] long long tails(int node) const {
    long long count = 0;
    for (int begin = tree_.first[node]; begin < tree_.first[node + 1]; begin += kBlock) {
      bool launches = false;
      for (int child = begin; child < std::min(begin + kBlock, tree_.first[node + 1]); ++child) {
        launches = launches || tree_.children(child) > 0;
      }
      count += launches ? 1 : 0;
    }
    return count;
  }
  [[nodiscard]] Heights on_device() const { return {first_.data(), height_.data()}; }

  bench::Tree tree_;
  std::vector<int> expected_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> height_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::TreeInput input{.smallest = 64, .largest = 128};
  bench::WaitingOptions options("heights", "tree heights by blocks that wait for the nodes below");
  input.add_to(options);
  options.parse(argc, argv);
  TreeHeights program(input.load(static_cast<uint64_t>(options.common.seed)), options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
