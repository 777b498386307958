#include "runtime/graphs/replaced_node.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "ptx-patterns/templates/common/queue.h"
#include "runtime/driver.h"
#include "runtime/graphs/driver_call.h"
#include "runtime/graphs/graph_memory.h"
#include "runtime/graphs/idle_nodes.h"
#include "runtime/launch/fused_launch.h"
#include "runtime/launch/launch_params.h"
#include "runtime/launch/promoted_launch.h"
#include "runtime/launch/queue_room.h"
#include "runtime/parents/made_for.h"
#include "runtime/queues/chain_shape.h"

namespace klap::runtime {

namespace {

Launch launch_of(const CUDA_KERNEL_NODE_PARAMS& params, const GraphContext& context) {
  return {params.func,
          {params.gridDimX, params.gridDimY, params.gridDimZ},
          {params.blockDimX, params.blockDimY, params.blockDimZ},
          params.sharedMemBytes,
          context.stream,
          params.kernelParams,
          params.extra,
          {}};
}

bool launches_from_device(const jit::Variant& variant) {
  if (variant.promoted) return variant.promoted->launches();
  return variant.launcher != jit::Launcher::Host || variant.granularity == jit::Granularity::Warp;
}

// True if the queues have the same size, however large the grid. Groups of blocks have a head each.
bool has_one_size(const jit::Variant& variant) {
  return variant.promoted || (variant.queues.front().is_work_queue && variant.group_blocks == 0);
}

// Null on success. A chain runs in blocks of its own number, so that the program's grid must be its one
// block.
MaybeReason make_chain_room(NodeVariant& variant, const Launch& launch) {
  const ParentKernel& parent = *variant.parent;
  const jit::PromotedChain& chain = *parent.variant().promoted;
  if (!is_launch_of(chain, launch)) return &reasons::kNotTheChainsForm;
  return variant.queues->make_chain_room(parent.chain(), chain.slot_bytes, parent.pool_bytes());
}

// Makes room in the variant's queues. A grid that has grown once may go on to grow, so it gets more. Null on
// success.
MaybeReason make_room_for(NodeVariant& variant, const Launch& launch, bool has_grown) {
  if (variant.parent->variant().promoted) return make_chain_room(variant, launch);
  Launch larger = launch;
  if (has_grown && launch.grid[0] < (1u << 20)) larger.grid[0] *= 2;
  const auto try_room = [&](const Launch& for_launch) -> MaybeReason {
    if (has_too_many_threads(for_launch, variant.parent->variant())) return &reasons::kTooManyThreads;
    const Cut cut = make_room(for_launch, *variant.parent, *variant.queues);
    variant.threads = grid_threads(for_launch);
    if (cut.no_room) return cut.no_room;
    return cut.slices.count() == 1 ? nullptr : &reasons::kSlicesInGraph;
  };
  if (has_grown && try_room(larger) == nullptr) return nullptr;
  return try_room(launch);
}

// The queues of graphs that have just ended come back a little later. It is better to wait for them than to
// leave the originals in a graph, as rewriter.cpp says. Once there are some in a graph, nothing is won by
// that. Null on success.
MaybeReason make_room_in_time(NodeVariant& variant, const Launch& launch, bool has_grown,
                              uint64_t context_id) {
  constexpr std::chrono::milliseconds kPatience(1000);
  constexpr std::chrono::microseconds kPause(200);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const MaybeReason reason = make_room_for(variant, launch, has_grown);
    const bool may_wait = is_lack_of_memory(reason) && std::chrono::steady_clock::now() < until &&
                          !LaunchContexts::instance().has_graphs(context_id);
    if (!may_wait || !(graphs_are_ending(context_id) || variant.queues->awaits_memory())) return reason;
    std::this_thread::sleep_for(kPause);
    release_unused(context_id);
  }
}

using FirstVariants = std::initializer_list<const NodeVariant*>;

// One of these with queues for a grid of so many threads, null if there is none.
template <class HasRoom>
const NodeVariant* find_queues(FirstVariants first, SpareVariants& spare, const HasRoom& has_room) {
  for (const NodeVariant* each : first) {
    if (each != nullptr && has_room(*each)) return each;
  }
  const NodeVariant* found = nullptr;
  for (const NodeVariant& each : spare.all()) {
    const bool is_smaller = found == nullptr || each.threads < found->threads;
    if (is_smaller && !spare.is_taken(each) && has_room(each)) found = &each;
  }
  return found;
}

// Null on success.
MaybeReason prepare(NodeVariant& variant, const Launch& launch, const GraphContext& context,
                    FirstVariants first, SpareVariants& spare) {
  ParentKernel& parent = *variant.parent;
  const uint64_t threads = grid_threads(launch);
  if (threads == 0) return &reasons::kEmptyGrid;
  const DecidingBlock block = parent.deciding(launch.block);
  const auto is_alike = [&](const NodeVariant& other) {
    return other.parent == variant.parent && other.prepared->block == block;
  };
  const auto has_room = [&](const NodeVariant& other) {
    return is_alike(other) && (has_one_size(parent.variant()) || threads <= other.threads);
  };
  if (const NodeVariant* const found = find_queues(first, spare, has_room)) {
    variant.queues = found->queues;
    variant.prepared = found->prepared;
    variant.threads = found->threads;
  } else {
    variant.queues = LaunchContexts::instance().make_for_node(context.id, context.stream);
    const std::lock_guard lock(variant.queues->mutex);
    if (variant.queues->unusable()) return variant.queues->unusable();
    const bool has_grown = std::ranges::any_of(spare.all(), is_alike);
    if (const MaybeReason reason = make_room_in_time(variant, launch, has_grown, context.id)) return reason;
    variant.prepared = parent.prepare(*variant.queues, block);
  }
  spare.take(variant);
  if (variant.prepared->unusable) return variant.prepared->unusable;
  const uint64_t block_threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  return parent.check_block(*variant.prepared, block_threads, launch.shared_bytes);
}

// The parameters that the variant has behind the program's: its queues, or its chain.
std::vector<CUdeviceptr> added_params(const NodeVariant& of) {
  const jit::Variant& variant = of.parent->variant();
  if (variant.promoted) return {of.queues->chain(of.parent->chain())};
  std::vector<CUdeviceptr> queues(variant.queues.size());
  for (size_t i = 0; i < queues.size(); ++i) queues[i] = queue_of(variant, i, *of.queues);
  return queues;
}

// The program's parameters with those behind them, for the variant. The caller keeps it while it is used.
class VariantParams {
 public:
  VariantParams(const CUDA_KERNEL_NODE_PARAMS& params, const NodeVariant& of, const GraphContext& context)
      : added_(added_params(of)), params_(params) {
    const Launch launch = launch_of(params, context);
    if (extended_.extend(of.parent->variant(), launch.params, launch.extra, added_))
      require(CUDA_ERROR_INVALID_VALUE, "taking the parameters of a node");
    extended_.begin_part({{0, 0, 0}, {launch.grid[0], launch.grid[1], launch.grid[2]}}, extents_of(launch));
    params_.func = of.prepared->parent;
    params_.kern = nullptr;
    params_.ctx = nullptr;
    params_.kernelParams = extended_.params();
    params_.extra = extended_.extra();
    if (of.parent->variant().promoted) params_.gridDimX = of.prepared->chain_blocks;
  }
  [[nodiscard]] const CUDA_KERNEL_NODE_PARAMS& params() const { return params_; }

