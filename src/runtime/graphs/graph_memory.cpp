#include "runtime/graphs/graph_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "runtime/driver.h"
#include "runtime/graphs/driver_call.h"

namespace klap::runtime {

namespace {

using Memories = std::vector<std::shared_ptr<GraphMemory>>;

std::mutex memories_mutex;  // nobody calls the driver meanwhile
Memories& memories() {
  static auto& all = *new Memories;
  return all;
}

// The queues are given back or destroyed when the lock is released: that calls the driver.
template <class IsWanted>
Memories take_memories(const IsWanted& is_wanted) {
  Memories taken;
  const std::lock_guard lock(memories_mutex);
  std::erase_if(memories(), [&](const std::shared_ptr<GraphMemory>& memory) {
    if (!is_wanted(*memory)) return false;
    taken.push_back(memory);
    return true;
  });
  return taken;
}

}  // namespace

void keep_in_use(CUgraph graph, const std::shared_ptr<GraphMemory>& memory) {
  auto held = std::make_unique<std::shared_ptr<GraphMemory>>(memory);
  const CUhostFn end = [](void* data) {
    const std::unique_ptr<std::shared_ptr<GraphMemory>> ended(
        static_cast<std::shared_ptr<GraphMemory>*>(data));
    (*ended)->objects.fetch_sub(1, std::memory_order_release);
  };
  CUuserObject object = nullptr;
  require(driver()->user_object_create(&object, held.get(), end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
          "cuUserObjectCreate");
  memory->objects.fetch_add(1, std::memory_order_relaxed);
  (void)held.release();
  require(driver()->graph_retain_user_object(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE),
          "cuGraphRetainUserObject");
}

void give_back_when_unused(std::shared_ptr<GraphMemory> memory) {
  const std::lock_guard lock(memories_mutex);
  memories().push_back(std::move(memory));
}

void release_unused(uint64_t context_id) {
  const Memories unused = take_memories([context_id](const GraphMemory& memory) {
    return memory.context_id == context_id && memory.is_unused();
  });
  for (const auto& memory : unused) {
    for (const auto& queues : memory->queues) {
      const std::lock_guard lock(queues->mutex);
      queues->release_in_stream();
    }
  }
}

void forget_graphs(uint64_t context_id) {
  (void)take_memories([context_id](const GraphMemory& memory) { return memory.context_id == context_id; });
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
    return memory->context_id == context_id && memory->is_ending.load(std::memory_order_relaxed);
  });
}

}  // namespace klap::runtime
