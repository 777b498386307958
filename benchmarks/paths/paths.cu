// Single-source shortest paths with CUDA dynamic parallelism: Bellman-Ford in rounds over all vertices, with
// one child block for each active vertex.
//
// One parent launch per round has a thread for every vertex. If the vertex is active and has edges, the
// thread launches a child of one block, whose threads walk the vertex's list of edges, a block's width at a
// time. A child that lowers the distance at an edge's other end makes that vertex active in the next round.
// The host reads after each round whether any distance changed.
//
// The graph is skewed, and its vertices are named as R-MAT draws them: those with long lists are neighbours.
//
// `--variant flat` cuts the lists into parts of at most 32 edges beforehand. Every round has a group of
// threads for each part, which does nothing if its vertex is not active.
//
// `--variant klap` is the same program aggregated by hand as the KLAP paper does it (common/aggregated.cuh).
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../common/aggregated.cuh"
#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/graph_input.h"
#include "../common/harness.h"
#include "../common/lanes.h"
#include "../common/shortest_paths.h"

constexpr int kParentBlock = 128;
constexpr int kChildBlock = 128;
constexpr int kFlatBlock = 256;
constexpr int kPartEdges = 32;

// A round knows the graph and what earlier rounds found, and adds to that.
struct Round {
  int vertices;
  const int* first;      // where each vertex's edges begin
  const int* neighbour;  // the edges
  const int* weight;     // and their weights
  int* distance;         // kUnreached at first
  int* active;       // 1 for the vertices whose distances the round before has lowered; cleared by the round
  int* next_active;  // likewise, for the next round
  int* changed;      // whether the round lowered any distance
};

// Consecutive edges of a vertex, for the flat variant.
struct Part {
  int vertex;
  int begin;
  int end;
};

// The klap variant records these arguments of a child.
struct ListOf {
  int from;
  int begin;
  int degree;
};

__device__ __forceinline__ void relax(const Round& r, int from, int edge) {
  const int w = r.neighbour[edge];
  const int length = from + r.weight[edge];
  if (length < r.distance[w]) {
    atomicMin(&r.distance[w], length);
    r.next_active[w] = 1;
    *r.changed = 1;
  }
}

// Relaxes the `degree` edges from number `begin` on, of a vertex whose distance is `from`.
__global__ void relax_list(Round r, int from, int begin, int degree) {
  for (int i = threadIdx.x; i < degree; i += blockDim.x) relax(r, from, begin + i);
}

template <bool kCount>
__global__ void relax_vertices(Round r, unsigned long long* lost) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < r.vertices && r.active[v] != 0) {
    r.active[v] = 0;
    const int begin = r.first[v];
    const int degree = r.first[v + 1] - begin;
    if (degree > 0) {
      relax_list<<<1, kChildBlock>>>(r, r.distance[v], begin, degree);
      bench::count_if_lost<kCount>(lost);
    }
  }
}

__global__ void record_vertices(Round r, bench::Recorder<ListOf> recorder) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < r.vertices && r.active[v] != 0) {
    r.active[v] = 0;
    const int begin = r.first[v];
    const int degree = r.first[v + 1] - begin;
    if (degree > 0) recorder.record(1, {r.distance[v], begin, degree});
  }
}

__global__ void relax_recorded(Round r, bench::Recorder<ListOf> recorder, unsigned children) {
  const ListOf list = recorder.arguments[bench::child_of_block(recorder.first_block, children, blockIdx.x)];
  for (int i = threadIdx.x; i < list.degree; i += blockDim.x) relax(r, list.from, list.begin + i);
}

// 2^lane_bits threads for each part. An active vertex has the round's number, so that nothing is cleared
// while other parts of the vertex still look.
__global__ void relax_parts(Round r, const Part* parts, int part_count, int lane_bits, int number) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned i = thread >> lane_bits;
  const int lanes = 1 << lane_bits;
  if (i >= static_cast<unsigned>(part_count)) return;
  const Part part = parts[i];
  if (r.active[part.vertex] != number) return;
  const int from = r.distance[part.vertex];
  for (int e = part.begin + static_cast<int>(thread & (lanes - 1)); e < part.end; e += lanes) {
    const int w = r.neighbour[e];
    const int length = from + r.weight[e];
    if (length >= r.distance[w] || atomicMin(&r.distance[w], length) <= length) continue;
    r.next_active[w] = number + 1;
    *r.changed = 1;
  }
}

