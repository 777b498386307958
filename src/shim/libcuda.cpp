#include "shim/libcuda.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <cstdlib>
#include <cstring>

#include "support/boundary.h"

// Where dlsym.S jumps to; null until the first look-up.
extern "C" __attribute__((visibility("hidden"))) void* klap_shim_next_dlsym;
void* klap_shim_next_dlsym = nullptr;

namespace klap::shim {

namespace {

// The symbol version under which this C library exports dlsym. It has to be right at the first try: a failing
// look-up allocates memory, and the program's allocator may be what is calling dlsym.
const char* dlsym_version() {
  const char* const version = gnu_get_libc_version();
  char* minor = nullptr;
  const long major_number = std::strtol(version, &minor, 10);
  const long minor_number = *minor == '.' ? std::strtol(minor + 1, nullptr, 10) : 0;
  if (major_number > 2 || (major_number == 2 && minor_number >= 34)) return "GLIBC_2.34";
#if defined(__x86_64__)
  return "GLIBC_2.2.5";
#else
  return "GLIBC_2.17";
#endif
}

void* dlsym_without_answers(void*, const char*) { return nullptr; }

// Publishes the functions found through `handle`, whose object is mapped at `base`.
const runtime::Driver* publish(void* handle, const void* base) {
  runtime::Driver table =
      runtime::resolve_driver([handle](const char* symbol) { return next_dlsym()(handle, symbol); });
  table.base = base;
  return runtime::publish_driver(table);
}

}  // namespace

Dlsym next_dlsym() noexcept {
  void* found = __atomic_load_n(&klap_shim_next_dlsym, __ATOMIC_RELAXED);
  if (!found) {
    found = dlvsym(RTLD_NEXT, "dlsym", dlsym_version());
    if (!found) found = reinterpret_cast<void*>(&dlsym_without_answers);
    __atomic_store_n(&klap_shim_next_dlsym, found, __ATOMIC_RELAXED);
  }
  return reinterpret_cast<Dlsym>(found);
}

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

extern "C" __attribute__((visibility("hidden"))) void* klap_shim_resolve_dlsym() {
  return reinterpret_cast<void*>(klap::shim::next_dlsym());
}
