// A bounding volume hierarchy over intervals that are sorted by their low ends. A block launches two blocks
// for the halves of its range, waits for them and takes its bounds from theirs.
//
// A range is split where the low ends pass the middle, so halves differ in size. A tail launch joins the
// bounds. `--variant flat` has a list of the ranges at each depth. The host reads how long the next one is.
// At the end it goes back through the lists and joins.
#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "../common/random.h"
#include "waiting_program.h"

namespace {

constexpr int kBlock = 32;
constexpr int kLeaf = 32;  // the most intervals of a leaf

struct Interval {
  int low, high;
};

// The subtree of a range begins at `node`, and its right half at `right`. That is 0 in leaves.
struct Node {
  Interval bounds;
  int right;
};

// Intervals begin to end - 1, whose subtree has at most 2 * (end - begin) - 1 nodes.
struct Range {
  int node, begin, end;
};

struct Tree {
  const Interval* intervals;
  Node* nodes;
};

// The first interval of the right half: the first whose low end lies beyond the middle of all low ends.
__host__ __device__ inline int split(const Interval* intervals, const Range& range) {
  const int middle = (intervals[range.begin].low + intervals[range.end - 1].low) / 2;
  int low = range.begin + 1, high = range.end - 1;
  while (low < high) {
    const int at = (low + high) / 2;
    if (intervals[at].low <= middle) {
      low = at + 1;
    } else {
      high = at;
    }
  }
  return low;
}

__host__ __device__ inline Range half(const Range& range, int middle, int which) {
  if (which == 0) return {range.node + 1, range.begin, middle};
  return {range.node + 2 * (middle - range.begin), middle, range.end};
}

__host__ __device__ inline bool is_leaf(const Range& range) { return range.end - range.begin <= kLeaf; }

// The first low end is the least one. All threads of the block call this.
__device__ void bound_leaf(const Tree& tree, const Range& range) {
  __shared__ int high;
  if (threadIdx.x == 0) high = INT_MIN;
  __syncthreads();
  const int i = range.begin + static_cast<int>(threadIdx.x);
  if (i < range.end) atomicMax(&high, tree.intervals[i].high);
  __syncthreads();
  if (threadIdx.x == 0) tree.nodes[range.node] = {{tree.intervals[range.begin].low, high}, 0};
}

__device__ void join_halves(const Tree& tree, int node, int right) {
  const Interval a = tree.nodes[node + 1].bounds, b = tree.nodes[right].bounds;
  tree.nodes[node] = {{min(a.low, b.low), max(a.high, b.high)}, right};
}

#ifdef BENCH_WAITS

// Block b builds half b.
__global__ void build(Tree tree, Range of, int of_middle) {
  const Range range = half(of, of_middle, static_cast<int>(blockIdx.x));
  if (is_leaf(range)) {
    bound_leaf(tree, range);
    return;
  }
  if (threadIdx.x != 0) return;
  const int middle = split(tree.intervals, range);
  build<<<2, kBlock>>>(tree, range, middle);
  cudaDeviceSynchronize();
  join_halves(tree, range.node, half(range, middle, 1).node);
}

// All intervals are the left half of a range, whose own node is before the first one.
void launch_build(const Tree& tree, int count, bool, unsigned long long*) {
  build<<<1, kBlock>>>(tree, Range{-1, 0, count}, count);
}
class Lists {
 public:
  Lists(const Tree&, int, int, int) {}
  void run() {}
};

#else

__global__ void join(Tree tree, int node, int right) { join_halves(tree, node, right); }

// Block b builds half b.
template <bool kCount>
__global__ void build(Tree tree, Range of, int of_middle, unsigned long long* lost) {
  const Range range = half(of, of_middle, static_cast<int>(blockIdx.x));
  if (is_leaf(range)) {
    bound_leaf(tree, range);
    return;
  }
  if (threadIdx.x != 0) return;
  const int middle = split(tree.intervals, range);
  build<kCount><<<2, kBlock, 0, cudaStreamFireAndForget>>>(tree, range, middle, lost);
  bench::count_if_lost<kCount>(lost);
  join<<<1, 1, 0, cudaStreamTailLaunch>>>(tree, range.node, half(range, middle, 1).node);
  bench::count_if_lost<kCount>(lost);
}

// All intervals are the left half of a range, whose own node is before the first one.
void launch_build(const Tree& tree, int count, bool counts, unsigned long long* lost) {
  (counts ? build<true> : build<false>)<<<1, kBlock>>>(tree, Range{-1, 0, count}, count, lost);
}

constexpr int kFlatBlock = 128;

__global__ void start_list(Range* list, int count) { list[0] = {0, 0, count}; }

// A block for each range of a list.
__global__ void divide(Tree tree, const Range* list, Range* next, int* next_count) {
  const Range range = list[blockIdx.x];
  if (is_leaf(range)) {
    bound_leaf(tree, range);
    return;
  }
  if (threadIdx.x != 0) return;
  const int middle = split(tree.intervals, range);
  const int place = atomicAdd(next_count, 2);
  next[place] = half(range, middle, 0);
  next[place + 1] = half(range, middle, 1);
  tree.nodes[range.node].right = next[place + 1].node;
}

__global__ void join_list(Tree tree, const Range* list, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count || is_leaf(list[i])) return;
  join_halves(tree, list[i].node, tree.nodes[list[i].node].right);
}

