// Parallel Bellman-Ford; see shortest_paths.h.
#include "shortest_paths.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "parallel.h"

namespace bench {
namespace {

struct Active {
  int vertex;
  int distance;  // at the start of the round
};

// Distances, and the round in which each vertex was last found to be active in the next one.
struct Search {
  explicit Search(const Graph& searched)
      : graph(searched), distance(graph.vertices()), marked(graph.vertices()) {
    parallel_for(graph.vertices(), [this](size_t v) {
      distance[v] = kUnreached;
      marked[v] = -1;
    });
  }

  // Lowers w's distance to `length` if that is less; true if w has to be added to the next round.
  bool relax(int w, int length, int round) {
    int known = distance[w].load(std::memory_order_relaxed);
    do {
      if (length >= known) return false;
    } while (!distance[w].compare_exchange_weak(known, length, std::memory_order_relaxed));
    return marked[w].exchange(round, std::memory_order_relaxed) != round;
  }

  const Graph& graph;
  std::vector<std::atomic<int>> distance;
  std::vector<std::atomic<int>> marked;
};

// One round: relaxes the active vertices' edges and returns the vertices to be active next.
std::vector<Active> next_active(Search& search, std::vector<Active>& active, int round) {
  const Graph& graph = search.graph;
  parallel_for(active.size(), [&](size_t i) {
    active[i].distance = search.distance[active[i].vertex].load(std::memory_order_relaxed);
  });
  std::mutex mutex;
  std::vector<Active> next;
  parallel_ranges(active.size(), [&](size_t begin, size_t end) {
    std::vector<Active> found;
    for (size_t i = begin; i < end; ++i) {
      const Active& a = active[i];
      for (int e = graph.first[a.vertex]; e < graph.first[a.vertex + 1]; ++e) {
        const int w = graph.neighbour[e];
        if (search.relax(w, a.distance + graph.weight[e], round)) found.push_back({w, 0});
      }
    }
    const std::lock_guard<std::mutex> lock(mutex);
    next.insert(next.end(), found.begin(), found.end());
  });
  return next;
}

}  // namespace

bool distances_fit(const Graph& graph) {
  const auto heaviest = std::max_element(graph.weight.begin(), graph.weight.end());
  return heaviest == graph.weight.end() || static_cast<long long>(*heaviest) * graph.vertices() < kUnreached;
}

ShortestPaths cpu_shortest_paths(const Graph& graph, int source, int threshold) {
  Search search(graph);
  search.distance[source] = 0;
  ShortestPaths paths;
  std::vector<Active> active = {{source, 0}};
  for (; !active.empty(); ++paths.rounds) {
    paths.activations += static_cast<long long>(active.size());
    paths.large += std::count_if(active.begin(), active.end(),
                                 [&](const Active& a) { return graph.degree(a.vertex) > threshold; });
    active = next_active(search, active, paths.rounds);
  }
  paths.distance.resize(graph.vertices());
  for (int v = 0; v < graph.vertices(); ++v) paths.distance[v] = search.distance[v];
  return paths;
}

}  // namespace bench
