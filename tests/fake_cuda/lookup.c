/* cuGetProcAddress in both of its versions, and cuGetExportTable. */
#include <string.h>

#include "fake.h"

/* X(exported symbol, name, since version, for per-thread default streams) */
#define FUNCTIONS(X)                                                     \
  X(cuInit, "cuInit", 2000, 0)                                           \
  X(cuDriverGetVersion, "cuDriverGetVersion", 2020, 0)                   \
  X(cuDeviceGetCount, "cuDeviceGetCount", 2000, 0)                       \
  X(cuDeviceGet, "cuDeviceGet", 2000, 0)                                 \
  X(cuDeviceGetName, "cuDeviceGetName", 2000, 0)                         \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 0)       \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, 0)     \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, 0) \
  X(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000, 0)   \
  X(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, 0)         \
  X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, 0)     \
  X(cuCtxCreate_v2, "cuCtxCreate", 3020, 0)                              \
  X(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, 0)                    \
  X(cuCtxDestroy, "cuCtxDestroy", 2000, 0)                               \
  X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, 0)                            \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 0)                         \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, 0)                         \
  X(cuCtxGetLimit, "cuCtxGetLimit", 3010, 0)                             \
  X(cuCtxSetLimit, "cuCtxSetLimit", 3010, 0)                             \
  X(cuCtxSynchronize, "cuCtxSynchronize", 2000, 0)                       \
  X(cuGetProcAddress, "cuGetProcAddress", 11030, 0)                      \
  X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, 0)                   \
  X(cuGetExportTable, "cuGetExportTable", 3000, 0)                       \
  X(cuModuleLoad, "cuModuleLoad", 2000, 0)                               \
  X(cuModuleLoadData, "cuModuleLoadData", 2000, 0)                       \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, 0)                   \
  X(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, 0)             \
  X(cuModuleUnload, "cuModuleUnload", 2000, 0)                           \
  X(cuModuleGetFunction, "cuModuleGetFunction", 2000, 0)                 \
  X(cuModuleGetGlobal_v2, "cuModuleGetGlobal", 3020, 0)                  \
  X(cuLinkCreate, "cuLinkCreate", 5050, 0)                               \
  X(cuLinkCreate_v2, "cuLinkCreate", 6050, 0)                            \
  X(cuLinkAddData, "cuLinkAddData", 5050, 0)                             \
  X(cuLinkAddData_v2, "cuLinkAddData", 6050, 0)                          \
  X(cuLinkAddFile, "cuLinkAddFile", 5050, 0)                             \
  X(cuLinkAddFile_v2, "cuLinkAddFile", 6050, 0)                          \
  X(cuLinkComplete, "cuLinkComplete", 5050, 0)                           \
  X(cuLinkDestroy, "cuLinkDestroy", 5050, 0)                             \
  X(cuLibraryLoadData, "cuLibraryLoadData", 12000, 0)                    \
  X(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000, 0)            \
  X(cuLibraryUnload, "cuLibraryUnload", 12000, 0)                        \
  X(cuLibraryGetKernel, "cuLibraryGetKernel", 12000, 0)                  \
  X(cuLibraryGetGlobal, "cuLibraryGetGlobal", 12000, 0)                  \
  X(cuLibraryGetKernelCount, "cuLibraryGetKernelCount", 12040, 0)        \
  X(cuLibraryEnumerateKernels, "cuLibraryEnumerateKernels", 12040, 0)    \
  X(cuModuleGetFunctionCount, "cuModuleGetFunctionCount", 12040, 0)      \
  X(cuModuleEnumerateFunctions, "cuModuleEnumerateFunctions", 12040, 0)  \
  X(cuLibraryGetModule, "cuLibraryGetModule", 12000, 0)                  \
  X(cuKernelGetFunction, "cuKernelGetFunction", 12000, 0)                \
  X(cuKernelSetAttribute, "cuKernelSetAttribute", 12000, 0)              \
  X(cuKernelSetCacheConfig, "cuKernelSetCacheConfig", 12000, 0)          \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, 0)                   \
  X(cuFuncSetCacheConfig, "cuFuncSetCacheConfig", 3000, 0)               \
  X(cuLaunchKernel, "cuLaunchKernel", 4000, 0)                           \
  X(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, 1)                      \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, 0)                      \
  X(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, 1)                 \
  X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, 0)     \
  X(cuArray3DCreate_v2, "cuArray3DCreate", 3020, 0)                      \
  X(cuArrayCreate_v2, "cuArrayCreate", 3020, 0)                          \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0)        \
  X(cuMemAllocManaged, "cuMemAllocManaged", 6000, 0)                     \
  X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 0)                      \
  X(cuMemCreate, "cuMemCreate", 10020, 0)                                \
  X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, 0)           \
  X(cuMemFree, "cuMemFree", 2000, 0)                                     \
  X(cuMemFree_v2, "cuMemFree", 3020, 0)                                  \
  X(cuMemFreeAsync, "cuMemFreeAsync", 11020, 0)                          \
  X(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, 1)                     \
  X(cuMemAlloc, "cuMemAlloc", 2000, 0)                                   \
  X(cuMemAlloc_v2, "cuMemAlloc", 3020, 0)                                \
  X(cuMemAllocAsync, "cuMemAllocAsync", 11020, 0)                        \
  X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 1)                   \
  X(cuStreamCreate, "cuStreamCreate", 2000, 0)                           \
  X(cuStreamDestroy, "cuStreamDestroy", 2000, 0)                         \
  X(cuStreamDestroy_v2, "cuStreamDestroy", 4000, 0)                      \
  X(cuStreamSynchronize, "cuStreamSynchronize", 2000, 0)                 \
  X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 3020, 0)                  \
  X(cuEventCreate, "cuEventCreate", 2000, 0)                             \
  X(cuEventRecord, "cuEventRecord", 2000, 0)                             \
  X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, 0)           \
  X(cuStreamEndCapture, "cuStreamEndCapture", 10000, 0)

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuMemAlloc(unsigned* address, unsigned bytes);
CUresult cuMemFree(unsigned address);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream);
CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                             CUstream stream, void** params, void** extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** params,
                               void** extra);

static CUresult find(const char* symbol, void** function, int version, cuuint64_t flags,
                     CUdriverProcAddressQueryResult* status) {
  static const struct {
    const char* name;
    int since, per_thread;
    void* function;
  } table[] = {
#define X(symbol, name, since, per_thread) {name, since, per_thread, (void*)symbol},
      FUNCTIONS(X)
#undef X
  };
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *function = NULL;
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    if (strcmp(table[i].name, symbol) != 0) continue;
    if (table[i].per_thread && !(flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) continue;
    if (table[i].since <= version) {
      *function = table[i].function;
      found = CU_GET_PROC_ADDRESS_SUCCESS;
    } else if (found != CU_GET_PROC_ADDRESS_SUCCESS) {
      found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
  }
  if (status) *status = found;
  return found == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  CUresult result = find(symbol, function, version, flags, NULL);
  fake_log("cuGetProcAddress symbol=%s version=%d flags=%d result=%d", symbol, version, (int)flags,
           (int)result);
  return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  CUresult result = find(symbol, function, version, flags, status);
  fake_log("cuGetProcAddress_v2 symbol=%s version=%d flags=%d result=%d", symbol, version, (int)flags,
           (int)result);
  return result;
}

EXPORT CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  static const void* const functions[2] = {(void*)sizeof functions, (void*)find};
  (void)id;
  fake_log("cuGetExportTable table=%p", (void*)functions);
  *table = functions;
  return CUDA_SUCCESS;
}
