#include "runtime/driver.h"

#include <atomic>
#include <memory>

namespace klap::runtime {

namespace {
std::atomic<const Driver*> published{nullptr};
}

Driver resolve_driver(const SymbolLookup& lookup) {
  Driver table;
#define X(member, symbol, type)                          \
  table.member = reinterpret_cast<type>(lookup(symbol)); \
  if (!table.member && !table.missing) table.missing = symbol;
  KLAP_DRIVER_FUNCTIONS(X)
#undef X
#define X(member, symbol, type) table.member = reinterpret_cast<type>(lookup(symbol));
  KLAP_OPTIONAL_DRIVER_FUNCTIONS(X)
#undef X
  return table;
}

const Driver* driver() noexcept { return published.load(std::memory_order_acquire); }

const Driver* publish_driver(const Driver& table) {
  // This uses compare and exchange instead of call_once. The caller may hold the dynamic linker's lock. A
  // thread that waits for a once-flag while its holder waits for that lock would never return.
  auto made = std::make_unique<const Driver>(table);
  const Driver* expected = nullptr;
  if (published.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel))
    return made.release();
  return expected;
}

const char* error_name(CUresult code) {
  const char* name = nullptr;
  const Driver* const table = driver();
  if (table && table->get_error_name && table->get_error_name(code, &name) == CUDA_SUCCESS && name)
    return name;
  return "unknown CUDA error";
}

bool can_rewrite_graphs(const Driver& cuda) {
  return cuda.stream_create && cuda.stream_wait_event && cuda.graph_clone && cuda.graph_destroy &&
         cuda.graph_get_nodes && cuda.graph_find_in_clone && cuda.graph_node_get_type &&
         cuda.graph_get_dependencies && cuda.graph_get_dependents && cuda.graph_add_dependencies &&
         cuda.graph_remove_dependencies && cuda.graph_child_get_graph && cuda.graph_kernel_get_params &&
         cuda.graph_kernel_set_params && cuda.graph_add_kernel && cuda.graph_add_memset &&
         cuda.exec_set_kernel_v2 && cuda.exec_set_memset && cuda.exec_set_enabled &&
         cuda.graph_add_event_record;
}

}  // namespace klap::runtime
