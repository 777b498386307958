// The driver functions that the shim stands in front of.
//
// Every name is exported under exactly the name libcuda exports, because programs reach the driver in three
// ways: linked against libcuda (the preloaded symbol wins), by dlsym on a handle, and by cuGetProcAddress.
// The last one asks for a name, a CUDA version and the default-stream convention, and gets the function whose
// ABI belongs to them. So the table says for each function since which version it answers to that name. A
// function newer than the request makes programs crash.
#pragma once

#include <cuda.h>

// cuda.h lets these names mean their newest version; here each version is a function of its own.
#undef cuGetProcAddress
#undef cuStreamDestroy
#undef cuCtxDestroy
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuLinkAddData
#undef cuLinkAddFile
#undef cuLinkCreate
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuGraphInstantiate

// X(exported symbol, name for cuGetProcAddress, since CUDA version, for per-thread default streams)
#define KLAP_HOOKS(X)                                                                                        \
  X(cuGetProcAddress, "cuGetProcAddress", 11030, false)                                                      \
  X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, false)                                                   \
  X(cuModuleLoad, "cuModuleLoad", 2000, false)                                                               \
  X(cuModuleLoadData, "cuModuleLoadData", 2000, false)                                                       \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, false)                                                   \
  X(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, false)                                             \
  X(cuModuleUnload, "cuModuleUnload", 2000, false)                                                           \
  X(cuModuleGetFunction, "cuModuleGetFunction", 2000, false)                                                 \
  X(cuLinkCreate, "cuLinkCreate", 5050, false)                                                               \
  X(cuLinkCreate_v2, "cuLinkCreate", 6050, false)                                                            \
  X(cuLinkAddData, "cuLinkAddData", 5050, false)                                                             \
  X(cuLinkAddData_v2, "cuLinkAddData", 6050, false)                                                          \
  X(cuLinkAddFile, "cuLinkAddFile", 5050, false)                                                             \
  X(cuLinkAddFile_v2, "cuLinkAddFile", 6050, false)                                                          \
  X(cuLinkComplete, "cuLinkComplete", 5050, false)                                                           \
  X(cuLinkDestroy, "cuLinkDestroy", 5050, false)                                                             \
  X(cuLibraryLoadData, "cuLibraryLoadData", 12000, false)                                                    \
  X(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000, false)                                            \
  X(cuLibraryUnload, "cuLibraryUnload", 12000, false)                                                        \
  X(cuLibraryGetKernel, "cuLibraryGetKernel", 12000, false)                                                  \
  X(cuLibraryGetKernelCount, "cuLibraryGetKernelCount", 12040, false)                                        \
  X(cuLibraryEnumerateKernels, "cuLibraryEnumerateKernels", 12040, false)                                    \
  X(cuModuleGetFunctionCount, "cuModuleGetFunctionCount", 12040, false)                                      \
  X(cuModuleEnumerateFunctions, "cuModuleEnumerateFunctions", 12040, false)                                  \
  X(cuLibraryGetModule, "cuLibraryGetModule", 12000, false)                                                  \
  X(cuKernelGetFunction, "cuKernelGetFunction", 12000, false)                                                \
  X(cuKernelSetAttribute, "cuKernelSetAttribute", 12000, false)                                              \
  X(cuKernelSetCacheConfig, "cuKernelSetCacheConfig", 12000, false)                                          \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, false)                                                   \
  X(cuFuncSetCacheConfig, "cuFuncSetCacheConfig", 3000, false)                                               \
  X(cuLaunchKernel, "cuLaunchKernel", 4000, false)                                                           \
  X(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, true)                                                       \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, false)                                                      \
  X(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, true)                                                  \
  X(cuArray3DCreate_v2, "cuArray3DCreate", 3020, false)                                                      \
  X(cuArrayCreate_v2, "cuArrayCreate", 3020, false)                                                          \
  X(cuMemAlloc_v2, "cuMemAlloc", 3020, false)                                                                \
  X(cuMemAllocAsync, "cuMemAllocAsync", 11020, false)                                                        \
  X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, true)                                                    \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, false)                                        \
  X(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, true)                                    \
  X(cuMemAllocManaged, "cuMemAllocManaged", 6000, false)                                                     \
  X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, false)                                                      \
  X(cuMemCreate, "cuMemCreate", 10020, false)                                                                \
  X(cuMemFree_v2, "cuMemFree", 3020, false)                                                                  \
  X(cuMemFreeAsync, "cuMemFreeAsync", 11020, false)                                                          \
  X(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, true)                                                      \
  X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, false)                                           \
  X(cuGraphInstantiate, "cuGraphInstantiate", 10000, false)                                                  \
  X(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, false)                                               \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiate", 12000, false)                                         \
  X(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000, false)                              \
  X(cuGraphInstantiateWithParams_ptsz, "cuGraphInstantiateWithParams", 12000, true)                          \
  X(cuGraphLaunch, "cuGraphLaunch", 10000, false)                                                            \
  X(cuGraphLaunch_ptsz, "cuGraphLaunch", 10000, true)                                                        \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, false)                                                  \
  X(cuGraphExecUpdate, "cuGraphExecUpdate", 10020, false)                                                    \
  X(cuGraphExecUpdate_v2, "cuGraphExecUpdate", 12000, false)                                                 \
  X(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams", 10010, false)                          \
  X(cuGraphExecKernelNodeSetParams_v2, "cuGraphExecKernelNodeSetParams", 12000, false)                       \
  X(cuGraphExecNodeSetParams, "cuGraphExecNodeSetParams", 12020, false)                                      \
  X(cuGraphExecChildGraphNodeSetParams, "cuGraphExecChildGraphNodeSetParams", 11010, false)                  \
  X(cuGraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams", 10020, false)                          \
  X(cuGraphExecMemsetNodeSetParams, "cuGraphExecMemsetNodeSetParams", 10020, false)                          \
  X(cuGraphExecHostNodeSetParams, "cuGraphExecHostNodeSetParams", 10020, false)                              \
  X(cuGraphExecEventRecordNodeSetEvent, "cuGraphExecEventRecordNodeSetEvent", 11010, false)                  \
  X(cuGraphExecEventWaitNodeSetEvent, "cuGraphExecEventWaitNodeSetEvent", 11010, false)                      \
  X(cuGraphExecExternalSemaphoresSignalNodeSetParams, "cuGraphExecExternalSemaphoresSignalNodeSetParams",    \
    11020, false)                                                                                            \
  X(cuGraphExecExternalSemaphoresWaitNodeSetParams, "cuGraphExecExternalSemaphoresWaitNodeSetParams", 11020, \
    false)                                                                                                   \
  X(cuGraphExecBatchMemOpNodeSetParams, "cuGraphExecBatchMemOpNodeSetParams", 11070, false)                  \
  X(cuGraphNodeSetEnabled, "cuGraphNodeSetEnabled", 11060, false)                                            \
  X(cuGraphNodeGetEnabled, "cuGraphNodeGetEnabled", 11060, false)                                            \
  X(cuCtxDestroy, "cuCtxDestroy", 2000, false)                                                               \
  X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, false)                                                            \
  X(cuCtxGetLimit, "cuCtxGetLimit", 3010, false)                                                             \
  X(cuCtxSetLimit, "cuCtxSetLimit", 3010, false)                                                             \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, false)                                     \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, false)                                 \
  X(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, false)                                         \
  X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, false)                                     \
  X(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, false)                                                    \
  X(cuStreamDestroy, "cuStreamDestroy", 2000, false)                                                         \
  X(cuStreamDestroy_v2, "cuStreamDestroy", 4000, false)

#define KLAP_EXPORT __attribute__((visibility("default")))

// Functions that cuda.h does not declare.
extern "C" {
KLAP_EXPORT CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version,
                                              cuuint64_t flags);
KLAP_EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream stream);
KLAP_EXPORT CUresult CUDAAPI cuCtxDestroy(CUcontext context);
KLAP_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device);
KLAP_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device);
KLAP_EXPORT CUresult CUDAAPI cuLinkCreate(unsigned count, CUjit_option* options, void** values,
                                          CUlinkState* link);
