// load_module FILE: loads a module from a file through the CUDA driver, twice, as a program that knows
// nothing of klap_jit. The driver is opened at run time, so that the stand-in can take its place.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>

namespace {

template <typename Function>
Function* driver_function(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

bool make_context() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  auto* const init = driver_function<CUresult(unsigned)>("cuInit");
  auto* const get = driver_function<CUresult(CUdevice*, int)>("cuDeviceGet");
  auto* const retain = driver_function<CUresult(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain");
  auto* const set = driver_function<CUresult(CUcontext)>("cuCtxSetCurrent");
  return init != nullptr && get != nullptr && retain != nullptr && set != nullptr &&
         init(0) == CUDA_SUCCESS && get(&device, 0) == CUDA_SUCCESS &&
         retain(&context, device) == CUDA_SUCCESS && set(context) == CUDA_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !make_context()) return 2;
  auto* const load = driver_function<CUresult(CUmodule*, const char*)>("cuModuleLoad");
  if (load == nullptr) return 2;
  for (int i = 0; i < 2; ++i) {
    // The stand-in takes machine code only: a module that is left as PTX is refused by it.
    CUmodule module = nullptr;
    std::puts(load(&module, argv[1]) == CUDA_SUCCESS && module != nullptr ? "loaded" : "refused");
  }
  return 0;
}
