// Minimum spanning forests: the undirected graph that Boruvka's algorithm works on, and what the CPU says
// about it.
//
// Edges are ordered by weight and, where weights are equal, by their ends, so that there is exactly one
// minimum spanning forest and a result can be compared edge by edge.
#pragma once

#include <vector>

#include "graph.h"

namespace bench {

struct UndirectedGraph {
  Graph graph;              // both directions of every edge, neighbours ascending, no loops or parallel edges
  std::vector<int> from;    // where each directed edge starts
  std::vector<int> number;  // of each edge: the place of its direction from the lower to the higher vertex
};

// Of parallel edges, whichever way they go, the lightest stays.
UndirectedGraph undirected(const Graph& graph);

// One entry per directed edge: 1 at the numbers of the edges in the minimum spanning forest, by Kruskal.
std::vector<unsigned char> cpu_minimum_forest(const UndirectedGraph& undirected);

// What Boruvka's algorithm does to a graph, whoever runs it.
struct BoruvkaCounts {
  int rounds = 0;  // the last one merges nothing
  long long candidates =
      0;  // vertices with an edge as light as any that leaves their component, over all rounds
};

BoruvkaCounts cpu_boruvka_counts(const UndirectedGraph& undirected);

}  // namespace bench
