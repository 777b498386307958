// Single-source shortest paths with CUDA dynamic parallelism: Bellman-Ford in rounds over a list of active
// vertices.
//
// One parent launch per round: a thread per active vertex. A vertex with more edges than the threshold
// launches a child grid over them, the others are done in the parent's thread. Relaxing an edge may lower the
// distance at its other end, which makes that vertex active in the next round, once however often it is
// lowered. Distances are read when an edge is relaxed, so a round profits from what it has already found; how
// often a vertex becomes active therefore depends a little on the schedule, the distances at the end do not.
//
// The host reads the number of active vertices after every round, since it sets the next parent's grid.
//
// `--variant flat` is the same search without dynamic parallelism: its list holds parts of adjacency lists of
// at most 128 edges, each walked by a group of threads with coalesced loads, so that a vertex with a hundred
// thousand edges holds nobody up.
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/graph_input.h"
#include "../common/harness.h"
#include "../common/lanes.h"
#include "../common/shortest_paths.h"

constexpr int kParentBlock = 1024;
constexpr int kChildBlock = 128;
constexpr int kFlatBlock = 256;
constexpr int kPartEdges = 128;

// One round of a search: the graph, what is known, and where the next round's list grows.
struct Round {
  const int* first;      // where each vertex's edges begin
  const int* neighbour;  // the edges
  const int* weight;     // and their weights
  int* distance;         // kUnreached at first
  int* marked;           // the last round that made the vertex active in the one after it
  int number;            // of this round
  int size;              // of this round's list
  int* next_size;
};

// Consecutive edges of a vertex: an entry of the flat variant's list.
struct Part {
  int vertex;
  int begin;
};

// Lowers w's distance to `length` if that is less; true if the caller has to add w to the next round's list.
__device__ bool lowers(const Round& r, int w, int length) {
  if (length >= r.distance[w] || atomicMin(&r.distance[w], length) <= length) return false;
  return atomicExch(&r.marked[w], r.number) != r.number;
}

__device__ void relax(const Round& r, int from, int edge, int* next_active) {
  const int w = r.neighbour[edge];
  if (lowers(r, w, from + r.weight[edge])) next_active[atomicAdd(r.next_size, 1)] = w;
}

__global__ void relax_edges(Round r, int vertex, int begin, int degree, int* next_active) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < degree) relax(r, r.distance[vertex], begin + i, next_active);
}

template <bool kCount>
__global__ void relax_active(Round r, const int* active, int* next_active, int threshold,
                             unsigned long long* lost) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < r.size) {
    const int v = active[i];
    const int begin = r.first[v];
    const int degree = r.first[v + 1] - begin;
    if (degree > threshold) {
      relax_edges<<<(degree + kChildBlock - 1) / kChildBlock, kChildBlock>>>(r, v, begin, degree,
                                                                             next_active);
      bench::count_if_lost<kCount>(lost);
    } else {
      const int from = r.distance[v];
      for (int e = begin; e < begin + degree; ++e) relax(r, from, e, next_active);
    }
  }
}

// Appends all parts of w's edges; the threads that come here together share one addition to the list's size.
__device__ void add_parts(const Round& r, int w, Part* next_active) {
  const int begin = r.first[w];
  const int parts = (r.first[w + 1] - begin + kPartEdges - 1) / kPartEdges;
  const cooperative_groups::coalesced_group group = cooperative_groups::coalesced_threads();
  const unsigned last = group.size() - 1;
  int place = cooperative_groups::exclusive_scan(group, parts);
  int base = 0;
  if (group.thread_rank() == last) base = atomicAdd(r.next_size, place + parts);
  place += group.shfl(base, last);
  for (int p = 0; p < parts; ++p) next_active[place + p] = {w, begin + p * kPartEdges};
}

// 2^lane_bits threads for each part.
__global__ void relax_parts(Round r, const Part* active, Part* next_active, int lane_bits) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned i = thread >> lane_bits;
  const int lanes = 1 << lane_bits;
  if (i < static_cast<unsigned>(r.size)) {
    const Part part = active[i];
    const int from = r.distance[part.vertex];
    const int end = min(part.begin + kPartEdges, r.first[part.vertex + 1]);
    for (int e = part.begin + static_cast<int>(thread & (lanes - 1)); e < end; e += lanes) {
      const int w = r.neighbour[e];
      if (lowers(r, w, from + r.weight[e])) add_parts(r, w, next_active);
    }
  }
}

