#include "runtime/graphs/graph_memory.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "runtime/driver.h"
#include "runtime/graphs/driver_call.h"

namespace klap::runtime {

namespace {

std::mutex memories_mutex;  // nobody calls the driver meanwhile
std::vector<std::shared_ptr<GraphMemory>>& memories() {
  static auto& all = *new std::vector<std::shared_ptr<GraphMemory>>;
  return all;
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
  std::vector<std::shared_ptr<GraphMemory>> unused;
  {
    const std::lock_guard lock(memories_mutex);
    std::erase_if(memories(), [&](const std::shared_ptr<GraphMemory>& memory) {
      const bool is_unused = memory->context_id == context_id && memory->is_unused();
      if (is_unused) unused.push_back(memory);
      return is_unused;
    });
  }
  for (const auto& memory : unused) {
    for (const auto& queues : memory->queues) {
      const std::lock_guard lock(queues->mutex);
      queues->release_in_stream();
    }
  }
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
