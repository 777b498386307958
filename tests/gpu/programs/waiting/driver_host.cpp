// The host's part of a program whose kernels NVRTC 11.8 has compiled (nvrtc11/): it loads the module from its
// folder, as PTX, and launches by the driver's functions. CUDA's runtime is not linked.
//
// WAITING_PROGRAM is the program's file. With WAITING_LINKED, the host links the module with the device
// runtime instead of loading its PTX.
#include WAITING_PROGRAM

#ifdef WAITING_LINKED
#include "../driver_link.h"
#endif

CUmodule waiting::module() {
  static const CUmodule loaded = [] {
    const std::string ptx =
        read_file(folder_of(program_invocation_name) + "/nvrtc11/" + program_name + ".ptx");
    CUmodule module = nullptr;
#ifdef WAITING_LINKED
    open_linker();
    Link link;
    link.add_data(CU_JIT_INPUT_PTX, ptx, program_name);
    check(driver.module_load_data(&module, link.complete()), "cuModuleLoadData");
#else
    check(driver.module_load_data(&module, ptx.c_str()), "cuModuleLoadData");
#endif
    return module;
  }();
  return loaded;
}

// program.h calls these functions of the runtime, which are made of the driver's here.

cudaError_t cudaGetDeviceCount(int* count) {
  open_driver();
  *count = 1;
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "an error"; }

cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaDeviceSynchronize() {
  check(driver.synchronize(), "cuCtxSynchronize");
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  CUdeviceptr address = 0;
  check(driver.mem_alloc(&address, bytes), "cuMemAlloc");
  *memory = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  check(driver.mem_free(reinterpret_cast<CUdeviceptr>(memory)), "cuMemFree");
  return cudaSuccess;
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  const std::string values(bytes, static_cast<char>(value));
  check(driver.to_device(reinterpret_cast<CUdeviceptr>(memory), values.data(), bytes), "cuMemcpyHtoD");
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyHostToDevice) {
    check(driver.to_device(reinterpret_cast<CUdeviceptr>(to), from, bytes), "cuMemcpyHtoD");
  } else {
    check(driver.to_host(to, reinterpret_cast<CUdeviceptr>(from), bytes), "cuMemcpyDtoH");
  }
  return cudaSuccess;
}
