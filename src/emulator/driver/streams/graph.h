// Graphs: nodes with their work and their predecessors, and the plan that an instantiated graph runs by.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "emulator/driver/streams/work.h"

// An object lasts until nothing uses it any more. Graphs, and executable graphs made from them, share it.
struct CUuserObject_st {
  explicit CUuserObject_st(CUhostFn end, void* of) : destroy(end), data(of) {}
  ~CUuserObject_st() { destroy(data); }
  CUuserObject_st(const CUuserObject_st&) = delete;
  CUuserObject_st& operator=(const CUuserObject_st&) = delete;
  CUhostFn destroy;
  void* data;
};

struct CUgraphNode_st {
  CUgraph_st* graph = nullptr;
  const CUgraphNode_st* cloned_from = nullptr;
  klap::emulator::driver::Work work;
  std::vector<CUgraphNode> after;  // each once
  // cuGraph...NodeGetParams hands out pointers to these.
  std::vector<void*> parameters;
};

struct CUgraph_st {
  std::list<CUgraphNode_st> nodes;  // in the order in which they were added
  bool is_part = false;             // of a child node: not the program's to destroy
  std::vector<std::shared_ptr<CUuserObject_st>> objects;

  CUgraphNode add(klap::emulator::driver::Work work, std::vector<CUgraphNode> after);
  [[nodiscard]] bool has(const CUgraphNode_st* node) const;
};

namespace klap::emulator::driver {

class Process;

struct GraphStep {
  CUgraphNode node = nullptr;  // that it was made from, for cuGraphExec...SetParams
  Work work;
  std::vector<size_t> after;  // earlier steps
  bool is_enabled = true;
  bool may_launch = false;  // its work was a kernel that makes device launches when it was made
};

// True for a kernel that makes device launches, itself or in functions that it calls by name.
bool makes_device_launches(const Work& work);
// True if a step may do that instead of its own work: one of the same kind. A kernel that makes device
// launches may only take the place of one, as on a driver (580).
bool may_become(const GraphStep& step, const Work& work);

// The steps in an order in which each stands behind its predecessors.
struct GraphPlan {
  std::vector<GraphStep> steps;
};

// Fails for a graph with a cycle.
GraphPlan plan_of(const CUgraph_st& graph);
// The step of a node, also in graphs within the graph; null if there is none. Other plans that share what is
// within keep it as it is.
GraphStep* step_of(GraphPlan& plan, const CUgraphNode_st* node);
// Takes over the work of a plan of the same form, and keeps the nodes. False if it has another form.
bool take_over(GraphPlan& plan, const GraphPlan& other);
CUgraph_st& known(Process& process, CUgraph graph);
CUgraphExec_st& known(Process& process, CUgraphExec executable);
// Searches all graphs.
CUgraphNode_st& known(Process& process, CUgraphNode node);
// A copy of the nodes with the same edges.
CUgraph clone(Process& process, const CUgraph_st& graph);
// The node that does all of a plan, with a graph of its own that shows the plan's nodes.
ChildGraph child_graph(Process& process, const GraphPlan& plan);
void destroy_graph(Process& process, CUgraph graph);

}  // namespace klap::emulator::driver

struct CUgraphExec_st {
  klap::emulator::driver::GraphPlan plan;
  std::vector<std::shared_ptr<CUuserObject_st>> objects;
  CUctx_st* context = nullptr;
  unsigned long long flags = 0;
  // Launches of one executable follow each other: recorded behind the last one.
  klap::emulator::EventId last = 0;
  CUctx_st* last_context = nullptr;
};