 private:
  std::vector<CUdeviceptr> added_;
  ExtendedParams extended_;
  CUDA_KERNEL_NODE_PARAMS params_;
};

// The parameters of that queue's consumer.
class ConsumerParams {
 public:
  ConsumerParams(const NodeVariant& of, size_t index)
      : queue_(queue_of(of.parent->variant(), index, *of.queues)), block_(of.prepared->block) {
    const PreparedVariant::Consumer& consumer = of.prepared->consumers[index];
    params_.func = consumer.function;
    params_.gridDimX = consumer.grid;
    params_.gridDimY = params_.gridDimZ = 1;
    params_.blockDimX = consumer.threads;
    params_.blockDimY = params_.blockDimZ = 1;
    params_.sharedMemBytes = of.parent->variant().queues[index].child_shared_bytes;
    params_.kernelParams = pointers_.data();
  }
  ConsumerParams(const ConsumerParams&) = delete;
  ConsumerParams& operator=(const ConsumerParams&) = delete;
  [[nodiscard]] const CUDA_KERNEL_NODE_PARAMS& params() const { return params_; }

 private:
  CUdeviceptr queue_;
  DecidingBlock block_;
  std::array<void*, 2> pointers_{&queue_, block_.data()};  // a kernel reads as many as it has
  CUDA_KERNEL_NODE_PARAMS params_{};
};

// The queues whose consumers have blocks.
std::vector<size_t> queues_run(const NodeVariant& of) {
  std::vector<size_t> queues;
  for (size_t i = 0; i < of.prepared->consumers.size(); ++i) {
    if (of.prepared->consumers[i].grid != 0) queues.push_back(i);
  }
  return queues;
}

// Memory that is zero before each replay. Launches in a stream take turns with two heads, or two rings, and
// each empties those of the other. A node always has the same.
struct Fill {
  CUdeviceptr address = 0;
  uint64_t bytes = 0;
};
std::vector<Fill> fills_of(const NodeVariant& of) {
  const jit::Variant& variant = of.parent->variant();
  std::vector<Fill> fills;
  if (variant.promoted && variant.promoted->double_buffered) {
    const CUdeviceptr chain = of.queues->chain(of.parent->chain());
    for (const auto& [begin, end] : ChainShape::kCounters) fills.push_back({chain + begin, end - begin});
    const ChainShape shape{variant.promoted->slot_bytes};
    fills.push_back({chain + shape.ring_offset(false), shape.ring_bytes()});
  }
  for (const size_t i : queues_run(of)) {
    if (variant.queues[i].double_buffered)
      fills.push_back({queue_of(variant, i, *of.queues), sizeof(KlapCounters)});
  }
  return fills;
}
NodeShape used_by(const NodeVariant& variant) {
  return {queues_run(variant).size(), fills_of(variant).size(), false};
}

NodeShape larger(const NodeShape& a, const NodeShape& b) {
  return {std::max(a.consumers, b.consumers), std::max(a.fills, b.fills), a.may_change || b.may_change};
}

CUDA_MEMSET_NODE_PARAMS params_of(const Fill& fill) {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = fill.address;
  params.elementSize = sizeof(unsigned);
  params.width = fill.bytes / sizeof(unsigned);
  params.height = 1;
  return params;
}

}  // namespace

