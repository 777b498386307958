// Boruvka's minimum spanning forest on the device, all but the step that the programs built on it are about.
//
// A round finds the lightest edge that leaves each component, and merges the components along those edges.
// How the edges are found is the program's: it derives a class from Boruvka. The rest is ordinary kernels.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "boruvka.h"
#include "compare.h"
#include "cuda_check.h"
#include "device.cuh"
#include "graph_input.h"
#include "harness.h"
#include "lanes.h"

namespace bench {

using EdgeKey = unsigned long long;  // weight, then number: the order that makes the forest unique
constexpr EdgeKey kNoEdge = ~EdgeKey{0};

// The graph and a forest that grows.
struct Forest {
  int vertices;
  const int* first;          // where each vertex's edges begin
  const int* neighbour;      // the edges
  const int* weight;         // and their weights
  const int* from;           // where each edge starts
  const int* number;         // which of its two directions stands for it
  int* component;            // of each vertex: the component's root, one of its vertices
  int* parent;               // of each root: the root it was merged into, or itself
  EdgeKey* lightest;         // of each root: the lightest edge that leaves its component
  unsigned char* in_forest;  // by edge number
};

// The key of edge e of component c; kNoEdge where it does not leave the component.
__device__ inline EdgeKey leaving_key(const Forest& f, int e, int c) {
  if (f.component[f.neighbour[e]] == c) return kNoEdge;
  return (static_cast<EdgeKey>(f.weight[e]) << 32) | static_cast<unsigned>(f.number[e]);
}

__device__ inline void offer(const Forest& f, int c, EdgeKey key) {
  if (key < f.lightest[c]) atomicMin(&f.lightest[c], key);
}

// The least value_of(e) among v's edges e, or `none`, for the first of v's 2^lane_bits threads. All threads
// of a warp must call this together; those with walks = false have no edges to look at.
template <class T, class Value>
__device__ T least_of(const Forest& f, bool walks, int v, int lane_bits, T none, const Value& value_of) {
  T least = none;
  const int lanes = 1 << lane_bits;
  if (walks) {
    const int end = f.first[v + 1];
    for (int e = f.first[v] + static_cast<int>(threadIdx.x & (lanes - 1)); e < end; e += lanes) {
      least = min(least, value_of(e));
    }
  }
  for (int other = lanes / 2; other > 0; other /= 2) {
    least = min(least, __shfl_down_sync(~0U, least, other, lanes));
  }
  return least;
}

// Before the first round: every vertex is a component.
static __global__ void make_components(Forest f) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= f.vertices) return;
  f.component[v] = v;
  f.parent[v] = v;
  f.lightest[v] = kNoEdge;
}

// Merges every component into the one at the other end of its lightest edge. Two components that chose the
// same edge would be merged into each other; of those, the lower root stays. Edges are ordered, so there are
// no longer cycles.
static __global__ void merge_components(Forest f, int* merged) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= f.vertices || f.component[c] != c) return;
  const EdgeKey key = f.lightest[c];
  if (key == kNoEdge) return;
  const auto e = static_cast<unsigned>(key);
  const int start = f.component[f.from[e]];
  const int other = start == c ? f.component[f.neighbour[e]] : start;
  if (f.lightest[other] == key && c < other) return;
  f.parent[c] = other;
  f.in_forest[e] = 1;
  atomicAdd(merged, 1);
}

// Finds every vertex's new root. When a lost child launch has hidden edges, merges may form a cycle, which
// has no root; the bound ends the search there.
static __global__ void find_roots(Forest f) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= f.vertices) return;
  int root = f.component[v];
  for (int steps = 0; f.parent[root] != root && steps < f.vertices; ++steps) root = f.parent[root];
  f.component[v] = root;
  f.lightest[v] = kNoEdge;
}

// A program that computes minimum spanning forests; it says how a round finds the lightest edges.
class Boruvka : public Benchmark {
 public:
  Boruvka(const GraphInput& input, const CommonOptions& options)
      : input_(input),
        undirected_(undirected(input.load(options.seed))),
        expected_(cpu_minimum_forest(undirected_)),
        counts_(cpu_boruvka_counts(undirected_)),
        flat_(options.variant == "flat"),
        first_(graph().first),
        neighbour_(graph().neighbour),
        weight_(graph().weight),
        from_(undirected_.from),
        number_(undirected_.number),
        component_(graph().vertices()),
        parent_(graph().vertices()),
        lightest_(graph().vertices()),
        in_forest_(graph().edges()),
        merged_(kMostRounds),
        lost_(1) {
    check(cudaMallocHost(&merged_on_host_, sizeof(int)), "cudaMallocHost");
  }
  ~Boruvka() override { cudaFreeHost(merged_on_host_); }
  Boruvka(const Boruvka&) = delete;
  Boruvka& operator=(const Boruvka&) = delete;

  void reset() override {
    in_forest_.fill_bytes(0);
    merged_.fill_bytes(0);
    lost_.fill_bytes(0);
  }

