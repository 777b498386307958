// Breadth-first search by tail launches: the device itself finds out when there is no further level.
//
// A kernel of one thread reads how many vertices the last level has found. It launches a kernel for them into
// its NULL stream, with a thread for each vertex, and itself for the next level into the tail-launch stream.
// So it reads the next number when all of this level is complete. If there is nothing more, it launches
// nothing.
//
// The graph is a map of streets: a square grid of crossings, where some of the streets are missing.
//
// `--variant flat` launches the levels from the host, which reads the number behind each.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../common/compare.h"
#include "../common/cuda_check.h"
#include "../common/device.cuh"
#include "../common/graph.h"
#include "../common/harness.h"
#include "../common/options.h"
#include "../common/random.h"
#include "../common/stream_program.h"

constexpr int kBlock = 128;
constexpr int kUnreached = -1;

struct Search {
  const int* first;      // where each vertex's edges begin
  const int* neighbour;  // the edges
  int* distance;
  int* frontiers[2];  // vertices of even and of odd levels
  int* sizes;         // of each level
};

// A thread for each vertex of the level.
__global__ void visit(Search search, int level, int size) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= size) return;
  const int vertex = search.frontiers[level % 2][i];
  int* const next = search.frontiers[(level + 1) % 2];
  for (int edge = search.first[vertex]; edge < search.first[vertex + 1]; ++edge) {
    const int found = search.neighbour[edge];
    if (atomicCAS(&search.distance[found], kUnreached, level + 1) == kUnreached)
      next[atomicAdd(&search.sizes[level + 1], 1)] = found;
  }
}

template <bool kCount>
__global__ void search_from(Search search, int level, unsigned long long* lost) {
  const int size = search.sizes[level];
  if (size == 0) return;
  visit<<<bench::blocks_for(size, kBlock), kBlock>>>(search, level, size);
  bench::count_if_lost<kCount>(lost);
  search_from<kCount><<<1, 1, 0, cudaStreamTailLaunch>>>(search, level + 1, lost);
  bench::count_if_lost<kCount>(lost);
}

namespace {

// A street between neighbours is there with a probability of 9 in 10.
bench::Graph streets(long long side, long long seed) {
  bench::Random random(static_cast<uint64_t>(seed));
  const int width = static_cast<int>(side);
  std::vector<std::vector<int>> neighbours(static_cast<size_t>(width) * width);
  const auto join = [&](int a, int b) {
    if (random.below(10) == 0) return;
    neighbours[a].push_back(b);
    neighbours[b].push_back(a);
  };
  for (int i = 0; i < width * width; ++i) {
    if (i % width + 1 < width) join(i, i + 1);
    if (i / width + 1 < width) join(i, i + width);
  }
  bench::Graph graph;
  graph.first = {0};
  for (const std::vector<int>& found : neighbours) {
    graph.neighbour.insert(graph.neighbour.end(), found.begin(), found.end());
    graph.first.push_back(static_cast<int>(graph.neighbour.size()));
  }
  return graph;
}

class TailBfs final : public bench::ArrayProgram<int> {
 public:
  TailBfs(const bench::Graph& graph, const bench::CommonOptions& options)
      : ArrayProgram(options, "distances", unreached(graph), bench::cpu_bfs(graph, 0)),
        levels_(1 + *std::max_element(expected().begin(), expected().end())),
        first_(graph.first),
        neighbour_(graph.neighbour),
        even_(expected().size()),
        odd_(expected().size()),
        sizes_(static_cast<size_t>(levels_) + 1) {}

 private:
  // All but the vertex that the search begins with.
  static std::vector<int> unreached(const bench::Graph& graph) {
    std::vector<int> distance(static_cast<size_t>(graph.vertices()), kUnreached);
    distance.front() = 0;
    return distance;
  }

  // The first level is vertex 0.
  void restore() override {
    const int one = 1;
    ArrayProgram::restore();
    even_.fill_bytes(0);
    sizes_.fill_bytes(0);
    bench::check(cudaMemcpy(sizes_.data(), &one, sizeof one, cudaMemcpyHostToDevice), "copy to the device");
  }

  [[nodiscard]] Search search() const {
    return {first_.data(), neighbour_.data(), data(), {even_.data(), odd_.data()}, sizes_.data()};
  }

  void launch(bool count) override {
    (count ? search_from<true> : search_from<false>)<<<1, 1>>>(search(), 0, lost());
  }

  void launch_flat() override {
    int size = 1;
    for (int level = 0; size > 0; ++level) {
      visit<<<bench::blocks_for(size, kBlock), kBlock>>>(search(), level, size);
      bench::check(cudaMemcpy(&size, sizes_.data() + level + 1, sizeof size, cudaMemcpyDeviceToHost),
                   "the search");
    }
  }

  void describe_sizes(bench::JsonObject& report) const override {
    report.add("vertices", static_cast<long long>(expected().size())).add("levels", levels_);
  }
  // Two launches for each level. Each edge is read, and a vertex's extent and distance.
  [[nodiscard]] bench::RunFacts facts() const override {
    const auto vertices = static_cast<long long>(expected().size());
    return {.child_launches = 2LL * levels_,
            .bytes_to_move = static_cast<long long>(neighbour_.bytes()) + 12 * vertices,
            .flat_kernels = levels_,
            .flat_reads = levels_};
  }

  int levels_;
  bench::DeviceArray<int> first_;
  bench::DeviceArray<int> neighbour_;
  bench::DeviceArray<int> even_;
  bench::DeviceArray<int> odd_;
  bench::DeviceArray<int> sizes_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long side = 200;
  bench::Options options("tbfs", "breadth-first search with a tail launch for each level");
  options.integer("side", side, 2, "crossings along each side of the map");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("tbfs", "side", side, 1 << 13);
  bench::require_device("tbfs");
  TailBfs program(streets(side, common.seed), common);
  return bench::run_benchmark("tbfs", common, program);
}
