#include "runtime/graphs/graph_memory.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "runtime/driver.h"
#include "runtime/graphs/driver_call.h"
#include "runtime/graphs/graph_copy.h"

namespace klap::runtime {

namespace {

using Memories = std::vector<std::shared_ptr<GraphMemory>>;

std::mutex memories_mutex;  // nobody calls the driver meanwhile
Memories& memories() {
  static auto& all = *new Memories;
  return all;
}

// True if no launch of the executable graph is left. Never if the driver does not say so.
bool is_done(const std::shared_ptr<GraphMemory>& memory) {
  return memory->done == nullptr || driver()->event_query(memory->done) == CUDA_SUCCESS;
}

// Removes those that are wanted. They end when the lock is released: that calls the driver.
template <class IsWanted>
Memories take_memories(const IsWanted& is_wanted) {
  Memories taken;
  const std::lock_guard lock(memories_mutex);
  std::erase_if(memories(), [&](const std::shared_ptr<GraphMemory>& memory) {
    if (!is_wanted(memory)) return false;
    taken.push_back(memory);
    return true;
  });
  return taken;
}

Memories memories_of(uint64_t context_id) {
  Memories found;
  const std::lock_guard lock(memories_mutex);
  std::ranges::copy_if(memories(), std::back_inserter(found),
                       [&](const auto& memory) { return memory->context_id == context_id; });
  return found;
}

// Nodes of the graph that no other one stands behind; all nodes if the driver does not tell.
std::vector<CUgraphNode> last_nodes(CUgraph graph) {
  const std::vector<CUgraphNode> nodes = nodes_of(graph);
  std::vector<CUgraphNode> last;
  for (CUgraphNode const node : nodes) {
    size_t behind = 0;
    if (driver()->graph_get_dependents(node, nullptr, &behind) != CUDA_SUCCESS) return nodes;
    if (behind == 0) last.push_back(node);
  }
  return last;
}

}  // namespace

GraphMemory::~GraphMemory() {
  if (done) driver()->event_destroy(done);
}

std::shared_ptr<GraphMemory> new_graph_memory(uint64_t context_id) {
  auto memory = std::make_shared<GraphMemory>();
  memory->context_id = context_id;
  memory->done = new_event();
  if (memory->done == nullptr) throw Error(ErrorCode::Driver, "there is no event for the end of a graph");
  return memory;
}

CUgraphNode record_at_end(CUgraph graph, const GraphMemory& memory) {
  const std::vector<CUgraphNode> last = last_nodes(graph);
  CUgraphNode added = nullptr;
  require(driver()->graph_add_event_record(&added, graph, last.data(), last.size(), memory.done),
          "cuGraphAddEventRecordNode");
  return added;
}

void give_back_when_unused(std::shared_ptr<GraphMemory> memory) {
  const std::lock_guard lock(memories_mutex);
  memories().push_back(std::move(memory));
}

void release_unused(uint64_t context_id) {
  Memories done = memories_of(context_id);
  std::erase_if(done, [](const auto& memory) { return !is_done(memory); });
  // Another thread may have released some meanwhile.
  done = take_memories([&](const auto& memory) { return std::ranges::find(done, memory) != done.end(); });
  for (const auto& memory : done) {
    for (const auto& queues : memory->queues) {
      const std::lock_guard lock(queues->mutex);
      queues->release_in_stream();
      queues->give_back_reports();
    }
  }
}

void forget_graphs(uint64_t context_id) {
  const Memories forgotten =
      take_memories([context_id](const auto& memory) { return memory->context_id == context_id; });
  for (const auto& memory : forgotten) memory->forget_event();
}

void release_ended_graphs() {
  {
    const std::lock_guard lock(memories_mutex);
    if (memories().empty()) return;
  }
  unsigned long long context_id = 0;
  if (driver()->ctx_get_id(nullptr, &context_id) == CUDA_SUCCESS) release_unused(context_id);
}

bool graphs_are_ending(uint64_t context_id) {
  const std::lock_guard lock(memories_mutex);
  return std::ranges::any_of(memories(), [&](const std::shared_ptr<GraphMemory>& memory) {
    return memory->context_id == context_id;
  });
}

}  // namespace klap::runtime
