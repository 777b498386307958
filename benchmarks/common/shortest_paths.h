// Shortest paths on the CPU, which results are checked against.
#pragma once

#include <vector>

#include "graph.h"

namespace bench {

// What distances are where the source does not reach: one byte repeated, so that cudaMemset can write it.
constexpr int kUnreached = 0x7f7f7f7f;

struct ShortestPaths {
  std::vector<int> distance;
  int rounds = 0;             // until a round has no active vertex
  long long activations = 0;  // active vertices, summed over the rounds
  long long large = 0;        // of these, the ones with more edges than the threshold
};

// Whether every path's length is below kUnreached, however it goes.
bool distances_fit(const Graph& graph);

// Bellman-Ford in rounds from `source`: a vertex is active in the round after one that lowered its distance,
// and a round works with the distances at its start. That makes the counts exact figures of the graph.
ShortestPaths cpu_shortest_paths(const Graph& graph, int source, int threshold);

}  // namespace bench
