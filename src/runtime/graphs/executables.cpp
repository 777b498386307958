#include "runtime/graphs/executables.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
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

// The queues of an executable graph. The driver says when no launch of it can use them any more: it calls a
// function then, which must not call the driver.
struct GraphMemory {
  uint64_t context_id = 0;
  std::vector<std::shared_ptr<LaunchContext>> queues;
  std::atomic<bool> is_unused{false};
};

struct Executable {
  std::mutex mutex;  // for all that follows
  GraphContext context;
  std::unique_ptr<GraphCopy> copy;
  std::vector<ReplacedNode> replaced;
  // In graphs that were set within nodes of the copy.
  std::map<CUgraphNode, std::vector<ReplacedNode>> replaced_within;
  std::shared_ptr<GraphMemory> memory;
  CUevent ready = nullptr;  // recorded behind the first writes to its queues; null when they are done
};

// A copy with the parents that were replaced in it.
struct RewrittenCopy {
  std::unique_ptr<GraphCopy> copy;
  std::vector<ReplacedNode> replaced;
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
      const bool is_unused =
          memory->context_id == context_id && memory->is_unused.load(std::memory_order_acquire);
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

// The queues that the next node to be replaced may share, null if there are none. `before` is what was
// replaced in the graph that the executable one was last made from: launches of that one follow each other.
// Where the nodes do so, too, those of one recursion share their queues.
const NodeVariant* shared_with(const ParentKernel* parent, const std::vector<ReplacedNode>& replaced,
                               bool in_one_row, const std::vector<ReplacedNode>& before) {
  for (const ReplacedNode& node : replaced) {
    if (in_one_row && node.variant().first.get() == parent && has_large_queues(node.variant()))
      return &node.variant();
  }
  return replaced.size() < before.size() ? &before[replaced.size()].variant() : nullptr;
}

// Copies a graph and replaces its parents. Nothing if no parent was replaced.
std::optional<RewrittenCopy> rewrite(CUgraph graph, const GraphContext& context,
                                     const std::vector<ReplacedNode>& before) {
  RewrittenCopy out{std::make_unique<GraphCopy>(graph), {}};
  const bool in_one_row = is_one_row(graph);
  for (const GraphCopy::Node& node : out.copy->nodes()) {
    if (type_of(node.original) != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    const CUDA_KERNEL_NODE_PARAMS params = params_of(node.original);
    const auto handle = parent_of(params);
    if (!handle) continue;
    MaybeReason left = refuse_node(node.original);
    ChosenVariant chosen;
    if (!left) {
      // A graph within the graph may have nodes side by side.
      const bool is_in_row = in_one_row && node.in == out.copy->graph();
      chosen = choose_variant(*handle, params, context,
                              shared_with(handle->parent.get(), out.replaced, is_in_row, before));
      left = chosen.left;
    }
    if (left) {
      leave_in_graph(handle->parent->name(), *left);
    } else {
      out.replaced.emplace_back(node.in, node.copy, params, std::move(chosen.variant), context);
    }
  }
  if (out.replaced.empty()) return std::nullopt;
  return out;
}

void add_queues(GraphMemory& memory, const std::vector<ReplacedNode>& replaced) {
  for (const ReplacedNode& node : replaced) {
    if (std::ranges::count(memory.queues, node.variant().queues) == 0)
      memory.queues.push_back(node.variant().queues);
  }
}

// The graph, and what is instantiated from it, keep the memory in use.
void keep_in_use(CUgraph graph, const std::shared_ptr<GraphMemory>& memory) {
  auto held = std::make_unique<std::shared_ptr<GraphMemory>>(memory);
  const CUhostFn end = [](void* data) {
    const std::unique_ptr<std::shared_ptr<GraphMemory>> last(
        static_cast<std::shared_ptr<GraphMemory>*>(data));
    (*last)->is_unused.store(true, std::memory_order_release);
  };
  CUuserObject object = nullptr;
  require(driver()->user_object_create(&object, held.get(), end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
          "cuUserObjectCreate");
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
  for (const ReplacedNode& node : executable.replaced) {
    node.variant().parent->info_once("graph", "its node in a graph is replaced by nodes that launch nothing");
  }
  log().debug("a graph of {} nodes is instantiated with {} rewritten parents",
              executable.copy->nodes().size(), executable.replaced.size());
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
std::shared_ptr<Executable> rewritten_executable(CUgraph graph, const GraphContext& context) {
  auto rewritten = rewrite(graph, context, {});
  if (!rewritten) return nullptr;
  auto made = std::make_shared<Executable>();
  made->context = context;
  made->copy = std::move(rewritten->copy);
  made->replaced = std::move(rewritten->replaced);
  made->memory = std::make_shared<GraphMemory>();
  made->memory->context_id = context.id;
  add_queues(*made->memory, made->replaced);
  mark_written(*made);
  keep_in_use(made->copy->graph(), made->memory);
  const std::lock_guard lock(table_mutex);
  memories().push_back(made->memory);
  return made;
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
    auto made = rewritten_executable(graph, context);
    if (!made) return std::nullopt;
    const CUresult result = instantiate(made->copy->graph());
    require(result, "instantiating the rewritten graph");
    log_rewritten(*made);
    const std::lock_guard lock(table_mutex);
    executables()[*executable] = std::move(made);
    executables_count.store(executables().size(), std::memory_order_relaxed);
    return result;
  });
}

std::optional<CUresult> update_executable(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                                          const std::function<CUresult(CUgraph)>& update) {
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  if (!known || graph == nullptr) return std::nullopt;
  return or_left(graph, [&]() -> std::optional<CUresult> {
    const RelaxedCapture relaxed;
    auto rewritten = rewrite(graph, known->context, known->replaced);
    // Without parents, it is no longer like the executable graph, and the driver says so.
    if (!rewritten) return std::nullopt;
    add_queues(*known->memory, rewritten->replaced);
    mark_written(*known);
    const CUresult result = update(rewritten->copy->graph());
    if (result == CUDA_SUCCESS && known->replaced.size() == rewritten->replaced.size()) {
      for (size_t i = 0; i < known->replaced.size(); ++i)
        known->replaced[i].updated(rewritten->replaced[i].variant());
    }
    if (error_node != nullptr && *error_node != nullptr) {
      for (const ReplacedNode& node : rewritten->replaced) {
        if (node.has_added(*error_node)) *error_node = node.node();
      }
      *error_node = rewritten->copy->original_of(*error_node);
    }
    return result;
  });
}

CUgraphNode node_in_executable(CUgraphExec executable, CUgraphNode node) {
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  CUgraphNode const copy = known ? known->copy->copy_of(node) : nullptr;
  return copy ? copy : node;
}

std::optional<CUresult> set_kernel_params(CUgraphExec executable, CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS_v2* given) {
  if (given == nullptr) return std::nullopt;
  const CUDA_KERNEL_NODE_PARAMS& params = *given;
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  CUgraphNode const copy = known ? known->copy->copy_of(node) : nullptr;
  if (!copy) return std::nullopt;
  const auto replaced = std::ranges::find(known->replaced, copy, &ReplacedNode::node);
  const auto handle = parent_of(params);
  if (replaced == known->replaced.end() || !handle)
    return driver()->exec_set_kernel_v2(executable, copy, &params);
  const RelaxedCapture relaxed;
  ChosenVariant chosen = choose_variant(*handle, params, known->context, &replaced->variant());
  const std::string& name = handle->parent->name();
  if (chosen.left) {
    log().warn("{}: its node in a graph cannot be changed: {} ({})", demangle(name), chosen.left->name,
               chosen.left->meaning);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (std::ranges::count(known->memory->queues, chosen.variant.queues) == 0)
    known->memory->queues.push_back(chosen.variant.queues);
  mark_written(*known);
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
  CUgraphNode const copy = known ? known->copy->copy_of(node) : nullptr;
  if (!copy || child == nullptr) return std::nullopt;
  return or_left(child, [&]() -> std::optional<CUresult> {
    const RelaxedCapture relaxed;
    std::vector<ReplacedNode>& before = known->replaced_within[copy];
    auto rewritten = rewrite(child, known->context, before);
    if (!rewritten) return driver()->exec_set_child_graph(executable, copy, child);
    add_queues(*known->memory, rewritten->replaced);
    mark_written(*known);
    const CUresult result = driver()->exec_set_child_graph(executable, copy, rewritten->copy->graph());
    if (result == CUDA_SUCCESS) before = std::move(rewritten->replaced);
    return result;
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

std::optional<CUresult> before_graph_launch(CUgraphExec executable, CUstream stream) {
  const FoundExecutable found = find(executable);
  const auto& known = found.executable;
  if (!known) return std::nullopt;
  for (const ReplacedNode& node : known->replaced) node.variant().parent->launch_redirected();
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
