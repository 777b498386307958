// Graph colouring by independent sets (Jones and Plassmann), with CUDA dynamic parallelism.
//
// Every vertex has a random priority. In a round, the uncoloured vertices that stand above all their
// uncoloured neighbours take one new colour, and those that stand below all of them another; so every round
// hands out two colours. Each round the parent has a thread per vertex: a vertex with more neighbours than
// the threshold launches a child grid over them, another looks at them in a loop. Since a parent cannot wait
// for its children, these only note who is *not* the highest or the lowest, and a kernel after them gives the
// colours.
//
// The host reads after each round how many vertices have no colour yet. Hubs make for hundreds of rounds on
// some graphs; `--max-rounds` ends the run (and the reference) after some of them.
//
// `--variant flat` is the same colouring without dynamic parallelism: a group of lanes for every vertex, a
// whole block for those with very many neighbours, and one kernel a round, since who looks can also give the
// colour.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/graph_input.h"
#include "../common/harness.h"
#include "colouring.h"

constexpr int kParentBlock = 128;
constexpr int kChildBlock = 64;
constexpr int kFlatBlock = 256;
constexpr int kWideDegree = 512;  // flat: above this a vertex is worth a block

// One round: the graph, what is known about each vertex, and the first of the round's two colours.
struct Round {
  const int* first;      // where each vertex's edges begin
  const int* neighbour;  // the edges
  int vertices;
  int threshold;  // vertices with more neighbours launch
  unsigned seed;  // of the priorities
  unsigned* colour;
  unsigned char* not_highest;  // 1 where an uncoloured neighbour stands above
  unsigned char* not_lowest;   // 1 where one stands below
  unsigned first_colour;
  int* uncoloured;  // how many have no colour after the round
};

// One neighbour of v. All who find the same write the same, so nothing depends on who comes first.
__global__ void note_neighbour(const int* neighbour, int begin, int degree, int v, unsigned seed,
                               const unsigned* colour, unsigned char* not_highest,
                               unsigned char* not_lowest) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < degree) {
    const int w = neighbour[begin + i];
    if (colour[w] == kUncoloured) {
      const int found = compare(priority(w, seed), priority(v, seed));
      if (found == kHigher) not_highest[v] = 1;
      if (found == kLower) not_lowest[v] = 1;
    }
  }
}

template <bool kCount>
__global__ void note_neighbours(Round r, unsigned long long* lost) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < r.vertices && r.colour[v] == kUncoloured) {
    const int begin = r.first[v];
    const int degree = r.first[v + 1] - begin;
    if (degree > r.threshold) {
      note_neighbour<<<(degree + kChildBlock - 1) / kChildBlock, kChildBlock>>>(
          r.neighbour, begin, degree, v, r.seed, r.colour, r.not_highest, r.not_lowest);
      bench::count_if_lost<kCount>(lost);
    } else {
      const unsigned own = priority(v, r.seed);
      int found = 0;
      for (int i = 0; i < degree && found != kBoth; ++i) {
        const int w = r.neighbour[begin + i];
        if (r.colour[w] == kUncoloured) found |= compare(priority(w, r.seed), own);
      }
      r.not_highest[v] = (found & kHigher) != 0 ? 1 : 0;
      r.not_lowest[v] = (found & kLower) != 0 ? 1 : 0;
    }
  }
}

// Gives the round's colours by the notes, and clears these for the next round.
__global__ void take_colours(Round r) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  bool left = false;
  if (v < r.vertices && r.colour[v] == kUncoloured) {
    const bool highest = r.not_highest[v] == 0;
    const bool lowest = r.not_lowest[v] == 0;
    left = !highest && !lowest;
    if (!left) r.colour[v] = highest ? r.first_colour : r.first_colour + 1;
    r.not_highest[v] = 0;
    r.not_lowest[v] = 0;
  }
  const int left_in_block = __syncthreads_count(left ? 1 : 0);
  if (threadIdx.x == 0 && left_in_block > 0) atomicAdd(r.uncoloured, left_in_block);
}

// Who takes a colour in this very round counts as uncoloured: a reader may come before or after it, and must
// see the same.
__device__ int compare_in_round(const Round& r, int w, unsigned own) {
  return r.colour[w] >= r.first_colour ? compare(priority(w, r.seed), own) : 0;
}

// Gives v a colour unless neighbours stand above and below; true if it stays without.
__device__ bool stays_uncoloured(const Round& r, int v, int found) {
  if (found == kBoth) return true;
  r.colour[v] = (found & kHigher) == 0 ? r.first_colour : r.first_colour + 1;
  return false;
}

