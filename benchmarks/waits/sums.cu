// Sums over trees whose nodes have 256 values each. A block keeps its values while it waits for four blocks
// that work on the nodes below. Then it counts odd values, which it chooses by the sums of those.
//
// The values stay in registers across the wait. A tail launch has to read them again, and the block's own sum
// is kept in memory. `--variant flat` goes up the trees, a kernel per level.
#include <string>
#include <vector>

#include "../common/random.h"
#include "waiting_program.h"

namespace {

constexpr int kBlock = 64;
constexpr int kValues = 4;    // of a thread
constexpr int kChildren = 4;  // of a node
constexpr int kRoots = 4;

// The children of node n are the nodes 4n + 4 to 4n + 7.
struct Trees {
  const unsigned* values;
  unsigned* sums;  // of the nodes
};

// A thread's part of a node.
struct Part {
  unsigned values[kValues];
  unsigned sum;
};

__host__ __device__ inline int first_child(int node) { return kChildren * node + kRoots; }

__host__ __device__ inline Part part_of(const unsigned* values, int node, int thread) {
  Part part{};
  const unsigned* const own = values + (static_cast<size_t>(node) * kBlock + thread) * kValues;
  for (int i = 0; i < kValues; ++i) {
    part.values[i] = own[i];
    part.sum += own[i] >> i;
  }
  return part;
}

__host__ __device__ inline unsigned is_odd(const Part& part, unsigned below, int thread) {
  return (part.values[(below + static_cast<unsigned>(thread)) % kValues] ^ part.sum) & 1;
}

__host__ __device__ inline unsigned sum_below(const unsigned* sums, int node) {
  unsigned below = 0;
  for (int i = 0; i < kChildren; ++i) below += sums[first_child(node) + i];
  return below;
}

// The sum over the block, for all its threads.
__device__ unsigned add_up(unsigned* of_thread, unsigned value) {
  of_thread[threadIdx.x] = value;
  __syncthreads();
  unsigned sum = 0;
  for (int i = 0; i < kBlock; ++i) sum += of_thread[i];
  return sum;
}

// The sum of a node whose children are done. All threads of the block call this.
__device__ void finish(const Trees& trees, int node, const Part& part, unsigned own, bool has_children) {
  const unsigned below = has_children ? sum_below(trees.sums, node) : 0;
  const int odd = __syncthreads_count(static_cast<int>(is_odd(part, below, static_cast<int>(threadIdx.x))));
  if (threadIdx.x == 0) trees.sums[node] = own + below + static_cast<unsigned>(odd);
}

#ifdef BENCH_WAITS

// Block b works on node first + b.
__global__ void add(Trees trees, int first, int levels) {
  __shared__ unsigned of_thread[kBlock];
  const int node = first + static_cast<int>(blockIdx.x);
  const Part part = part_of(trees.values, node, static_cast<int>(threadIdx.x));
  const unsigned own = add_up(of_thread, part.sum);
  if (levels > 1) {
    if (threadIdx.x == 0) {
      add<<<kChildren, kBlock>>>(trees, first_child(node), levels - 1);
      cudaDeviceSynchronize();
    }
    __syncthreads();
  }
  finish(trees, node, part, own, levels > 1);
}

void launch_roots(const Trees& trees, int levels, bool, unsigned long long*) {
  add<<<kRoots, kBlock>>>(trees, 0, levels);
}
void launch_levels(const Trees&, int) {}

#else

// Block b works on node first + b, whose own sum stands where its sum is to be.
__global__ void add_children(Trees trees, int first) {
  const int node = first + static_cast<int>(blockIdx.x);
  const Part part = part_of(trees.values, node, static_cast<int>(threadIdx.x));
  const unsigned own = trees.sums[node];
  finish(trees, node, part, own, true);
}

// Block b works on node first + b.
template <bool kCount>
__global__ void add(Trees trees, int first, int levels, unsigned long long* lost) {
  __shared__ unsigned of_thread[kBlock];
  const int node = first + static_cast<int>(blockIdx.x);
  const Part part = part_of(trees.values, node, static_cast<int>(threadIdx.x));
  const unsigned own = add_up(of_thread, part.sum);
  if (levels == 1) {
    finish(trees, node, part, own, false);
    return;
  }
  if (threadIdx.x != 0) return;
  trees.sums[node] = own;
  add<kCount><<<kChildren, kBlock, 0, cudaStreamFireAndForget>>>(trees, first_child(node), levels - 1, lost);
  bench::count_if_lost<kCount>(lost);
  if (blockIdx.x != 0) return;
  add_children<<<gridDim.x, kBlock, 0, cudaStreamTailLaunch>>>(trees, first);
  bench::count_if_lost<kCount>(lost);
}

void launch_roots(const Trees& trees, int levels, bool counts, unsigned long long* lost) {
  (counts ? add<true> : add<false>)<<<kRoots, kBlock>>>(trees, 0, levels, lost);
}

__global__ void add_level(Trees trees, int first, bool has_children) {
  __shared__ unsigned of_thread[kBlock];
  const int node = first + static_cast<int>(blockIdx.x);
  const Part part = part_of(trees.values, node, static_cast<int>(threadIdx.x));
  finish(trees, node, part, add_up(of_thread, part.sum), has_children);
}

void launch_levels(const Trees& trees, int levels) {
  int first = 0, count = kRoots;
  for (int level = 1; level < levels; ++level, count *= kChildren) first = first_child(first);
  for (int level = levels; level > 0; --level, count /= kChildren) {
    add_level<<<count, kBlock>>>(trees, first, level < levels);
    first = (first - kRoots) / kChildren;
  }
}

#endif

std::vector<unsigned> random_values(int count, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<unsigned> values(static_cast<size_t>(count) * kBlock * kValues);
  for (unsigned& value : values) value = random.below(1U << 24);
  return values;
}

std::vector<unsigned> cpu_sums(const std::vector<unsigned>& values, int nodes) {
  std::vector<unsigned> sums(static_cast<size_t>(nodes));
  for (int node = nodes - 1; node >= 0; --node) {
    const unsigned below = first_child(node) < nodes ? sum_below(sums.data(), node) : 0;
    unsigned sum = below;
    for (int thread = 0; thread < kBlock; ++thread) {
      const Part part = part_of(values.data(), node, thread);
      sum += part.sum + is_odd(part, below, thread);
    }
    sums[static_cast<size_t>(node)] = sum;
  }
  return sums;
}

class Sums final : public bench::StreamProgram {
 public:
  Sums(const std::vector<unsigned>& values, int levels, const bench::CommonOptions& options)
      : StreamProgram(options),
        nodes_(static_cast<int>(values.size() / (kBlock * kValues))),
        levels_(levels),
        expected_(cpu_sums(values, nodes_)),
        values_(values),
        sums_(expected_.size()) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("sums", expected_, sums_.to_host());
  }

