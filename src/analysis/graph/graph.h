// Algorithms on directed graphs that more than one analysis needs: strongly connected components and
// immediate dominators.
//
// Generated kernels have tens of thousands of basic blocks, so both are iterative: a long chain of blocks
// could exhaust a recursion. Both are near-linear, whatever the graph looks like.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace klap::analysis {

// The nodes are 0 .. nodes-1; the functions give a node's neighbours.
using Neighbours = std::function<const std::vector<uint32_t>&(uint32_t node)>;

struct Components {
  std::vector<uint32_t> of;  // node -> component
  uint32_t count = 0;
};
// Tarjan's algorithm. An edge that leaves a component leads to one with a smaller number.
Components strongly_connected(uint32_t nodes, const Neighbours& successors);

// A set of nodes with the edges between them, renumbered from 0, and its strongly connected components.
struct Subgraph {
  using Edge = std::function<bool(uint32_t from, uint32_t to)>;
  // The nodes in ascending order. Only edges for which `keeps` holds count; all where there is none.
  Subgraph(std::vector<uint32_t> all, const Neighbours& successors, const Edge& keeps = {});
  [[nodiscard]] bool cyclic(uint32_t component) const;
  // In ascending order, by their original numbers.
  [[nodiscard]] std::vector<uint32_t> nodes_of(uint32_t component) const;

  std::vector<uint32_t> nodes;  // new number -> original one
  std::vector<std::vector<uint32_t>> edges;
  Components components;
  std::vector<std::vector<uint32_t>> members;  // of the components
};

// The tree of immediate dominators of all nodes that `root` reaches (Lengauer and Tarjan's algorithm). It
// takes O(edges x log nodes), also where thousands of branches share one target. Iterative schemes need
// quadratic time there.
class DominatorTree {
 public:
  static constexpr uint32_t kNone = ~0u;
  DominatorTree() = default;
  DominatorTree(uint32_t nodes, uint32_t root, const Neighbours& successors, const Neighbours& predecessors);

  // The immediate dominator; kNone for the root and for nodes outside the tree.
  [[nodiscard]] uint32_t parent(uint32_t node) const { return parent_[node]; }
  // True if the root reaches the node.
  [[nodiscard]] bool contains(uint32_t node) const { return last_[node] != 0; }
  // True if every path from the root to `b` passes `a`; a node dominates itself. False if the root reaches
  // one of them only or none.
  [[nodiscard]] bool dominates(uint32_t a, uint32_t b) const {
    return a == b || (contains(a) && contains(b) && first_[a] <= first_[b] && last_[b] <= last_[a]);
  }
  // The tree's nodes, every parent before its children.
  [[nodiscard]] const std::vector<uint32_t>& order() const { return order_; }

 private:
  void number(uint32_t root);
  std::vector<uint32_t> parent_, order_;
  std::vector<uint32_t> first_, last_;  // a node's subtree as an interval; last is 0 outside the tree
};

}  // namespace klap::analysis
