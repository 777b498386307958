#include "runtime/graphs/graph_copy.h"

#include <fmt/format.h>

#include <algorithm>

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

namespace {

// Nothing if an edge is more than "behind".
std::optional<std::vector<size_t>> places_behind(CUgraphNode node,
                                                 const std::unordered_map<CUgraphNode, size_t>& places) {
  size_t count = 0;
  if (driver()->graph_get_dependencies(node, nullptr, &count) != CUDA_SUCCESS) return std::nullopt;
  std::vector<CUgraphNode> nodes(count);
  if (count != 0 && driver()->graph_get_dependencies(node, nodes.data(), &count) != CUDA_SUCCESS)
    return std::nullopt;
  std::vector<size_t> behind;
  for (CUgraphNode const each : nodes) behind.push_back(places.at(each));
  return behind;
}

}  // namespace

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
  const std::vector<CUgraphNode> nodes = nodes_of(original);
  std::unordered_map<CUgraphNode, size_t> places;
  for (CUgraphNode const node : nodes) places.emplace(node, places.size());
  for (CUgraphNode const node : nodes) {
    CUgraphNode found = nullptr;
    require(driver()->graph_find_in_clone(&found, node, copy), "cuGraphNodeFindInClone");
    const size_t place = nodes_.size();
    nodes_.push_back({node, found, copy, 0, places_behind(node, places)});
    places_[node] = place;
    if (type_of(node) == CU_GRAPH_NODE_TYPE_GRAPH) find_nodes(graph_within(node), graph_within(found));
    nodes_[place].within = nodes_.size() - place - 1;
  }
}

std::optional<size_t> GraphCopy::place_of(CUgraphNode original) const {
  const auto found = places_.find(original);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

CUgraphNode GraphCopy::copy_of(CUgraphNode original) const {
  const auto place = place_of(original);
  return place ? nodes_[*place].copy : nullptr;
}

CUgraphNode GraphCopy::original_of(CUgraphNode copy) const {
  for (const Node& node : nodes_) {
    if (node.copy == copy) return node.original;
  }
  return copy;
}

bool are_alike(std::span<const GraphCopy::Node> left, std::span<const GraphCopy::Node> right) {
  return std::ranges::equal(left, right, [](const GraphCopy::Node& a, const GraphCopy::Node& b) {
    return a.within == b.within && a.behind && a.behind == b.behind;
  });
}

}  // namespace klap::runtime
