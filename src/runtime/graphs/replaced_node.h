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
#include <functional>
#include <initializer_list>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/launch_reasons.h"
#include "runtime/parents/parent_kernel.h"
#include "runtime/parents/registry.h"
#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// Graphs are rewritten in the current CUDA context. Their queues are written through a stream of klap_jit's
// own.
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

// Variants whose queues nodes may have, each for one node.
class SpareVariants {
 public:
  // `list` gives them when they are first asked for, since most nodes have their own again.
  using List = std::function<std::vector<NodeVariant>()>;
  explicit SpareVariants(List list = {}) : list_(std::move(list)) {}
  const std::vector<NodeVariant>& all();
  void take(const NodeVariant& variant) { taken_.insert(variant.queues.get()); }
  [[nodiscard]] bool is_taken(const NodeVariant& variant) const {
    return taken_.contains(variant.queues.get());
  }

 private:
  List list_;
  std::vector<NodeVariant> all_;
  std::unordered_set<const LaunchContext*> taken_;
};

// The variant for a node with these parameters. It has queues that are large enough: those of the first
// variant of `first` that has such ones, else the smallest ones of `spare`, else new ones. Null in `first`
// stands for none.
ChosenVariant choose_variant(const Registry::Handle& handle, const CUDA_KERNEL_NODE_PARAMS& params,
                             const GraphContext& context, std::initializer_list<const NodeVariant*> first,
                             SpareVariants& spare);

// The nodes that a replaced one has behind it. A variant that needs fewer leaves the rest idle
// (idle_nodes.h).
struct NodeShape {
  size_t consumers = 0, fills = 0;
  bool may_change = false;  // to another variant of the parent
  [[nodiscard]] bool has_room_for(const NodeShape& other) const {
    return other.consumers <= consumers && other.fills <= fills;
  }
};

// One for all variants of a parent, so that parameters may change from one to the other.
NodeShape shape_for_all(const std::shared_ptr<ParentKernel>& first);

class NodesBehind;

// In an executable graph, the driver changes no kernel to one that makes device launches unless the node
// began with one. Variants may make some: where a queue is full, or for children of other forms. So where
// the variant may change, the nodes begin as the program's own node, and get their kernels in the executable
// graph.
class ReplacedNode {
 public:
  // Replaces a node of a graph that is klap_jit's own. `params` are the program's, in memory that is not the
  // node's. Nodes are added as in that shape, or more if the variant needs them. Throws Error if the driver
  // refuses, when the graph may be half changed.
  ReplacedNode(CUgraph graph, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params, NodeVariant variant,
               const GraphContext& context, NodeShape shape);
  // Gives a node whose kernel launches nothing the nodes of `like`, which it is to take the place of.
  ReplacedNode(CUgraph graph, CUgraphNode node, const GraphContext& context, const ReplacedNode& like);

  [[nodiscard]] CUgraphNode node() const { return node_; }
  // The variant that it runs, or the last one that it ran.
  [[nodiscard]] const NodeVariant& variant() const { return variant_; }
  // False while the program has it run a kernel that launches nothing.
  [[nodiscard]] bool runs_variant() const { return runs_variant_; }
  // Whether the program has it enabled.
  [[nodiscard]] bool is_enabled() const { return is_enabled_; }
  void set_enabled(bool enabled) { is_enabled_ = enabled; }
  // True for nodes that the program's graph does not have.
  [[nodiscard]] bool has_added(CUgraphNode node) const;

  // Called for an executable graph that has just been made, with the program's parameters. Throws Error if
  // the driver refuses.
  void begin(CUgraphExec executable, const CUDA_KERNEL_NODE_PARAMS& params,
             const GraphContext& context) const;
  // Gives it other parameters in an executable graph, with a variant for these. The result is the driver's,
  // or CUDA_ERROR_NOT_SUPPORTED for a variant that would need more nodes.
  CUresult set(CUgraphExec executable, const CUDA_KERNEL_NODE_PARAMS& params, NodeVariant variant,
               const GraphContext& context);
  // Gives it a kernel that launches nothing.
  CUresult set(CUgraphExec executable, const CUDA_KERNEL_NODE_PARAMS& params, const GraphContext& context);
  // Called when the executable graph has taken over what `from` runs in another graph.
  void take_over(const ReplacedNode& from);

  [[nodiscard]] NodeShape shape() const { return {consumers_.size(), fills_.size(), false}; }

 private:
  // Null if it runs none.
  [[nodiscard]] const NodeVariant* running() const { return runs_variant_ ? &variant_ : nullptr; }
  void add(CUgraph graph, const CUDA_KERNEL_NODE_PARAMS* first, NodeShape shape, const GraphContext& context);
  CUresult set_behind(CUgraphExec executable, const NodesBehind& nodes, const GraphContext& context) const;
  CUresult set_all(CUgraphExec executable, const CUDA_KERNEL_NODE_PARAMS& parent, const NodeVariant* variant,
                   const GraphContext& context) const;

  CUgraphNode node_;
  NodeVariant variant_;
  bool runs_variant_;
  bool is_enabled_ = true;
  bool begins_as_program_ = false;
  std::vector<CUgraphNode> consumers_;
  std::vector<CUgraphNode> fills_;  // behind the last consumer
};

// Why a node of the program's graph must stay as it is, whatever it runs.
MaybeReason refuse_node(CUgraphNode node);

}  // namespace klap::runtime
