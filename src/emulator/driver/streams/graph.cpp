#include "emulator/driver/streams/graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "emulator/decode/builtins.h"
#include "emulator/driver/process.h"

CUgraphNode CUgraph_st::add(klap::emulator::driver::Work work, std::vector<CUgraphNode> after) {
  CUgraphNode_st& node = nodes.emplace_back();
  node.graph = this;
  node.work = std::move(work);
  node.after = std::move(after);
  return &node;
}

bool CUgraph_st::has(const CUgraphNode_st* node) const {
  return std::ranges::any_of(nodes, [&](const CUgraphNode_st& mine) { return &mine == node; });
}

namespace klap::emulator::driver {

namespace {

bool is_device_launch(int builtin) {
  switch (static_cast<Builtin>(builtin)) {
    case Builtin::LaunchDeviceV2:
    case Builtin::LaunchDeviceV2PerThread:
    case Builtin::LaunchDevice:
    case Builtin::LaunchDevicePerThread:
      return true;
    default:
      return false;
  }
}

bool reaches_device_launch(const Image& image, const Function& function, std::set<const Function*>& seen) {
  if (!seen.insert(&function).second) return false;
  return is_device_launch(function.builtin) ||
         std::ranges::any_of(function.calls, [&](const CallDetail& call) {
           return call.function != CallDetail::kIndirect &&
                  reaches_device_launch(image, *image.functions[call.function], seen);
         });
}

}  // namespace

bool makes_device_launches(const Work& work) {
  const auto* const kernel = std::get_if<KernelLaunch>(&work);
  std::set<const Function*> seen;
  return kernel && reaches_device_launch(*kernel->launch.image, *kernel->launch.kernel, seen);
}

bool may_become(const GraphStep& step, const Work& work) {
  return step.work.index() == work.index() && (step.may_launch || !makes_device_launches(work));
}

GraphPlan plan_of(const CUgraph_st& graph) {
  GraphPlan plan;
  std::map<const CUgraphNode_st*, size_t> placed;
  while (plan.steps.size() < graph.nodes.size()) {
    const size_t before = plan.steps.size();
    for (const CUgraphNode_st& node : graph.nodes) {
      const bool ready = std::ranges::all_of(node.after, [&](CUgraphNode n) { return placed.contains(n); });
      if (placed.contains(&node) || !ready) continue;
      GraphStep step{const_cast<CUgraphNode>(&node), node.work, {}, true, makes_device_launches(node.work)};
      // The program may have changed the graph within the node.
      if (auto* const child = std::get_if<ChildGraph>(&step.work))
        child->plan = std::make_shared<const GraphPlan>(plan_of(*child->graph));
      for (CUgraphNode const earlier : node.after) step.after.push_back(placed.at(earlier));
      placed.emplace(&node, plan.steps.size());
      plan.steps.push_back(std::move(step));
    }
    require(plan.steps.size() > before);  // else there is a cycle
  }
  return plan;
}

namespace {

bool has_step(const GraphPlan& plan, const CUgraphNode_st* node) {
  return std::ranges::any_of(plan.steps, [&](const GraphStep& step) {
    const auto* const child = std::get_if<ChildGraph>(&step.work);
    return step.node == node || (child && has_step(*child->plan, node));
  });
}

// True if the plan may take over the other one's work.
bool may_become(const GraphPlan& a, const GraphPlan& b) {
  return std::ranges::equal(a.steps, b.steps, [](const GraphStep& left, const GraphStep& right) {
    if (!may_become(left, right.work) || left.after != right.after) return false;
    const auto* const child = std::get_if<ChildGraph>(&left.work);
    return !child || may_become(*child->plan, *std::get<ChildGraph>(right.work).plan);
  });
}

// A plan of the same form with the other one's work.
GraphPlan with_work_of(GraphPlan plan, const GraphPlan& other) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    Work work = other.steps[i].work;
    if (auto* const child = std::get_if<ChildGraph>(&work)) {
      const GraphPlan& own = *std::get<ChildGraph>(plan.steps[i].work).plan;
      child->plan = std::make_shared<const GraphPlan>(with_work_of(own, *child->plan));
    }
    plan.steps[i].work = std::move(work);
  }
  return plan;
}

}  // namespace

GraphStep* step_of(GraphPlan& plan, const CUgraphNode_st* node) {
  for (GraphStep& step : plan.steps) {
    if (step.node == node) return &step;
    auto* const child = std::get_if<ChildGraph>(&step.work);
    if (!child || !has_step(*child->plan, node)) continue;
    const auto own = std::make_shared<GraphPlan>(*child->plan);
    child->plan = own;
    return step_of(*own, node);
  }
  return nullptr;
}

bool take_over(GraphPlan& plan, const GraphPlan& other) {
  if (!may_become(plan, other)) return false;
  plan = with_work_of(std::move(plan), other);
  return true;
}

CUgraph_st& known(Process& process, CUgraph graph) {
  require(process.graphs.knows(graph), CUDA_ERROR_INVALID_HANDLE);
  return *graph;
}

CUgraphExec_st& known(Process& process, CUgraphExec executable) {
  require(process.executables.knows(executable), CUDA_ERROR_INVALID_HANDLE);
  return *executable;
}

CUgraphNode_st& known(Process& process, CUgraphNode node) {
  bool found = false;
  process.graphs.for_each([&](const CUgraph_st& graph) { found = found || graph.has(node); });
  require(found, CUDA_ERROR_INVALID_HANDLE);
  return *node;
}

CUgraph clone(Process& process, const CUgraph_st& graph) {
  CUgraph const copy = process.graphs.make();
  copy->objects = graph.objects;
  std::map<CUgraphNode, CUgraphNode> copies;
  for (const CUgraphNode_st& node : graph.nodes) {
    Work work = node.work;
    if (auto* const child = std::get_if<ChildGraph>(&work)) {
      child->graph = clone(process, *child->graph);
      child->graph->is_part = true;
    }
    CUgraphNode const added = copy->add(std::move(work), {});
    added->cloned_from = &node;
    copies[const_cast<CUgraphNode>(&node)] = added;
  }
  for (const CUgraphNode_st& node : graph.nodes) {
    std::vector<CUgraphNode>& after = copies.at(const_cast<CUgraphNode>(&node))->after;
    for (CUgraphNode const earlier : node.after) after.push_back(copies.at(earlier));
  }
  return copy;
}

ChildGraph child_graph(Process& process, const GraphPlan& plan) {
  CUgraph const graph = process.graphs.make();
  graph->is_part = true;
  std::vector<CUgraphNode> nodes;
  for (const GraphStep& step : plan.steps) {
    std::vector<CUgraphNode> after;
    for (const size_t earlier : step.after) after.push_back(nodes[earlier]);
    Work work = step.work;
    if (auto* const inner = std::get_if<ChildGraph>(&work)) *inner = child_graph(process, *inner->plan);
    nodes.push_back(graph->add(std::move(work), std::move(after)));
  }
  return {std::make_shared<const GraphPlan>(plan), graph};
}

void destroy_graph(Process& process, CUgraph graph) {
  for (const CUgraphNode_st& node : graph->nodes) {
    if (const auto* const child = std::get_if<ChildGraph>(&node.work)) destroy_graph(process, child->graph);
  }
  process.graphs.destroy(graph);
}

}  // namespace klap::emulator::driver
