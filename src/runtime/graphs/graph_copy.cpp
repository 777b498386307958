#include "runtime/graphs/graph_copy.h"

#include <fmt/format.h>

#include "runtime/driver.h"
#include "runtime/graphs/driver_call.h"

namespace klap::runtime {

std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  size_t count = 0;
  require(driver()->graph_get_nodes(graph, nullptr, &count), "cuGraphGetNodes");
  std::vector<CUgraphNode> nodes(count);
  if (count != 0) require(driver()->graph_get_nodes(graph, nodes.data(), &count), "cuGraphGetNodes");
  return nodes;
}

CUgraphNodeType type_of(CUgraphNode node) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  require(driver()->graph_node_get_type(node, &type), "cuGraphNodeGetType");
  return type;
}

CUgraph graph_within(CUgraphNode node) {
  CUgraph graph = nullptr;
  require(driver()->graph_child_get_graph(node, &graph), "cuGraphChildGraphNodeGetGraph");
  return graph;
}

GraphCopy::GraphCopy(CUgraph original) {
  require(driver()->graph_clone(&copy_, original), "cuGraphClone");
  try {
    find_nodes(original, copy_);
  } catch (...) {
    driver()->graph_destroy(copy_);
    throw;
  }
}

GraphCopy::~GraphCopy() { driver()->graph_destroy(copy_); }

void GraphCopy::find_nodes(CUgraph original, CUgraph copy) {
  for (CUgraphNode const node : nodes_of(original)) {
    CUgraphNode found = nullptr;
    require(driver()->graph_find_in_clone(&found, node, copy), "cuGraphNodeFindInClone");
    nodes_.push_back({node, found, copy});
    copies_[node] = found;
    if (type_of(node) == CU_GRAPH_NODE_TYPE_GRAPH) find_nodes(graph_within(node), graph_within(found));
  }
}

CUgraphNode GraphCopy::copy_of(CUgraphNode original) const {
  const auto found = copies_.find(original);
  return found == copies_.end() ? nullptr : found->second;
}

CUgraphNode GraphCopy::original_of(CUgraphNode copy) const {
  for (const Node& node : nodes_) {
    if (node.copy == copy) return node.original;
  }
  return copy;
}

}  // namespace klap::runtime
