// How programs get at driver functions: dlsym and cuGetProcAddress.
//
// Both answer for real first. Only a successful answer is replaced, only one that lies in libcuda, and only
// for names in the table; cuGetExportTable, which hands out whole tables of internal functions, is not
// touched at all.
#include <dlfcn.h>

#include "runtime/process.h"
#include "shim/guard.h"
#include "shim/hooks.h"
#include "shim/libcuda.h"

// Stands for "answer null" in dlsym.S, where null means "go on".
extern "C" __attribute__((visibility("hidden"))) char klap_shim_absent;
char klap_shim_absent = 0;

// Called by dlsym.S for names that begin with "cu".
extern "C" __attribute__((visibility("hidden"))) void* klap_shim_lookup(void* handle, const char* symbol) {
  using namespace klap;
  // RTLD_NEXT never means the shim: it comes before every library that can ask, and where the program itself
  // asks, the C library finds the exported hook without help.
  const shim::Hook* const hook = handle == RTLD_NEXT ? nullptr : shim::hook_for_symbol(symbol);
  if (!hook || shim::is_inside()) return nullptr;
  const shim::Inside inside;
  void* const found = shim::next_dlsym()(handle, symbol);
  if (!found) return nullptr;
  if (found == hook->function) {
    // A search of the global scope met the exported hook. Without a libcuda the symbol would not exist;
    // looking for it behind the shim leaves the error message that the program may ask for.
    if (shim::libcuda()) return nullptr;
    return shim::next_dlsym()(RTLD_NEXT, symbol) ? nullptr : &klap_shim_absent;
  }
  return shim::in_libcuda(found) && runtime::active() ? hook->function : nullptr;
}

namespace klap::shim {
namespace {

void replace(const char* symbol, void** function, int version, cuuint64_t flags) {
  if (!symbol || !function || !*function) return;
  const Hook* const hook = hook_for_request(symbol, version, flags);
  if (hook && in_libcuda(*function)) *function = hook->function;
}

}  // namespace
}  // namespace klap::shim

using namespace klap;

extern "C" KLAP_EXPORT CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version,
                                                         cuuint64_t flags) {
  const CUresult result = shim::forward<&runtime::Driver::get_proc_address>(symbol, function, version, flags);
  if (result == CUDA_SUCCESS) {
    shim::observe("cuGetProcAddress", [&] { shim::replace(symbol, function, version, flags); });
  }
  return result;
}

extern "C" KLAP_EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                                            cuuint64_t flags,
                                                            CUdriverProcAddressQueryResult* status) {
  const CUresult result =
      shim::forward<&runtime::Driver::get_proc_address_v2>(symbol, function, version, flags, status);
  if (result == CUDA_SUCCESS) {
    shim::observe("cuGetProcAddress_v2", [&] { shim::replace(symbol, function, version, flags); });
  }
  return result;
}
