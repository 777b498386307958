// Forwarding calls that take device memory, which klap_jit's queues must not keep from the program.
#pragma once

#include <cuda.h>

#include <optional>

#include "runtime/launch.h"
#include "shim/guard.h"

namespace klap::shim {

// Calls the driver's own function, and where the device has no memory for it, once more without the queues'.
template <auto Member, class... Args>
CUresult forward_with_room(const char* entry_point, Args... args) {
  const CUresult result = forward<Member>(args...);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  const auto is_given_back = attempt(entry_point, []() -> std::optional<CUresult> {
    if (!runtime::give_back_queue_memory()) return std::nullopt;
    return CUDA_SUCCESS;
  });
  return is_given_back ? forward<Member>(args...) : result;
}

}  // namespace klap::shim
