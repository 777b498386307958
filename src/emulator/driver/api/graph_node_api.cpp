// This file adds nodes to graphs, and reads and sets their work.
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/graph.h"
#include "emulator/driver/streams/launch.h"

using namespace klap::emulator;
using namespace klap::emulator::driver;

namespace {

void add(Process& process, CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
         Work work) {
  require(node != nullptr && (count == 0 || after != nullptr));
  CUgraph_st& in = known(process, graph);
  std::vector<CUgraphNode> earlier(after, after + count);
  for (CUgraphNode const each : earlier) require(in.has(each));
  *node = in.add(std::move(work), std::move(earlier));
}

// The work of the node, if it is of that kind.
template <typename Kind>
Kind& work_of(Process& process, CUgraphNode node) {
  auto* const work = std::get_if<Kind>(&known(process, node).work);
  require(work != nullptr);
  return *work;
}

GraphStep& step_in(Process& process, CUgraphExec executable, CUgraphNode node) {
  GraphStep* const step = step_of(known(process, executable).plan, node);
  require(step != nullptr);
  return *step;
}

// The work of a node's step in an instantiated graph, if it is of that kind.
template <typename Kind>
Kind& step_of(Process& process, CUgraphExec executable, CUgraphNode node) {
  auto* const work = std::get_if<Kind>(&step_in(process, executable, node).work);
  require(work != nullptr);
  return *work;
}

KernelLaunch launch_of(Process& process, const CUDA_KERNEL_NODE_PARAMS* p) {
  require(p != nullptr);
  CUctx_st& context = context_or_current(process, p->func == nullptr ? p->ctx : nullptr);
  auto* const function = p->func != nullptr ? p->func : reinterpret_cast<CUfunction>(p->kern);
  return make_launch(process, function, context,
                     {{p->gridDimX, p->gridDimY, p->gridDimZ},
                      {p->blockDimX, p->blockDimY, p->blockDimZ},
                      p->sharedMemBytes,
                      p->kernelParams,
                      p->extra});
}

void set_kernel(Process& process, CUgraphExec executable, CUgraphNode node,
                const CUDA_KERNEL_NODE_PARAMS* p) {
  Work work = launch_of(process, p);
  GraphStep& step = step_in(process, executable, node);
  require(may_become(step, work));
  step.work = std::move(work);
}

CUDA_KERNEL_NODE_PARAMS newest(const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  require(p != nullptr);
  return {p->func,      p->gridDimX,       p->gridDimY,     p->gridDimZ, p->blockDimX, p->blockDimY,
          p->blockDimZ, p->sharedMemBytes, p->kernelParams, p->extra,    nullptr,      nullptr};
}

CUDA_KERNEL_NODE_PARAMS describe(Process& process, CUgraphNode node) {
  KernelLaunch& kernel = work_of<KernelLaunch>(process, node);
  Launch& launch = kernel.launch;
  node->parameters.clear();
  for (const uint32_t offset : launch.kernel->parameter_offsets) {
    node->parameters.push_back(launch.parameters.data() + offset);
  }
  CUDA_KERNEL_NODE_PARAMS out{};
  const bool is_function = process.functions.knows(kernel.function);
  out.func = is_function ? kernel.function : nullptr;
  out.kern = is_function ? nullptr : reinterpret_cast<CUkernel>(kernel.function);
  out.gridDimX = launch.grid[0];
  out.gridDimY = launch.grid[1];
  out.gridDimZ = launch.grid[2];
  out.blockDimX = launch.block[0];
  out.blockDimY = launch.block[1];
  out.blockDimZ = launch.block[2];
  out.sharedMemBytes = launch.dynamic_shared;
  out.kernelParams = node->parameters.empty() ? nullptr : node->parameters.data();
  return out;
}

Fill fill_of(Process& process, const CUDA_MEMSET_NODE_PARAMS* p) {
  require(p != nullptr);
  const Fill fill{p->dst, p->value, p->elementSize, p->width, p->height, p->pitch};
  validate(process, fill);
  return fill;
}

Copy checked_copy(Process& process, const CUDA_MEMCPY3D* p) {
  require(p != nullptr);
  const Copy copy = copy_of(process, *p);
  validate(process, copy);
  return copy;
}

HostCall host_call(const CUDA_HOST_NODE_PARAMS* p) {
  require(p != nullptr && p->fn != nullptr);
  return {p->fn, p->userData};
}

CUgraphNodeType type_of(const Work& work) {
  constexpr CUgraphNodeType kTypes[] = {CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,
                                        CU_GRAPH_NODE_TYPE_MEMCPY,     CU_GRAPH_NODE_TYPE_MEMSET,
                                        CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                        CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_GRAPH};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  return kTypes[work.index()];
}

}  // namespace

