#include "shim/hooks.h"

#include <cstring>

namespace klap::shim {

namespace {

const Hook table[] = {
#define X(symbol, name, since, per_thread) \
  {#symbol, name, since, per_thread, reinterpret_cast<void*>(&(symbol))},
    KLAP_HOOKS(X)
#undef X
};

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
    // The oldest answers requests that are older still: the driver found something for them, and it can be no
    // newer than that. Of the rest the newest that was asked for; rows of one name stand in that order.
    if (!best || hook.since <= version) best = &hook;
  }
  // Names that carry their version, which cuGetProcAddress takes as they are.
  return best ? best : hook_for_symbol(name);
}

}  // namespace klap::shim