  void run() override {
    if (flat_) {
      grow([this](const Forest& f) { find_lightest_flat(f); });
    } else {
      grow([this](const Forest& f) { find_lightest(f, false); });
    }
  }

  long long count_lost_launches() override {
    grow([this](const Forest& f) { find_lightest(f, true); });
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override { return differences("edges", expected_, in_forest_.to_host()); }

  void describe(JsonObject& report) const override {
    int edges = 0;
    long long weight = 0;
    for (int e = 0; e < graph().edges(); ++e) {
      edges += expected_[e];
      weight += expected_[e] == 1 ? graph().weight[e] : 0;
    }
    input_.describe(report, graph());
    report.add("largest_weight", input_.largest_weight).add("rounds", counts_.rounds);
    report.add("forest_edges", edges).add("forest_weight", weight);
    report.add("child_launches", flat_ ? 0 : child_launches(counts_));
    // Every edge in both directions with its weight and every vertex's extent once; the forest's edges.
    report.add("bytes_to_move", 8LL * graph().edges() + 4LL * graph().vertices() + 4LL * edges);
  }

  [[nodiscard]] std::optional<HostWork> host_work() const override {
    const long long rounds = counts_.rounds;
    const HostWork find = find_work();
    return HostWork{.kernels = 1 + rounds * (find.kernels + 2),
                    .parents = flat_ ? 0 : rounds,
                    .fills = rounds * find.fills,
                    .reads = rounds};
  }

 protected:
  static constexpr int kBlock = 256;

  // Puts the key of the lightest edge that leaves each component into f.lightest, with child launches; these
  // are counted in lost() if they fail and `count` asks for it.
  virtual void find_lightest(const Forest& f, bool count) = 0;
  // The same without child launches.
  virtual void find_lightest_flat(const Forest& f) = 0;
  [[nodiscard]] virtual long long child_launches(const BoruvkaCounts& counts) const = 0;
  // What the host does to find them, with children or without.
  [[nodiscard]] virtual HostWork find_work() const { return {.kernels = 1}; }

  [[nodiscard]] const Graph& graph() const { return undirected_.graph; }
  [[nodiscard]] unsigned long long* lost() const { return lost_.data(); }
  [[nodiscard]] int lane_bits() const {
    return lane_bits_for(graph().vertices(), graph().edges() / graph().vertices());
  }
  // The grid of kernels with 2^lane_bits threads for each vertex.
  [[nodiscard]] unsigned lane_blocks() const {
    return blocks_for(static_cast<long long>(graph().vertices()) << lane_bits(), kBlock);
  }

 private:
  // The number of components with edges to others at least halves in a round.
  static constexpr int kMostRounds = 32;

  [[nodiscard]] Forest forest() const {
    return {graph().vertices(), first_.data(),     neighbour_.data(), weight_.data(),   from_.data(),
            number_.data(),     component_.data(), parent_.data(),    lightest_.data(), in_forest_.data()};
  }

  // Runs round after round until one merges nothing.
  template <class FindEdges>
  void grow(const FindEdges& find_edges) {
    const Forest f = forest();
    const unsigned blocks = blocks_for(f.vertices, kBlock);
    make_components<<<blocks, kBlock>>>(f);
    *merged_on_host_ = 1;
    for (int round = 0; *merged_on_host_ > 0 && round < kMostRounds; ++round) {
      int* merged = merged_.data() + round;
      find_edges(f);
      merge_components<<<blocks, kBlock>>>(f, merged);
      find_roots<<<blocks, kBlock>>>(f);
      check(cudaGetLastError(), "launching a round");
      check(cudaMemcpy(merged_on_host_, merged, sizeof(int), cudaMemcpyDeviceToHost), "the rounds");
    }
  }

  GraphInput input_;
  UndirectedGraph undirected_;
  std::vector<unsigned char> expected_;
  BoruvkaCounts counts_;
  bool flat_;
  DeviceArray<int> first_;
  DeviceArray<int> neighbour_;
  DeviceArray<int> weight_;
  DeviceArray<int> from_;
  DeviceArray<int> number_;
  DeviceArray<int> component_;
  DeviceArray<int> parent_;
  DeviceArray<EdgeKey> lightest_;
  DeviceArray<unsigned char> in_forest_;
  DeviceArray<int> merged_;  // components that each round merged into others
  DeviceArray<unsigned long long> lost_;
  int* merged_on_host_ = nullptr;
};

// The main function of such a program.
template <class Program>
int boruvka_main(const char* program, const char* summary, int argc, char** argv) {
  CommonOptions common;
  GraphInput input;
  input.kind = "rmat";
  input.degree = 9;
  input.largest_weight = 4096;
  Options options(program, summary);
  input.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  if (input.largest_weight == 0) {
    std::fprintf(stderr, "%s: --largest-weight must be at least 1\n", program);
    std::exit(2);
  }
  require_device(program);
  Program benchmark(input, common);
  return run_benchmark(program, common, benchmark);
}

}  // namespace bench
