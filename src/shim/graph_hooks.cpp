// Executable graphs: instantiating, updating, launching and destroying them.
#include <span>

#include "runtime/graphs/executables.h"
#include "shim/guard.h"
#include "shim/hooks.h"

using namespace klap;
using runtime::Driver;
using shim::at_node;
using shim::before;
using shim::forward;
using shim::in_place;
using shim::instantiate;
using shim::launch_graph;
constexpr auto kOnceRewritten = shim::When::OnceRewritten;

extern "C" {

KLAP_EXPORT CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* executable, CUgraph graph,
                                                CUgraphNode* error_node, char* log, size_t log_bytes) {
  const auto rewritten = [&] {
    return runtime::instantiate_graph(graph, 0, executable, [&](CUgraph copy) {
      return forward<&Driver::graph_instantiate>(executable, copy, error_node, log, log_bytes);
    });
  };
  return instantiate<&Driver::graph_instantiate>("cuGraphInstantiate", rewritten, executable, graph,
                                                 error_node, log, log_bytes);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph,
                                                   CUgraphNode* error_node, char* log, size_t log_bytes) {
  const auto rewritten = [&] {
    return runtime::instantiate_graph(graph, 0, executable, [&](CUgraph copy) {
      return forward<&Driver::graph_instantiate_v2>(executable, copy, error_node, log, log_bytes);
    });
  };
  return instantiate<&Driver::graph_instantiate_v2>("cuGraphInstantiate_v2", rewritten, executable, graph,
                                                    error_node, log, log_bytes);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                                         unsigned long long flags) {
  const auto rewritten = [&] {
    return runtime::instantiate_graph(graph, flags, executable, [&](CUgraph copy) {
      return forward<&Driver::graph_instantiate_with_flags>(executable, copy, flags);
    });
  };
  return instantiate<&Driver::graph_instantiate_with_flags>("cuGraphInstantiateWithFlags", rewritten,
                                                            executable, graph, flags);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph,
                                                          CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const auto rewritten = [&] {
    return runtime::instantiate_graph(graph, params ? params->flags : 0, executable, [&](CUgraph copy) {
      return forward<&Driver::graph_instantiate_with_params>(executable, copy, params);
    });
  };
  return instantiate<&Driver::graph_instantiate_with_params>("cuGraphInstantiateWithParams", rewritten,
                                                             executable, graph, params);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec* executable, CUgraph graph,
                                                               CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const auto rewritten = [&] {
    return runtime::instantiate_graph(graph, params ? params->flags : 0, executable, [&](CUgraph copy) {
      return forward<&Driver::graph_instantiate_with_params_ptsz>(executable, copy, params);
    });
  };
  return instantiate<&Driver::graph_instantiate_with_params_ptsz>("cuGraphInstantiateWithParams_ptsz",
                                                                  rewritten, executable, graph, params);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  return launch_graph<&Driver::graph_launch>("cuGraphLaunch", stream, executable, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec executable, CUstream stream) {
  return launch_graph<&Driver::graph_launch_ptsz>("cuGraphLaunch_ptsz", runtime::per_thread_stream(stream),
                                                  executable, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec executable) {
  return before<&Driver::graph_exec_destroy, kOnceRewritten>(
      "cuGraphExecDestroy", [&] { runtime::executable_about_to_end(executable); }, executable);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                                               CUgraphExecUpdateResult* result) {
  const auto update = [&] {
    CUgraphNode* const named[] = {error_node};
    return runtime::update_executable(
        executable, graph, std::span(named, error_node ? 1 : 0), [&](CUgraph copy) {
          return forward<&Driver::graph_exec_update>(executable, copy, error_node, result);
        });
  };
  return in_place<&Driver::graph_exec_update, kOnceRewritten>("cuGraphExecUpdate", update, executable, graph,
                                                              error_node, result);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph,
                                                  CUgraphExecUpdateResultInfo* info) {
  const auto update = [&] {
    CUgraphNode* const named[] = {info ? &info->errorNode : nullptr, info ? &info->errorFromNode : nullptr};
    return runtime::update_executable(executable, graph, std::span(named, info ? 2 : 0), [&](CUgraph copy) {
      return forward<&Driver::graph_exec_update_v2>(executable, copy, info);
    });
  };
  return in_place<&Driver::graph_exec_update_v2, kOnceRewritten>("cuGraphExecUpdate_v2", update, executable,
                                                                 graph, info);
}

// ---- changing one node of an executable graph ----

KLAP_EXPORT CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                            const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return at_node<&Driver::exec_set_kernel>(
      "cuGraphExecKernelNodeSetParams", [&] { return runtime::set_kernel_params(executable, node, params); },
      executable, node, params);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                                               const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return at_node<&Driver::exec_set_kernel_v2>(
      "cuGraphExecKernelNodeSetParams_v2",
      [&] { return runtime::set_kernel_params(executable, node, params); }, executable, node, params);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                      CUgraphNodeParams* params) {
  return at_node<&Driver::exec_set_params>(
      "cuGraphExecNodeSetParams", [&] { return runtime::set_node_params(executable, node, params); },
      executable, node, params);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                                CUgraph child) {
  return at_node<&Driver::exec_set_child_graph>(
      "cuGraphExecChildGraphNodeSetParams", [&] { return runtime::set_child_graph(executable, node, child); },
      executable, node, child);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                            const CUDA_MEMCPY3D* params, CUcontext context) {
  return at_node<&Driver::exec_set_memcpy>("cuGraphExecMemcpyNodeSetParams", executable, node, params,
                                           context);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                            const CUDA_MEMSET_NODE_PARAMS* params,
                                                            CUcontext context) {
  return at_node<&Driver::exec_set_memset>("cuGraphExecMemsetNodeSetParams", executable, node, params,
                                           context);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                          const CUDA_HOST_NODE_PARAMS* params) {
  return at_node<&Driver::exec_set_host>("cuGraphExecHostNodeSetParams", executable, node, params);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec executable, CUgraphNode node,
                                                                CUevent event) {
  return at_node<&Driver::exec_set_recorded_event>("cuGraphExecEventRecordNodeSetEvent", executable, node,
                                                   event);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec executable, CUgraphNode node,
                                                              CUevent event) {
  return at_node<&Driver::exec_set_awaited_event>("cuGraphExecEventWaitNodeSetEvent", executable, node,
                                                  event);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecExternalSemaphoresSignalNodeSetParams(
    CUgraphExec executable, CUgraphNode node, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* params) {
  return at_node<&Driver::exec_set_signals>("cuGraphExecExternalSemaphoresSignalNodeSetParams", executable,
                                            node, params);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecExternalSemaphoresWaitNodeSetParams(
    CUgraphExec executable, CUgraphNode node, const CUDA_EXT_SEM_WAIT_NODE_PARAMS* params) {
  return at_node<&Driver::exec_set_waits>("cuGraphExecExternalSemaphoresWaitNodeSetParams", executable, node,
                                          params);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                                const CUDA_BATCH_MEM_OP_NODE_PARAMS* params) {
  return at_node<&Driver::exec_set_memory_operations>("cuGraphExecBatchMemOpNodeSetParams", executable, node,
                                                      params);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node,
                                                   unsigned enabled) {
  return at_node<&Driver::exec_set_enabled>(
      "cuGraphNodeSetEnabled", [&] { return runtime::set_enabled(executable, node, enabled); }, executable,
      node, enabled);
}

KLAP_EXPORT CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec executable, CUgraphNode node,
                                                   unsigned* enabled) {
  return at_node<&Driver::exec_get_enabled>("cuGraphNodeGetEnabled", executable, node, enabled);
}

}  // extern "C"
