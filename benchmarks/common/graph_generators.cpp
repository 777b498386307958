// Graphs made from a seed; see graph_generators.h.
#include "graph_generators.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "parallel.h"
#include "random.h"

namespace bench {
namespace {

std::vector<int> names_for(int count, VertexNames kind, uint64_t seed) {
  std::vector<int> names(count);
  std::iota(names.begin(), names.end(), 0);
  if (kind == VertexNames::kAsDrawn) return names;
  Random random(seed, ~uint64_t{0});
  for (int i = count - 1; i > 0; --i) std::swap(names[i], names[random.below(static_cast<uint32_t>(i) + 1)]);
  return names;
}

// One R-MAT edge: which quarter of the adjacency matrix, again and again, down to one entry.
Edge rmat_edge(int scale, Random& random) {
  constexpr double kA = 0.57;
  constexpr double kB = 0.19;
  constexpr double kC = 0.19;
  Edge edge = {0, 0, 1};
  for (int level = 0; level < scale; ++level) {
    const double u = random.uniform();
    const bool lower = u >= kA + kB;
    const bool right = lower ? u >= kA + kB + kC : u >= kA;
    edge.from = 2 * edge.from + (lower ? 1 : 0);
    edge.to = 2 * edge.to + (right ? 1 : 0);
  }
  return edge;
}

// The mean of a density proportional to x^-exponent on [1, largest].
double power_law_mean(double exponent, double largest) {
  const auto moment = [largest](double power) {  // the integral of x^power
    return std::abs(power + 1) < 1e-9 ? std::log(largest) : (std::pow(largest, power + 1) - 1) / (power + 1);
  };
  return moment(1 - exponent) / moment(-exponent);
}

// The exponent for which that mean is `mean`; the mean falls as the exponent grows.
double power_law_exponent(double mean, double largest) {
  double low = -8;
  double high = 8;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (power_law_mean(middle, largest) > mean ? low : high) = middle;
  }
  return (low + high) / 2;
}

// Draws from that density by inverting its distribution function at u.
double power_law_draw(double exponent, double largest, double u) {
  const double power = 1 - exponent;
  if (std::abs(power) < 1e-9) return std::pow(largest, u);
  return std::pow(1 + u * (std::pow(largest, power) - 1), 1 / power);
}

// One entry per end of an edge that each vertex is to have.
std::vector<int> edge_ends(int vertices, int degree, int largest, uint64_t seed) {
  const double exponent = power_law_exponent(degree, largest);
  Random random(seed, 0);
  std::vector<int> ends;
  ends.reserve(static_cast<size_t>(vertices) * degree);
  for (int v = 0; v < vertices; ++v) {
    const auto count = static_cast<size_t>(std::lround(power_law_draw(exponent, largest, random.uniform())));
    ends.insert(ends.end(), count, v);
  }
  return ends;
}

// Pairs the ends: even ones with one at most `reach` places away, odd ones with one anywhere.
std::vector<Edge> paired(std::vector<int> ends, size_t reach, uint64_t seed) {
  Random random(seed, 1);
  std::vector<int> far;
  std::vector<int> near;
  for (size_t i = 0; i < ends.size(); ++i) (i % 2 == 0 ? near : far).push_back(ends[i]);
  for (size_t i = far.size(); i > 1; --i) std::swap(far[i - 1], far[random.below(static_cast<uint32_t>(i))]);
  for (size_t i = 0; i + 1 < near.size(); ++i) {
    const size_t span = std::min(reach, near.size() - i);
    std::swap(near[i], near[i + random.below(static_cast<uint32_t>(span))]);
  }
  std::vector<Edge> edges;
  edges.reserve(ends.size() / 2);
  for (const std::vector<int>* part : {&near, &far}) {
    for (size_t i = 0; i + 1 < part->size(); i += 2) edges.push_back({(*part)[i], (*part)[i + 1], 1});
  }
  return edges;
}

}  // namespace

Graph uniform_graph(int vertices, int degree, uint64_t seed) {
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

Graph rmat_graph(int scale, int edge_factor, uint64_t seed, VertexNames kind) {
  const int vertices = 1 << scale;
  const std::vector<int> names = names_for(vertices, kind, seed);
  std::vector<Edge> edges(static_cast<size_t>(vertices) * edge_factor);
  parallel_for(edges.size(), [&](size_t i) {
    Random random(seed, i);
    const Edge edge = rmat_edge(scale, random);
    edges[i] = {names[edge.from], names[edge.to], 1};
  });
  return graph_from_edges(vertices, edges, Direction::kBothWays, false);
}

Graph citation_graph(int vertices, int degree, int largest, uint64_t seed) {
  const size_t reach = static_cast<size_t>(largest) * 64;
  const std::vector<Edge> edges = paired(edge_ends(vertices, degree, largest, seed), reach, seed);
  return graph_from_edges(vertices, edges, Direction::kBothWays, false);
}

void add_weights(Graph& graph, int largest, uint64_t seed) {
  graph.weight.resize(graph.neighbour.size());
  parallel_for(graph.vertices(), [&](size_t v) {
    for (int e = graph.first[v]; e < graph.first[v + 1]; ++e) {
      const auto from = static_cast<uint32_t>(v);
      const auto to = static_cast<uint32_t>(graph.neighbour[e]);
      const uint64_t pair = (static_cast<uint64_t>(std::min(from, to)) << 32) | std::max(from, to);
      graph.weight[e] = 1 + static_cast<int>(Random(seed, pair).below(static_cast<uint32_t>(largest)));
    }
  });
}

}  // namespace bench
