// Breadth-first search with CUDA dynamic parallelism, written the way the programming guide teaches it.
//
// One parent launch per level: a thread per vertex of the frontier, which launches a child grid over that
// vertex's edges. Children claim unvisited neighbours and append them to the next frontier. This is the
// program that device-side launches were invented for and the one they serve worst: a thousand small grids at
// a time, each paying the full price of a launch.
//
// The host reads the size of the next frontier after every level, since it sets the next parent's grid.
//
// `--variant flat` is the same search without dynamic parallelism: a group of threads for every vertex of the
// frontier, as wide as suits the degree, walks the edges with coalesced loads.
#include <algorithm>
#include <string>
#include <utility>

#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/graph_input.h"
#include "../common/harness.h"

constexpr int kParentBlock = 1024;
constexpr int kFlatBlock = 256;
constexpr int kSource = 0;

// One level of a search: who is expanded, and where what is found goes.
struct Level {
  const int* first;      // where each vertex's edges begin
  const int* neighbour;  // the edges
  const int* frontier;   // the vertices to expand
  int size;              // how many
  int next;              // the distance of what is found
  int* distance;         // -1 where not visited
  int* next_frontier;
  int* next_size;
};

__device__ void claim(int w, int next, int* distance, int* next_frontier, int* next_size) {
  if (distance[w] < 0 && atomicCAS(&distance[w], -1, next) == -1) next_frontier[atomicAdd(next_size, 1)] = w;
}

__global__ void visit(const int* neighbour, int begin, int degree, int next, int* distance,
                      int* next_frontier, int* next_size) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < degree) claim(neighbour[begin + i], next, distance, next_frontier, next_size);
}

template <bool kCount>
__global__ void expand(Level l, unsigned long long* lost) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < l.size) {
    const int begin = l.first[l.frontier[i]];
    const int degree = l.first[l.frontier[i] + 1] - begin;
    if (degree > 0) {
      visit<<<(degree + 31) / 32, 32>>>(l.neighbour, begin, degree, l.next, l.distance, l.next_frontier,
                                        l.next_size);
      bench::count_if_lost<kCount>(lost);
    }
  }
}

// 2^lane_bits threads for each vertex.
__global__ void expand_flat(Level l, int lane_bits) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned i = thread >> lane_bits;
  const int lanes = 1 << lane_bits;
  if (i < static_cast<unsigned>(l.size)) {
    const int v = l.frontier[i];
    const int end = l.first[v + 1];
    for (int e = l.first[v] + static_cast<int>(thread & (lanes - 1)); e < end; e += lanes) {
      claim(l.neighbour[e], l.next, l.distance, l.next_frontier, l.next_size);
    }
  }
}

namespace {

// About eight edges a thread, at least 4 and at most 256 threads a vertex.
int lane_bits_for(long long average_degree) {
  int bits = 2;
  while (bits < 8 && (8LL << bits) < average_degree) ++bits;
  return bits;
}

class Bfs : public bench::Benchmark {
 public:
  Bfs(const bench::GraphInput& input, const bench::CommonOptions& options)
      : input_(input),
        graph_(input.load(options.seed)),
        expected_(bench::cpu_bfs(graph_, kSource)),
        variant_(options.variant),
        lane_bits_(lane_bits_for(graph_.edges() / graph_.vertices())),
        first_(graph_.first),
        neighbour_(graph_.neighbour),
        distance_(graph_.vertices()),
        frontiers_{bench::DeviceArray<int>(graph_.vertices()), bench::DeviceArray<int>(graph_.vertices())},
        sizes_(graph_.vertices() + 1),
        lost_(1) {
    bench::check(cudaMallocHost(&size_on_host_, sizeof(int)), "cudaMallocHost");
  }
  ~Bfs() override { cudaFreeHost(size_on_host_); }
  Bfs(const Bfs&) = delete;
  Bfs& operator=(const Bfs&) = delete;

  void reset() override {
    distance_.fill_bytes(0xff);
    sizes_.fill_bytes(0);
    lost_.fill_bytes(0);
    bench::check(cudaMemset(distance_.data() + kSource, 0, sizeof(int)), "cudaMemset");
    bench::check(cudaMemcpy(frontiers_[0].data(), &kSource, sizeof(int), cudaMemcpyHostToDevice),
                 "cudaMemcpy");
  }

  void run() override {
    if (variant_ == "flat") {
      search([this](const Level& l) {
        const long long threads = static_cast<long long>(l.size) << lane_bits_;
        expand_flat<<<bench::blocks_for(threads, kFlatBlock), kFlatBlock>>>(l, lane_bits_);
      });
    } else {
      search_with_children<false>();
    }
  }

  long long count_lost_launches() override {
    search_with_children<true>();
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override { return bench::differences("distances", expected_, distance_.to_host()); }

  void describe(bench::JsonObject& report) const override {
    int reached = 0;
    int launches = 0;
    int deepest = 0;
    long long edges = 0;
    for (int v = 0; v < graph_.vertices(); ++v) {
      if (expected_[v] < 0) continue;
      ++reached;
      edges += graph_.degree(v);
      launches += graph_.degree(v) > 0 ? 1 : 0;
      deepest = expected_[v] > deepest ? expected_[v] : deepest;
    }
    input_.describe(report, graph_);
    report.add("reached", reached).add("levels", deepest + 1);
    report.add("child_launches", variant_ == "cdp" ? launches : 0);
    // Each edge of a reached vertex once; each reached vertex's extent, distance and place in the frontier.
    report.add("bytes_to_move", 4 * edges + 20LL * reached);
    if (variant_ == "flat") report.add("threads_per_vertex", 1 << lane_bits_);
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    const long long levels = *std::max_element(expected_.begin(), expected_.end()) + 1;
    return bench::HostWork{.kernels = levels, .parents = variant_ == "cdp" ? levels : 0, .reads = levels};
  }

 private:
  template <bool kCount>
  void search_with_children() {
    search([this](const Level& l) {
      expand<kCount><<<bench::blocks_for(l.size, kParentBlock), kParentBlock>>>(l, lost_.data());
    });
  }

  // Runs level after level until one finds nothing new.
  template <class ExpandLevel>
  void search(const ExpandLevel& expand_level) {
    Level l = {};
    l.first = first_.data();
    l.neighbour = neighbour_.data();
    l.distance = distance_.data();
    *size_on_host_ = 1;
    for (int level = 0; *size_on_host_ > 0; ++level) {
      l.frontier = frontiers_[level % 2].data();
      l.next_frontier = frontiers_[(level + 1) % 2].data();
      l.size = *size_on_host_;
      l.next = level + 1;
      l.next_size = sizes_.data() + level;
      expand_level(l);
      bench::check(cudaGetLastError(), "launching a level");
      bench::check(cudaMemcpy(size_on_host_, l.next_size, sizeof(int), cudaMemcpyDeviceToHost), "the search");
    }
  }

  bench::GraphInput input_;
  bench::Graph graph_;
  std::vector<int> expected_;
  std::string variant_;
  int lane_bits_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> neighbour_;
  bench::DeviceArray<int> distance_;
  bench::DeviceArray<int> frontiers_[2];
  bench::DeviceArray<int> sizes_;  // of the frontier that each level found
  bench::DeviceArray<unsigned long long> lost_;
  int* size_on_host_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  bench::GraphInput input;
  input.degree = 1000;
  bench::Options options("bfs", "breadth-first search with one child kernel per frontier vertex");
  input.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_device("bfs");
  Bfs bfs(input, common);
  return bench::run_benchmark("bfs", common, bfs);
}