// The ranges at all depths, one list behind the other.
class Lists {
 public:
  Lists(const Tree& tree, int count, int ranges, int depth)
      : tree_(tree),
        count_(count),
        ranges_(static_cast<size_t>(ranges)),
        counts_(static_cast<size_t>(depth) + 1) {}

  void run() {
    counts_.fill_bytes(0);
    start_list<<<1, 1>>>(ranges_.data(), count_);
    std::vector<int> ends{0, 1};
    for (size_t depth = 0; ends[depth] < ends[depth + 1]; ++depth) {
      const int begin = ends[depth], end = ends[depth + 1];
      int* const next_count = counts_.data() + depth;
      divide<<<end - begin, kBlock>>>(tree_, ranges_.data() + begin, ranges_.data() + end, next_count);
      int next = 0;
      bench::check(cudaMemcpy(&next, next_count, sizeof(next), cudaMemcpyDeviceToHost), "reading a count");
      ends.push_back(end + next);
    }
    for (size_t depth = ends.size() - 3; depth-- > 0;) {
      const int begin = ends[depth], count = ends[depth + 1] - begin;
      join_list<<<bench::blocks_for(count, kFlatBlock), kFlatBlock>>>(tree_, ranges_.data() + begin, count);
    }
  }

 private:
  Tree tree_;
  int count_;
  bench::DeviceArray<Range> ranges_;
  bench::DeviceArray<int> counts_;
};

#endif

std::vector<Interval> random_intervals(int count, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  std::vector<Interval> intervals(static_cast<size_t>(count));
  for (Interval& interval : intervals) {
    interval.low = static_cast<int>(random.below(1U << 28));
    interval.high = interval.low + static_cast<int>(random.below(1U << 20));
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.low < b.low; });
  return intervals;
}

// Builds the tree on the CPU, and counts its nodes.
struct Reference {
  const std::vector<Interval>& intervals;
  std::vector<int> numbers;  // of each node that there is: its place, bounds and right half
  int nodes = 0, depth = 0;

  void build(const Range& range, int at_depth) {
    ++nodes;
    depth = std::max(depth, at_depth);
    int high = INT_MIN;
    for (int i = range.begin; i < range.end; ++i) high = std::max(high, intervals[i].high);
    const int middle = is_leaf(range) ? 0 : split(intervals.data(), range);
    const int right = is_leaf(range) ? 0 : half(range, middle, 1).node;
    for (const int number : {range.node, intervals[range.begin].low, high, right}) numbers.push_back(number);
    if (is_leaf(range)) return;
    build(half(range, middle, 0), at_depth + 1);
    build(half(range, middle, 1), at_depth + 1);
  }
  explicit Reference(const std::vector<Interval>& of) : intervals(of) {
    build(Range{0, 0, static_cast<int>(of.size())}, 0);
  }
};

class Hierarchy final : public bench::StreamProgram {
 public:
  Hierarchy(const std::vector<Interval>& intervals, const bench::CommonOptions& options)
      : StreamProgram(options),
        reference_(intervals),
        count_(static_cast<int>(intervals.size())),
        intervals_(intervals),
        nodes_(2 * intervals.size()),
        lists_(on_device(), count_, reference_.nodes, reference_.depth) {}

  [[nodiscard]] std::string verify() override {
    const std::vector<Node> nodes = nodes_.to_host();
    std::vector<int> found;
    for (size_t i = 0; i < reference_.numbers.size(); i += 4) {
      const int at = reference_.numbers[i];
      const Node& node = nodes[at];
      for (const int number : {at, node.bounds.low, node.bounds.high, node.right}) found.push_back(number);
    }
    return bench::differences("numbers of nodes", reference_.numbers, found);
  }

 private:
  void restore() override { nodes_.fill_bytes(0); }
  void launch(bool count) override { launch_build(on_device(), count_, count, lost()); }
  void launch_flat() override { lists_.run(); }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("intervals", count_).add("nodes", reference_.nodes).add("depth", reference_.depth);
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {.child_launches = (bench::kWaits ? 1LL : 2LL) * (reference_.nodes / 2),
            .bytes_to_move = 8LL * count_ + 12LL * reference_.nodes,
            .flat_kernels = 2 + 2LL * reference_.depth,
            .flat_fills = 1,
            .flat_reads = 1 + reference_.depth};
  }
  [[nodiscard]] Tree on_device() const { return {intervals_.data(), nodes_.data()}; }

  Reference reference_;
  int count_;
  bench::DeviceArray<Interval> intervals_;
  bench::DeviceArray<Node> nodes_;
  Lists lists_;
};

}  // namespace

int main(int argc, char** argv) {
  long long intervals = 100000;
  bench::WaitingOptions options("bvh", "a bounding volume hierarchy by blocks that wait for their halves");
  options.integer("intervals", intervals, 1, "intervals in the hierarchy");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "intervals", intervals, 1 << 26);
  const std::vector<Interval> input = random_intervals(static_cast<int>(intervals), options.common.seed);
  Hierarchy program(input, options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
