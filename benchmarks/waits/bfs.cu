// Breadth-first search with one thread as the driver. It launches a grid for the nodes at one distance, waits
// for it, and reads how many nodes that grid has found.
//
// The graph is long, as road networks are: an edge leads only some nodes ahead. So there are many distances
// with few nodes each. A tail launch of the driver reads the number of nodes. In `--variant flat` the host
// does.
#include <string>
#include <vector>

#include "../common/random.h"
#include "waiting_program.h"

namespace {

constexpr int kBlock = 64;
constexpr int kUnseen = -1;

// The neighbours of node n are neighbours[first[n]] to neighbours[first[n + 1] - 1].
struct Graph {
  const int* first;
  const int* neighbours;
};

// The nodes at one distance are in one list, and those found from there in the other one.
struct Search {
  Graph graph;
  int* distances;
  int* nodes;
  int* next;
  int* next_count;
};

__host__ __device__ inline Search with_lists_swapped(const Search& search) {
  return {search.graph, search.distances, search.next, search.nodes, search.next_count};
}

__global__ void expand(Search search, int count, int distance) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (thread >= count) return;
  const int node = search.nodes[thread];
  for (int i = search.graph.first[node]; i < search.graph.first[node + 1]; ++i) {
    const int to = search.graph.neighbours[i];
    if (search.distances[to] != kUnseen) continue;
    if (atomicCAS(&search.distances[to], kUnseen, distance) != kUnseen) continue;
    search.next[atomicAdd(search.next_count, 1)] = to;
  }
}

#ifdef BENCH_WAITS

__global__ void drive(Search search) {
  search.nodes[0] = 0;
  search.distances[0] = 0;
  int count = 1;
  for (int distance = 1; count > 0; ++distance) {
    *search.next_count = 0;
    expand<<<bench::blocks_for(count, kBlock), kBlock>>>(search, count, distance);
    cudaDeviceSynchronize();
    count = *search.next_count;
    search = with_lists_swapped(search);
  }
}

void launch_drive(const Search& search, bool, unsigned long long*) { drive<<<1, 1>>>(search); }
void launch_distances(const Search&) {}

#else

// The nodes at the distance before this one are in the second list.
template <bool kCount>
__global__ void drive_on(Search search, int distance, unsigned long long* lost) {
  const int count = *search.next_count;
  if (count == 0) return;
  search = with_lists_swapped(search);
  *search.next_count = 0;
  expand<<<bench::blocks_for(count, kBlock), kBlock, 0, cudaStreamFireAndForget>>>(search, count, distance);
  bench::count_if_lost<kCount>(lost);
  drive_on<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(search, distance + 1, lost);
  bench::count_if_lost<kCount>(lost);
}

template <bool kCount>
__global__ void drive(Search search, unsigned long long* lost) {
  search.nodes[0] = 0;
  search.distances[0] = 0;
  *search.next_count = 0;
  expand<<<1, kBlock, 0, cudaStreamFireAndForget>>>(search, 1, 1);
  bench::count_if_lost<kCount>(lost);
  drive_on<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(search, 2, lost);
  bench::count_if_lost<kCount>(lost);
}

void launch_drive(const Search& search, bool counts, unsigned long long* lost) {
  (counts ? drive<true> : drive<false>)<<<1, 1>>>(search, lost);
}

__global__ void start(Search search) {
  search.nodes[0] = 0;
  search.distances[0] = 0;
}

void launch_distances(Search search) {
  start<<<1, 1>>>(search);
  int count = 1;
  for (int distance = 1; count > 0; ++distance) {
    bench::check(cudaMemsetAsync(search.next_count, 0, sizeof(count)), "cudaMemsetAsync");
    expand<<<bench::blocks_for(count, kBlock), kBlock>>>(search, count, distance);
    bench::check(cudaMemcpy(&count, search.next_count, sizeof(count), cudaMemcpyDeviceToHost),
                 "reading a count");
    search = with_lists_swapped(search);
  }
}