namespace {

[[noreturn]] void give_up(const char* message) {
  std::fprintf(stderr, "sssp: %s\n", message);
  std::exit(2);
}

bench::Graph load(const bench::GraphInput& input, long long seed) {
  bench::Graph graph = input.load(seed);
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

class Sssp : public bench::Benchmark {
 public:
  Sssp(const bench::GraphInput& input, const bench::CommonOptions& options, int threshold)
      : input_(input),
        graph_(load(input, options.seed)),
        source_(choose_source(graph_)),
        threshold_(threshold),
        expected_(bench::cpu_shortest_paths(graph_, source_, threshold)),
        flat_(options.variant == "flat"),
        first_(graph_.first),
        neighbour_(graph_.neighbour),
        weight_(graph_.weight),
        distance_(graph_.vertices()),
        marked_(graph_.vertices()),
        active_{bench::DeviceArray<int>(vertices_in_list()), bench::DeviceArray<int>(vertices_in_list())},
        parts_{bench::DeviceArray<Part>(parts_in_list()), bench::DeviceArray<Part>(parts_in_list())},
        sizes_(graph_.vertices()),
        lost_(1) {
    for (int e = graph_.first[source_]; e < graph_.first[source_ + 1]; e += kPartEdges) {
      first_parts_.push_back({source_, e});
    }
    bench::check(cudaMallocHost(&size_on_host_, sizeof(int)), "cudaMallocHost");
  }
  ~Sssp() override { cudaFreeHost(size_on_host_); }
  Sssp(const Sssp&) = delete;
  Sssp& operator=(const Sssp&) = delete;

  void reset() override {
    distance_.fill_bytes(bench::kUnreached & 0xff);
    marked_.fill_bytes(0xff);
    sizes_.fill_bytes(0);
    lost_.fill_bytes(0);
    bench::check(cudaMemset(distance_.data() + source_, 0, sizeof(int)), "cudaMemset");
    if (flat_) {
      bench::check(cudaMemcpy(parts_[0].data(), first_parts_.data(), first_parts_.size() * sizeof(Part),
                              cudaMemcpyHostToDevice),
                   "cudaMemcpy");
    } else {
      bench::check(cudaMemcpy(active_[0].data(), &source_, sizeof(int), cudaMemcpyHostToDevice),
                   "cudaMemcpy");
    }
  }

  void run() override {
    if (flat_) {
      search(static_cast<int>(first_parts_.size()), [this](const Round& r) {
        const int bits = bench::lane_bits_for(r.size, graph_.edges() / graph_.vertices());
        const long long threads = static_cast<long long>(r.size) << bits;
        relax_parts<<<bench::blocks_for(threads, kFlatBlock), kFlatBlock>>>(
            r, parts_[r.number % 2].data(), parts_[(r.number + 1) % 2].data(), bits);
      });
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
    report.add("largest_weight", input_.largest_weight).add("source", source_).add("threshold", threshold_);
    report.add("reached", reached).add("rounds", expected_.rounds).add("activations", expected_.activations);
    report.add("child_launches", flat_ ? 0 : expected_.large);
    // Each edge of a reached vertex once, with its weight; each reached vertex's extent, distance and place
    // in a list.
    report.add("bytes_to_move", 8 * edges + 20LL * reached);
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    // As in the reference, whose rounds work with the distances at their start. The device's may see later
    // ones, and then there can be fewer.
    const long long rounds = expected_.rounds;
    return bench::HostWork{.kernels = rounds, .parents = flat_ ? 0 : rounds, .reads = rounds};
  }

 private:
  // A vertex is in a list once at most. The variant that is not run needs no lists.
  [[nodiscard]] size_t vertices_in_list() const { return flat_ ? 0 : graph_.vertices(); }
  [[nodiscard]] size_t parts_in_list() const {
    return flat_ ? static_cast<size_t>(graph_.vertices()) + graph_.edges() / kPartEdges : 0;
  }

  template <bool kCount>
  void search_with_children() {
    search(1, [this](const Round& r) {
      relax_active<kCount><<<bench::blocks_for(r.size, kParentBlock), kParentBlock>>>(
          r, active_[r.number % 2].data(), active_[(r.number + 1) % 2].data(), threshold_, lost_.data());
    });
  }

  // Runs round after round until one lowers no distance. No search needs as many rounds as there are
  // vertices, and the bound keeps a wrong one from going on for ever.
  template <class RelaxRound>
  void search(int first_size, const RelaxRound& relax_round) {
    Round r = {};
    r.first = first_.data();
    r.neighbour = neighbour_.data();
    r.weight = weight_.data();
    r.distance = distance_.data();
    r.marked = marked_.data();
    *size_on_host_ = first_size;
    for (; *size_on_host_ > 0 && r.number < graph_.vertices(); ++r.number) {
      r.size = *size_on_host_;
      r.next_size = sizes_.data() + r.number;
      relax_round(r);
      bench::check(cudaGetLastError(), "launching a round");
      bench::check(cudaMemcpy(size_on_host_, r.next_size, sizeof(int), cudaMemcpyDeviceToHost), "the search");
    }
  }

  bench::GraphInput input_;
  bench::Graph graph_;
  int source_;
  int threshold_;
  bench::ShortestPaths expected_;
  bool flat_;
  std::vector<Part> first_parts_;  // the flat variant's first list
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> neighbour_;
  bench::DeviceArray<int> weight_;
  bench::DeviceArray<int> distance_;
  bench::DeviceArray<int> marked_;
  bench::DeviceArray<int> active_[2];
  bench::DeviceArray<Part> parts_[2];
  bench::DeviceArray<int> sizes_;  // of the list that each round made
  bench::DeviceArray<unsigned long long> lost_;
  int* size_on_host_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  bench::GraphInput input;
  input.kind = "rmat";
  input.degree = 9;
  input.largest_weight = 4096;
  long long threshold = 0;
  bench::Options options("sssp", "shortest paths with a child kernel for each active vertex of many edges");
  input.add_to(options);
  options.integer("threshold", threshold, 0, "vertices with more edges than this launch a child kernel");
  common.add_to(options);
  options.parse(argc, argv);
  if (input.largest_weight == 0) give_up("--largest-weight must be at least 1");
  if (threshold > INT_MAX) give_up("--threshold is too large");
  bench::require_device("sssp");
  Sssp sssp(input, common, static_cast<int>(threshold));
  return bench::run_benchmark("sssp", common, sssp);
}
