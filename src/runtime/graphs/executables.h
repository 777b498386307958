// Executable graphs of which some nodes are rewritten parents.
//
// A graph is rewritten when it is instantiated, whatever way its nodes came into it: captured, added, cloned,
// within other graphs, or with changed parameters. The driver then instantiates a copy (graph_copy.h) in
// which parents are replaced (replaced_node.h). The program's graph stays as it is. What it later does with
// the executable graph names nodes of its own graph, and goes to their copies.
//
// All functions here are called with the program's arguments, in place of the driver's. A result that is
// empty, or a node that comes back as it is, means that the driver's function does all.
#pragma once

#include <cuda.h>

#include <functional>
#include <optional>
#include <span>

namespace klap::runtime {

// True while there is no rewritten executable graph: one relaxed load.
bool no_graph_rewritten() noexcept;

// `instantiate` has the driver instantiate the graph that it is given, and fills in `executable`.
std::optional<CUresult> instantiate_graph(CUgraph graph, unsigned long long flags,
                                          const CUgraphExec* executable,
                                          const std::function<CUresult(CUgraph)>& instantiate);

// `update` has the driver update the executable graph from the graph that it is given. `named` are the places
// where it names nodes that it could not update.
std::optional<CUresult> update_executable(CUgraphExec executable, CUgraph graph,
                                          std::span<CUgraphNode* const> named,
                                          const std::function<CUresult(CUgraph)>& update);

// The node that a call about the executable graph is to name.
CUgraphNode node_in_executable(CUgraphExec executable, CUgraphNode node);

// These set parameters of a node in an executable graph.
std::optional<CUresult> set_kernel_params(CUgraphExec executable, CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS_v2* params);
std::optional<CUresult> set_kernel_params(CUgraphExec executable, CUgraphNode node,
                                          const CUDA_KERNEL_NODE_PARAMS_v1* params);
std::optional<CUresult> set_child_graph(CUgraphExec executable, CUgraphNode node, CUgraph child);
std::optional<CUresult> set_node_params(CUgraphExec executable, CUgraphNode node,
                                        const CUgraphNodeParams* params);

std::optional<CUresult> set_enabled(CUgraphExec executable, CUgraphNode node, unsigned enabled);

// Called before the executable graph is launched into `stream`. A result is an error of the driver's, for
// which it cannot be launched.
std::optional<CUresult> before_graph_launch(CUgraphExec executable, CUstream stream);
// Called when it has been launched.
void graph_launched(CUgraphExec executable);
// Called before it is destroyed, which may be while it runs.
void executable_about_to_end(CUgraphExec executable);

// Forgets what has been made for graphs in a context that has ended.
void graphs_ended(uint64_t context_id);

}  // namespace klap::runtime