// The work of the nodes behind a parent: of those that the variant needs, then of idle ones.
class NodesBehind {
 public:
  // `variant` may be null.
  NodesBehind(const NodeVariant* variant, NodeShape shape, const GraphContext& context) {
    if (variant != nullptr) {
      for (const size_t queue : queues_run(*variant)) consumers_.emplace_back(*variant, queue);
      for (const Fill& fill : fills_of(*variant)) fills_.push_back(params_of(fill));
    }
    if (consumers_.size() == shape.consumers && fills_.size() == shape.fills) return;
    const IdleNodes idle = idle_nodes(context.id);
    idle_ = idle.launch();
    fills_.resize(std::max(fills_.size(), shape.fills), idle.fill());
  }
  [[nodiscard]] const CUDA_KERNEL_NODE_PARAMS& consumer(size_t place) const {
    return place < consumers_.size() ? consumers_[place].params() : idle_;
  }
  [[nodiscard]] const CUDA_MEMSET_NODE_PARAMS& fill(size_t place) const { return fills_[place]; }

 private:
  std::deque<ConsumerParams> consumers_;  // their parameters point into them
  CUDA_KERNEL_NODE_PARAMS idle_{};
  std::vector<CUDA_MEMSET_NODE_PARAMS> fills_;
};

namespace {

std::vector<CUgraphNode> dependents_of(CUgraphNode node) {
  size_t count = 0;
  require(driver()->graph_get_dependents(node, nullptr, &count), "cuGraphNodeGetDependentNodes");
  std::vector<CUgraphNode> nodes(count);
  if (count != 0)
    require(driver()->graph_get_dependents(node, nodes.data(), &count), "cuGraphNodeGetDependentNodes");
  return nodes;
}

void copy_priority(CUgraphNode from, CUgraphNode to) {
  CUkernelNodeAttrValue priority{};
  if (driver()->graph_kernel_get_attribute == nullptr || driver()->graph_kernel_set_attribute == nullptr ||
      driver()->graph_kernel_get_attribute(from, CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority) != CUDA_SUCCESS ||
      priority.priority == 0) {
    return;
  }
  require(driver()->graph_kernel_set_attribute(to, CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority),
          "cuGraphKernelNodeSetAttribute");
}

}  // namespace

