// The driver functions that klap_jit calls or stands in front of, as a table of pointers into the real
// libcuda.
//
// libcuda is never linked: a preloaded library with that dependency would pull the driver into every process.
// The shim finds the libcuda that the program itself loaded, fills one table and publishes it; everything
// above reads the table. Members are typed by cudaTypedefs.h, whose names state the exact version of each
// signature. So a table entry cannot drift to the version that cuda.h currently means by the plain name.
#pragma once

#include <cudaTypedefs.h>

#include <functional>

namespace klap::runtime {

// X(member, exported symbol, type)
#define KLAP_DRIVER_FUNCTIONS(X)                                                                             \
  /* stood in front of by the shim */                                                                        \
  X(get_proc_address, "cuGetProcAddress", PFN_cuGetProcAddress_v11030)                                       \
  X(get_proc_address_v2, "cuGetProcAddress_v2", PFN_cuGetProcAddress_v12000)                                 \
  X(module_load, "cuModuleLoad", PFN_cuModuleLoad_v2000)                                                     \
  X(module_load_data, "cuModuleLoadData", PFN_cuModuleLoadData_v2000)                                        \
  X(module_load_data_ex, "cuModuleLoadDataEx", PFN_cuModuleLoadDataEx_v2010)                                 \
  X(module_load_fat_binary, "cuModuleLoadFatBinary", PFN_cuModuleLoadFatBinary_v2000)                        \
  X(module_unload, "cuModuleUnload", PFN_cuModuleUnload_v2000)                                               \
  X(module_get_function, "cuModuleGetFunction", PFN_cuModuleGetFunction_v2000)                               \
  X(library_load_data, "cuLibraryLoadData", PFN_cuLibraryLoadData_v12000)                                    \
  X(library_load_from_file, "cuLibraryLoadFromFile", PFN_cuLibraryLoadFromFile_v12000)                       \
  X(library_unload, "cuLibraryUnload", PFN_cuLibraryUnload_v12000)                                           \
  X(library_get_kernel, "cuLibraryGetKernel", PFN_cuLibraryGetKernel_v12000)                                 \
  X(library_get_global, "cuLibraryGetGlobal", PFN_cuLibraryGetGlobal_v12000)                                 \
  X(module_get_global, "cuModuleGetGlobal_v2", PFN_cuModuleGetGlobal_v3020)                                  \
  X(library_get_module, "cuLibraryGetModule", PFN_cuLibraryGetModule_v12000)                                 \
  X(kernel_get_function, "cuKernelGetFunction", PFN_cuKernelGetFunction_v12000)                              \
  X(kernel_set_attribute, "cuKernelSetAttribute", PFN_cuKernelSetAttribute_v12000)                           \
  X(kernel_set_cache_config, "cuKernelSetCacheConfig", PFN_cuKernelSetCacheConfig_v12000)                    \
  X(func_set_attribute, "cuFuncSetAttribute", PFN_cuFuncSetAttribute_v9000)                                  \
  X(func_set_cache_config, "cuFuncSetCacheConfig", PFN_cuFuncSetCacheConfig_v3000)                           \
  X(launch_kernel, "cuLaunchKernel", PFN_cuLaunchKernel_v4000)                                               \
  X(launch_kernel_ptsz, "cuLaunchKernel_ptsz", PFN_cuLaunchKernel_v7000_ptsz)                                \
  X(launch_kernel_ex, "cuLaunchKernelEx", PFN_cuLaunchKernelEx_v11060)                                       \
  X(launch_kernel_ex_ptsz, "cuLaunchKernelEx_ptsz", PFN_cuLaunchKernelEx_v11060_ptsz)                        \
  X(array_create, "cuArrayCreate_v2", PFN_cuArrayCreate_v3020)                                               \
  X(array_3d_create, "cuArray3DCreate_v2", PFN_cuArray3DCreate_v3020)                                        \
  X(mem_alloc, "cuMemAlloc_v2", PFN_cuMemAlloc_v3020)                                                        \
  X(mem_alloc_async, "cuMemAllocAsync", PFN_cuMemAllocAsync_v11020)                                          \
  X(mem_alloc_async_ptsz, "cuMemAllocAsync_ptsz", PFN_cuMemAllocAsync_v11020_ptsz)                           \
  X(mem_alloc_from_pool_async, "cuMemAllocFromPoolAsync", PFN_cuMemAllocFromPoolAsync_v11020)                \
  X(mem_alloc_from_pool_async_ptsz, "cuMemAllocFromPoolAsync_ptsz", PFN_cuMemAllocFromPoolAsync_v11020_ptsz) \
  X(mem_alloc_managed, "cuMemAllocManaged", PFN_cuMemAllocManaged_v6000)                                     \
  X(mem_alloc_pitch, "cuMemAllocPitch_v2", PFN_cuMemAllocPitch_v3020)                                        \
  X(mem_create, "cuMemCreate", PFN_cuMemCreate_v10020)                                                       \
  X(mem_free, "cuMemFree_v2", PFN_cuMemFree_v3020)                                                           \
  X(mem_free_async, "cuMemFreeAsync", PFN_cuMemFreeAsync_v11020)                                             \
  X(mem_free_async_ptsz, "cuMemFreeAsync_ptsz", PFN_cuMemFreeAsync_v11020_ptsz)                              \
  X(mipmapped_array_create, "cuMipmappedArrayCreate", PFN_cuMipmappedArrayCreate_v5000)                      \
  X(ctx_destroy, "cuCtxDestroy_v2", PFN_cuCtxDestroy_v4000)                                                  \
  X(primary_ctx_release, "cuDevicePrimaryCtxRelease_v2", PFN_cuDevicePrimaryCtxRelease_v11000)               \
  X(primary_ctx_reset, "cuDevicePrimaryCtxReset_v2", PFN_cuDevicePrimaryCtxReset_v11000)                     \
  X(stream_destroy, "cuStreamDestroy", PFN_cuStreamDestroy_v4000)                                            \
  X(stream_destroy_v2, "cuStreamDestroy_v2", PFN_cuStreamDestroy_v4000)                                      \
  /* only called */                                                                                          \
  X(device_get_count, "cuDeviceGetCount", PFN_cuDeviceGetCount_v2000)                                        \
  X(device_get, "cuDeviceGet", PFN_cuDeviceGet_v2000)                                                        \
  X(device_get_name, "cuDeviceGetName", PFN_cuDeviceGetName_v2000)                                           \
  X(driver_get_version, "cuDriverGetVersion", PFN_cuDriverGetVersion_v2020)                                  \
  X(device_get_attribute, "cuDeviceGetAttribute", PFN_cuDeviceGetAttribute_v2000)                            \
  X(primary_ctx_get_state, "cuDevicePrimaryCtxGetState", PFN_cuDevicePrimaryCtxGetState_v7000)               \
  X(primary_ctx_retain, "cuDevicePrimaryCtxRetain", PFN_cuDevicePrimaryCtxRetain_v7000)                      \
  X(ctx_get_current, "cuCtxGetCurrent", PFN_cuCtxGetCurrent_v4000)                                           \
  X(ctx_get_device, "cuCtxGetDevice", PFN_cuCtxGetDevice_v2000)                                              \
  X(ctx_get_limit, "cuCtxGetLimit", PFN_cuCtxGetLimit_v3010)                                                 \
  X(ctx_synchronize, "cuCtxSynchronize", PFN_cuCtxSynchronize_v2000)                                         \
  X(ctx_set_current, "cuCtxSetCurrent", PFN_cuCtxSetCurrent_v4000)                                           \
  X(ctx_get_id, "cuCtxGetId", PFN_cuCtxGetId_v12000)                                                         \
  X(device_get_default_mem_pool, "cuDeviceGetDefaultMemPool", PFN_cuDeviceGetDefaultMemPool_v11020)          \
  X(pointer_get_attributes, "cuPointerGetAttributes", PFN_cuPointerGetAttributes_v7000)                      \
  X(func_get_attribute, "cuFuncGetAttribute", PFN_cuFuncGetAttribute_v2020)                                  \
  X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                                \
    PFN_cuOccupancyMaxActiveBlocksPerMultiprocessor_v6050)                                                   \
  X(stream_get_ctx, "cuStreamGetCtx", PFN_cuStreamGetCtx_v9020)                                              \
  X(stream_get_id, "cuStreamGetId", PFN_cuStreamGetId_v12000)                                                \
  X(stream_query, "cuStreamQuery", PFN_cuStreamQuery_v2000)                                                  \
  X(stream_is_capturing, "cuStreamIsCapturing", PFN_cuStreamIsCapturing_v10000)                              \
  X(exchange_capture_mode, "cuThreadExchangeStreamCaptureMode",                                              \
    PFN_cuThreadExchangeStreamCaptureMode_v10010)                                                            \
  X(link_create, "cuLinkCreate_v2", PFN_cuLinkCreate_v6050)                                                  \
  X(link_add_data, "cuLinkAddData_v2", PFN_cuLinkAddData_v6050)                                              \
  X(link_add_file, "cuLinkAddFile_v2", PFN_cuLinkAddFile_v6050)                                              \
  X(link_complete, "cuLinkComplete", PFN_cuLinkComplete_v5050)                                               \
  X(link_destroy, "cuLinkDestroy", PFN_cuLinkDestroy_v5050)                                                  \
  X(mem_pool_create, "cuMemPoolCreate", PFN_cuMemPoolCreate_v11020)                                          \
  X(mem_pool_set_attribute, "cuMemPoolSetAttribute", PFN_cuMemPoolSetAttribute_v11020)                       \
  X(mem_pool_trim_to, "cuMemPoolTrimTo", PFN_cuMemPoolTrimTo_v11020)                                         \
  X(mem_get_info, "cuMemGetInfo_v2", PFN_cuMemGetInfo_v3020)                                                 \
  X(memcpy_htod_async, "cuMemcpyHtoDAsync_v2", PFN_cuMemcpyHtoDAsync_v3020)                                  \
  X(memset_d8_async, "cuMemsetD8Async", PFN_cuMemsetD8Async_v3020)                                           \
  X(memcpy_dtoh_async, "cuMemcpyDtoHAsync_v2", PFN_cuMemcpyDtoHAsync_v3020)                                  \
  X(stream_synchronize, "cuStreamSynchronize", PFN_cuStreamSynchronize_v2000)                                \
  X(mem_host_register, "cuMemHostRegister_v2", PFN_cuMemHostRegister_v6050)                                  \
  X(mem_host_get_device_pointer, "cuMemHostGetDevicePointer_v2", PFN_cuMemHostGetDevicePointer_v3020)        \
  X(event_create, "cuEventCreate", PFN_cuEventCreate_v2000)                                                  \
  X(event_record, "cuEventRecord", PFN_cuEventRecord_v2000)                                                  \
  X(event_elapsed_time, "cuEventElapsedTime", PFN_cuEventElapsedTime_v2000)                                  \
  X(event_query, "cuEventQuery", PFN_cuEventQuery_v2000)                                                     \
  X(event_destroy, "cuEventDestroy_v2", PFN_cuEventDestroy_v4000)                                            \
  X(get_error_name, "cuGetErrorName", PFN_cuGetErrorName_v6000)