 private:
  void restore() override { sums_.fill_bytes(0); }
  void launch(bool count) override { launch_roots(trees(), levels_, count, lost()); }
  void launch_flat() override { launch_levels(trees(), levels_); }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("nodes", nodes_).add("levels", levels_);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    const int launches = (nodes_ - kRoots) / kChildren;
    // A tail launch is for all blocks of a grid: of the roots, or of the children of one node.
    const int tails = levels_ == 1 ? 0 : 1 + (launches - kRoots) / kChildren;
    return {.child_launches = launches + (bench::kWaits ? 0 : tails),
            .bytes_to_move = static_cast<long long>(values_.bytes() + sums_.bytes()),
            .flat_kernels = levels_};
  }
  [[nodiscard]] Trees trees() const { return {values_.data(), sums_.data()}; }

  int nodes_;
  int levels_;
  std::vector<unsigned> expected_;
  bench::DeviceArray<unsigned> values_;
  bench::DeviceArray<unsigned> sums_;
};

}  // namespace

int main(int argc, char** argv) {
  long long levels = 7;
  bench::WaitingOptions options("sums", "sums over trees by blocks that wait for the nodes below");
  options.integer("levels", levels, 1, "levels of nodes, with four trees and four children a node");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "levels", levels, 9);
  int nodes = 0;
  for (int level = 0; level < levels; ++level) nodes = kChildren * nodes + kRoots;
  Sums program(random_values(nodes, options.common.seed), static_cast<int>(levels), options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
