// Graphs as a whole: making, taking apart, instantiating, launching.
#include <algorithm>
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/begin_work.h"
#include "emulator/driver/streams/capture.h"
#include "emulator/driver/streams/graph.h"
#include "emulator/driver/streams/stream.h"

using namespace klap::emulator;
using namespace klap::emulator::driver;

namespace {

// Common behaviour of the functions that list things. Without an array they give the number, with one as many
// entries as fit. The rest of the array is nulled.
template <typename T>
void list(const std::vector<T>& all, T* out, size_t* count) {
  require(count != nullptr);
  if (out == nullptr) {
    *count = all.size();
    return;
  }
  for (size_t i = 0; i < *count; ++i) out[i] = i < all.size() ? all[i] : T{};
  *count = std::min(*count, all.size());
}

std::vector<CUgraphNode> nodes_of(CUgraph_st& graph, bool only_roots) {
  std::vector<CUgraphNode> out;
  for (CUgraphNode_st& node : graph.nodes) {
    if (!only_roots || node.after.empty()) out.push_back(&node);
  }
  return out;
}

void no_edge_data(const CUgraphEdgeData* data, size_t count) {
  for (size_t i = 0; data != nullptr && i < count; ++i) {
    require(data[i].type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT, CUDA_ERROR_NOT_SUPPORTED);
  }
}

void instantiate(Process& process, CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  constexpr unsigned long long kKnown =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  require(executable != nullptr);
  require((flags & ~kKnown) == 0, CUDA_ERROR_NOT_SUPPORTED);
  GraphPlan plan = plan_of(known(process, graph));
  *executable = process.executables.make();
  (*executable)->plan = std::move(plan);
  (*executable)->objects = graph->objects;
  (*executable)->context = &working(process);
  (*executable)->flags = flags;
}

// Objects of the program's outlive the launches of what held them.
void release_objects(CUgraphExec_st& executable) {
  const std::vector<std::shared_ptr<CUuserObject_st>> held = std::move(executable.objects);
  executable.objects.clear();
  if (held.empty() || executable.last_context == nullptr) return;
  Machine& machine = *executable.last_context->machine;
  const StreamId own = machine.create_stream(klap::emulator::StreamFlags::NonBlocking);
  machine.wait(own, executable.last);
  machine.enqueue(own, [held] {});
  machine.destroy_stream(own);
}

void end(CUgraphExec_st& executable) {
  release_objects(executable);
  if (executable.last_context != nullptr) executable.last_context->machine->destroy_event(executable.last);
}

void launch(Process& process, CUgraphExec_st& executable, CUstream_st& stream) {
  CUctx_st& context = *stream.context;
  context.require_alive();
  forbid_implicit_capture(process, stream);
  forbid_capture(stream);
  if (executable.last_context == &context) {
    context.machine->wait(stream.stream, executable.last);
  } else {
    executable.last = context.machine->create_event();
    executable.last_context = &context;
  }
  begin(process, context, stream.stream, executable.plan);
  context.machine->record(executable.last, stream.stream);
}

}  // namespace

KLAP_DRIVER_API cuGraphCreate(CUgraph* graph, unsigned flags) {
  return call("cuGraphCreate", [&](Process& process) {
    require(graph != nullptr && flags == 0);
    *graph = process.graphs.make();
  });
}

KLAP_DRIVER_API cuGraphDestroy(CUgraph graph) {
  return call("cuGraphDestroy", [&](Process& process) {
    require(!known(process, graph).is_part);
    destroy_graph(process, graph);
  });
}

KLAP_DRIVER_API cuGraphClone(CUgraph* copy, CUgraph graph) {
  return call("cuGraphClone", [&](Process& process) {
    require(copy != nullptr);
    *copy = clone(process, known(process, graph));
  });
}

KLAP_DRIVER_API cuGraphNodeFindInClone(CUgraphNode* copy, CUgraphNode original, CUgraph clone) {
  return call("cuGraphNodeFindInClone", [&](Process& process) {
    require(copy != nullptr);
    for (CUgraphNode_st& node : known(process, clone).nodes) {
      if (node.cloned_from != original) continue;
      *copy = &node;
      return;
    }
    fail(CUDA_ERROR_INVALID_VALUE);
  });
}

// One reference each: that of the program becomes the graph's, or stays with it for good.
KLAP_DRIVER_API cuUserObjectCreate(CUuserObject* object, void* data, CUhostFn destroy, unsigned references,
                                   unsigned flags) {
  return call("cuUserObjectCreate", [&](Process&) {
    require(object != nullptr && destroy != nullptr && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    require(references == 1, CUDA_ERROR_NOT_SUPPORTED);
    *object = new CUuserObject_st(destroy, data);
  });
}

KLAP_DRIVER_API cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  return call("cuGraphRetainUserObject", [&](Process& process) {
    require(object != nullptr);
    require(count == 1 && flags == CU_GRAPH_USER_OBJECT_MOVE, CUDA_ERROR_NOT_SUPPORTED);
    known(process, graph).objects.emplace_back(object);
  });
}

KLAP_DRIVER_API cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return call("cuGraphGetNodes",
              [&](Process& process) { list(nodes_of(known(process, graph), false), nodes, count); });
}

KLAP_DRIVER_API cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  return call("cuGraphGetRootNodes",
              [&](Process& process) { list(nodes_of(known(process, graph), true), nodes, count); });
}

