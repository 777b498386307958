// How long the queues of executable graphs are in use.
//
// An executable graph may be destroyed while it runs, and the driver alone knows when its last launch is
// done. So each one records an event as its last work. User objects would say it, too, but with driver 580
// each launch of a graph that has one takes 2 us more, and each such graph leaves 208 bytes behind in the
// process.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// The queues of an executable graph.
struct GraphMemory {
  uint64_t context_id = 0;
  std::vector<std::shared_ptr<LaunchContext>> queues;
  CUevent done = nullptr;  // recorded at the end of each launch
  ~GraphMemory();
  // The context has ended, and its events with it.
  void forget_event() { done = nullptr; }
};

// For a graph that has no queues yet, in the current context, which is that one.
std::shared_ptr<GraphMemory> new_graph_memory(uint64_t context_id);

// Has the graph's launches end with the event. Graphs by which an executable graph is updated must do so,
// too, because they need the same nodes. Returns the node that records it.
CUgraphNode record_at_end(CUgraph graph, const GraphMemory& memory);

// The executable graph is about to be destroyed. Its queues go back to the context's other streams when its
// last launch is done.
void give_back_when_unused(std::shared_ptr<GraphMemory> memory);
// Gives back those of graphs that have ended in that context, which is current.
void release_unused(uint64_t context_id);
// Does so in the current context.
void release_ended_graphs();
// Forgets those of a context that has ended, and with it their memory.
void forget_graphs(uint64_t context_id);
// True if there are graphs in that context which end, and whose queues come back then.
bool graphs_are_ending(uint64_t context_id);

}  // namespace klap::runtime
