// Finds the dlsym behind this library's own. It runs before anything else in the process: allocators and
// sanitizers look functions up while they begin. So this file calls nothing that they replace, and is built
// without sanitizers.
#include <dlfcn.h>
#include <gnu/libc-version.h>

#include "shim/libcuda.h"

// The function that dlsym.S jumps to. It is null until the first look-up.
extern "C" __attribute__((visibility("hidden"))) void* klap_shim_next_dlsym;
void* klap_shim_next_dlsym = nullptr;

namespace klap::shim {

namespace {

// Reads the digits that begin there, and moves behind them.
long number_at(const char*& text) {
  long number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) number = 10 * number + (*text - '0');
  return number;
}

// The symbol version under which this C library exports dlsym. It has to be right at the first try: a failing
// look-up allocates memory, and the program's allocator may be what is calling dlsym.
const char* dlsym_version() {
  const char* version = gnu_get_libc_version();
  const long major_number = number_at(version);
  const long minor_number = *version == '.' ? number_at(++version) : 0;
  if (major_number > 2 || (major_number == 2 && minor_number >= 34)) return "GLIBC_2.34";
#if defined(__x86_64__)
  return "GLIBC_2.2.5";
#else
  return "GLIBC_2.17";
#endif
}

void* dlsym_without_answers(void*, const char*) { return nullptr; }

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

}  // namespace klap::shim

extern "C" __attribute__((visibility("hidden"))) void* klap_shim_resolve_dlsym() {
  return reinterpret_cast<void*>(klap::shim::next_dlsym());
}