// A group of `lanes` neighbouring lanes looks around v; all of them come to the same answer.
__device__ int look_around_by_lanes(const Round& r, int v, int degree, int lanes) {
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const unsigned low_lanes = lanes == 32 ? ~0U : (1U << lanes) - 1;
  const unsigned group = low_lanes << (threadIdx.x & 31 & ~static_cast<unsigned>(lanes - 1));
  const int* neighbour = r.neighbour + r.first[v];
  const unsigned own = priority(v, r.seed);
  int found = 0;
  int found_by_all = 0;
  for (int i = lane; i - lane < degree && found_by_all != kBoth; i += lanes) {
    if (i < degree) found |= compare_in_round(r, neighbour[i], own);
    found_by_all = (__any_sync(group, found & kHigher) != 0 ? kHigher : 0) |
                   (__any_sync(group, found & kLower) != 0 ? kLower : 0);
  }
  return found_by_all;
}

// The whole block looks around v.
__device__ int look_around_by_block(const Round& r, int v) {
  const int* neighbour = r.neighbour + r.first[v];
  const int degree = r.first[v + 1] - r.first[v];
  const unsigned own = priority(v, r.seed);
  const int thread = static_cast<int>(threadIdx.x);
  int found = 0;
  int found_by_all = 0;
  for (int i = thread; i - thread < degree && found_by_all != kBoth; i += kFlatBlock) {
    if (i < degree) found |= compare_in_round(r, neighbour[i], own);
    const bool higher = __syncthreads_or(found & kHigher) != 0;
    const bool lower = __syncthreads_or(found & kLower) != 0;
    found_by_all = (higher ? kHigher : 0) | (lower ? kLower : 0);
  }
  return found_by_all;
}

// 2^lane_bits threads for each vertex; the block comes back together for those with very many neighbours.
__global__ void colour_flat(Round r, int lane_bits) {
  __shared__ int wide[kFlatBlock];
  __shared__ int wide_count;
  if (threadIdx.x == 0) wide_count = 0;
  __syncthreads();
  const int lanes = 1 << lane_bits;
  const bool leader = (threadIdx.x & (lanes - 1)) == 0;
  const unsigned v = blockIdx.x * (kFlatBlock >> lane_bits) + (threadIdx.x >> lane_bits);
  int left = 0;
  if (v < static_cast<unsigned>(r.vertices) && r.colour[v] == kUncoloured) {
    const int degree = r.first[v + 1] - r.first[v];
    if (degree <= kWideDegree) {
      const int found = look_around_by_lanes(r, v, degree, lanes);
      if (leader && stays_uncoloured(r, v, found)) left = 1;
    } else if (leader) {
      wide[atomicAdd(&wide_count, 1)] = static_cast<int>(v);
    }
  }
  __syncthreads();
  int wide_left = 0;
  for (int i = 0; i < wide_count; ++i) {
    const int found = look_around_by_block(r, wide[i]);
    if (threadIdx.x == 0 && stays_uncoloured(r, wide[i], found)) ++wide_left;
  }
  const int left_in_block = __syncthreads_count(left) + wide_left;
  if (threadIdx.x == 0 && left_in_block > 0) atomicAdd(r.uncoloured, left_in_block);
}

namespace {

[[noreturn]] void give_up(const char* message) {
  std::fprintf(stderr, "gc: %s\n", message);
  std::exit(2);
}

// About eight edges a thread, at least 4 and at most 32 threads a vertex.
int lane_bits_for(long long average_degree) {
  int bits = 2;
  while (bits < 5 && (8LL << bits) < average_degree) ++bits;
  return bits;
}

// A colouring needs every edge seen from both ends. The other generators make them so.
bench::Graph undirected(const bench::GraphInput& input, bench::Graph graph) {
  if (input.data.empty() && input.kind != "uniform") return graph;
  if (graph.edges() > INT_MAX / 2) give_up("the graph is too large to add the reverse of every edge");
  std::vector<bench::Edge> edges;
  edges.reserve(graph.neighbour.size());
  for (int v = 0; v < graph.vertices(); ++v) {
    for (int e = graph.first[v]; e < graph.first[v + 1]; ++e) edges.push_back({v, graph.neighbour[e], 1});
  }
  return bench::graph_from_edges(graph.vertices(), edges, bench::Direction::kBothWays, false);
}

// Every round colours a vertex, so there are never more rounds than vertices.
int most_rounds(long long asked_for, int vertices) {
  return asked_for == 0 ? vertices : static_cast<int>(std::min<long long>(asked_for, vertices));
}

struct GcOptions {
  bench::CommonOptions common;
  bench::GraphInput input;
  long long threshold = 0;
  long long max_rounds = 0;
};

class Gc : public bench::Benchmark {
 public:
  explicit Gc(const GcOptions& options)
      : input_(options.input),
        graph_(undirected(options.input, options.input.load(options.common.seed))),
        seed_(priority_seed(options.common.seed)),
        threshold_(static_cast<int>(options.threshold)),
        most_rounds_(most_rounds(options.max_rounds, graph_.vertices())),
        expected_(cpu_colouring(graph_, seed_, most_rounds_, threshold_)),
        variant_(options.common.variant),
        lane_bits_(lane_bits_for(graph_.edges() / graph_.vertices())),
        first_(graph_.first),
        neighbour_(graph_.neighbour),
        colour_(graph_.vertices()),
        not_highest_(graph_.vertices()),
        not_lowest_(graph_.vertices()),
        uncoloured_(most_rounds_),
        lost_(1) {
    bench::check(cudaMallocHost(&uncoloured_on_host_, sizeof(int)), "cudaMallocHost");
  }
  ~Gc() override { cudaFreeHost(uncoloured_on_host_); }
  Gc(const Gc&) = delete;
  Gc& operator=(const Gc&) = delete;

