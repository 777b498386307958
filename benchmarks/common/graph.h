// Directed graphs in compressed-row form, their generator, and the CPU search that results are checked
// against.
//
// The generator uses its own random numbers: the standard library's distributions differ between
// implementations, and a seed must mean the same graph on every machine for results to be comparable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

// SplitMix64: small, fast, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // Uniform in [0, bound).
  uint32_t below(uint32_t bound);

 private:
  uint64_t state_;
};

struct Graph {
  std::vector<int> first;      // vertices + 1: where each vertex's edges begin
  std::vector<int> neighbour;  // one entry per edge

  [[nodiscard]] int vertices() const { return static_cast<int>(first.size()) - 1; }
  [[nodiscard]] int edges() const { return static_cast<int>(neighbour.size()); }
  [[nodiscard]] int degree(int vertex) const { return first[vertex + 1] - first[vertex]; }
};

// Every vertex gets between half and one and a half times `degree` edges to vertices drawn at random.
Graph random_graph(int vertices, int degree, uint64_t seed);

// Distances in edges from `source`; -1 for vertices it does not reach.
std::vector<int> cpu_bfs(const Graph& graph, int source);

}  // namespace bench