// Functions that a driver may lack, null there. Some of their types are not in the headers of older toolkits
// either. The first versions of the two for memory are those that every driver has.
#define KLAP_OPTIONAL_DRIVER_FUNCTIONS(X)                                                                    \
  X(func_load, "cuFuncLoad", FuncLoad)                                                                       \
  X(func_get_name, "cuFuncGetName", FuncGetName)                                                             \
  X(kernel_get_name, "cuKernelGetName", KernelGetName)                                                       \
  X(library_get_kernel_count, "cuLibraryGetKernelCount", CountKernels)                                       \
  X(library_enumerate_kernels, "cuLibraryEnumerateKernels", ListKernels)                                     \
  X(module_get_function_count, "cuModuleGetFunctionCount", CountFunctions)                                   \
  X(module_enumerate_functions, "cuModuleEnumerateFunctions", ListFunctions)                                 \
  X(stream_get_flags, "cuStreamGetFlags", PFN_cuStreamGetFlags_v5050)                                        \
  X(mem_advise, "cuMemAdvise", PFN_cuMemAdvise_v8000)                                                        \
  X(mem_prefetch_async, "cuMemPrefetchAsync", PFN_cuMemPrefetchAsync_v8000)                                  \
  X(link_create_v1, "cuLinkCreate", PFN_cuLinkCreate_v6050)                                                  \
  X(link_add_data_v1, "cuLinkAddData", PFN_cuLinkAddData_v6050)                                              \
  X(link_add_file_v1, "cuLinkAddFile", PFN_cuLinkAddFile_v6050)                                              \
  X(ctx_destroy_v1, "cuCtxDestroy", PFN_cuCtxDestroy_v4000)                                                  \
  X(primary_ctx_release_v1, "cuDevicePrimaryCtxRelease", PFN_cuDevicePrimaryCtxRelease_v11000)               \
  X(primary_ctx_reset_v1, "cuDevicePrimaryCtxReset", PFN_cuDevicePrimaryCtxReset_v11000)                     \
  X(green_ctx_destroy, "cuGreenCtxDestroy", PFN_cuGreenCtxDestroy_v12040)                                    \
  X(ctx_from_green_ctx, "cuCtxFromGreenCtx", PFN_cuCtxFromGreenCtx_v12040)                                   \
  X(stream_get_green_ctx, "cuStreamGetGreenCtx", PFN_cuStreamGetGreenCtx_v12040)                             \
  X(stream_get_device, "cuStreamGetDevice", PFN_cuStreamGetDevice_v12080)                                    \
  X(stream_create, "cuStreamCreate", PFN_cuStreamCreate_v2000)                                               \
  X(stream_wait_event, "cuStreamWaitEvent", PFN_cuStreamWaitEvent_v3020)                                     \
  X(ctx_set_limit, "cuCtxSetLimit", PFN_cuCtxSetLimit_v3010)                                                 \
  X(graph_add_event_record, "cuGraphAddEventRecordNode", PFN_cuGraphAddEventRecordNode_v11010)               \
  X(graph_clone, "cuGraphClone", PFN_cuGraphClone_v10000)                                                    \
  X(graph_destroy, "cuGraphDestroy", PFN_cuGraphDestroy_v10000)                                              \
  X(graph_get_nodes, "cuGraphGetNodes", PFN_cuGraphGetNodes_v10000)                                          \
  X(graph_find_in_clone, "cuGraphNodeFindInClone", PFN_cuGraphNodeFindInClone_v10000)                        \
  X(graph_node_get_type, "cuGraphNodeGetType", PFN_cuGraphNodeGetType_v10000)                                \
  X(graph_get_dependencies, "cuGraphNodeGetDependencies", PFN_cuGraphNodeGetDependencies_v10000)             \
  X(graph_get_dependents, "cuGraphNodeGetDependentNodes", PFN_cuGraphNodeGetDependentNodes_v10000)           \
  X(graph_add_dependencies, "cuGraphAddDependencies", PFN_cuGraphAddDependencies_v10000)                     \
  X(graph_remove_dependencies, "cuGraphRemoveDependencies", PFN_cuGraphRemoveDependencies_v10000)            \
  X(graph_child_get_graph, "cuGraphChildGraphNodeGetGraph", PFN_cuGraphChildGraphNodeGetGraph_v10000)        \
  X(graph_kernel_get_params, "cuGraphKernelNodeGetParams_v2", PFN_cuGraphKernelNodeGetParams_v12000)         \
  X(graph_kernel_set_params, "cuGraphKernelNodeSetParams_v2", PFN_cuGraphKernelNodeSetParams_v12000)         \
  X(graph_kernel_get_attribute, "cuGraphKernelNodeGetAttribute", PFN_cuGraphKernelNodeGetAttribute_v11000)   \
  X(graph_kernel_set_attribute, "cuGraphKernelNodeSetAttribute", PFN_cuGraphKernelNodeSetAttribute_v11000)   \
  X(graph_add_kernel, "cuGraphAddKernelNode_v2", PFN_cuGraphAddKernelNode_v12000)                            \
  X(graph_add_memset, "cuGraphAddMemsetNode", PFN_cuGraphAddMemsetNode_v10000)                               \
  X(graph_instantiate, "cuGraphInstantiate", InstantiateGraph)                                               \
  X(graph_instantiate_v2, "cuGraphInstantiate_v2", InstantiateGraph)                                         \
  X(graph_instantiate_with_flags, "cuGraphInstantiateWithFlags", PFN_cuGraphInstantiateWithFlags_v11040)     \
  X(graph_instantiate_with_params, "cuGraphInstantiateWithParams", PFN_cuGraphInstantiateWithParams_v12000)  \
  X(graph_instantiate_with_params_ptsz, "cuGraphInstantiateWithParams_ptsz",                                 \
    PFN_cuGraphInstantiateWithParams_v12000_ptsz)                                                            \
  X(graph_launch, "cuGraphLaunch", PFN_cuGraphLaunch_v10000)                                                 \
  X(graph_launch_ptsz, "cuGraphLaunch_ptsz", PFN_cuGraphLaunch_v10000_ptsz)                                  \
  X(graph_exec_destroy, "cuGraphExecDestroy", PFN_cuGraphExecDestroy_v10000)                                 \
  X(graph_exec_update, "cuGraphExecUpdate", PFN_cuGraphExecUpdate_v10020)                                    \
  X(graph_exec_update_v2, "cuGraphExecUpdate_v2", PFN_cuGraphExecUpdate_v12000)                              \
  X(exec_set_kernel, "cuGraphExecKernelNodeSetParams", PFN_cuGraphExecKernelNodeSetParams_v10010)            \
  X(exec_set_kernel_v2, "cuGraphExecKernelNodeSetParams_v2", PFN_cuGraphExecKernelNodeSetParams_v12000)      \
  X(exec_set_memcpy, "cuGraphExecMemcpyNodeSetParams", PFN_cuGraphExecMemcpyNodeSetParams_v10020)            \
  X(exec_set_memset, "cuGraphExecMemsetNodeSetParams", PFN_cuGraphExecMemsetNodeSetParams_v10020)            \
  X(exec_set_host, "cuGraphExecHostNodeSetParams", PFN_cuGraphExecHostNodeSetParams_v10020)                  \
  X(exec_set_child_graph, "cuGraphExecChildGraphNodeSetParams",                                              \
    PFN_cuGraphExecChildGraphNodeSetParams_v11010)                                                           \
  X(exec_set_recorded_event, "cuGraphExecEventRecordNodeSetEvent",                                           \
    PFN_cuGraphExecEventRecordNodeSetEvent_v11010)                                                           \
  X(exec_set_awaited_event, "cuGraphExecEventWaitNodeSetEvent", PFN_cuGraphExecEventWaitNodeSetEvent_v11010) \
  X(exec_set_signals, "cuGraphExecExternalSemaphoresSignalNodeSetParams",                                    \
    PFN_cuGraphExecExternalSemaphoresSignalNodeSetParams_v11020)                                             \
  X(exec_set_waits, "cuGraphExecExternalSemaphoresWaitNodeSetParams",                                        \
    PFN_cuGraphExecExternalSemaphoresWaitNodeSetParams_v11020)                                               \
  X(exec_set_memory_operations, "cuGraphExecBatchMemOpNodeSetParams",                                        \
    PFN_cuGraphExecBatchMemOpNodeSetParams_v11070)                                                           \
  X(exec_set_params, "cuGraphExecNodeSetParams", PFN_cuGraphExecNodeSetParams_v12020)                        \
  X(exec_set_enabled, "cuGraphNodeSetEnabled", PFN_cuGraphNodeSetEnabled_v11060)                             \
  X(exec_get_enabled, "cuGraphNodeGetEnabled", PFN_cuGraphNodeGetEnabled_v11060)                             \
  /* an emulated driver, which runs PTX: images of machine code are not tried first */                       \
  X(emulates_ptx, "klap_emulator_counts", EmulatorCounts)

