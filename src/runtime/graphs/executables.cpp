#include "runtime/graphs/executables.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/driver.h"
#include "runtime/graphs/driver_call.h"
#include "runtime/graphs/graph_copy.h"
#include "runtime/graphs/replaced_node.h"
#include "runtime/process.h"
#include "runtime/stats.h"
#include "support/boundary.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// The queues of an executable graph. The driver says when no launch of it can use them any more: it ends
// objects of ours then, by a function that must not call the driver.
struct GraphMemory {
  uint64_t context_id = 0;
  std::vector<std::shared_ptr<LaunchContext>> queues;
  std::atomic<int> objects{0};  // that have not ended
  [[nodiscard]] bool is_unused() const { return objects.load(std::memory_order_acquire) == 0; }
};

// The parents that were replaced in a copy, by their nodes' places among the copy's nodes.
using Replaced = std::map<size_t, ReplacedNode>;

// A copy with what was replaced in it.
struct RewrittenCopy {
  std::unique_ptr<GraphCopy> copy;
  Replaced replaced;
};

struct Executable {
  std::mutex mutex;  // for all that follows
  GraphContext context;
  RewrittenCopy from;
  // All variants that its nodes had, by their queues, which may be used again.
  std::unordered_map<const LaunchContext*, NodeVariant> variants;
  // Variants that some node has, where the driver may have paired nodes otherwise than by their places.
  std::vector<NodeVariant> unpaired;
  std::shared_ptr<GraphMemory> memory;
  CUevent ready = nullptr;  // recorded behind the first writes to its queues; null when they are done
};

std::atomic<size_t> executables_count{0};
std::mutex table_mutex;  // for the two below; nobody calls the driver meanwhile
std::unordered_map<CUgraphExec, std::shared_ptr<Executable>>& executables() {
  static auto& all = *new std::unordered_map<CUgraphExec, std::shared_ptr<Executable>>;
  return all;
}
std::vector<std::shared_ptr<GraphMemory>>& memories() {
  static auto& all = *new std::vector<std::shared_ptr<GraphMemory>>;
  return all;
}

// The stream of the current context. It waits for no other stream.
CUstream own_stream(uint64_t context_id) {
  static auto& streams = *new std::map<uint64_t, CUstream>;
  static auto& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  CUstream& stream = streams[context_id];
  if (stream == nullptr) require(driver()->stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

GraphContext current_context() {
  GraphContext current;
  unsigned long long id = 0;
  const RelaxedCapture relaxed;
  require(driver()->ctx_get_current(&current.context), "cuCtxGetCurrent");
  require(driver()->ctx_get_id(nullptr, &id), "cuCtxGetId");
  current.id = id;
  current.stream = own_stream(id);
  return current;
}

CUDA_KERNEL_NODE_PARAMS params_of(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS params{};
  require(driver()->graph_kernel_get_params(node, &params), "cuGraphKernelNodeGetParams");
  return params;
}

bool has_parents(CUgraph graph) {
  return std::ranges::any_of(nodes_of(graph), [](CUgraphNode node) {
    const CUgraphNodeType type = type_of(node);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) return has_parents(graph_within(node));
    return type == CU_GRAPH_NODE_TYPE_KERNEL && parent_of(params_of(node)).has_value();
  });
}

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

// Leaves all parents of a graph that cannot be rewritten.
void leave_graph(CUgraph graph, const LaunchReason& reason) {
  for (CUgraphNode const node : nodes_of(graph)) {
    const CUgraphNodeType type = type_of(node);
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) leave_graph(graph_within(node), reason);
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    if (const auto handle = parent_of(params_of(node))) leave_in_graph(handle->parent->name(), reason);
  }
}

