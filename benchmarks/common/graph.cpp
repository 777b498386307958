// Graphs for the benchmarks; see graph.h.
#include "graph.h"

namespace bench {

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

uint32_t Random::below(uint32_t bound) {
  return static_cast<uint32_t>(((next() >> 32) * static_cast<uint64_t>(bound)) >> 32);
}

Graph random_graph(int vertices, int degree, uint64_t seed) {
  Random random(seed);
  Graph graph;
  graph.first.reserve(static_cast<size_t>(vertices) + 1);
  graph.first.push_back(0);
  graph.neighbour.reserve(static_cast<size_t>(vertices) * degree);
  for (int v = 0; v < vertices; ++v) {
    const uint32_t count = degree / 2 + random.below(static_cast<uint32_t>(degree) + 1);
    for (uint32_t i = 0; i < count; ++i) {
      graph.neighbour.push_back(static_cast<int>(random.below(static_cast<uint32_t>(vertices))));
    }
    graph.first.push_back(static_cast<int>(graph.neighbour.size()));
  }
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
