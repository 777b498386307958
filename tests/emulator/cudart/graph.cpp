// Graphs. The handles are the driver's.
#include "call.h"
#include "registry.h"

using namespace klap::cudart;

namespace {

// Runs `body(driver, params)` with a node's parameters as the driver takes them.
template <class Body>
cudaError_t with_params(const cudaKernelNodeParams& node, Body body) {
  return in_context([&](const Driver& cu) {
    CUkernel kernel = nullptr;
    const cudaError_t error = find_kernel(node.func, kernel);
    if (error != cudaSuccess) return error;
    CUDA_KERNEL_NODE_PARAMS params{};
    params.kern = kernel;
    params.gridDimX = node.gridDim.x;
    params.gridDimY = node.gridDim.y;
    params.gridDimZ = node.gridDim.z;
    params.blockDimX = node.blockDim.x;
    params.blockDimY = node.blockDim.y;
    params.blockDimZ = node.blockDim.z;
    params.sharedMemBytes = node.sharedMemBytes;
    params.kernelParams = node.kernelParams;
    params.extra = node.extra;
    return runtime_error(body(cu, params));
  });
}

CUDA_MEMSET_NODE_PARAMS fill_of(const cudaMemsetParams& params) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = reinterpret_cast<CUdeviceptr>(params.dst);
  fill.pitch = params.pitch;
  fill.value = params.value;
  fill.elementSize = params.elementSize;
  fill.width = params.width;
  fill.height = params.height;
  return fill;
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return drive([&](const Driver& cu) { return cu.graph_create(graph, flags); });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return drive([&](const Driver& cu) { return cu.graph_clone(clone, graph); });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return drive([&](const Driver& cu) { return cu.graph_get_nodes(graph, nodes, count); });
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   size_t count, const cudaKernelNodeParams* params) {
  return with_params(*params, [&](const Driver& cu, const CUDA_KERNEL_NODE_PARAMS& of_driver) {
    return cu.graph_add_kernel(node, graph, after, count, &of_driver);
  });
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  return drive([&](const Driver& cu) {
    const CUDA_MEMSET_NODE_PARAMS of_driver = fill_of(*params);
    return cu.exec_set_memset(executable, node, &of_driver, nullptr);
  });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   size_t count, const cudaMemsetParams* params) {
  return drive([&](const Driver& cu) {
    const CUDA_MEMSET_NODE_PARAMS of_driver = fill_of(*params);
    return cu.graph_add_memset(node, graph, after, count, &of_driver, nullptr);
  });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                       size_t count, cudaGraph_t child) {
  return drive([&](const Driver& cu) { return cu.graph_add_child(node, graph, after, count, child); });
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return drive([&](const Driver& cu) { return cu.graph_child_get_graph(node, graph); });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  return with_params(*params, [&](const Driver& cu, const CUDA_KERNEL_NODE_PARAMS& of_driver) {
    return cu.exec_set_kernel(executable, node, &of_driver);
  });
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  return drive([&](const Driver& cu) { return cu.exec_set_child(executable, node, child); });
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned enabled) {
  return drive([&](const Driver& cu) { return cu.exec_set_enabled(executable, node, enabled); });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return drive([&](const Driver& cu) {
    CUgraphExecUpdateResultInfo of_driver{};
    const CUresult result = cu.graph_exec_update(executable, graph, &of_driver);
    info->result = static_cast<cudaGraphExecUpdateResult>(of_driver.result);
    info->errorNode = of_driver.errorNode;
    info->errorFromNode = of_driver.errorFromNode;
    return result;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return drive([&](const Driver& cu) { return cu.graph_instantiate(executable, graph, flags); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return drive([&](const Driver& cu) { return cu.graph_launch(executable, stream); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return drive([&](const Driver& cu) { return cu.graph_exec_destroy(executable); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return drive([&](const Driver& cu) { return cu.graph_destroy(graph); });
}

}  // extern "C"
