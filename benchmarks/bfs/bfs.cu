// Breadth-first search with CUDA dynamic parallelism, written the way the programming guide teaches it.
//
// One parent launch per level: a thread per vertex; the thread of each vertex in the current frontier
// launches a child grid over that vertex's edges. Children mark unvisited neighbours with the next level.
// This is the program that device-side launches were invented for and the one they serve worst: a thousand
// small grids at a time, each paying the full price of a launch.
//
// The host learns from the device whether a level found anything by reading one integer (`deepest`), once per
// --levels-per-check levels. Launching a few levels too many is harmless: they find an empty frontier.
//
// `--variant flat` is the same search without dynamic parallelism: a group of threads for every vertex, as
// wide as suits the degree, walks the edges with coalesced loads.
//
// The racing stores to `distance` and `deepest` all store the same value, and no thread depends on seeing
// another thread's store within a level.
#include <climits>
#include <cstdio>
#include <string>
#include <utility>

#include "../common/cuda_check.h"
#include "../common/graph.h"
#include "../common/harness.h"

constexpr int kParentBlock = 1024;
constexpr int kFlatBlock = 256;
constexpr int kSource = 0;

struct Search {
  const int* first;      // where each vertex's edges begin
  const int* neighbour;  // the edges
  int* distance;         // -1 where not visited
  int* deepest;          // largest distance given to any vertex
  int vertices;
};

__global__ void visit(const int* neighbour, int* distance, int* deepest, int begin, int degree, int next) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < degree) {
    const int w = neighbour[begin + i];
    if (distance[w] < 0) {
      distance[w] = next;
      *deepest = next;
    }
  }
}

__global__ void expand(Search s, int level) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < s.vertices && s.distance[v] == level) {
    const int begin = s.first[v];
    const int degree = s.first[v + 1] - begin;
    if (degree > 0) {
      visit<<<(degree + 31) / 32, 32>>>(s.neighbour, s.distance, s.deepest, begin, degree, level + 1);
    }
  }
}

// The same, except that it asks whether the launch was accepted.
__global__ void expand_counting(Search s, int level, unsigned long long* lost) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v < s.vertices && s.distance[v] == level) {
    const int begin = s.first[v];
    const int degree = s.first[v + 1] - begin;
    if (degree > 0) {
      visit<<<(degree + 31) / 32, 32>>>(s.neighbour, s.distance, s.deepest, begin, degree, level + 1);
      if (cudaGetLastError() != cudaSuccess) atomicAdd(lost, 1ULL);
    }
  }
}