KLAP_DRIVER_API cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                    size_t count) {
  return call("cuGraphAddEmptyNode",
              [&](Process& process) { add(process, node, graph, after, count, Empty{}); });
}

KLAP_DRIVER_API cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                        size_t count, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphAddKernelNode", [&](Process& process) {
    add(process, node, graph, after, count, launch_of(process, parameters));
  });
}

KLAP_DRIVER_API cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return call("cuGraphAddKernelNode", [&](Process& process) {
    const CUDA_KERNEL_NODE_PARAMS whole = newest(parameters);
    add(process, node, graph, after, count, launch_of(process, &whole));
  });
}

KLAP_DRIVER_API cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                     const CUDA_MEMCPY3D* parameters, CUcontext) {
  return call("cuGraphAddMemcpyNode", [&](Process& process) {
    add(process, node, graph, after, count, checked_copy(process, parameters));
  });
}

KLAP_DRIVER_API cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                     const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext) {
  return call("cuGraphAddMemsetNode", [&](Process& process) {
    add(process, node, graph, after, count, fill_of(process, parameters));
  });
}

KLAP_DRIVER_API cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                   const CUDA_HOST_NODE_PARAMS* parameters) {
  return call("cuGraphAddHostNode",
              [&](Process& process) { add(process, node, graph, after, count, host_call(parameters)); });
}

KLAP_DRIVER_API cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                         size_t count, CUgraph child) {
  return call("cuGraphAddChildGraphNode", [&](Process& process) {
    add(process, node, graph, after, count, child_graph(process, plan_of(known(process, child))));
  });
}

KLAP_DRIVER_API cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                          size_t count, CUevent event) {
  return call("cuGraphAddEventRecordNode", [&](Process& process) {
    require(process.events.knows(event), CUDA_ERROR_INVALID_HANDLE);
    add(process, node, graph, after, count, RecordEvent{event});
  });
}

KLAP_DRIVER_API cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                        size_t count, CUevent event) {
  return call("cuGraphAddEventWaitNode", [&](Process& process) {
    require(process.events.knows(event), CUDA_ERROR_INVALID_HANDLE);
    add(process, node, graph, after, count, WaitForEvent{event});
  });
}

// ---- the work of a node ----

KLAP_DRIVER_API cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return call("cuGraphNodeGetType", [&](Process& process) {
    require(type != nullptr);
    *type = type_of(known(process, node).work);
  });
}

KLAP_DRIVER_API cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphKernelNodeGetParams", [&](Process& process) {
    require(parameters != nullptr);
    *parameters = describe(process, node);
  });
}

KLAP_DRIVER_API cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return call("cuGraphKernelNodeGetParams", [&](Process& process) {
    require(parameters != nullptr);
    const CUDA_KERNEL_NODE_PARAMS p = describe(process, node);
    *parameters = {p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX,
                   p.blockDimY, p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra};
  });
}

KLAP_DRIVER_API cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphKernelNodeSetParams", [&](Process& process) {
    work_of<KernelLaunch>(process, node) = launch_of(process, parameters);
  });
}

KLAP_DRIVER_API cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return call("cuGraphKernelNodeSetParams", [&](Process& process) {
    const CUDA_KERNEL_NODE_PARAMS whole = newest(parameters);
    work_of<KernelLaunch>(process, node) = launch_of(process, &whole);
  });
}

// No node has any.
KLAP_DRIVER_API cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID,
                                              CUkernelNodeAttrValue* value) {
  return call("cuGraphKernelNodeGetAttribute", [&](Process& process) {
    require(value != nullptr);
    work_of<KernelLaunch>(process, node);
    *value = {};
  });
}