// Queues of graphs that have ended go back to the context's other streams.
void release_unused(uint64_t context_id) {
  std::vector<std::shared_ptr<GraphMemory>> unused;
  {
    const std::lock_guard lock(table_mutex);
    std::erase_if(memories(), [&](const std::shared_ptr<GraphMemory>& memory) {
      const bool is_unused = memory->context_id == context_id && memory->is_unused();
      if (is_unused) unused.push_back(memory);
      return is_unused;
    });
  }
  for (const auto& memory : unused) {
    for (const auto& queues : memory->queues) {
      const std::lock_guard lock(queues->mutex);
      queues->release_in_stream();
    }
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

// True if it is known which queues so many of its nodes have. All are about to have others if all change.
bool are_paired(const Executable& executable, size_t count) {
  return executable.unpaired.empty() || count == executable.from.copy->nodes().size();
}

// The variants whose queues no node uses but those at `count` places from `first` on, which are to change.
std::vector<NodeVariant> spare_variants(const Executable& executable, size_t first, size_t count) {
  std::unordered_set<const LaunchContext*> used;
  if (!are_paired(executable, count)) {
    for (const NodeVariant& variant : executable.unpaired) used.insert(variant.queues.get());
  }
  for (const auto& [place, node] : executable.from.replaced) {
    const bool is_to_change = place >= first && place - first < count;
    if (node.runs_variant() && !is_to_change) used.insert(node.variant().queues.get());
  }
  std::vector<NodeVariant> spare;
  for (const auto& [queues, variant] : executable.variants) {
    if (!used.contains(queues)) spare.push_back(variant);
  }
  return spare;
}

// Replaces the parents in copies of graphs.
class Rewriter {
 public:
  // `for_all`: nodes are added for all variants of a parent.
  Rewriter(const GraphContext& context, bool for_all) : context_(context), for_all_(for_all) {}
  // The copy is to be taken over by an executable graph, whose `count` nodes from a place on it is like. Its
  // launches follow each other, so queues of these nodes may be used again.
  Rewriter(const Executable& executable, size_t first_place, size_t count)
      : context_(executable.context),
        like_(&executable.from.replaced),
        first_place_(first_place),
        are_paired_(are_paired(executable, count)),
        spare_([&executable, first_place, count] { return spare_variants(executable, first_place, count); }) {
  }

  // Nothing if no parent was replaced.
  std::optional<RewrittenCopy> rewrite(CUgraph graph) {
    RewrittenCopy out{std::make_unique<GraphCopy>(graph), {}};
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
        out.replaced.try_emplace(place, node.in, node.copy, params, context_, *like);
      }
    }
    if (out.replaced.empty()) return std::nullopt;
    return out;
  }

 private:
  [[nodiscard]] const ReplacedNode* like_at(size_t place) const {
    if (like_ == nullptr) return nullptr;
    const auto found = like_->find(first_place_ + place);
    return found == like_->end() ? nullptr : &found->second;
  }

  void replace(Replaced& replaced, size_t place, const GraphCopy::Node& node,
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
    NodeShape shape = like ? like->shape() : NodeShape{};
    if (for_all_) shape = shape_for_all(handle.parent);
    replaced.try_emplace(place, node.in, node.copy, params, std::move(chosen.variant), context_, shape);
  }

  const GraphContext context_;
  const bool for_all_ = false;
  const Replaced* like_ = nullptr;
  size_t first_place_ = 0;
  bool are_paired_ = true;
  SpareVariants spare_;
};

// Remembers a variant that a node is about to have. True if its queues are new.
bool add_variant(Executable& executable, const NodeVariant& variant) {
  if (!executable.variants.emplace(variant.queues.get(), variant).second) return false;
  executable.memory->queues.push_back(variant.queues);
  return true;
}
bool add_variants(Executable& executable, const Replaced& replaced) {
  bool are_new = false;
  for (const auto& [place, node] : replaced) are_new = add_variant(executable, node.variant()) || are_new;
  return are_new;
}

