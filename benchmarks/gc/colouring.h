// The colouring that the GPU programs must come to, exactly: the priorities, and the same rounds on the CPU.
//
// Who takes a colour in a round depends only on the graph, the priorities and who was coloured in the rounds
// before, not on the order in which vertices are looked at. So there is one right answer, and the check is
// equality, which says far more than that neighbours differ.
#pragma once

#include <climits>
#include <cstdint>
#include <vector>

#include "../common/graph.h"
#include "../common/parallel.h"
#include "../common/random.h"

constexpr unsigned kUncoloured = UINT_MAX;  // larger than every colour

// What was found among a vertex's neighbours that have no colour yet.
constexpr int kHigher = 1;
constexpr int kLower = 2;
constexpr int kBoth = kHigher | kLower;

// A vertex's priority: a bijection of 32-bit numbers, so no two vertices have the same and nothing is left to
// break ties on.
__host__ __device__ inline unsigned priority(unsigned vertex, unsigned seed) {
  unsigned x = vertex ^ seed;
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

// Whether a neighbour stands above or below; neither of the two where it is the vertex itself.
__host__ __device__ inline int compare(unsigned neighbour, unsigned own) {
  return neighbour > own ? kHigher : neighbour < own ? kLower : 0;
}

inline unsigned priority_seed(long long seed) {
  return static_cast<unsigned>(bench::mix(static_cast<uint64_t>(seed)) >> 32);
}

struct Colouring {
  std::vector<unsigned> colour;
  int rounds = 0;
  int uncoloured = 0;         // left when the rounds ended
  long long wide_visits = 0;  // over all rounds: uncoloured vertices with more than `threshold` neighbours
};

namespace reference {

// What round `round` finds around vertex v; who is coloured in the round itself still counts as uncoloured.
inline int look_around(const bench::Graph& graph, const std::vector<unsigned>& colour, int v, unsigned seed) {
  const unsigned own = priority(v, seed);
  int found = 0;
  for (int e = graph.first[v]; e < graph.first[v + 1] && found != kBoth; ++e) {
    const int w = graph.neighbour[e];
    if (colour[w] == kUncoloured) found |= compare(priority(w, seed), own);
  }
  return found;
}

}  // namespace reference

// At most `most_rounds` rounds of: of the uncoloured vertices, those that stand above all their uncoloured
// neighbours take one new colour, and those that stand below all of them another.
inline Colouring cpu_colouring(const bench::Graph& graph, unsigned seed, int most_rounds, int threshold) {
  Colouring result;
  result.colour.assign(graph.vertices(), kUncoloured);
  std::vector<int> active(graph.vertices());
  for (int v = 0; v < graph.vertices(); ++v) active[v] = v;
  std::vector<int> found(graph.vertices());
  for (; !active.empty() && result.rounds < most_rounds; ++result.rounds) {
    bench::parallel_for(active.size(), [&](size_t i) {
      found[i] = reference::look_around(graph, result.colour, active[i], seed);
    });
    const unsigned colour = 2U * static_cast<unsigned>(result.rounds);
    size_t left = 0;
    for (size_t i = 0; i < active.size(); ++i) {
      const int v = active[i];
      if (graph.degree(v) > threshold) ++result.wide_visits;
      if (found[i] == kBoth) {
        active[left++] = v;
      } else {
        result.colour[v] = (found[i] & kHigher) == 0 ? colour : colour + 1;
      }
    }
    active.resize(left);
  }
  result.uncoloured = static_cast<int>(active.size());
  return result;
}
