#include "shim/hooks.h"

#include <algorithm>
#include <cstring>

namespace klap::shim {

namespace {

const Hook table[] = {
#define X(symbol, name, since, per_thread) \
  {#symbol, name, since, per_thread, reinterpret_cast<void*>(&(symbol))},
    KLAP_HOOKS(X)
#undef X
};

// Functions whose first version, with 32-bit addresses, the shim does not stand in front of. A request for a
// CUDA version that is older than the hook gets the driver's function.
constexpr const char* not_hooked_at_first[] = {"cuArray3DCreate", "cuArrayCreate", "cuMemAlloc",
                                               "cuMemAllocPitch", "cuMemFree"};

}  // namespace

const Hook* hook_for_symbol(const char* symbol) noexcept {
  for (const Hook& hook : table) {
    if (std::strcmp(hook.symbol, symbol) == 0) return &hook;
  }
  return nullptr;
}

const Hook* hook_for_request(const char* name, int version, cuuint64_t flags) noexcept {
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const Hook* best = nullptr;
  for (const Hook& hook : table) {
    if (std::strcmp(hook.name, name) != 0 || (hook.per_thread && !per_thread)) continue;
    // The oldest hook answers requests that are older still: the driver found a function for them, and it can
    // be no newer than that. Among the others, the newest one up to the requested version answers; rows of
    // one name stand in that order.
    if (!best || hook.since <= version) best = &hook;
  }
  const auto is_asked_for = [name](const char* other) { return std::strcmp(other, name) == 0; };
  if (best && version < best->since && std::ranges::any_of(not_hooked_at_first, is_asked_for)) return nullptr;
  // Names that carry their version, which cuGetProcAddress takes as they are.
  return best ? best : hook_for_symbol(name);
}

}  // namespace klap::shim
