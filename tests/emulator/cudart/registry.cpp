// What nvcc's start-up code calls; see registry.h.
#include "registry.h"

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "call.h"

namespace klap::cudart {
namespace {

struct Library {
  const void* wrapper = nullptr;
  CUlibrary handle = nullptr;
  // Host pointers that receive the address of a managed variable, with its name.
  std::vector<std::pair<void**, std::string>> managed;
};

struct Named {
  Library* library = nullptr;
  std::string name;
  CUkernel kernel = nullptr;  // of functions, once known
};

struct Registry {
  std::recursive_mutex mutex;
  std::deque<Library> libraries;
  std::unordered_map<const void*, Named> functions, variables;
};

// Never freed: it is filled before main() and used until the last exit handler.
Registry& registry() {
  static Registry& the_registry = *new Registry;
  return the_registry;
}

cudaError_t load(Library& library) {
  if (library.handle != nullptr) return cudaSuccess;
  const cudaError_t error = enter_context();
  if (error != cudaSuccess) return error;
  return runtime_error(driver()->library_load_data(&library.handle, library.wrapper, nullptr, nullptr, 0,
                                                   nullptr, nullptr, 0));
}

void add(std::unordered_map<const void*, Named>& names, void** library, const void* host, const char* name) {
  const std::lock_guard lock(registry().mutex);
  // The first one stays: a template's kernel may be in several libraries.
  names.try_emplace(host, Named{reinterpret_cast<Library*>(library), name});
}

}  // namespace

cudaError_t find_kernel(const void* entry, CUkernel& kernel) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(entry);
  if (found == all.functions.end()) return cudaErrorInvalidDeviceFunction;
  Named& function = found->second;
  if (function.kernel == nullptr) {
    const cudaError_t error = load(*function.library);
    if (error != cudaSuccess) return error;
    const CUresult result =
        driver()->library_get_kernel(&function.kernel, function.library->handle, function.name.c_str());
    if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
    if (result != CUDA_SUCCESS) return runtime_error(result);
  }
  kernel = function.kernel;
  return cudaSuccess;
}

cudaError_t find_variable(const void* symbol, DeviceVariable& variable) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.variables.find(symbol);
  if (found == all.variables.end()) return cudaErrorInvalidSymbol;
  const cudaError_t error = load(*found->second.library);
  if (error != cudaSuccess) return error;
  const CUresult result = driver()->library_get_global(
      &variable.address, &variable.bytes, found->second.library->handle, found->second.name.c_str());
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : runtime_error(result);
}

}  // namespace klap::cudart

using namespace klap::cudart;

// Declared by crt/host_runtime.h, which only code made by nvcc can include.
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.libraries.push_back({wrapper, nullptr, {}});
  return reinterpret_cast<void**>(&all.libraries.back());
}

void __cudaRegisterFatBinaryEnd(void** /*library*/) {}

// Called while the process ends: the driver may be gone already, and takes back everything by itself.
void __cudaUnregisterFatBinary(void** /*library*/) {}

void __cudaRegisterFunction(void** library, const char* host, char* /*device*/, const char* name,
                            int /*thread_limit*/, uint3* /*tid*/, uint3* /*bid*/, dim3* /*block*/,
                            dim3* /*grid*/, int* /*warp_size*/) {
  add(registry().functions, library, host, name);
}

void __cudaRegisterVar(void** library, char* host, char* /*device*/, const char* name, int /*is_extern*/,
                       size_t /*bytes*/, int /*constant*/, int /*global*/) {
  add(registry().variables, library, host, name);
}

void __cudaRegisterManagedVar(void** library, void** host, char* /*device*/, const char* name,
                              int /*is_extern*/, size_t /*bytes*/, int /*constant*/, int /*global*/) {
  const std::lock_guard lock(registry().mutex);
  reinterpret_cast<Library*>(library)->managed.emplace_back(host, name);
}

// Called before the program first touches a managed variable.
char __cudaInitModule(void** handle) {
  const std::lock_guard lock(registry().mutex);
  Library& library = *reinterpret_cast<Library*>(handle);
  if (note(load(library)) != cudaSuccess) return 0;
  for (const auto& [host, name] : library.managed) {
    CUdeviceptr address = 0;
    const CUresult result = driver()->library_get_managed(&address, nullptr, library.handle, name.c_str());
    if (note(runtime_error(result)) != cudaSuccess) return 0;
    *host =
        reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): the driver's own convention
  }
  return 1;
}

}  // extern "C"
