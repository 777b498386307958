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

}  // namespace klap::runtime
