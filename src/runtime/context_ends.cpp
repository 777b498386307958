#include "runtime/context_ends.h"

#include <mutex>

#include "runtime/driver.h"
#include "runtime/forms/queue_look.h"
#include "runtime/graphs/executables.h"
#include "runtime/parents/later_images.h"
#include "runtime/parents/registry.h"
#include "runtime/queues/launch_context.h"
#include "runtime/sync_depth.h"

namespace klap::runtime {

std::optional<uint64_t> id_of_context(CUcontext context) {
  unsigned long long id = 0;
  if (context == nullptr || driver()->ctx_get_id(context, &id) != CUDA_SUCCESS) return std::nullopt;
  return id;
}

// To retain a context that is active neither makes one nor keeps it, since it is released again at once.
std::optional<uint64_t> id_of_primary_context(CUdevice device) {
  const Driver& cuda = *driver();
  unsigned flags = 0;
  int is_active = 0;
  CUcontext context = nullptr;
  if (cuda.primary_ctx_get_state(device, &flags, &is_active) != CUDA_SUCCESS || is_active == 0 ||
      cuda.primary_ctx_retain(&context, device) != CUDA_SUCCESS)
    return std::nullopt;
  const std::optional<uint64_t> id = id_of_context(context);
  (void)cuda.primary_ctx_release(device);
  return id;
}

std::optional<uint64_t> green_context_about_to_end(CUgreenCtx green) {
  LaunchContexts& contexts = LaunchContexts::instance();
  for (const auto& context : contexts.remove_green(green)) {
    const std::lock_guard lock(context->mutex);
    context->release_in_stream();
  }
  CUcontext usual = nullptr;
  if (driver()->ctx_from_green_ctx == nullptr || driver()->ctx_from_green_ctx(&usual, green) != CUDA_SUCCESS)
    return std::nullopt;
  const std::optional<uint64_t> id = id_of_context(usual);
  if (id) contexts.give_back(*id);
  return id;
}

void context_ended(uint64_t id) {
  LaunchContexts::instance().end_context(id);
  graphs_ended(id);
  if (LaterImages::any()) LaterImages::instance().end_context(id);
  Registry::instance().end_context(id);
  end_looks(id);
  forget_sync_depth(id);
}

void primary_context_released(CUdevice device, uint64_t id) {
  if (id_of_primary_context(device) != std::optional(id)) context_ended(id);
}

}  // namespace klap::runtime