NodeShape shape_for_all(const std::shared_ptr<ParentKernel>& first) {
  NodeShape largest;
  size_t variants = 0;
  for (const ParentKernel* parent = first.get(); parent != nullptr; parent = parent->otherwise().get()) {
    const jit::Variant& variant = parent->variant();
    const bool is_chosen_elsewhere = parent != first.get() && variant.is_another_form();
    if (launches_from_device(variant) || is_chosen_elsewhere) continue;
    largest.may_change = ++variants > 1;
    const bool has_rings = variant.promoted && variant.promoted->double_buffered;
    const size_t rings = has_rings ? std::size(ChainShape::kCounters) + 1 : 0;
    const auto emptied = std::ranges::count_if(variant.queues, &jit::ChildQueue::double_buffered);
    largest.consumers = std::max(largest.consumers, variant.queues.size());
    largest.fills = std::max(largest.fills, rings + static_cast<size_t>(emptied));
  }
  return largest;
}

const std::vector<NodeVariant>& SpareVariants::all() {
  if (const List list = std::exchange(list_, {})) all_ = list();
  return all_;
}

bool has_large_queues(const NodeVariant& variant) {
  const jit::Variant& of = variant.parent->variant();
  return !of.promoted && of.queues.front().is_work_queue;
}

std::optional<Registry::Handle> parent_of(const CUDA_KERNEL_NODE_PARAMS& params) {
  if (params.func) {
    if (auto found = Registry::instance().find(params.func)) return found;
  }
  return params.kern ? Registry::instance().find(params.kern) : std::nullopt;
}

ChosenVariant choose_variant(const Registry::Handle& handle, const CUDA_KERNEL_NODE_PARAMS& params,
                             const GraphContext& context, FirstVariants first, SpareVariants& spare) {
  const bool is_of_another = handle.context_id != kEveryContext && handle.context_id != context.id;
  if (is_of_another || (params.ctx != nullptr && params.ctx != context.context))
    return {{}, &reasons::kHandleOfAnotherContext};
  for (ParentKernel* each = handle.parent.get(); each != nullptr; each = each->otherwise().get())
    each->load_kernels_for_launch();
  const Launch launch = launch_of(params, context);
  ChosenVariant chosen;
  NodeVariant& variant = chosen.variant;
  variant.first = handle.parent;
  variant.parent = variant_for(handle.parent, launch);
  if (variant.parent == nullptr) return {{}, &reasons::kOrderMatters};
  if (launches_from_device(variant.parent->variant())) return {{}, &reasons::kLaunchesInGraph};
  chosen.left = prepare(variant, launch, context, first, spare);
  return chosen;
}

MaybeReason refuse_node(CUgraphNode node) {
  // An edge that is more than "behind" cannot be told by these.
  size_t count = 0;
  if (driver()->graph_get_dependents(node, nullptr, &count) != CUDA_SUCCESS ||
      driver()->graph_get_dependencies(node, nullptr, &count) != CUDA_SUCCESS) {
    return &reasons::kGraphEdge;
  }
  if (driver()->graph_kernel_get_attribute == nullptr) return nullptr;
  CUkernelNodeAttrValue value{};
  const auto get = [&](CUkernelNodeAttrID id) {
    value = {};
    return driver()->graph_kernel_get_attribute(node, id, &value) == CUDA_SUCCESS;
  };
  if (get(CU_LAUNCH_ATTRIBUTE_COOPERATIVE) && value.cooperative != 0) return &reasons::kCooperativeLaunch;
  if (get(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) && value.clusterDim.x != 0) return &reasons::kClusterLaunch;
  if (get(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN) && value.memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT)
    return &reasons::kLaunchAttribute;
  // Kernels change such a node. They would not change its consumers.
  if (get(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) &&
      value.deviceUpdatableKernelNode.deviceUpdatable)
    return &reasons::kLaunchAttribute;
  return nullptr;
}

ReplacedNode::ReplacedNode(CUgraph graph, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params,
                           NodeVariant variant, const GraphContext& context, NodeShape shape)
    : node_(node), variant_(std::move(variant)), runs_variant_(true), begins_as_program_(shape.may_change) {
  const VariantParams parent(params, variant_, context);
  if (!begins_as_program_)
    require(driver()->graph_kernel_set_params(node, &parent.params()), "cuGraphKernelNodeSetParams");
  add(graph, begins_as_program_ ? &params : nullptr, larger(used_by(variant_), shape), context);
}