using EmulatorCounts = CUresult(CUDAAPI*)(void*);  // never called
using InstantiateGraph = CUresult(CUDAAPI*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
using FuncLoad = CUresult(CUDAAPI*)(CUfunction);
using FuncGetName = CUresult(CUDAAPI*)(const char**, CUfunction);
using KernelGetName = CUresult(CUDAAPI*)(const char**, CUkernel);
using CountKernels = CUresult(CUDAAPI*)(unsigned*, CUlibrary);
using ListKernels = CUresult(CUDAAPI*)(CUkernel*, unsigned, CUlibrary);
using CountFunctions = CUresult(CUDAAPI*)(unsigned*, CUmodule);
using ListFunctions = CUresult(CUDAAPI*)(CUfunction*, unsigned, CUmodule);

struct Driver {
#define X(member, symbol, type) type member = nullptr;
  KLAP_DRIVER_FUNCTIONS(X)
  KLAP_OPTIONAL_DRIVER_FUNCTIONS(X)
#undef X

  // The first function that the driver lacks (libraries and ids came with driver 12.0), null if it has them
  // all. If one is missing, nothing is rewritten, since half of the mechanism would be worse than none.
  const char* missing = nullptr;
  // Where the shared object is mapped, to recognise its symbols; null in tests.
  const void* base = nullptr;
};

// True if the driver has all that rewriting graphs needs (graphs/executables.h); it came with driver 12.0.
bool can_rewrite_graphs(const Driver& driver);

using SymbolLookup = std::function<void*(const char* symbol)>;

// Fills a table; `missing` is set if anything was not found.
Driver resolve_driver(const SymbolLookup& lookup);

// The published table, null while no libcuda is known.
const Driver* driver() noexcept;

// Publishes `table` if none is yet and returns the one in force. Never freed: threads keep the pointer.
const Driver* publish_driver(const Driver& table);

// "CUDA_ERROR_OUT_OF_MEMORY", as the driver names it.
const char* error_name(CUresult code);

}  // namespace klap::runtime
