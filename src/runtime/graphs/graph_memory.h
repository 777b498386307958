// How long the queues of executable graphs are in use.
//
// An executable graph may be destroyed while it runs, and the driver alone knows when its last launch is
// done. So copies of graphs retain objects of ours, and so does what is instantiated from them. The driver
// ends an object when nothing holds it any more.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/queues/launch_context.h"

namespace klap::runtime {

// The queues of an executable graph. The driver says when no launch of it can use them any more: it ends
// objects of ours then, by a function that must not call the driver.
struct GraphMemory {
  uint64_t context_id = 0;
  std::vector<std::shared_ptr<LaunchContext>> queues;
  std::atomic<int> objects{0};         // that have not ended
  std::atomic<bool> is_ending{false};  // the program has destroyed the executable graph
  [[nodiscard]] bool is_unused() const { return objects.load(std::memory_order_acquire) == 0; }
};

// The graph, and what is instantiated from it, keep the memory in use. An executable graph that is updated
// from another one, or a graph within it, has the objects of that one in place of its own. So each copy gets
// one.
void keep_in_use(CUgraph graph, const std::shared_ptr<GraphMemory>& memory);

// From now on, its queues go back to the context's other streams when it is unused.
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