namespace {

[[noreturn]] void give_up(const char* message) {
  std::fprintf(stderr, "paths: %s\n", message);
  std::exit(2);
}

bench::Graph load(const bench::GraphInput& input, long long seed) {
  bench::Graph graph = input.load(seed);
  if (graph.edges() == 0) give_up("the graph has no edges");
  if (!bench::distances_fit(graph)) give_up("distances may not fit 31 bits; use a smaller --largest-weight");
  return graph;
}

// The vertex with the most edges, which reaches most of any graph.
int choose_source(const bench::Graph& graph) {
  int source = 0;
  for (int v = 1; v < graph.vertices(); ++v) {
    if (graph.degree(v) > graph.degree(source)) source = v;
  }
  return source;
}

std::vector<Part> parts_of(const bench::Graph& graph) {
  std::vector<Part> parts;
  for (int v = 0; v < graph.vertices(); ++v) {
    const int end = graph.first[v + 1];
    for (int e = graph.first[v]; e < end; e += kPartEdges) {
      parts.push_back({v, e, end < e + kPartEdges ? end : e + kPartEdges});
    }
  }
  return parts;
}

class Paths : public bench::Benchmark {
 public:
  Paths(const bench::GraphInput& input, const bench::CommonOptions& options)
      : input_(input),
        graph_(load(input, options.seed)),
        source_(choose_source(graph_)),
        expected_(bench::cpu_shortest_paths(graph_, source_, 0)),
        variant_(options.variant),
        host_parts_(variant_ == "flat" ? parts_of(graph_) : std::vector<Part>()),
        first_(graph_.first),
        neighbour_(graph_.neighbour),
        weight_(graph_.weight),
        distance_(graph_.vertices()),
        active_{bench::DeviceArray<int>(graph_.vertices()), bench::DeviceArray<int>(graph_.vertices())},
        changed_(most_rounds()),
        parts_(host_parts_),
        records_(variant_ == "klap" ? graph_.vertices() : 0, variant_ == "klap" ? most_rounds() : 0),
        lost_(1) {
    bench::check(cudaMallocHost(&changed_on_host_, sizeof(int)), "cudaMallocHost");
  }
  ~Paths() override { cudaFreeHost(changed_on_host_); }
  Paths(const Paths&) = delete;
  Paths& operator=(const Paths&) = delete;

  void reset() override {
    distance_.fill_bytes(bench::kUnreached & 0xff);
    for (bench::DeviceArray<int>& active : active_) active.fill_bytes(0);
    changed_.fill_bytes(0);
    records_.reset();
    lost_.fill_bytes(0);
    const int is_active = 1;  // and the first round's number
    bench::check(cudaMemset(distance_.data() + source_, 0, sizeof(int)), "cudaMemset");
    bench::check(cudaMemcpy(active_[1].data() + source_, &is_active, sizeof(int), cudaMemcpyHostToDevice),
                 "cudaMemcpy");
  }

  void run() override {
    if (variant_ == "flat") {
      search([this](const Round& r, int number) { relax_in_parts(r, number); });
    } else if (variant_ == "klap") {
      search([this](const Round& r, int number) { relax_aggregated(r, number); });
    } else {
      search_with_children<false>();
    }
  }