KLAP_EXPORT CUresult CUDAAPI cuLinkAddData(CUlinkState link, CUjitInputType type, void* data, size_t bytes,
                                           const char* name, unsigned count, CUjit_option* options,
                                           void** values);
KLAP_EXPORT CUresult CUDAAPI cuLinkAddFile(CUlinkState link, CUjitInputType type, const char* path,
                                           unsigned count, CUjit_option* options, void** values);
// Nor do older toolkits declare these.
KLAP_EXPORT CUresult CUDAAPI cuLibraryGetKernelCount(unsigned* count, CUlibrary library);
KLAP_EXPORT CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned room, CUlibrary library);
KLAP_EXPORT CUresult CUDAAPI cuModuleGetFunctionCount(unsigned* count, CUmodule module);
KLAP_EXPORT CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned room,
                                                        CUmodule module);
KLAP_EXPORT CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream);
KLAP_EXPORT CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes,
                                                          CUmemoryPool pool, CUstream stream);
KLAP_EXPORT CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
KLAP_EXPORT CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* executable, CUgraph graph,
                                                CUgraphNode* error_node, char* log, size_t log_bytes);
KLAP_EXPORT CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph,
                                                   CUgraphNode* error_node, char* log, size_t log_bytes);
KLAP_EXPORT CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec* executable, CUgraph graph,
                                                               CUDA_GRAPH_INSTANTIATE_PARAMS* params);
KLAP_EXPORT CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec executable, CUstream stream);
KLAP_EXPORT CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode* error_node,
                                               CUgraphExecUpdateResult* result);
KLAP_EXPORT CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                                            const CUDA_KERNEL_NODE_PARAMS_v1* params);
KLAP_EXPORT CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                                 unsigned block_z, unsigned shared_bytes, CUstream stream,
                                                 void** params, void** extra);
KLAP_EXPORT CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function,
                                                   void** params, void** extra);
}

namespace klap::shim {

struct Hook {
  const char* symbol;
  const char* name;
  int since;
  bool per_thread;
  void* function;
};

// The hook exported as `symbol`, null if there is none.
const Hook* hook_for_symbol(const char* symbol) noexcept;

// The hook with the ABI that cuGetProcAddress gives for these arguments, null if there is none.
const Hook* hook_for_request(const char* name, int version, cuuint64_t flags) noexcept;

}  // namespace klap::shim
