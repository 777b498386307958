// Minimum spanning forests on the CPU; see boruvka.h.
#include "boruvka.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <numeric>
#include <utility>

#include "parallel.h"

namespace bench {
namespace {

using Key = uint64_t;  // weight, then number of an edge
constexpr Key kNone = ~Key{0};

Key key_of(const UndirectedGraph& u, int e) {
  return (static_cast<Key>(u.graph.weight[e]) << 32) | static_cast<uint32_t>(u.number[e]);
}

// The components of a growing forest.
class Components {
 public:
  explicit Components(int vertices) : parent_(vertices) { std::iota(parent_.begin(), parent_.end(), 0); }

  int find(int v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  // False if both were in one component.
  bool merge(int v, int w) {
    const int a = find(v);
    const int b = find(w);
    parent_[a] = b;
    return a != b;
  }

 private:
  std::vector<int> parent_;
};

// The lightest edge of each vertex that leaves its component; kNone where there is none.
std::vector<Key> lightest_of_vertices(const UndirectedGraph& u, const std::vector<int>& component) {
  std::vector<Key> lightest(component.size(), kNone);
  parallel_for(component.size(), [&](size_t v) {
    for (int e = u.graph.first[v]; e < u.graph.first[v + 1]; ++e) {
      if (component[u.graph.neighbour[e]] != component[v]) {
        lightest[v] = std::min(lightest[v], key_of(u, e));
      }
    }
  });
  return lightest;
}

}  // namespace

UndirectedGraph undirected(const Graph& graph) {
  std::vector<Edge> edges(graph.edges());
  parallel_for(graph.vertices(), [&](size_t v) {
    for (int e = graph.first[v]; e < graph.first[v + 1]; ++e) {
      edges[e] = {static_cast<int>(v), graph.neighbour[e], graph.weight[e]};
    }
  });
  UndirectedGraph u;
  u.graph = graph_from_edges(graph.vertices(), edges, Direction::kBothWays, true);
  u.from.resize(u.graph.edges());
  u.number.resize(u.graph.edges());
  parallel_for(u.graph.vertices(), [&](size_t v) {
    const auto vertex = static_cast<int>(v);
    for (int e = u.graph.first[v]; e < u.graph.first[v + 1]; ++e) {
      const int w = u.graph.neighbour[e];
      const auto begin = u.graph.neighbour.begin();
      const auto reverse = std::lower_bound(begin + u.graph.first[w], begin + u.graph.first[w + 1], vertex);
      u.from[e] = vertex;
      u.number[e] = vertex < w ? e : static_cast<int>(reverse - begin);
    }
  });
  return u;
}

std::vector<unsigned char> cpu_minimum_forest(const UndirectedGraph& u) {
  std::vector<Key> keys;
  for (int e = 0; e < u.graph.edges(); ++e) {
    if (u.number[e] == e) keys.push_back(key_of(u, e));
  }
  std::sort(keys.begin(), keys.end());
  Components components(u.graph.vertices());
  std::vector<unsigned char> in_forest(u.graph.edges());
  for (const Key key : keys) {
    const auto e = static_cast<int>(key & UINT32_MAX);
    if (components.merge(u.from[e], u.graph.neighbour[e])) in_forest[e] = 1;
  }
  return in_forest;
}

BoruvkaCounts cpu_boruvka_counts(const UndirectedGraph& u) {
  BoruvkaCounts counts;
  Components components(u.graph.vertices());
  std::vector<int> component(u.graph.vertices());
  for (bool merged = true; merged; ++counts.rounds) {
    for (int v = 0; v < u.graph.vertices(); ++v) component[v] = components.find(v);
    const std::vector<Key> of_vertex = lightest_of_vertices(u, component);
    std::vector<Key> of_component(component.size(), kNone);
    for (size_t v = 0; v < component.size(); ++v) {
      of_component[component[v]] = std::min(of_component[component[v]], of_vertex[v]);
    }
    merged = false;
    for (size_t v = 0; v < component.size(); ++v) {
      if (of_vertex[v] == kNone) continue;
      if (of_vertex[v] >> 32 == of_component[component[v]] >> 32) ++counts.candidates;
      const auto e = static_cast<int>(of_vertex[v] & UINT32_MAX);
      if (of_vertex[v] != of_component[component[v]]) continue;
      merged = components.merge(u.from[e], u.graph.neighbour[e]) || merged;
    }
  }
  return counts;
}

}  // namespace bench
