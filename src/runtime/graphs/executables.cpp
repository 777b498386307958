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
#include "runtime/graphs/graph_memory.h"
#include "runtime/graphs/idle_nodes.h"
#include "runtime/graphs/replaced_node.h"
#include "runtime/graphs/rewriter.h"
#include "runtime/process.h"
#include "support/boundary.h"
#include "support/demangle.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

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
std::mutex table_mutex;  // for the one below; nobody calls the driver meanwhile
std::unordered_map<CUgraphExec, std::shared_ptr<Executable>>& executables() {
  static auto& all = *new std::unordered_map<CUgraphExec, std::shared_ptr<Executable>>;
  return all;
}

// klap_jit's own streams, by context.
struct OwnStreams {
  std::mutex mutex;
  std::map<uint64_t, CUstream> streams;
};
OwnStreams& own_streams() {
  static auto& own = *new OwnStreams;
  return own;
}
// The stream of the current context. It waits for no other stream.
CUstream own_stream(uint64_t context_id) {
  const std::lock_guard lock(own_streams().mutex);
  CUstream& stream = own_streams().streams[context_id];
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

// Rewrites graphs that the executable graph is to take over from that place on, where `count` of its nodes
// are.
Rewriter rewriter_for(const Executable& executable, size_t first, size_t count) {
  return {executable.context, executable.from.replaced, first, are_paired(executable, count),
          [&executable, first, count] { return spare_variants(executable, first, count); }};
}

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
void take_over(Executable& known, size_t first, const RewrittenCopy& from) {
  const std::vector<GraphCopy::Node>&nodes = from.copy->nodes(), &known_nodes = known.from.copy->nodes();
  if (nodes.size() == known_nodes.size()) known.unpaired.clear();
  const bool has_all = first + nodes.size() <= known_nodes.size();
  if (!has_all || !are_alike(std::span(known_nodes).subspan(first, nodes.size()), nodes)) {
    for (const auto& [place, node] : from.replaced) known.unpaired.push_back(node.variant());
  }
  for (const auto& [place, node] : from.replaced) {
    const auto found = known.from.replaced.find(first + place);
    if (found != known.from.replaced.end()) found->second.take_over(node);
  }
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

// A node that the program names in a call about an executable graph.
struct NamedNode : FoundExecutable {
  CUgraphNode copy = nullptr;  // null if the executable graph is not rewritten, or does not have it
  size_t place = 0;            // among the copy's nodes
};
NamedNode find(CUgraphExec executable, CUgraphNode node) {
  NamedNode named{find(executable)};
  if (!named.executable) return named;
  const GraphCopy& copy = *named.executable->from.copy;
  named.copy = copy.copy_of(node);
  if (named.copy) named.place = copy.place_of(node).value();
  return named;
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
std::shared_ptr<Executable> rewritten_executable(CUgraph graph, const GraphContext& context) {
  auto rewritten = Rewriter(context).rewrite(graph);
  if (!rewritten) return nullptr;
  auto made = std::make_shared<Executable>();
  made->context = context;
  made->from = std::move(*rewritten);
  made->memory = new_graph_memory(context.id);
  add_variants(*made, made->from.replaced);
  mark_written(*made);
  made->from.end = record_at_end(made->from.copy->graph(), *made->memory);
  return made;
}

// Instantiates the graph with its parents replaced; null if there are none.
std::shared_ptr<Executable> instantiate_rewritten(CUgraph graph, const GraphContext& context,
                                                  const CUgraphExec& executable,
                                                  const std::function<CUresult(CUgraph)>& instantiate) {
  auto made = rewritten_executable(graph, context);
  if (!made) return nullptr;
  const GraphCopy& copy = *made->from.copy;
  bool is_there = false;
  try {
    require(instantiate(copy.graph()), "instantiating the rewritten graph");
    is_there = true;
    for (const auto& [place, node] : made->from.replaced)
      node.begin(executable, params_of(copy.nodes()[place].original), context);
  } catch (...) {
    if (is_there) driver()->graph_exec_destroy(executable);
    give_back_when_unused(made->memory);
    throw;
  }
  return made;
}

// The replaced node at that place; null if there is none.
ReplacedNode* replaced_at(Executable& known, size_t place) {
  const auto found = known.from.replaced.find(place);
  return found == known.from.replaced.end() ? nullptr : &found->second;
}

// Forgets the executable graphs of a context that has ended.
void forget_executables(uint64_t context_id) {
  std::vector<std::shared_ptr<Executable>> forgotten;  // end when the lock is released
  const std::lock_guard lock(table_mutex);
  std::erase_if(executables(), [&](const auto& each) {
    const std::shared_ptr<Executable>& known = each.second;
    if (known->context.id != context_id) return false;
    known->memory->forget_event();
    known->ready = nullptr;
    forgotten.push_back(known);
    return true;
  });
  executables_count.store(executables().size(), std::memory_order_relaxed);
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
    auto rewritten = rewriter_for(*known, 0, nodes).rewrite(graph);
    // Without such nodes, it is no longer like the executable graph, and the driver says so.
    if (!rewritten) return std::nullopt;
    if (add_variants(*known, rewritten->replaced)) mark_written(*known);
    rewritten->end = record_at_end(rewritten->copy->graph(), *known->memory);
    const CUresult result = update(rewritten->copy->graph());
    if (result == CUDA_SUCCESS) take_over(*known, 0, *rewritten);
    for (CUgraphNode* const node : named) *node = original_of(*rewritten, *node);
    return result;
  });
}

CUgraphNode node_in_executable(CUgraphExec executable, CUgraphNode node) {
  const NamedNode named = find(executable, node);
  return named.copy ? named.copy : node;
}

std::optional<CUresult> set_kernel_params(CUgraphExec executable, CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS_v2* given) {
  if (given == nullptr) return std::nullopt;
  const CUDA_KERNEL_NODE_PARAMS& params = *given;
  const NamedNode named = find(executable, node);
  if (!named.copy) return std::nullopt;
  const auto& known = named.executable;
  const size_t place = named.place;
  ReplacedNode* const replaced = replaced_at(*known, place);
  if (!replaced) return driver()->exec_set_kernel_v2(executable, named.copy, &params);
  const auto handle = parent_of(params);
  const RelaxedCapture relaxed;
  const InContext in_context(known->context.context);
  if (!handle) return replaced->set(executable, params, known->context);
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
  const NamedNode named = find(executable, node);
  if (!named.copy || child == nullptr) return std::nullopt;
  const auto& known = named.executable;
  return or_left(child, [&]() -> std::optional<CUresult> {
    const RelaxedCapture relaxed;
    const InContext in_context(known->context.context);
    const size_t first = named.place + 1;
    const size_t within = known->from.copy->nodes()[named.place].within;
    auto rewritten = rewriter_for(*known, first, within).rewrite(child);
    if (!rewritten) return driver()->exec_set_child_graph(executable, named.copy, child);
    if (add_variants(*known, rewritten->replaced)) mark_written(*known);
    const CUresult result = driver()->exec_set_child_graph(executable, named.copy, rewritten->copy->graph());
    if (result == CUDA_SUCCESS) take_over(*known, first, *rewritten);
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

std::optional<CUresult> set_enabled(CUgraphExec executable, CUgraphNode node, unsigned enabled) {
  const NamedNode named = find(executable, node);
  if (!named.copy) return std::nullopt;
  const CUresult result = driver()->exec_set_enabled(executable, named.copy, enabled);
  ReplacedNode* const replaced = replaced_at(*named.executable, named.place);
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

void executable_about_to_end(CUgraphExec executable) {
  const auto known = known_executable(executable);
  if (!known) return;
  {
    const std::lock_guard lock(table_mutex);
    executables().erase(executable);
    executables_count.store(executables().size(), std::memory_order_relaxed);
  }
  give_back_when_unused(known->memory);
  const std::lock_guard lock(known->mutex);
  if (known->ready) driver()->event_destroy(std::exchange(known->ready, nullptr));
}

void graphs_ended(uint64_t context_id) {
  {
    const std::lock_guard lock(own_streams().mutex);
    own_streams().streams.erase(context_id);
  }
  forget_idle_nodes(context_id);
  forget_executables(context_id);
  forget_graphs(context_id);
}

}  // namespace klap::runtime
