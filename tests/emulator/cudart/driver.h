// The driver functions that the stand-in calls, found as the CUDA runtime finds them.
//
// libcuda is opened when a program first needs it. Each function is asked for through cuGetProcAddress by
// name and the version of its signature. Preload libraries rely on both, so a stand-in that linked libcuda
// would not test what programs do. Two tables exist because code compiled with `--default-stream per-thread`
// means another stream by 0.
#pragma once

#include <cudaTypedefs.h>

namespace klap::cudart {

void report_missing(const char* name);

// A function of the driver, or the refusal that replaces a function that this driver does not have.
template <class Pointer>
class Function;

template <class... Arguments>
class Function<CUresult(CUDAAPI*)(Arguments...)> {
 public:
  using Pointer = CUresult(CUDAAPI*)(Arguments...);
  Function(const char* name, void* found) : name_(name), pointer_(reinterpret_cast<Pointer>(found)) {}

  CUresult operator()(Arguments... arguments) const {
    if (pointer_ != nullptr) return pointer_(arguments...);
    report_missing(name_);
    return CUDA_ERROR_NOT_SUPPORTED;
  }

 private:
  const char* name_;
  Pointer pointer_;
};

// X(member, name, version, type): version and type belong to one signature, as in cudaTypedefs.h.
#define KLAP_CUDART_DRIVER_FUNCTIONS(X)                                                                      \
  X(init, "cuInit", 2000, PFN_cuInit_v2000)                                                                  \
  X(driver_get_version, "cuDriverGetVersion", 2020, PFN_cuDriverGetVersion_v2020)                            \
  X(get_error_name, "cuGetErrorName", 6000, PFN_cuGetErrorName_v6000)                                        \
  X(get_error_string, "cuGetErrorString", 6000, PFN_cuGetErrorString_v6000)                                  \
  X(device_get, "cuDeviceGet", 2000, PFN_cuDeviceGet_v2000)                                                  \
  X(device_get_count, "cuDeviceGetCount", 2000, PFN_cuDeviceGetCount_v2000)                                  \
  X(device_get_attribute, "cuDeviceGetAttribute", 2000, PFN_cuDeviceGetAttribute_v2000)                      \
  X(primary_ctx_retain, "cuDevicePrimaryCtxRetain", 7000, PFN_cuDevicePrimaryCtxRetain_v7000)                \
  X(primary_ctx_reset, "cuDevicePrimaryCtxReset", 11000, PFN_cuDevicePrimaryCtxReset_v11000)                 \
  X(ctx_set_current, "cuCtxSetCurrent", 4000, PFN_cuCtxSetCurrent_v4000)                                     \
  X(ctx_synchronize, "cuCtxSynchronize", 2000, PFN_cuCtxSynchronize_v2000)                                   \
  X(ctx_set_limit, "cuCtxSetLimit", 3010, PFN_cuCtxSetLimit_v3010)                                           \
  X(ctx_get_limit, "cuCtxGetLimit", 3010, PFN_cuCtxGetLimit_v3010)                                           \
  X(library_load_data, "cuLibraryLoadData", 12000, PFN_cuLibraryLoadData_v12000)                             \
  X(library_get_kernel, "cuLibraryGetKernel", 12000, PFN_cuLibraryGetKernel_v12000)                          \
  X(library_get_global, "cuLibraryGetGlobal", 12000, PFN_cuLibraryGetGlobal_v12000)                          \
  X(library_get_managed, "cuLibraryGetManaged", 12000, PFN_cuLibraryGetManaged_v12000)                       \
  X(kernel_get_function, "cuKernelGetFunction", 12000, PFN_cuKernelGetFunction_v12000)                       \
  X(kernel_get_attribute, "cuKernelGetAttribute", 12000, PFN_cuKernelGetAttribute_v12000)                    \
  X(kernel_set_attribute, "cuKernelSetAttribute", 12000, PFN_cuKernelSetAttribute_v12000)                    \
  X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000,                                 \
    PFN_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000)                                          \
  X(launch_kernel, "cuLaunchKernel", 4000, PFN_cuLaunchKernel_v4000)                                         \
  X(launch_kernel_ex, "cuLaunchKernelEx", 11060, PFN_cuLaunchKernelEx_v11060)                                \
  X(launch_cooperative_kernel, "cuLaunchCooperativeKernel", 9000, PFN_cuLaunchCooperativeKernel_v9000)       \
  X(mem_alloc, "cuMemAlloc", 3020, PFN_cuMemAlloc_v3020)                                                     \
  X(mem_free, "cuMemFree", 3020, PFN_cuMemFree_v3020)                                                        \
  X(mem_get_info, "cuMemGetInfo", 3020, PFN_cuMemGetInfo_v3020)                                              \
  X(mem_host_alloc, "cuMemHostAlloc", 2020, PFN_cuMemHostAlloc_v2020)                                        \
  X(mem_free_host, "cuMemFreeHost", 2000, PFN_cuMemFreeHost_v2000)                                           \
  X(memcpy, "cuMemcpy", 4000, PFN_cuMemcpy_v4000)                                                            \
  X(memcpy_htod, "cuMemcpyHtoD", 3020, PFN_cuMemcpyHtoD_v3020)                                               \
  X(memcpy_dtoh, "cuMemcpyDtoH", 3020, PFN_cuMemcpyDtoH_v3020)                                               \
  X(memcpy_dtod, "cuMemcpyDtoD", 3020, PFN_cuMemcpyDtoD_v3020)                                               \
  X(memcpy_async, "cuMemcpyAsync", 4000, PFN_cuMemcpyAsync_v4000)                                            \
  X(memcpy_htod_async, "cuMemcpyHtoDAsync", 3020, PFN_cuMemcpyHtoDAsync_v3020)                               \
  X(memcpy_dtoh_async, "cuMemcpyDtoHAsync", 3020, PFN_cuMemcpyDtoHAsync_v3020)                               \
  X(memcpy_dtod_async, "cuMemcpyDtoDAsync", 3020, PFN_cuMemcpyDtoDAsync_v3020)                               \
  X(memcpy_2d_async, "cuMemcpy2DAsync", 3020, PFN_cuMemcpy2DAsync_v3020)                                     \
  X(memset_d8, "cuMemsetD8", 3020, PFN_cuMemsetD8_v3020)                                                     \
  X(memset_d8_async, "cuMemsetD8Async", 3020, PFN_cuMemsetD8Async_v3020)                                     \
  X(stream_create, "cuStreamCreate", 2000, PFN_cuStreamCreate_v2000)                                         \
  X(stream_destroy, "cuStreamDestroy", 4000, PFN_cuStreamDestroy_v4000)                                      \
  X(stream_synchronize, "cuStreamSynchronize", 2000, PFN_cuStreamSynchronize_v2000)                          \
  X(stream_query, "cuStreamQuery", 2000, PFN_cuStreamQuery_v2000)                                            \
  X(stream_wait_event, "cuStreamWaitEvent", 3020, PFN_cuStreamWaitEvent_v3020)                               \
  X(stream_is_capturing, "cuStreamIsCapturing", 10000, PFN_cuStreamIsCapturing_v10000)                       \
  X(stream_begin_capture, "cuStreamBeginCapture", 10010, PFN_cuStreamBeginCapture_v10010)                    \
  X(stream_end_capture, "cuStreamEndCapture", 10000, PFN_cuStreamEndCapture_v10000)                          \
  X(graph_create, "cuGraphCreate", 10000, PFN_cuGraphCreate_v10000)                                          \
  X(graph_clone, "cuGraphClone", 10000, PFN_cuGraphClone_v10000)                                             \
  X(graph_get_nodes, "cuGraphGetNodes", 10000, PFN_cuGraphGetNodes_v10000)                                   \
  X(graph_add_kernel, "cuGraphAddKernelNode", 12000, PFN_cuGraphAddKernelNode_v12000)                        \
  X(graph_add_memset, "cuGraphAddMemsetNode", 10000, PFN_cuGraphAddMemsetNode_v10000)                        \
  X(graph_add_child, "cuGraphAddChildGraphNode", 10000, PFN_cuGraphAddChildGraphNode_v10000)                 \
  X(graph_child_get_graph, "cuGraphChildGraphNodeGetGraph", 10000, PFN_cuGraphChildGraphNodeGetGraph_v10000) \
  X(exec_set_kernel, "cuGraphExecKernelNodeSetParams", 12000, PFN_cuGraphExecKernelNodeSetParams_v12000)     \
  X(exec_set_memset, "cuGraphExecMemsetNodeSetParams", 10020, PFN_cuGraphExecMemsetNodeSetParams_v10020)     \
  X(exec_set_child, "cuGraphExecChildGraphNodeSetParams", 11010,                                             \
    PFN_cuGraphExecChildGraphNodeSetParams_v11010)                                                           \
  X(exec_set_enabled, "cuGraphNodeSetEnabled", 11060, PFN_cuGraphNodeSetEnabled_v11060)                      \
  X(graph_exec_update, "cuGraphExecUpdate", 12000, PFN_cuGraphExecUpdate_v12000)                             \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", 11040, PFN_cuGraphInstantiateWithFlags_v11040)         \
  X(graph_launch, "cuGraphLaunch", 10000, PFN_cuGraphLaunch_v10000)                                          \
  X(graph_exec_destroy, "cuGraphExecDestroy", 10000, PFN_cuGraphExecDestroy_v10000)                          \
  X(graph_destroy, "cuGraphDestroy", 10000, PFN_cuGraphDestroy_v10000)                                       \
  X(event_create, "cuEventCreate", 2000, PFN_cuEventCreate_v2000)                                            \
  X(event_destroy, "cuEventDestroy", 4000, PFN_cuEventDestroy_v4000)                                         \
  X(event_record, "cuEventRecord", 2000, PFN_cuEventRecord_v2000)                                            \
  X(event_query, "cuEventQuery", 2000, PFN_cuEventQuery_v2000)                                               \
  X(event_synchronize, "cuEventSynchronize", 2000, PFN_cuEventSynchronize_v2000)                             \
  X(event_elapsed_time, "cuEventElapsedTime", 2000, PFN_cuEventElapsedTime_v2000)

struct Driver {
#define X(member, name, version, type) Function<type> member;
  KLAP_CUDART_DRIVER_FUNCTIONS(X)
#undef X
};

// While it lives, driver() is the table of code compiled for per-thread default streams, in this thread.
class PerThreadDefault {
 public:
  PerThreadDefault() : before_(on) { on = true; }
  ~PerThreadDefault() { on = before_; }
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;
  static thread_local bool on;

 private:
  bool before_;
};

// Null where there is no libcuda. Opens it at the first call.
const Driver* driver();

}  // namespace klap::cudart