  void reset() override {
    colour_.fill_bytes(0xff);
    not_highest_.fill_bytes(0);
    not_lowest_.fill_bytes(0);
    uncoloured_.fill_bytes(0);
    lost_.fill_bytes(0);
  }

  void run() override {
    if (variant_ == "flat") {
      colour_in_rounds([this](const Round& r) {
        const int per_block = kFlatBlock >> lane_bits_;
        colour_flat<<<bench::blocks_for(r.vertices, per_block), kFlatBlock>>>(r, lane_bits_);
      });
    } else {
      colour_with_children<false>();
    }
  }

  long long count_lost_launches() override {
    colour_with_children<true>();
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override { return bench::differences("colours", expected_.colour, colour_.to_host()); }

  void describe(bench::JsonObject& report) const override {
    long long edges = 0;  // of the vertices that get a colour
    for (int v = 0; v < graph_.vertices(); ++v) {
      if (expected_.colour[v] != kUncoloured) edges += graph_.degree(v);
    }
    input_.describe(report, graph_);
    report.add("threshold", threshold_).add("rounds", expected_.rounds);
    report.add("uncoloured", expected_.uncoloured);
    report.add("child_launches", variant_ == "cdp" ? expected_.wide_visits : 0);
    // A vertex that takes a colour has had all its edges looked at; every vertex's extent and colour.
    report.add("bytes_to_move", 4 * edges + 8LL * graph_.vertices());
    if (variant_ == "flat") report.add("threads_per_vertex", 1 << lane_bits_);
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    const long long rounds = expected_.rounds;
    if (variant_ == "flat") return bench::HostWork{.kernels = rounds, .reads = rounds};
    return bench::HostWork{.kernels = 2 * rounds, .parents = rounds, .reads = rounds};
  }

 private:
  template <bool kCount>
  void colour_with_children() {
    colour_in_rounds([this](const Round& r) {
      const unsigned blocks = bench::blocks_for(r.vertices, kParentBlock);
      note_neighbours<kCount><<<blocks, kParentBlock>>>(r, lost_.data());
      take_colours<<<blocks, kParentBlock>>>(r);
    });
  }

  // Runs round after round until all have a colour. A round that colours nobody is a mistake and ends it too.
  template <class RunRound>
  void colour_in_rounds(const RunRound& run_round) {
    Round r = {};
    r.first = first_.data();
    r.neighbour = neighbour_.data();
    r.vertices = graph_.vertices();
    r.threshold = threshold_;
    r.seed = seed_;
    r.colour = colour_.data();
    r.not_highest = not_highest_.data();
    r.not_lowest = not_lowest_.data();
    int before = graph_.vertices() + 1;
    *uncoloured_on_host_ = graph_.vertices();
    for (int round = 0; round<most_rounds_&& * uncoloured_on_host_> 0 && *uncoloured_on_host_ < before;
         ++round) {
      before = *uncoloured_on_host_;
      r.first_colour = 2U * static_cast<unsigned>(round);
      r.uncoloured = uncoloured_.data() + round;
      run_round(r);
      bench::check(cudaGetLastError(), "launching a round");
      bench::check(cudaMemcpy(uncoloured_on_host_, r.uncoloured, sizeof(int), cudaMemcpyDeviceToHost),
                   "the colouring");
    }
  }

  bench::GraphInput input_;
  bench::Graph graph_;
  unsigned seed_;
  int threshold_;
  int most_rounds_;
  Colouring expected_;
  std::string variant_;
  int lane_bits_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> neighbour_;
  bench::DeviceArray<unsigned> colour_;
  bench::DeviceArray<unsigned char> not_highest_;
  bench::DeviceArray<unsigned char> not_lowest_;
  bench::DeviceArray<int> uncoloured_;  // after each round
  bench::DeviceArray<unsigned long long> lost_;
  int* uncoloured_on_host_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  GcOptions gc_options;
  gc_options.input.kind = "citation";
  gc_options.input.vertices = 2003;
  gc_options.input.degree = 41;
  gc_options.input.largest_degree = 94;
  bench::Options options("gc", "graph colouring with one child kernel per uncoloured vertex of each round");
  gc_options.input.add_to(options);
  options.integer("threshold", gc_options.threshold, 0, "vertices with more neighbours than this launch");
  options.integer("max-rounds", gc_options.max_rounds, 0,
                  "rounds, of two colours each; 0: until all have one");
  gc_options.common.add_to(options);
  options.parse(argc, argv);
  if (gc_options.threshold > INT_MAX) give_up("--threshold: no vertex has that many neighbours");
  bench::require_device("gc");
  Gc gc(gc_options);
  return bench::run_benchmark("gc", gc_options.common, gc);
}
