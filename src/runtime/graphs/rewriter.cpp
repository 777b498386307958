#include "runtime/graphs/rewriter.h"

#include <algorithm>
#include <string>

#include "runtime/driver.h"
#include "runtime/graphs/driver_call.h"
#include "runtime/stats.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// A parent's original will run in a graph. On an H200 (driver 580), replays of graphs whose kernels launch
// others were seen to hang. It happened if nothing between two replays makes device launches of its own. So
// from now on every launch in that context is the program's own, and behaves exactly as it does natively.
void leave_in_graph(const std::string& parent, const LaunchReason& reason) {
  Stats::instance().launch_left(parent, reason.name);
  log().info("{}: a graph runs the original: {} ({})", demangle(parent), reason.name, reason.meaning);
  unsigned long long context_id = 0;
  if (driver()->ctx_get_id(nullptr, &context_id) == CUDA_SUCCESS &&
      LaunchContexts::instance().note_graph(context_id)) {
    log().info("from here on every launch in this context is the program's own, as graphs need it");
  }
}

// True if the nodes of the graph run one after another.
bool is_one_row(CUgraph graph) {
  size_t first_ones = 0;
  for (CUgraphNode const node : nodes_of(graph)) {
    size_t before = 0, behind = 0;
    const Driver& cuda = *driver();
    if (cuda.graph_get_dependencies(node, nullptr, &before) != CUDA_SUCCESS ||
        cuda.graph_get_dependents(node, nullptr, &behind) != CUDA_SUCCESS || before > 1 || behind > 1)
      return false;
    if (before == 0 && ++first_ones > 1) return false;
  }
  return true;
}

// The queues that the next node to be replaced may share, null if there are none: nodes of one recursion that
// run one after another have the same.
const NodeVariant* shared_with(const ParentKernel* parent, const Replaced& replaced) {
  for (const auto& [place, node] : replaced) {
    if (node.runs_variant() && node.variant().first.get() == parent && has_large_queues(node.variant()))
      return &node.variant();
  }
  return nullptr;
}

}  // namespace

CUDA_KERNEL_NODE_PARAMS params_of(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS params{};
  require(driver()->graph_kernel_get_params(node, &params), "cuGraphKernelNodeGetParams");
  return params;
}

CUgraphNode original_of(const RewrittenCopy& rewritten, CUgraphNode copy) {
  if (copy == rewritten.end) return nullptr;
  for (const auto& [place, node] : rewritten.replaced) {
    if (node.has_added(copy)) return rewritten.copy->original_of(node.node());
  }
  return rewritten.copy->original_of(copy);
}

bool has_parents(CUgraph graph) {
  return std::ranges::any_of(nodes_of(graph), [](CUgraphNode node) {
    const CUgraphNodeType type = type_of(node);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) return has_parents(graph_within(node));
    return type == CU_GRAPH_NODE_TYPE_KERNEL && parent_of(params_of(node)).has_value();
  });
}

void leave_graph(CUgraph graph, const LaunchReason& reason) {
  for (CUgraphNode const node : nodes_of(graph)) {
    const CUgraphNodeType type = type_of(node);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) leave_graph(graph_within(node), reason);
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    if (const auto handle = parent_of(params_of(node))) leave_in_graph(handle->parent->name(), reason);
  }
}

std::optional<RewrittenCopy> Rewriter::rewrite(CUgraph graph) {
  RewrittenCopy out{std::make_unique<GraphCopy>(graph), {}, nullptr};
  const bool in_one_row = is_one_row(graph);
  for (size_t place = 0; place < out.copy->nodes().size(); ++place) {
    const GraphCopy::Node& node = out.copy->nodes()[place];
    if (type_of(node.original) != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    const CUDA_KERNEL_NODE_PARAMS params = params_of(node.original);
    const ReplacedNode* const like = like_at(place);
    // A graph within the graph may have nodes side by side.
    const bool is_in_row = in_one_row && node.in == out.copy->graph();
    if (const auto handle = parent_of(params)) {
      replace(out.replaced, place, node, params, *handle, is_in_row, like);
    } else if (like != nullptr) {
      out.replaced.try_emplace(place, node.in, node.copy, context_, *like);
    }
  }
  if (out.replaced.empty()) return std::nullopt;
  return out;
}

const ReplacedNode* Rewriter::like_at(size_t place) const {
  if (like_ == nullptr) return nullptr;
  const auto found = like_->find(first_place_ + place);
  return found == like_->end() ? nullptr : &found->second;
}

void Rewriter::replace(Replaced& replaced, size_t place, const GraphCopy::Node& node,
                       const CUDA_KERNEL_NODE_PARAMS& params, const Registry::Handle& handle, bool is_in_row,
                       const ReplacedNode* like) {
  ChosenVariant chosen;
  chosen.left = refuse_node(node.original);
  if (!chosen.left) {
    const NodeVariant* const shared = is_in_row ? shared_with(handle.parent.get(), replaced) : nullptr;
    const NodeVariant* own = like && like->runs_variant() && are_paired_ ? &like->variant() : nullptr;
    if (own && spare_.is_taken(*own)) own = nullptr;
    chosen = choose_variant(handle, params, context_, {shared, own}, spare_);
  }
  if (chosen.left) return leave_in_graph(handle.parent->name(), *chosen.left);
  const NodeShape shape = like ? like->shape() : is_first_ ? shape_for_all(handle.parent) : NodeShape{};
  replaced.try_emplace(place, node.in, node.copy, params, std::move(chosen.variant), context_, shape);
}

}  // namespace klap::runtime