ReplacedNode::ReplacedNode(CUgraph graph, CUgraphNode node, const GraphContext& context,
                           const ReplacedNode& like)
    : node_(node), variant_(like.variant_), runs_variant_(false) {
  add(graph, nullptr, like.shape(), context);
}

// The nodes behind it. Their kernel is `first` unless that is null.
void ReplacedNode::add(CUgraph graph, const CUDA_KERNEL_NODE_PARAMS* first, NodeShape shape,
                       const GraphContext& context) {
  const Driver& cuda = *driver();
  const std::vector<CUgraphNode> behind = dependents_of(node_);
  const NodesBehind nodes(running(), shape, context);
  CUgraphNode last = node_;
  for (size_t i = 0; i < shape.consumers; ++i) {
    CUgraphNode added = nullptr;
    require(cuda.graph_add_kernel(&added, graph, &last, 1, first ? first : &nodes.consumer(i)),
            "cuGraphAddKernelNode");
    last = consumers_.emplace_back(added);
    copy_priority(node_, last);
  }
  for (size_t i = 0; i < shape.fills; ++i) {
    require(cuda.graph_add_memset(&fills_.emplace_back(), graph, &last, 1, &nodes.fill(i), context.context),
            "cuGraphAddMemsetNode");
  }
  if (behind.empty() || last == node_) return;
  const std::vector<CUgraphNode> from(behind.size(), node_), to(behind.size(), last);
  require(cuda.graph_remove_dependencies(graph, from.data(), behind.data(), behind.size()),
          "cuGraphRemoveDependencies");
  require(cuda.graph_add_dependencies(graph, to.data(), behind.data(), behind.size()),
          "cuGraphAddDependencies");
}

bool ReplacedNode::has_added(CUgraphNode node) const {
  return node != nullptr &&
         (std::ranges::count(consumers_, node) != 0 || std::ranges::count(fills_, node) != 0);
}

// The nodes behind it do what `nodes` says.
CUresult ReplacedNode::set_behind(CUgraphExec executable, const NodesBehind& nodes,
                                  const GraphContext& context) const {
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < consumers_.size() && result == CUDA_SUCCESS; ++i)
    result = driver()->exec_set_kernel_v2(executable, consumers_[i], &nodes.consumer(i));
  for (size_t i = 0; i < fills_.size() && result == CUDA_SUCCESS; ++i)
    result = driver()->exec_set_memset(executable, fills_[i], &nodes.fill(i), context.context);
  return result;
}

// The parent comes last, since the nodes behind it can be set back.
CUresult ReplacedNode::set_all(CUgraphExec executable, const CUDA_KERNEL_NODE_PARAMS& parent,
                               const NodeVariant* variant, const GraphContext& context) const {
  CUresult result = set_behind(executable, {variant, shape(), context}, context);
  if (result == CUDA_SUCCESS) result = driver()->exec_set_kernel_v2(executable, node_, &parent);
  if (result != CUDA_SUCCESS) (void)set_behind(executable, {running(), shape(), context}, context);
  return result;
}

CUresult ReplacedNode::set(CUgraphExec executable, const CUDA_KERNEL_NODE_PARAMS& params, NodeVariant variant,
                           const GraphContext& context) {
  if (!shape().has_room_for(used_by(variant))) return CUDA_ERROR_NOT_SUPPORTED;
  const VariantParams parent(params, variant, context);
  const CUresult result = set_all(executable, parent.params(), &variant, context);
  if (result != CUDA_SUCCESS) return result;
  variant_ = std::move(variant);
  runs_variant_ = true;
  return CUDA_SUCCESS;
}

CUresult ReplacedNode::set(CUgraphExec executable, const CUDA_KERNEL_NODE_PARAMS& params,
                           const GraphContext& context) {
  const CUresult result = set_all(executable, params, nullptr, context);
  if (result == CUDA_SUCCESS) runs_variant_ = false;
  return result;
}

void ReplacedNode::begin(CUgraphExec executable, const CUDA_KERNEL_NODE_PARAMS& params,
                         const GraphContext& context) const {
  if (!begins_as_program_) return;
  const VariantParams parent(params, variant_, context);
  require(set_all(executable, parent.params(), &variant_, context), "giving a node its first kernel");
}

void ReplacedNode::take_over(const ReplacedNode& from) {
  variant_ = from.variant_;
  runs_variant_ = from.runs_variant_;
}

}  // namespace klap::runtime