// The executable graph has taken over what was replaced in a copy, which it is like from that place on.
CUresult take_over(Executable& known, CUgraphExec executable, size_t first, const RewrittenCopy& from) {
  const std::vector<GraphCopy::Node>&nodes = from.copy->nodes(), &known_nodes = known.from.copy->nodes();
  if (nodes.size() == known_nodes.size()) known.unpaired.clear();
  const bool has_all = first + nodes.size() <= known_nodes.size();
  if (!has_all || !are_alike(std::span(known_nodes).subspan(first, nodes.size()), nodes)) {
    for (const auto& [place, node] : from.replaced) known.unpaired.push_back(node.variant());
  }
  for (const auto& [place, node] : from.replaced) {
    const auto found = known.from.replaced.find(first + place);
    if (found == known.from.replaced.end()) continue;
    if (const CUresult result = found->second.updated(executable, node); result != CUDA_SUCCESS)
      return result;
  }
  return CUDA_SUCCESS;
}

// Makes a context current for as long as it lives: queues are made in the current one.
class InContext {
 public:
  explicit InContext(CUcontext context) {
    require(driver()->ctx_get_current(&before_), "cuCtxGetCurrent");
    if (before_ == context) return;
    require(driver()->ctx_set_current(context), "cuCtxSetCurrent");
    is_changed_ = true;
  }
  ~InContext() {
    if (is_changed_) driver()->ctx_set_current(before_);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  CUcontext before_ = nullptr;
  bool is_changed_ = false;
};

// The graph, and what is instantiated from it, keep the memory in use. An executable graph that is updated
// from another one, or a graph within it, has the objects of that one in place of its own. So each copy gets
// one.
void keep_in_use(CUgraph graph, const std::shared_ptr<GraphMemory>& memory) {
  auto held = std::make_unique<std::shared_ptr<GraphMemory>>(memory);
  const CUhostFn end = [](void* data) {
    const std::unique_ptr<std::shared_ptr<GraphMemory>> ended(
        static_cast<std::shared_ptr<GraphMemory>*>(data));
    (*ended)->objects.fetch_sub(1, std::memory_order_release);
  };
  CUuserObject object = nullptr;
  require(driver()->user_object_create(&object, held.get(), end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
          "cuUserObjectCreate");
  memory->objects.fetch_add(1, std::memory_order_relaxed);
  (void)held.release();
  require(driver()->graph_retain_user_object(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE),
          "cuGraphRetainUserObject");
}

// The next launch waits for all that has been written to queues.
void mark_written(Executable& executable) {
  if (executable.ready == nullptr) executable.ready = new_event();
  if (executable.ready == nullptr) throw Error(ErrorCode::Driver, "there is no event for a graph's queues");
  require(driver()->event_record(executable.ready, executable.context.stream), "cuEventRecord");
}

// An executable graph, with its mutex held; null if it is not rewritten.
struct FoundExecutable {
  std::shared_ptr<Executable> executable;
  std::unique_lock<std::mutex> lock;
};
std::shared_ptr<Executable> known_executable(CUgraphExec executable) {
  const std::lock_guard lock(table_mutex);
  const auto found = executables().find(executable);
  return found == executables().end() ? nullptr : found->second;
}
FoundExecutable find(CUgraphExec executable) {
  FoundExecutable found{known_executable(executable), {}};
  if (found.executable) found.lock = std::unique_lock(found.executable->mutex);
  return found;
}

void log_rewritten(const Executable& executable) {
  for (const auto& [place, node] : executable.from.replaced) {
    node.variant().parent->info_once("graph", "its node in a graph is replaced by nodes that launch nothing");
  }
  log().debug("a graph of {} nodes is instantiated with {} rewritten parents",
              executable.from.copy->nodes().size(), executable.from.replaced.size());
}

// Runs work that may throw. Then the driver does what the program asked for.
template <class Work>
std::optional<CUresult> or_left(CUgraph graph, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    log().info("a graph stays as it is: {}", error.what());
    try_or_report("cuGraphInstantiate", "its nodes are not looked at",
                  [&] { leave_graph(graph, reasons::kGraphNotCopied); });
    return std::nullopt;
  }
}

// An executable graph from a copy of the program's; null if no parent was replaced in it.
std::shared_ptr<Executable> rewritten_executable(CUgraph graph, const GraphContext& context, bool for_all) {
  auto rewritten = Rewriter(context, for_all).rewrite(graph);
  if (!rewritten) return nullptr;
  auto made = std::make_shared<Executable>();
  made->context = context;
  made->from = std::move(*rewritten);
  made->memory = std::make_shared<GraphMemory>();
  made->memory->context_id = context.id;
  add_variants(*made, made->from.replaced);
  mark_written(*made);
  keep_in_use(made->from.copy->graph(), made->memory);
  const std::lock_guard lock(table_mutex);
  memories().push_back(made->memory);
  return made;
}

// False if the driver does not disable them all.
bool disable_idle_nodes(const Executable& known, CUgraphExec executable) {
  return std::ranges::all_of(known.from.replaced, [&](const auto& each) {
    return each.second.disable_idle(executable) == CUDA_SUCCESS;
  });
}

// Instantiates the graph with its parents replaced; null if there are none.
std::shared_ptr<Executable> instantiate_rewritten(CUgraph graph, const GraphContext& context,
                                                  const CUgraphExec& executable,
                                                  const std::function<CUresult(CUgraph)>& instantiate) {
  for (const bool for_all : {true, false}) {
    auto made = rewritten_executable(graph, context, for_all);
    if (!made) return nullptr;
    require(instantiate(made->from.copy->graph()), "instantiating the rewritten graph");
    if (disable_idle_nodes(*made, executable)) return made;
    require(driver()->graph_exec_destroy(executable), "cuGraphExecDestroy");
  }
  throw Error(ErrorCode::Driver, "nodes that are not needed cannot be disabled");
}

// Asks each node before the executable graph takes over what was replaced in a copy.
CUresult about_to_take_over(const Executable& known, CUgraphExec executable, size_t first,
                            const RewrittenCopy& from) {
  for (const auto& [place, node] : from.replaced) {
    const auto found = known.from.replaced.find(first + place);
    if (found == known.from.replaced.end()) continue;
    const CUresult result = found->second.about_to_update(executable, node);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// The program's node in place of a copy's; the node itself if it is none of the copy's.
CUgraphNode original_of(const RewrittenCopy& rewritten, CUgraphNode copy) {
  for (const auto& [place, node] : rewritten.replaced) {
    if (node.has_added(copy)) return rewritten.copy->original_of(node.node());
  }
  return rewritten.copy->original_of(copy);
}

// The replaced node at that place; null if there is none.
ReplacedNode* replaced_at(Executable& known, size_t place) {
  const auto found = known.from.replaced.find(place);
  return found == known.from.replaced.end() ? nullptr : &found->second;
}

}  // namespace

bool no_graph_rewritten() noexcept { return executables_count.load(std::memory_order_relaxed) == 0; }

std::optional<CUresult> instantiate_graph(CUgraph graph, unsigned long long flags,
                                          const CUgraphExec* executable,
                                          const std::function<CUresult(CUgraph)>& instantiate) {
  if (graph == nullptr || executable == nullptr || !can_rewrite_graphs(*driver()) ||
      config().guard == settings::GuardMode::Original) {
    return std::nullopt;
  }
  return or_left(graph, [&]() -> std::optional<CUresult> {
    if (!has_parents(graph)) return std::nullopt;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
      leave_graph(graph, reasons::kGraphForDevice);
      return std::nullopt;
    }
    const GraphContext context = current_context();
    const RelaxedCapture relaxed;
    release_unused(context.id);
    auto made = instantiate_rewritten(graph, context, *executable, instantiate);
    if (!made) return std::nullopt;
    log_rewritten(*made);
    executable_about_to_end(*executable);  // the handle may be one that an earlier context had
    const std::lock_guard lock(table_mutex);
    executables()[*executable] = std::move(made);
    executables_count.store(executables().size(), std::memory_order_relaxed);
    return CUDA_SUCCESS;
  });
}

std::optional<CUresult> update_executable(CUgraphExec executable, CUgraph graph,
                                          std::span<CUgraphNode* const> named,
                                          const std::function<CUresult(CUgraph)>& update) {
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  if (!known || graph == nullptr) return std::nullopt;
  return or_left(graph, [&]() -> std::optional<CUresult> {
    const RelaxedCapture relaxed;
    const InContext in_context(known->context.context);
    const size_t nodes = known->from.copy->nodes().size();
    auto rewritten = Rewriter(*known, 0, nodes).rewrite(graph);
    // Without such nodes, it is no longer like the executable graph, and the driver says so.
    if (!rewritten) return std::nullopt;
    if (add_variants(*known, rewritten->replaced)) mark_written(*known);
    keep_in_use(rewritten->copy->graph(), known->memory);
    CUresult result = about_to_take_over(*known, executable, 0, *rewritten);
    if (result != CUDA_SUCCESS) return result;
    result = update(rewritten->copy->graph());
    if (result == CUDA_SUCCESS) result = take_over(*known, executable, 0, *rewritten);
    for (CUgraphNode* const node : named) *node = original_of(*rewritten, *node);
    return result;
  });
}

CUgraphNode node_in_executable(CUgraphExec executable, CUgraphNode node) {
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  CUgraphNode const copy = known ? known->from.copy->copy_of(node) : nullptr;
  return copy ? copy : node;
}

std::optional<CUresult> set_kernel_params(CUgraphExec executable, CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS_v2* given) {
  if (given == nullptr) return std::nullopt;
  const CUDA_KERNEL_NODE_PARAMS& params = *given;
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  CUgraphNode const copy = known ? known->from.copy->copy_of(node) : nullptr;
  if (!copy) return std::nullopt;
  const size_t place = known->from.copy->place_of(node).value();
  ReplacedNode* const replaced = replaced_at(*known, place);
  if (!replaced) return driver()->exec_set_kernel_v2(executable, copy, &params);
  const auto handle = parent_of(params);
  if (!handle) return replaced->set(executable, params);
  const RelaxedCapture relaxed;
  const InContext in_context(known->context.context);
  SpareVariants spare([&] { return spare_variants(*known, place, 1); });
  // Nodes of a recursion that run one after another go on to share their queues.
  const bool has_own = replaced->runs_variant() && are_paired(*known, 1);
  const NodeVariant* const own = has_own ? &replaced->variant() : nullptr;
  ChosenVariant chosen = choose_variant(*handle, params, known->context, {own}, spare);
  const std::string& name = handle->parent->name();
  if (chosen.left) {
    log().warn("{}: its node in a graph cannot be changed: {} ({})", demangle(name), chosen.left->name,
               chosen.left->meaning);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (add_variant(*known, chosen.variant)) mark_written(*known);
  const CUresult result = replaced->set(executable, params, std::move(chosen.variant), known->context);
  if (result != CUDA_SUCCESS)
    log().warn("{}: its node in a graph cannot be changed ({})", demangle(name), error_name(result));
  return result;
}

std::optional<CUresult> set_kernel_params(CUgraphExec executable, CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return std::nullopt;
  const CUDA_KERNEL_NODE_PARAMS_v2 newer = {
      params->func,         params->gridDimX,  params->gridDimY,  params->gridDimZ,
      params->blockDimX,    params->blockDimY, params->blockDimZ, params->sharedMemBytes,
      params->kernelParams, params->extra,     nullptr,           nullptr};
  return set_kernel_params(executable, node, &newer);
}

std::optional<CUresult> set_child_graph(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  CUgraphNode const copy = known ? known->from.copy->copy_of(node) : nullptr;
  if (!copy || child == nullptr) return std::nullopt;
  return or_left(child, [&]() -> std::optional<CUresult> {
    const RelaxedCapture relaxed;
    const InContext in_context(known->context.context);
    const size_t place = known->from.copy->place_of(node).value();
    const size_t within = known->from.copy->nodes()[place].within;
    auto rewritten = Rewriter(*known, place + 1, within).rewrite(child);
    if (!rewritten) return driver()->exec_set_child_graph(executable, copy, child);
    if (add_variants(*known, rewritten->replaced)) mark_written(*known);
    keep_in_use(rewritten->copy->graph(), known->memory);
    CUresult result = about_to_take_over(*known, executable, place + 1, *rewritten);
    if (result != CUDA_SUCCESS) return result;
    result = driver()->exec_set_child_graph(executable, copy, rewritten->copy->graph());
    return result == CUDA_SUCCESS ? take_over(*known, executable, place + 1, *rewritten) : result;
  });
}

std::optional<CUresult> set_node_params(CUgraphExec executable, CUgraphNode node,
                                        const CUgraphNodeParams* params) {
  if (params == nullptr) return std::nullopt;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH) return set_child_graph(executable, node, params->graph.graph);
  if (params->type != CU_GRAPH_NODE_TYPE_KERNEL) return std::nullopt;
  const auto& kernel = params->kernel;
  const CUDA_KERNEL_NODE_PARAMS_v2 older = {kernel.func,      kernel.gridDimX,       kernel.gridDimY,
                                            kernel.gridDimZ,  kernel.blockDimX,      kernel.blockDimY,
                                            kernel.blockDimZ, kernel.sharedMemBytes, kernel.kernelParams,
                                            kernel.extra,     kernel.kern,           kernel.ctx};
  return set_kernel_params(executable, node, &older);
}

std::optional<CUresult> set_enabled(CUgraphExec executable, CUgraphNode node, unsigned enabled) {
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  CUgraphNode const copy = known ? known->from.copy->copy_of(node) : nullptr;
  if (!copy) return std::nullopt;
  const CUresult result = driver()->exec_set_enabled(executable, copy, enabled);
  ReplacedNode* const replaced = replaced_at(*known, known->from.copy->place_of(node).value());
  if (replaced && result == CUDA_SUCCESS) replaced->set_enabled(enabled != 0);
  return result;
}

std::optional<CUresult> before_graph_launch(CUgraphExec executable, CUstream stream) {
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  if (!known) return std::nullopt;
  if (known->ready == nullptr) return std::nullopt;
  const Driver& cuda = *driver();
  const RelaxedCapture relaxed;
  if (cuda.event_query(known->ready) == CUDA_SUCCESS) {
    cuda.event_destroy(std::exchange(known->ready, nullptr));
    return std::nullopt;
  }
  const Capture capture = capture_state(stream);
  if (capture == Capture::Active) return std::nullopt;  // the driver takes no launch there
  CUresult result = capture == Capture::Unknown
                        ? CUDA_ERROR_UNKNOWN
                        : cuda.stream_wait_event(stream, known->ready, CU_EVENT_WAIT_DEFAULT);
  // Without the wait, the graph could run before its queues are written.
  if (result != CUDA_SUCCESS) result = cuda.stream_synchronize(known->context.stream);
  if (result == CUDA_SUCCESS) return std::nullopt;
  log().error("a graph cannot be launched: its queues may not be written ({})", error_name(result));
  return result;
}

void graph_launched(CUgraphExec executable) {
  const FoundExecutable found = find(executable);
  if (!found.executable) return;
  for (const auto& [place, node] : found.executable->from.replaced) {
    if (node.runs_variant() && node.is_enabled()) node.variant().parent->launch_redirected();
  }
}

void release_ended_graphs() {
  {
    const std::lock_guard lock(table_mutex);
    if (memories().empty()) return;
  }
  unsigned long long context_id = 0;
  if (driver()->ctx_get_id(nullptr, &context_id) == CUDA_SUCCESS) release_unused(context_id);
}

void executable_about_to_end(CUgraphExec executable) {
  const auto known = known_executable(executable);
  if (!known) return;
  {
    const std::lock_guard lock(table_mutex);
    executables().erase(executable);
    executables_count.store(executables().size(), std::memory_order_relaxed);
  }
  const std::lock_guard lock(known->mutex);
  if (known->ready) driver()->event_destroy(std::exchange(known->ready, nullptr));
}

}  // namespace klap::runtime
