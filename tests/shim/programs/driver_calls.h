/* The driver's functions as a program of the static CUDA runtime gets them: cuGetProcAddress_v2 by dlsym from
 * the handle of libcuda.so.1, everything else through that. */
#ifndef KLAP_TEST_DRIVER_CALLS_H
#define KLAP_TEST_DRIVER_CALLS_H

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#undef cuGetProcAddress
#undef cuLinkAddData
#undef cuLinkCreate
#undef cuStreamDestroy

/* X(member, name, CUDA version, flags, result and parameters) */
#define DRIVER_CALLS(X)                                                                                   \
  X(init, "cuInit", 2000, 0, (unsigned))                                                                  \
  X(retain, "cuDevicePrimaryCtxRetain", 7000, 0, (CUcontext*, CUdevice))                                  \
  X(reset, "cuDevicePrimaryCtxReset", 11000, 0, (CUdevice))                                               \
  X(ctx_create, "cuCtxCreate", 3020, 0, (CUcontext*, unsigned, CUdevice))                                 \
  X(ctx_destroy, "cuCtxDestroy", 4000, 0, (CUcontext))                                                    \
  X(set_current, "cuCtxSetCurrent", 4000, 0, (CUcontext))                                                 \
  X(synchronize, "cuCtxSynchronize", 2000, 0, (void))                                                     \
  X(export_table, "cuGetExportTable", 3000, 0, (const void**, const CUuuid*))                             \
  X(library_load, "cuLibraryLoadData", 12000, 0,                                                          \
    (CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned))       \
  X(library_load_file, "cuLibraryLoadFromFile", 12000, 0,                                                 \
    (CUlibrary*, const char*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned))       \
  X(library_unload, "cuLibraryUnload", 12000, 0, (CUlibrary))                                             \
  X(library_kernel, "cuLibraryGetKernel", 12000, 0, (CUkernel*, CUlibrary, const char*))                  \
  X(library_module, "cuLibraryGetModule", 12000, 0, (CUmodule*, CUlibrary))                               \
  X(kernel_function, "cuKernelGetFunction", 12000, 0, (CUfunction*, CUkernel))                            \
  X(link_create, "cuLinkCreate", 6050, 0, (unsigned, CUjit_option*, void**, CUlinkState*))                \
  X(link_add_data, "cuLinkAddData", 6050, 0,                                                              \
    (CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned, CUjit_option*, void**))           \
  X(link_complete, "cuLinkComplete", 5050, 0, (CUlinkState, void**, size_t*))                             \
  X(link_destroy, "cuLinkDestroy", 5050, 0, (CUlinkState))                                                \
  X(module_load, "cuModuleLoad", 2000, 0, (CUmodule*, const char*))                                       \
  X(module_load_data, "cuModuleLoadData", 2000, 0, (CUmodule*, const void*))                              \
  X(module_load_data_ex, "cuModuleLoadDataEx", 2010, 0,                                                   \
    (CUmodule*, const void*, unsigned, CUjit_option*, void**))                                            \
  X(module_load_fatbin, "cuModuleLoadFatBinary", 2000, 0, (CUmodule*, const void*))                       \
  X(module_unload, "cuModuleUnload", 2000, 0, (CUmodule))                                                 \
  X(module_function, "cuModuleGetFunction", 2000, 0, (CUfunction*, CUmodule, const char*))                \
  X(func_attribute, "cuFuncSetAttribute", 9000, 0, (CUfunction, CUfunction_attribute, int))               \
  X(kernel_attribute, "cuKernelSetAttribute", 12000, 0, (CUfunction_attribute, int, CUkernel, CUdevice))  \
  X(launch, "cuLaunchKernel", 4000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,                                    \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,  \
     void**))                                                                                             \
  X(launch_ptsz, "cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,                  \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,  \
     void**))                                                                                             \
  X(launch_cooperative, "cuLaunchCooperativeKernel", 9000, 0,                                             \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**)) \
  X(launch_ex, "cuLaunchKernelEx", 12000, 0, (const CUlaunchConfig*, CUfunction, void**, void**))         \
  X(launch_ex_ptsz, "cuLaunchKernelEx", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,             \
    (const CUlaunchConfig*, CUfunction, void**, void**))                                                  \
  X(array_3d_create, "cuArray3DCreate", 3020, 0, (CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*))              \
  X(array_create, "cuArrayCreate", 3020, 0, (CUarray*, const CUDA_ARRAY_DESCRIPTOR*))                     \
  X(mem_alloc, "cuMemAlloc", 3020, 0, (CUdeviceptr*, size_t))                                             \
  X(mem_alloc_async, "cuMemAllocAsync", 11020, 0, (CUdeviceptr*, size_t, CUstream))                       \
  X(mem_alloc_async_ptsz, "cuMemAllocAsync", 11020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,        \
    (CUdeviceptr*, size_t, CUstream))                                                                     \
  X(mem_alloc_from_pool, "cuMemAllocFromPoolAsync", 11020, 0,                                             \
    (CUdeviceptr*, size_t, CUmemoryPool, CUstream))                                                       \
  X(mem_alloc_managed, "cuMemAllocManaged", 6000, 0, (CUdeviceptr*, size_t, unsigned))                    \
  X(mem_alloc_pitch, "cuMemAllocPitch", 3020, 0, (CUdeviceptr*, size_t*, size_t, size_t, unsigned))       \
  X(mem_create, "cuMemCreate", 10020, 0,                                                                  \
    (CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long))              \
  X(mem_free, "cuMemFree", 3020, 0, (CUdeviceptr))                                                        \
  X(mipmapped_array_create, "cuMipmappedArrayCreate", 5000, 0,                                            \
    (CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned))                                        \
  X(stream_create, "cuStreamCreate", 2000, 0, (CUstream*, unsigned))                                      \
  X(stream_synchronize, "cuStreamSynchronize", 2000, 0, (CUstream))                                       \
  X(copy_to_host, "cuMemcpyDtoHAsync", 3020, 0, (void*, CUdeviceptr, size_t, CUstream))                   \
  X(event_create, "cuEventCreate", 2000, 0, (CUevent*, unsigned))                                         \
  X(event_record, "cuEventRecord", 2000, 0, (CUevent, CUstream))                                          \
  X(stream_destroy, "cuStreamDestroy", 4000, 0, (CUstream))                                               \
  X(capture_begin, "cuStreamBeginCapture", 10010, 0, (CUstream, CUstreamCaptureMode))                     \
  X(capture_end, "cuStreamEndCapture", 10000, 0, (CUstream, CUgraph*))

struct driver_calls {
#define X(member, name, version, flags, signature) CUresult(*member) signature;
  DRIVER_CALLS(X)
#undef X
  CUresult (*get_proc_address)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
};
extern struct driver_calls cu;

/* Fills `cu`, initialises the driver and makes device 0's primary context current. */
void open_driver(void);
/* Closes the handle that open_driver() opened; the functions stay in `cu`. */
void close_driver(void);

/* Ends the program with a message if a call fails. */
#define CHECK(call) check(call, #call, __FILE__, __LINE__)
static inline void check(CUresult result, const char* call, const char* file, int line) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s:%d: %s gives %d\n", file, line, call, (int)result);
  exit(1);
}
#define REQUIRE(condition)                                                    \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#endif