#endif

struct Lists {
  std::vector<int> first{0}, neighbours;
};

// Each node has up to 7 edges, which lead up to `reach` nodes ahead, and one that leads back.
Lists random_graph(int nodes, int reach, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  Lists graph;
  for (int node = 0; node < nodes; ++node) {
    for (uint32_t i = 1 + random.below(7); i > 0; --i) {
      const auto ahead = static_cast<int>(1 + random.below(static_cast<uint32_t>(reach)));
      graph.neighbours.push_back(node + ahead < nodes ? node + ahead : node);
    }
    graph.neighbours.push_back(static_cast<int>(random.below(static_cast<uint32_t>(node + 1))));
    graph.first.push_back(static_cast<int>(graph.neighbours.size()));
  }
  return graph;
}

std::vector<int> cpu_distances(const Lists& graph) {
  std::vector<int> distances(graph.first.size() - 1, kUnseen), queue{0};
  distances[0] = 0;
  for (size_t at = 0; at < queue.size(); ++at) {
    const int node = queue[at];
    for (int i = graph.first[node]; i < graph.first[node + 1]; ++i) {
      const int to = graph.neighbours[i];
      if (distances[to] != kUnseen) continue;
      distances[to] = distances[node] + 1;
      queue.push_back(to);
    }
  }
  return distances;
}

class BreadthFirstSearch final : public bench::StreamProgram {
 public:
  BreadthFirstSearch(const Lists& graph, const bench::CommonOptions& options)
      : StreamProgram(options),
        expected_(cpu_distances(graph)),
        first_(graph.first),
        neighbours_(graph.neighbours),
        distances_(expected_.size()),
        nodes_(expected_.size()),
        next_(expected_.size()),
        next_count_(1) {}

  [[nodiscard]] std::string verify() override {
    return bench::differences("distances", expected_, distances_.to_host());
  }

 private:
  void restore() override { distances_.fill_bytes(0xff); }
  void launch(bool count) override { launch_drive(search(), count, lost()); }
  void launch_flat() override { launch_distances(search()); }
  void describe_sizes(bench::JsonObject& report) const override {
    report.add("nodes", static_cast<int>(expected_.size())).add("distances", distances());
  }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {
        .child_launches = (bench::kWaits ? 1LL : 2LL) * distances(),
        .bytes_to_move = static_cast<long long>(first_.bytes() + neighbours_.bytes() + distances_.bytes()),
        .flat_kernels = 1 + distances(),
        .flat_fills = distances(),
        .flat_reads = distances()};
  }

  // How many there are, that of the first node included.
  [[nodiscard]] int distances() const {
    int greatest = 0;
    for (const int distance : expected_) greatest = distance > greatest ? distance : greatest;
    return greatest + 1;
  }
  [[nodiscard]] Search search() const {
    return {{first_.data(), neighbours_.data()},
            distances_.data(),
            nodes_.data(),
            next_.data(),
            next_count_.data()};
  }

  std::vector<int> expected_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> neighbours_;
  bench::DeviceArray<int> distances_;
  bench::DeviceArray<int> nodes_;
  bench::DeviceArray<int> next_;
  bench::DeviceArray<int> next_count_;
};

}  // namespace

int main(int argc, char** argv) {
  long long nodes = 100000, reach = 250;
  bench::WaitingOptions options("bfs", "breadth-first search by a thread that waits for each distance");
  options.integer("nodes", nodes, 1, "nodes of the graph");
  options.integer("reach", reach, 1, "how many nodes ahead an edge leads at most");
  options.parse(argc, argv);
  bench::require_at_most(options.name(), "nodes", nodes, 1 << 26);
  bench::require_at_most(options.name(), "reach", reach, 1 << 26);
  const Lists graph = random_graph(static_cast<int>(nodes), static_cast<int>(reach), options.common.seed);
  BreadthFirstSearch program(graph, options.common);
  return bench::run_benchmark(options.name(), options.common, program);
}
