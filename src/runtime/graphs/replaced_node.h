// A kernel node whose kernel is a rewritten parent becomes several: the parent's variant records its
// children, and its consumers run them behind it. What stood behind the parent stands behind the last
// consumer.
//
// Kernels that launch others are no match for graphs. On an H200 (driver 580), replays of graphs with such
// kernels were seen to hang or to lose children. What is put here launches nothing from the device.
//
// A node has queues of its own, since nodes of a graph run side by side. So has each executable graph,
// because those of one graph do as well. One executable graph never runs twice at a time. A stream's launches
// use the two heads of a queue in turn (ptx-patterns/templates/common/queue.h). A node has the same head each
// time, so a fill of memory behind the consumer empties it.
//
// The parameters of a node are those of the program's node at that time, and so are the conditions under
// which the variant may run. They are not asked again when the graph is launched. If the program frees what
// its pointers lead to and allocates one piece of memory across both places, it would be found apart wrongly.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/launch_reasons.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/parents/registry.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// Where graphs are rewritten: the current CUDA context, and a stream of its own through which queues are
// written.
struct GraphContext {
  uint64_t id = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
};

// A variant with queues for launches of so many threads.
struct NodeVariant {
  std::shared_ptr<ParentKernel> first;  // of the parent's variants, which keeps them all
  ParentKernel* parent = nullptr;
  std::shared_ptr<const PreparedVariant> prepared;
  std::shared_ptr<LaunchContext> queues;
  uint64_t threads = 0;
};

// True for queues of a recursion, which take many megabytes.
bool has_large_queues(const NodeVariant& variant);

// The rewritten parent that a node runs; nothing if it runs another kernel.
std::optional<Registry::Handle> parent_of(const CUDA_KERNEL_NODE_PARAMS& params);

struct ChosenVariant {
  NodeVariant variant;
  MaybeReason left = nullptr;  // why there is none
};
// The variant for a node with these parameters. It uses queues of `before` if these are large enough.
ChosenVariant choose_variant(const Registry::Handle& handle, const CUDA_KERNEL_NODE_PARAMS& params,
                             const GraphContext& context, const NodeVariant* before = nullptr);

class ReplacedNode {
 public:
  // Replaces a node of a graph that is klap_jit's own. `params` are the program's, in memory that is not the
  // node's. Throws Error if the driver refuses, when the graph may be half changed.
  ReplacedNode(CUgraph graph, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params, NodeVariant variant,
               const GraphContext& context);

  [[nodiscard]] CUgraphNode node() const { return node_; }
  [[nodiscard]] const NodeVariant& variant() const { return variant_; }
  // Called when the executable graph has taken over such a variant from another graph.
  void updated(const NodeVariant& to) { variant_ = to; }
  // True for nodes that the program's graph does not have.
  [[nodiscard]] bool has_added(CUgraphNode node) const;

  // Gives it other parameters in an executable graph, with a variant for these. The result is the driver's,
  // or CUDA_ERROR_NOT_SUPPORTED for a variant that would need other nodes.
  CUresult set(CUgraphExec executable, const CUDA_KERNEL_NODE_PARAMS& params, NodeVariant variant,
               const GraphContext& context);

 private:
  CUgraphNode node_;
  NodeVariant variant_;
  std::vector<CUgraphNode> consumers_;  // by queue, null where there is none
  std::vector<CUgraphNode> fills_;
};

// Why a node of the program's graph must stay as it is, whatever it runs.
MaybeReason refuse_node(CUgraphNode node);

}  // namespace klap::runtime
