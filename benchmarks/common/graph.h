// Directed graphs in compressed-row form, and the CPU search that results are checked against.
#pragma once

#include <cstddef>
#include <vector>

namespace bench {

struct Graph {
  std::vector<int> first;      // vertices + 1: where each vertex's edges begin
  std::vector<int> neighbour;  // one entry per edge
  std::vector<int> weight;     // one entry per edge, or none at all

  [[nodiscard]] int vertices() const { return static_cast<int>(first.size()) - 1; }
  [[nodiscard]] int edges() const { return static_cast<int>(neighbour.size()); }
  [[nodiscard]] int degree(int vertex) const { return first[vertex + 1] - first[vertex]; }
};

// An edge as the readers and generators collect them.
struct Edge {
  int from;
  int to;
  int weight;
};

enum class Direction {
  kAsGiven,
  kBothWays,  // the reverse of every edge is there too
};

// Sorts edges into a graph: neighbours ascending, no loops and no parallel edges (of those, the lightest
// stays). Weights are kept where `weighted`. Vertices are 0 to vertices - 1; edges beyond that are the
// caller's mistake.
Graph graph_from_edges(int vertices, const std::vector<Edge>& edges, Direction direction, bool weighted);

// Distances in edges from `source`; -1 for vertices it does not reach.
std::vector<int> cpu_bfs(const Graph& graph, int source);

}  // namespace bench
