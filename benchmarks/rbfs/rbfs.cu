// Recursive breadth-first search: distances, in edges, by a kernel that launches itself.
//
// The kernel works on one vertex with a thread per neighbour. A thread that shortens its neighbour's distance
// launches the kernel for that neighbour, if it has neighbours of its own. There are no levels: a vertex can
// be reached on a long way first and again on shorter ones, each time with everything behind it, so the
// number of launches depends on the order in which they run. The distances in the end do not.
//
// The kernel reads its vertex's distance when it runs, not when it was launched, so launches that come late
// for a vertex find little left to do.
//
// `--variant flat` applies the same step to a whole frontier at a time: a group of threads per vertex, as
// wide as suits the degree; the host reads the size of the next frontier after every level.
#include <algorithm>
#include <string>
#include <vector>

#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/graph_input.h"
#include "../common/harness.h"

constexpr int kBlock = 64;
constexpr int kFlatBlock = 256;
constexpr int kSource = 0;
constexpr int kUnreachedByte = 0x7f;
constexpr int kUnreached = 0x7f7f7f7f;

struct Search {
  const int* first;      // where each vertex's edges begin
  const int* neighbour;  // the edges
  int* distance;         // kUnreached where no way is known
};

// Whether w was farther than `distance`; it no longer is.
__device__ bool shorten(const Search& s, int w, int distance) {
  return s.distance[w] > distance && atomicMin(&s.distance[w], distance) > distance;
}

template <bool kCount>
__global__ void search_from(Search s, int vertex, unsigned long long* lost) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int begin = s.first[vertex];
  if (i < s.first[vertex + 1] - begin) {
    const int w = s.neighbour[begin + i];
    if (shorten(s, w, s.distance[vertex] + 1)) {
      const int degree = s.first[w + 1] - s.first[w];
      if (degree > 0) {
        search_from<kCount><<<(degree + kBlock - 1) / kBlock, kBlock>>>(s, w, lost);
        bench::count_if_lost<kCount>(lost);
      }
    }
  }
}

// The vertices whose neighbours are looked at, and those found.
struct Frontier {
  const int* vertices;
  int size;
  int distance;  // of what is found
  int* next;
  int* next_size;
};

// 2^lane_bits threads for each vertex.
__global__ void search_flat(Search s, Frontier f, int lane_bits) {
  const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long i = thread >> lane_bits;
  const int lanes = 1 << lane_bits;
  if (i < f.size) {
    const int v = f.vertices[i];
    const int end = s.first[v + 1];
    for (int e = s.first[v] + static_cast<int>(thread & (lanes - 1)); e < end; e += lanes) {
      const int w = s.neighbour[e];
      if (shorten(s, w, f.distance)) f.next[atomicAdd(f.next_size, 1)] = w;
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

std::vector<int> reference(const bench::Graph& graph) {
  std::vector<int> distance = bench::cpu_bfs(graph, kSource);
  for (int& d : distance) d = d < 0 ? kUnreached : d;
  return distance;
}

class RecursiveBfs : public bench::Benchmark {
 public:
  RecursiveBfs(const bench::GraphInput& input, const bench::CommonOptions& options)
      : input_(input),
        graph_(input.load(options.seed)),
        expected_(reference(graph_)),
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
  ~RecursiveBfs() override { cudaFreeHost(size_on_host_); }
  RecursiveBfs(const RecursiveBfs&) = delete;
  RecursiveBfs& operator=(const RecursiveBfs&) = delete;

  void reset() override {
    distance_.fill_bytes(kUnreachedByte);
    sizes_.fill_bytes(0);
    lost_.fill_bytes(0);
    bench::check(cudaMemset(distance_.data() + kSource, 0, sizeof(int)), "cudaMemset");
    bench::check(cudaMemcpy(frontiers_[0].data(), &kSource, sizeof(int), cudaMemcpyHostToDevice),
                 "cudaMemcpy");
  }

  void run() override {
    if (variant_ == "flat") {
      search_by_levels();
    } else {
      recurse<false>();
    }
  }

  long long count_lost_launches() override {
    recurse<true>();
    return static_cast<long long>(lost_.to_host()[0]);
  }

  std::string verify() override { return bench::differences("distances", expected_, distance_.to_host()); }

  void describe(bench::JsonObject& report) const override {
    int reached = 0;
    int launches = 0;
    int deepest = 0;
    long long edges = 0;
    for (int v = 0; v < graph_.vertices(); ++v) {
      if (expected_[v] == kUnreached) continue;
      ++reached;
      edges += graph_.degree(v);
      launches += v != kSource && graph_.degree(v) > 0 ? 1 : 0;
      deepest = expected_[v] > deepest ? expected_[v] : deepest;
    }
    input_.describe(report, graph_);
    report.add("reached", reached).add("levels", deepest + 1);
    // The fewest: every vertex is reached on a shortest way at once. What an order of running really takes
    // can be tens of times as many.
    report.add("child_launches", variant_ == "cdp" ? launches : 0);
    // Each edge of a reached vertex once; each reached vertex's extent and distance.
    report.add("bytes_to_move", 4 * edges + 12LL * reached);
    if (variant_ == "flat") report.add("threads_per_vertex", 1 << lane_bits_);
  }

  [[nodiscard]] std::optional<bench::HostWork> host_work() const override {
    if (variant_ == "cdp") {
      const long long first = graph_.degree(kSource) > 0 ? 1 : 0;
      return bench::HostWork{.kernels = first, .parents = first};
    }
    long long levels = 0;
    for (const int distance : expected_) {
      if (distance != kUnreached) levels = std::max(levels, distance + 1LL);
    }
    return bench::HostWork{.kernels = levels, .reads = levels};
  }

 private:
  [[nodiscard]] Search search() const { return {first_.data(), neighbour_.data(), distance_.data()}; }

  template <bool kCount>
  void recurse() {
    const int degree = graph_.degree(kSource);
    if (degree == 0) return;
    search_from<kCount><<<bench::blocks_for(degree, kBlock), kBlock>>>(search(), kSource, lost_.data());
    bench::check(cudaGetLastError(), "launching the recursion");
  }

  // Runs level after level until one finds nothing new.
  void search_by_levels() {
    *size_on_host_ = 1;
    for (int level = 0; *size_on_host_ > 0; ++level) {
      const Frontier f = {frontiers_[level % 2].data(), *size_on_host_, level + 1,
                          frontiers_[(level + 1) % 2].data(), sizes_.data() + level};
      const long long threads = static_cast<long long>(f.size) << lane_bits_;
      search_flat<<<bench::blocks_for(threads, kFlatBlock), kFlatBlock>>>(search(), f, lane_bits_);
      bench::check(cudaGetLastError(), "launching a level");
      bench::check(cudaMemcpy(size_on_host_, f.next_size, sizeof(int), cudaMemcpyDeviceToHost), "the search");
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
  input.kind = "rmat";
  input.degree = 16;
  bench::Options options("rbfs",
                         "breadth-first search by a kernel that launches itself for every vertex reached");
  input.add_to(options);
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_device("rbfs");
  RecursiveBfs rbfs(input, common);
  return bench::run_benchmark("rbfs", common, rbfs);
}
