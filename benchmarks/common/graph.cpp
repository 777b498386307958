// Building and searching graphs on the CPU; see graph.h.
#include "graph.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "parallel.h"

namespace bench {
namespace {

using Target = std::pair<int, int>;  // neighbour and weight

// Calls visit(from, to, weight) for every directed edge that `edges` stands for, from several threads.
template <class Visit>
void for_each_arc(const std::vector<Edge>& edges, Direction direction, const Visit& visit) {
  parallel_for(edges.size(), [&](size_t i) {
    const Edge& e = edges[i];
    if (e.from == e.to) return;
    visit(e.from, e.to, e.weight);
    if (direction == Direction::kBothWays) visit(e.to, e.from, e.weight);
  });
}

// Where each vertex's targets begin when all arcs, parallel ones included, lie one after another.
std::vector<size_t> starts(const std::vector<std::atomic<int>>& degrees) {
  std::vector<size_t> start(degrees.size() + 1);
  for (size_t v = 0; v < degrees.size(); ++v) start[v + 1] = start[v] + degrees[v];
  return start;
}

}  // namespace

Graph graph_from_edges(int vertices, const std::vector<Edge>& edges, Direction direction, bool weighted) {
  std::vector<std::atomic<int>> count(vertices);
  for_each_arc(edges, direction, [&](int from, int, int) { ++count[from]; });
  const std::vector<size_t> start = starts(count);
  std::vector<Target> targets(start.back());
  for_each_arc(edges, direction, [&](int from, int to, int weight) {
    targets[start[from] + --count[from]] = {to, weight};
  });

  std::vector<int> degree(vertices);
  parallel_for(vertices, [&](size_t v) {
    const auto begin = targets.begin() + static_cast<std::ptrdiff_t>(start[v]);
    const auto end = targets.begin() + static_cast<std::ptrdiff_t>(start[v + 1]);
    std::sort(begin, end);  // by weight too, so that the lightest of parallel edges comes first
    const auto same = [](const Target& a, const Target& b) { return a.first == b.first; };
    degree[v] = static_cast<int>(std::unique(begin, end, same) - begin);
  });

  Graph graph;
  graph.first.resize(vertices + 1);
  for (int v = 0; v < vertices; ++v) graph.first[v + 1] = graph.first[v] + degree[v];
  graph.neighbour.resize(graph.first[vertices]);
  if (weighted) graph.weight.resize(graph.first[vertices]);
  parallel_for(vertices, [&](size_t v) {
    for (int i = 0; i < degree[v]; ++i) {
      graph.neighbour[graph.first[v] + i] = targets[start[v] + i].first;
      if (weighted) graph.weight[graph.first[v] + i] = targets[start[v] + i].second;
    }
  });
  return graph;
}

std::vector<int> cpu_bfs(const Graph& graph, int source) {
  std::vector<int> distance(graph.vertices(), -1);
  std::vector<int> queue = {source};
  distance[source] = 0;
  for (size_t head = 0; head < queue.size(); ++head) {
    const int v = queue[head];
    for (int e = graph.first[v]; e < graph.first[v + 1]; ++e) {
      const int w = graph.neighbour[e];
      if (distance[w] >= 0) continue;
      distance[w] = distance[v] + 1;
      queue.push_back(w);
    }
  }
  return distance;
}

}  // namespace bench