// 2^lane_bits threads for each vertex.
__global__ void expand_flat(Search s, int level, int lane_bits) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned v = thread >> lane_bits;
  const int lanes = 1 << lane_bits;
  if (v < static_cast<unsigned>(s.vertices) && s.distance[v] == level) {
    const int end = s.first[v + 1];
    for (int e = s.first[v] + static_cast<int>(thread & (lanes - 1)); e < end; e += lanes) {
      const int w = s.neighbour[e];
      if (s.distance[w] < 0) {
        s.distance[w] = level + 1;
        *s.deepest = level + 1;
      }
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
  Bfs(bench::Graph graph, std::string variant, int levels_per_check)
      : graph_(std::move(graph)),
        expected_(bench::cpu_bfs(graph_, kSource)),
        variant_(std::move(variant)),
        levels_per_check_(levels_per_check),
        lane_bits_(lane_bits_for(graph_.edges() / graph_.vertices())),
        first_(graph_.first),
        neighbour_(graph_.neighbour),
        distance_(graph_.vertices()),
        deepest_(1),
        lost_(1) {
    bench::check(cudaMallocHost(&deepest_on_host_, sizeof(int)), "cudaMallocHost");
  }
  ~Bfs() override { cudaFreeHost(deepest_on_host_); }
  Bfs(const Bfs&) = delete;
  Bfs& operator=(const Bfs&) = delete;

  void reset() override {
    distance_.fill_bytes(0xff);
    deepest_.fill_bytes(0);
    lost_.fill_bytes(0);
    bench::check(cudaMemset(distance_.data() + kSource, 0, sizeof(int)), "cudaMemset");
  }

  void run() override {
    if (variant_ == "flat") {
      search([this](const Search& s, int level) {
        const long long threads = static_cast<long long>(s.vertices) << lane_bits_;
        const auto blocks = static_cast<unsigned>((threads + kFlatBlock - 1) / kFlatBlock);
        expand_flat<<<blocks, kFlatBlock>>>(s, level, lane_bits_);
      });
    } else {
      search([](const Search& s, int level) {
        expand<<<(s.vertices + kParentBlock - 1) / kParentBlock, kParentBlock>>>(s, level);
      });
    }
  }

  long long count_lost_launches() override {
    if (variant_ == "flat") return 0;
    search([this](const Search& s, int level) {
      expand_counting<<<(s.vertices + kParentBlock - 1) / kParentBlock, kParentBlock>>>(s, level,
                                                                                        lost_.data());
    });
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override {
    const std::vector<int> found = distance_.to_host();
    int different = 0;
    int example = -1;
    for (int v = 0; v < graph_.vertices(); ++v) {
      if (found[v] == expected_[v]) continue;
      if (different++ == 0) example = v;
    }
    if (different == 0) return "";
    return std::to_string(different) + " distances differ, vertex " + std::to_string(example) + " got " +
           std::to_string(found[example]) + " instead of " + std::to_string(expected_[example]);
  }

  void describe(bench::JsonObject& report) const override {
    int reached = 0;
    int launches = 0;
    int deepest = 0;
    for (int v = 0; v < graph_.vertices(); ++v) {
      if (expected_[v] < 0) continue;
      ++reached;
      launches += graph_.degree(v) > 0 ? 1 : 0;
      deepest = expected_[v] > deepest ? expected_[v] : deepest;
    }
    report.add("vertices", graph_.vertices()).add("edges", graph_.edges()).add("reached", reached);
    report.add("levels", deepest + 1).add("levels_per_check", levels_per_check_);
    report.add("child_launches", variant_ == "flat" ? 0 : launches);
    if (variant_ == "flat") report.add("threads_per_vertex", 1 << lane_bits_);
  }

 private:
  // Runs level after level until one finds nothing new.
  template <class ExpandLevel>
  void search(const ExpandLevel& expand_level) {
    const Search s = {first_.data(), neighbour_.data(), distance_.data(), deepest_.data(), graph_.vertices()};
    int level = 0;
    do {
      for (int i = 0; i < levels_per_check_; ++i) expand_level(s, level++);
      bench::check(cudaGetLastError(), "launching a level");
      bench::check(cudaMemcpy(deepest_on_host_, s.deepest, sizeof(int), cudaMemcpyDeviceToHost),
                   "the search");
    } while (*deepest_on_host_ == level);
  }

  bench::Graph graph_;
  std::vector<int> expected_;
  std::string variant_;
  int levels_per_check_;
  int lane_bits_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> neighbour_;
  bench::DeviceArray<int> distance_;
  bench::DeviceArray<int> deepest_;
  bench::DeviceArray<unsigned long long> lost_;
  int* deepest_on_host_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long vertices = 10000;
  long long degree = 1000;
  long long levels_per_check = 1;
  bench::Options options("bfs", "breadth-first search with one child kernel per frontier vertex");
  options.integer("vertices", vertices, 1, "vertices of the random graph");
  options.integer("degree", degree, 0, "average number of edges of a vertex");
  options.integer("levels-per-check", levels_per_check, 1,
                  "levels to launch before the host looks for the end");
  common.add_to(options);
  options.parse(argc, argv);
  if (vertices * (degree + degree / 2 + 1) > INT_MAX || levels_per_check > 1000) {
    std::fprintf(stderr, "bfs: the graph or --levels-per-check is too large\n");
    return 2;
  }
  bench::require_device("bfs");
  Bfs bfs(bench::random_graph(static_cast<int>(vertices), static_cast<int>(degree), common.seed),
          common.variant, static_cast<int>(levels_per_check));
  return bench::run_benchmark("bfs", common, bfs);
}
