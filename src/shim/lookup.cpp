// Programs get at driver functions by dlsym and cuGetProcAddress.
//
// Both answer for real first. Only a successful answer is replaced, only one that lies in libcuda, and only
// for names in the table. cuGetExportTable hands out whole tables of internal functions and is not touched at
// all.
#include <dlfcn.h>

#include "runtime/process.h"
#include "shim/guard.h"
#include "shim/hooks.h"
#include "shim/libcuda.h"
#include "shim/nvjitlink.h"
#include "shim/nvrtc.h"
#include "shim/operations.h"

// Stands for "answer null" in dlsym.S, where null means "go on".
extern "C" __attribute__((visibility("hidden"))) char klap_shim_absent;
char klap_shim_absent = 0;

namespace klap::shim {
namespace {

// The answer of klap_shim_lookup() for a hook.
void* look_up(const Hook& hook, void* handle, const char* symbol) {
  void* const found = next_dlsym()(handle, symbol);
  if (!found) return nullptr;
  if (found == hook.function) {
    // A search of the global scope met the exported hook. Without a libcuda the symbol would not exist;
    // looking for it behind the shim leaves the error message that the program may ask for.
    if (libcuda()) return nullptr;
    return next_dlsym()(RTLD_NEXT, symbol) ? nullptr : &klap_shim_absent;
  }
  return in_libcuda(found) && runtime::active() ? hook.function : nullptr;
}

// Null for "go on", too.
void* look_up_operation(void* handle, const char* symbol) {
  void* const found = next_dlsym()(handle, symbol);
  return found && in_libcuda(found) && runtime::active() ? with_turns(symbol, found) : nullptr;
}

}  // namespace
}  // namespace klap::shim

// Called by dlsym.S for names that begin with "cu" or "nv".
extern "C" __attribute__((visibility("hidden"))) void* klap_shim_lookup(void* handle, const char* symbol) {
  using namespace klap;
  // RTLD_NEXT never means the shim: it comes before every library that can ask. If the program itself asks,
  // the C library finds the exported hook without help.
  if (handle == RTLD_NEXT || is_inside()) return nullptr;
  void* answer = nullptr;
  if (*symbol == 'n') {
    contain("dlsym", "runs unchanged", [&] {
      answer = shim::look_up_nvjitlink(handle, symbol);
      if (answer == nullptr) answer = shim::look_up_nvrtc(handle, symbol);
    });
    return answer;
  }
  const shim::Hook* const hook = shim::hook_for_symbol(symbol);
  if (!hook && !shim::takes_turns(symbol)) return nullptr;
  contain("dlsym", "runs unchanged", [&] {
    answer = hook ? shim::look_up(*hook, handle, symbol) : shim::look_up_operation(handle, symbol);
  });
  return answer;
}

namespace klap::shim {
namespace {

void replace(const char* symbol, void** function, int version, cuuint64_t flags) {
  if (!symbol || !function || !*function) return;
  // CUDA's runtime asks for hundreds of names at its start. Most are neither.
  const Hook* const hook = hook_for_request(symbol, version, flags);
  if ((!hook && !takes_turns(symbol)) || !in_libcuda(*function)) return;
  *function = hook ? hook->function : with_turns(symbol, *function, version, flags);
}

}  // namespace
}  // namespace klap::shim

using namespace klap;

extern "C" KLAP_EXPORT CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version,
                                                         cuuint64_t flags) {
  return shim::after<&runtime::Driver::get_proc_address>(
      "cuGetProcAddress", [&] { shim::replace(symbol, function, version, flags); }, symbol, function, version,
      flags);
}

extern "C" KLAP_EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                                            cuuint64_t flags,
                                                            CUdriverProcAddressQueryResult* status) {
  return shim::after<&runtime::Driver::get_proc_address_v2>(
      "cuGetProcAddress_v2", [&] { shim::replace(symbol, function, version, flags); }, symbol, function,
      version, flags, status);
}