KLAP_DRIVER_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                   size_t* count) {
  return call("cuGraphGetEdges", [&](Process& process) {
    require(count != nullptr);
    std::vector<CUgraphNode> starts, ends;
    for (CUgraphNode_st& node : known(process, graph).nodes) {
      starts.insert(starts.end(), node.after.begin(), node.after.end());
      ends.resize(starts.size(), &node);
    }
    for (size_t i = 0; data != nullptr && i < *count; ++i) data[i] = {};
    size_t room = *count;
    if (to != nullptr) list(ends, to, &room);
    list(starts, from, count);
  });
}

KLAP_DRIVER_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

KLAP_DRIVER_API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* dependencies, CUgraphEdgeData*,
                                              size_t* count) {
  return call("cuGraphNodeGetDependencies",
              [&](Process& process) { list(known(process, node).after, dependencies, count); });
}

KLAP_DRIVER_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* dependencies, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, dependencies, nullptr, count);
}

KLAP_DRIVER_API cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* dependents, CUgraphEdgeData*,
                                                size_t* count) {
  return call("cuGraphNodeGetDependentNodes", [&](Process& process) {
    std::vector<CUgraphNode> after;
    for (CUgraphNode_st& other : known(process, node).graph->nodes) {
      if (std::ranges::find(other.after, node) != other.after.end()) after.push_back(&other);
    }
    list(after, dependents, count);
  });
}

KLAP_DRIVER_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* dependents, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, dependents, nullptr, count);
}

KLAP_DRIVER_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                          const CUgraphEdgeData* data, size_t count) {
  return call("cuGraphAddDependencies", [&](Process& process) {
    const CUgraph_st& within = known(process, graph);
    no_edge_data(data, count);
    for (size_t i = 0; i < count; ++i) {
      require(within.has(from[i]) && within.has(to[i]) && from[i] != to[i]);
      std::vector<CUgraphNode>& after = to[i]->after;
      require(std::ranges::find(after, from[i]) == after.end());
      after.push_back(from[i]);
    }
  });
}

KLAP_DRIVER_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                       size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

KLAP_DRIVER_API cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                             const CUgraphEdgeData*, size_t count) {
  return call("cuGraphRemoveDependencies", [&](Process& process) {
    const CUgraph_st& within = known(process, graph);
    for (size_t i = 0; i < count; ++i) {
      require(within.has(from[i]) && within.has(to[i]) && std::erase(to[i]->after, from[i]) == 1);
    }
  });
}

KLAP_DRIVER_API cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                          size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

KLAP_DRIVER_API cuGraphDestroyNode(CUgraphNode node) {
  return call("cuGraphDestroyNode", [&](Process& process) {
    CUgraph_st& graph = *known(process, node).graph;
    for (CUgraphNode_st& other : graph.nodes) std::erase(other.after, node);
    if (const auto* const child = std::get_if<ChildGraph>(&node->work)) destroy_graph(process, child->graph);
    graph.nodes.remove_if([&](const CUgraphNode_st& mine) { return &mine == node; });
  });
}

KLAP_DRIVER_API cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                            unsigned long long flags) {
  return call("cuGraphInstantiate",
              [&](Process& process) { instantiate(process, executable, graph, flags); });
}

KLAP_DRIVER_API cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node,
                                      char* log, size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return cuGraphInstantiateWithFlags(executable, graph, 0);
}

KLAP_DRIVER_API cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode* error_node, char* log,
                                   size_t log_bytes) {
  return cuGraphInstantiate_v2(executable, graph, error_node, log, log_bytes);
}

KLAP_DRIVER_API cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = cuGraphInstantiateWithFlags(executable, graph, parameters->flags);
  parameters->hErrNode_out = nullptr;
  parameters->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

KLAP_DRIVER_API cuGraphExecGetFlags(CUgraphExec executable, cuuint64_t* flags) {
  return call("cuGraphExecGetFlags", [&](Process& process) {
    require(flags != nullptr);
    *flags = known(process, executable).flags;
  });
}

KLAP_DRIVER_API cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph,
                                     CUgraphExecUpdateResultInfo* info) {
  return call("cuGraphExecUpdate", [&](Process& process) {
    require(info != nullptr);
    *info = {};
    if (take_over(known(process, executable).plan, plan_of(known(process, graph)))) {
      release_objects(*executable);
      executable->objects = graph->objects;
      return;
    }
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    fail(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  });
}

KLAP_DRIVER_API cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                                  CUgraphExecUpdateResult* result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult outcome = cuGraphExecUpdate_v2(executable, graph, &info);
  if (error_node != nullptr) *error_node = info.errorNode;
  if (result != nullptr) *result = info.result;
  return outcome;
}

KLAP_DRIVER_API cuGraphUpload(CUgraphExec executable, CUstream stream) {
  return call("cuGraphUpload", [&](Process& process) {
    known(process, executable);
    submit(process, resolve(process, stream), Empty{});
  });
}

KLAP_DRIVER_API cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return call("cuGraphLaunch", [&](Process& process) {
    launch(process, known(process, executable), resolve(process, stream));
  });
}

KLAP_DRIVER_API cuGraphExecDestroy(CUgraphExec executable) {
  return call("cuGraphExecDestroy", [&](Process& process) {
    end(known(process, executable));
    process.executables.destroy(executable);
  });
}
