// A copy of a graph of the program's, to be changed and instantiated in its place.
//
// The program's own graph is never changed: it may be read, changed and instantiated again at any time. But
// an executable graph only knows nodes of the graph that it was made from. So a copy tells which node is the
// copy of which, also of those in graphs within the graph.
#pragma once

#include <cuda.h>

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace klap::runtime {

// The nodes of a graph, without those of graphs within it. These functions throw Error if the driver refuses.
std::vector<CUgraphNode> nodes_of(CUgraph graph);
CUgraphNodeType type_of(CUgraphNode node);
// The graph within a node of that type.
CUgraph graph_within(CUgraphNode node);

class GraphCopy {
 public:
  // Throws Error for a graph that the driver does not copy.
  explicit GraphCopy(CUgraph original);
  ~GraphCopy();
  GraphCopy(const GraphCopy&) = delete;
  GraphCopy& operator=(const GraphCopy&) = delete;

  [[nodiscard]] CUgraph graph() const { return copy_; }

  struct Node {
    CUgraphNode original = nullptr, copy = nullptr;
    CUgraph in = nullptr;  // the copy's graph that has the node
    size_t within = 0;     // nodes of the graph within it, which follow it
    // Places among the nodes of its graph that it stands behind; empty if its edges cannot be told.
    std::optional<std::vector<size_t>> behind;
  };
  // All nodes, also of graphs within the graph.
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  // Null if the node is not of the original.
  [[nodiscard]] CUgraphNode copy_of(CUgraphNode original) const;
  // The place of a node of the original among these; nothing if it is none.
  [[nodiscard]] std::optional<size_t> place_of(CUgraphNode original) const;
  // The node itself if it is none of the copy's.
  [[nodiscard]] CUgraphNode original_of(CUgraphNode copy) const;

 private:
  void find_nodes(CUgraph original, CUgraph copy);

  CUgraph copy_ = nullptr;
  std::vector<Node> nodes_;
  std::unordered_map<CUgraphNode, size_t> places_;  // of the original's nodes
};

// True if both have the same nodes and edges, in the same order. Then the driver pairs nodes by their places
// when it updates an executable graph.
bool are_alike(std::span<const GraphCopy::Node> left, std::span<const GraphCopy::Node> right);

}  // namespace klap::runtime
