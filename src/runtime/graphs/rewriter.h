// Replaces the parents in copies of graphs.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/graphs/graph_copy.h"
#include "runtime/graphs/replaced_node.h"

namespace klap::runtime {

// The parents that were replaced in a copy, by their nodes' places among the copy's nodes.
using Replaced = std::map<size_t, ReplacedNode>;

// A copy with what was replaced in it.
struct RewrittenCopy {
  std::unique_ptr<GraphCopy> copy;
  Replaced replaced;
  CUgraphNode end = nullptr;  // behind all others (graph_memory.h)
};

// The parameters of a kernel's node.
CUDA_KERNEL_NODE_PARAMS params_of(CUgraphNode node);

// The program's node in place of a copy's; the node itself if it is none of the copy's. None stands for its
// end.
CUgraphNode original_of(const RewrittenCopy& rewritten, CUgraphNode copy);

// True if the graph, or one within it, has nodes that run rewritten parents.
bool has_parents(CUgraph graph);
// Leaves all parents of a graph that cannot be rewritten.
void leave_graph(CUgraph graph, const LaunchReason& reason);

class Rewriter {
 public:
  // The copy is to be instantiated. So nodes are added for all variants of a parent.
  explicit Rewriter(const GraphContext& context) : context_(context), is_first_(true) {}
  // The copy is to be taken over by an executable graph with the nodes `like`, from a place on. Its launches
  // follow each other, so queues of these nodes may be used again: `are_paired` if each node is known to have
  // its own, and those that `spare` lists.
  Rewriter(const GraphContext& context, const Replaced& like, size_t first_place, bool are_paired,
           SpareVariants::List spare)
      : context_(context),
        like_(&like),
        first_place_(first_place),
        are_paired_(are_paired),
        spare_(std::move(spare)) {}

  // Nothing if no parent was replaced.
  std::optional<RewrittenCopy> rewrite(CUgraph graph);

 private:
  [[nodiscard]] const ReplacedNode* like_at(size_t place) const;
  void replace(Replaced& replaced, size_t place, const GraphCopy::Node& node,
               const CUDA_KERNEL_NODE_PARAMS& params, const Registry::Handle& handle, bool is_in_row,
               const ReplacedNode* like);

  const GraphContext context_;
  const bool is_first_ = false;
  const Replaced* like_ = nullptr;
  size_t first_place_ = 0;
  bool are_paired_ = true;
  SpareVariants spare_;
};

}  // namespace klap::runtime
