#include "shim/libcuda.h"

#include <dlfcn.h>

#include <cstring>

#include "support/boundary.h"

namespace klap::shim {

namespace {

// Publishes the functions found through `handle`, whose object is mapped at `base`.
const runtime::Driver* publish(void* handle, const void* base) {
  runtime::Driver table =
      runtime::resolve_driver([handle](const char* symbol) { return next_dlsym()(handle, symbol); });
  table.base = base;
  return runtime::publish_driver(table);
}

}  // namespace

const runtime::Driver* libcuda() noexcept {
  if (const runtime::Driver* const known = runtime::driver()) return known;
  const runtime::Driver* found = nullptr;
  try_or_report("libcuda", "runs unchanged", [&] {
    // A thread that calls a hook has a libcuda loaded; RTLD_NOLOAD only asks for it. The handle is never
    // closed, which keeps the functions in place however often the program closes its own.
    void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) handle = RTLD_NEXT;
    void* const init = next_dlsym()(handle, "cuInit");
    Dl_info info{};
    if (init && dladdr(init, &info) != 0) found = publish(handle, info.dli_fbase);
  });
  return found;
}

bool in_libcuda(const void* symbol) noexcept {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || !info.dli_fname) return false;
  if (const runtime::Driver* const known = runtime::driver()) return known->base == info.dli_fbase;
  if (!std::strstr(info.dli_fname, "libcuda.so")) return false;
  void* const handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return false;
  bool is_in = false;
  try_or_report("libcuda", "runs unchanged",
                [&] { is_in = publish(handle, info.dli_fbase)->base == info.dli_fbase; });
  return is_in;
}

}  // namespace klap::shim