  long long count_lost_launches() override {
    search_with_children<true>();
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override {
    return bench::differences("distances", expected_.distance, distance_.to_host());
  }

  void describe(bench::JsonObject& report) const override {
    int reached = 0;
    long long edges = 0;
    for (int v = 0; v < graph_.vertices(); ++v) {
      if (expected_.distance[v] == bench::kUnreached) continue;
      ++reached;
      edges += graph_.degree(v);
    }
    input_.describe(report, graph_);
    report.add("largest_weight", input_.largest_weight).add("source", source_);
    report.add("reached", reached).add("rounds", expected_.rounds).add("activations", expected_.activations);
    report.add("child_launches", variant_ == "cdp" ? expected_.large : 0);
    // Each edge of a reached vertex once, with its weight; each reached vertex's extent and distance, and its
    // place among the active ones.
    report.add("bytes_to_move", 8 * edges + 16LL * reached);
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    // As in the reference, whose rounds work with the distances at their start. The device's may see later
    // ones, and then there can be fewer.
    const long long rounds = expected_.rounds;
    const long long kernels = variant_ == "klap" ? 2 * rounds : rounds;
    return bench::HostWork{.kernels = kernels, .parents = variant_ == "cdp" ? rounds : 0, .reads = kernels};
  }

 private:
  // No search needs more rounds than there are vertices, and the bound keeps a wrong one from going on for
  // ever.
  [[nodiscard]] int most_rounds() const { return graph_.vertices(); }
  [[nodiscard]] unsigned parent_blocks() const { return bench::blocks_for(graph_.vertices(), kParentBlock); }

  template <bool kCount>
  void search_with_children() {
    search([this](const Round& r, int /*number*/) {
      relax_vertices<kCount><<<parent_blocks(), kParentBlock>>>(r, lost_.data());
    });
  }

  void relax_in_parts(const Round& r, int number) {
    const long long parts = static_cast<long long>(host_parts_.size());
    const int bits = bench::lane_bits_for(parts, kPartEdges);
    relax_parts<<<bench::blocks_for(parts << bits, kFlatBlock), kFlatBlock>>>(
        r, parts_.data(), static_cast<int>(parts), bits, number);
  }

  void relax_aggregated(const Round& r, int number) {
    const bench::Recorder<ListOf> recorder = records_.of_parent(number - 1);
    record_vertices<<<parent_blocks(), kParentBlock>>>(r, recorder);
    bench::check(cudaGetLastError(), "launching a parent");
    const bench::Recorded recorded = records_.read(number - 1);
    if (recorded.blocks > 0) {
      relax_recorded<<<recorded.blocks, kChildBlock>>>(r, recorder, recorded.children);
    }
  }

  // Runs round after round, numbered from 1, until one lowers no distance.
  template <class RelaxRound>
  void search(const RelaxRound& relax_round) {
    Round r = {};
    r.vertices = graph_.vertices();
    r.first = first_.data();
    r.neighbour = neighbour_.data();
    r.weight = weight_.data();
    r.distance = distance_.data();
    *changed_on_host_ = 1;
    for (int number = 1; *changed_on_host_ != 0 && number <= most_rounds(); ++number) {
      r.active = active_[number % 2].data();
      r.next_active = active_[(number + 1) % 2].data();
      r.changed = changed_.data() + number - 1;
      relax_round(r, number);
      bench::check(cudaGetLastError(), "launching a round");
      bench::check(cudaMemcpy(changed_on_host_, r.changed, sizeof(int), cudaMemcpyDeviceToHost),
                   "the search");
    }
  }

  bench::GraphInput input_;
  bench::Graph graph_;
  int source_;
  bench::ShortestPaths expected_;
  std::string variant_;
  std::vector<Part> host_parts_;  // none in other variants than flat
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> neighbour_;
  bench::DeviceArray<int> weight_;
  bench::DeviceArray<int> distance_;
  bench::DeviceArray<int> active_[2];
  bench::DeviceArray<int> changed_;  // by each round
  bench::DeviceArray<Part> parts_;
  bench::Records<ListOf> records_;
  bench::DeviceArray<unsigned long long> lost_;
  int* changed_on_host_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common({"cdp", "flat", "klap"});
  bench::GraphInput input;
  input.kind = "rmat-as-drawn";
  input.degree = 48;
  input.largest_weight = 4096;
  bench::Options options("paths", "shortest paths with a child block for each active vertex's list of edges");
  input.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  if (input.largest_weight == 0) give_up("--largest-weight must be at least 1");
  bench::require_device("paths");
  Paths paths(input, common);
  return bench::run_benchmark("paths", common, paths);
}