KLAP_DRIVER_API cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* parameters) {
  return call("cuGraphMemcpyNodeGetParams", [&](Process& process) {
    require(parameters != nullptr);
    *parameters = description_of(work_of<Copy>(process, node));
  });
}

KLAP_DRIVER_API cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* parameters) {
  return call("cuGraphMemcpyNodeSetParams",
              [&](Process& process) { work_of<Copy>(process, node) = checked_copy(process, parameters); });
}

KLAP_DRIVER_API cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* parameters) {
  return call("cuGraphMemsetNodeGetParams", [&](Process& process) {
    require(parameters != nullptr);
    const Fill& fill = work_of<Fill>(process, node);
    *parameters = {fill.to, fill.pitch, fill.value, fill.element_bytes, fill.width, fill.height};
  });
}

KLAP_DRIVER_API cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* parameters) {
  return call("cuGraphMemsetNodeSetParams",
              [&](Process& process) { work_of<Fill>(process, node) = fill_of(process, parameters); });
}

KLAP_DRIVER_API cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* parameters) {
  return call("cuGraphHostNodeGetParams", [&](Process& process) {
    require(parameters != nullptr);
    const HostCall& host = work_of<HostCall>(process, node);
    *parameters = {host.function, host.data};
  });
}

KLAP_DRIVER_API cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* parameters) {
  return call("cuGraphHostNodeSetParams",
              [&](Process& process) { work_of<HostCall>(process, node) = host_call(parameters); });
}

KLAP_DRIVER_API cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return call("cuGraphChildGraphNodeGetGraph", [&](Process& process) {
    require(graph != nullptr);
    *graph = work_of<ChildGraph>(process, node).graph;
  });
}

KLAP_DRIVER_API cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return call("cuGraphEventRecordNodeGetEvent", [&](Process& process) {
    require(event != nullptr);
    *event = work_of<RecordEvent>(process, node).event;
  });
}

KLAP_DRIVER_API cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return call("cuGraphEventWaitNodeGetEvent", [&](Process& process) {
    require(event != nullptr);
    *event = work_of<WaitForEvent>(process, node).event;
  });
}

// ---- in an instantiated graph ----

KLAP_DRIVER_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS* parameters) {
  return call("cuGraphExecKernelNodeSetParams",
              [&](Process& process) { set_kernel(process, executable, node, parameters); });
}

KLAP_DRIVER_API cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
  return call("cuGraphExecKernelNodeSetParams", [&](Process& process) {
    const CUDA_KERNEL_NODE_PARAMS whole = newest(parameters);
    set_kernel(process, executable, node, &whole);
  });
}

KLAP_DRIVER_API cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                               const CUDA_MEMCPY3D* parameters, CUcontext) {
  return call("cuGraphExecMemcpyNodeSetParams", [&](Process& process) {
    step_of<Copy>(process, executable, node) = checked_copy(process, parameters);
  });
}

KLAP_DRIVER_API cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                               const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext) {
  return call("cuGraphExecMemsetNodeSetParams", [&](Process& process) {
    step_of<Fill>(process, executable, node) = fill_of(process, parameters);
  });
}

KLAP_DRIVER_API cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                             const CUDA_HOST_NODE_PARAMS* parameters) {
  return call("cuGraphExecHostNodeSetParams", [&](Process& process) {
    step_of<HostCall>(process, executable, node) = host_call(parameters);
  });
}

KLAP_DRIVER_API cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node, CUgraph child) {
  return call("cuGraphExecChildGraphNodeSetParams", [&](Process& process) {
    ChildGraph& work = step_of<ChildGraph>(process, executable, node);
    GraphPlan plan = *work.plan;
    require(take_over(plan, plan_of(known(process, child))));
    work.plan = std::make_shared<const GraphPlan>(std::move(plan));
  });
}

KLAP_DRIVER_API cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node, unsigned enabled) {
  return call("cuGraphNodeSetEnabled",
              [&](Process& process) { step_in(process, executable, node).is_enabled = enabled != 0; });
}

KLAP_DRIVER_API cuGraphNodeGetEnabled(CUgraphExec executable, CUgraphNode node, unsigned* enabled) {
  return call("cuGraphNodeGetEnabled", [&](Process& process) {
    require(enabled != nullptr);
    *enabled = step_in(process, executable, node).is_enabled ? 1 : 0;
  });
}
