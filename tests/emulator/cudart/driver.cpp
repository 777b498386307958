#include "driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <memory>

namespace klap::cudart {
namespace {

struct Tables {
  std::unique_ptr<const Driver> legacy, per_thread;
};

void* find(PFN_cuGetProcAddress_v12000 get, const char* name, int version, cuuint64_t flags) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  return get(name, &found, version, flags, &status) == CUDA_SUCCESS ? found : nullptr;
}

std::unique_ptr<const Driver> resolve(PFN_cuGetProcAddress_v12000 get, cuuint64_t flags) {
  return std::make_unique<const Driver>(Driver{
#define X(member, name, version, type) Function<type>(name, find(get, name, version, flags)),
      KLAP_CUDART_DRIVER_FUNCTIONS(X)
#undef X
  });
}

Tables open_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return {};
  auto* const get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) return {};
  return {resolve(get, CU_GET_PROC_ADDRESS_LEGACY_STREAM),
          resolve(get, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)};
}

}  // namespace

thread_local bool PerThreadDefault::on = false;

void report_missing(const char* name) {
  std::fprintf(stderr, "CUDA runtime stand-in: libcuda.so.1 has no %s\n", name);
}

const Driver* driver() {
  // Never freed: programs call the runtime from exit handlers too.
  static const Tables& tables = *new Tables(open_driver());
  return PerThreadDefault::on ? tables.per_thread.get() : tables.legacy.get();
}

}  // namespace klap::cudart
