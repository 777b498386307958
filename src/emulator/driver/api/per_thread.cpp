// Forms of the functions in which a null stream is the calling thread's own. Programs call these if they are
// compiled with a default stream for each thread. Each calls the other form with that stream.
#include "emulator/driver/api.h"

namespace {

template <auto kFunction, typename... Arguments>
CUresult per_thread(Arguments... arguments) {
  const klap::emulator::driver::PerThreadDefault here;
  return kFunction(arguments...);
}

}  // namespace

KLAP_DRIVER_API cuEventRecordWithFlags_ptsz(CUevent h_event, CUstream h_stream, unsigned int flags) {
  return per_thread<cuEventRecordWithFlags>(h_event, h_stream, flags);
}

KLAP_DRIVER_API cuEventRecord_ptsz(CUevent h_event, CUstream h_stream) {
  return per_thread<cuEventRecord>(h_event, h_stream);
}

KLAP_DRIVER_API cuGraphInstantiateWithParams_ptsz(CUgraphExec* ph_graph_exec, CUgraph h_graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS* instantiate_params) {
  return per_thread<cuGraphInstantiateWithParams>(ph_graph_exec, h_graph, instantiate_params);
}

KLAP_DRIVER_API cuGraphLaunch_ptsz(CUgraphExec h_graph_exec, CUstream h_stream) {
  return per_thread<cuGraphLaunch>(h_graph_exec, h_stream);
}

KLAP_DRIVER_API cuGraphUpload_ptsz(CUgraphExec h_graph_exec, CUstream h_stream) {
  return per_thread<cuGraphUpload>(h_graph_exec, h_stream);
}

KLAP_DRIVER_API cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int grid_dim_x, unsigned int grid_dim_y,
                                               unsigned int grid_dim_z, unsigned int block_dim_x,
                                               unsigned int block_dim_y, unsigned int block_dim_z,
                                               unsigned int shared_mem_bytes, CUstream h_stream,
                                               void** kernel_params) {
  return per_thread<cuLaunchCooperativeKernel>(f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x,
                                               block_dim_y, block_dim_z, shared_mem_bytes, h_stream,
                                               kernel_params);
}

KLAP_DRIVER_API cuLaunchHostFunc_ptsz(CUstream h_stream, CUhostFn fn, void* user_data) {
  return per_thread<cuLaunchHostFunc>(h_stream, fn, user_data);
}

KLAP_DRIVER_API cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** kernel_params,
                                      void** extra) {
  return per_thread<cuLaunchKernelEx>(config, f, kernel_params, extra);
}

KLAP_DRIVER_API cuLaunchKernel_ptsz(CUfunction f, unsigned int grid_dim_x, unsigned int grid_dim_y,
                                    unsigned int grid_dim_z, unsigned int block_dim_x,
                                    unsigned int block_dim_y, unsigned int block_dim_z,
                                    unsigned int shared_mem_bytes, CUstream h_stream, void** kernel_params,
                                    void** extra) {
  return per_thread<cuLaunchKernel>(f, grid_dim_x, grid_dim_y, grid_dim_z, block_dim_x, block_dim_y,
                                    block_dim_z, shared_mem_bytes, h_stream, kernel_params, extra);
}

KLAP_DRIVER_API cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream h_stream) {
  return per_thread<cuMemAllocAsync>(dptr, bytesize, h_stream);
}

KLAP_DRIVER_API cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                             CUstream h_stream) {
  return per_thread<cuMemAllocFromPoolAsync>(dptr, bytesize, pool, h_stream);
}

KLAP_DRIVER_API cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream h_stream) {
  return per_thread<cuMemFreeAsync>(dptr, h_stream);
}

KLAP_DRIVER_API cuMemPrefetchAsync_ptsz(CUdeviceptr dev_ptr, size_t count, CUdevice dst_device,
                                        CUstream h_stream) {
  return per_thread<cuMemPrefetchAsync>(dev_ptr, count, dst_device, h_stream);
}

KLAP_DRIVER_API cuMemPrefetchAsync_v2_ptsz(CUdeviceptr dev_ptr, size_t count, CUmemLocation location,
                                           unsigned int flags, CUstream h_stream) {
  return per_thread<cuMemPrefetchAsync_v2>(dev_ptr, count, location, flags, h_stream);
}

KLAP_DRIVER_API cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* p_copy, CUstream h_stream) {
  return per_thread<cuMemcpy2DAsync_v2>(p_copy, h_stream);
}

KLAP_DRIVER_API cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* p_copy) {
  return per_thread<cuMemcpy2DUnaligned_v2>(p_copy);
}

KLAP_DRIVER_API cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* p_copy) { return per_thread<cuMemcpy2D_v2>(p_copy); }

KLAP_DRIVER_API cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* p_copy, CUstream h_stream) {
  return per_thread<cuMemcpy3DAsync_v2>(p_copy, h_stream);
}

KLAP_DRIVER_API cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* p_copy) { return per_thread<cuMemcpy3D_v2>(p_copy); }

KLAP_DRIVER_API cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t byte_count, CUstream h_stream) {
  return per_thread<cuMemcpyAsync>(dst, src, byte_count, h_stream);
}

KLAP_DRIVER_API cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst_device, CUdeviceptr src_device, size_t byte_count,
                                          CUstream h_stream) {
  return per_thread<cuMemcpyDtoDAsync_v2>(dst_device, src_device, byte_count, h_stream);
}

KLAP_DRIVER_API cuMemcpyDtoD_v2_ptds(CUdeviceptr dst_device, CUdeviceptr src_device, size_t byte_count) {
  return per_thread<cuMemcpyDtoD_v2>(dst_device, src_device, byte_count);
}

KLAP_DRIVER_API cuMemcpyDtoHAsync_v2_ptsz(void* dst_host, CUdeviceptr src_device, size_t byte_count,
                                          CUstream h_stream) {
  return per_thread<cuMemcpyDtoHAsync_v2>(dst_host, src_device, byte_count, h_stream);
}

KLAP_DRIVER_API cuMemcpyDtoH_v2_ptds(void* dst_host, CUdeviceptr src_device, size_t byte_count) {
  return per_thread<cuMemcpyDtoH_v2>(dst_host, src_device, byte_count);
}

KLAP_DRIVER_API cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst_device, const void* src_host, size_t byte_count,
                                          CUstream h_stream) {
  return per_thread<cuMemcpyHtoDAsync_v2>(dst_device, src_host, byte_count, h_stream);
}

KLAP_DRIVER_API cuMemcpyHtoD_v2_ptds(CUdeviceptr dst_device, const void* src_host, size_t byte_count) {
  return per_thread<cuMemcpyHtoD_v2>(dst_device, src_host, byte_count);
}

KLAP_DRIVER_API cuMemcpyPeerAsync_ptsz(CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device,
                                       CUcontext src_context, size_t byte_count, CUstream h_stream) {
  return per_thread<cuMemcpyPeerAsync>(dst_device, dst_context, src_device, src_context, byte_count,
                                       h_stream);
}

KLAP_DRIVER_API cuMemcpyPeer_ptds(CUdeviceptr dst_device, CUcontext dst_context, CUdeviceptr src_device,
                                  CUcontext src_context, size_t byte_count) {
  return per_thread<cuMemcpyPeer>(dst_device, dst_context, src_device, src_context, byte_count);
}

KLAP_DRIVER_API cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t byte_count) {
  return per_thread<cuMemcpy>(dst, src, byte_count);
}

KLAP_DRIVER_API cuMemsetD16Async_ptsz(CUdeviceptr dst_device, unsigned short us, size_t n,
                                      CUstream h_stream) {
  return per_thread<cuMemsetD16Async>(dst_device, us, n, h_stream);
}

KLAP_DRIVER_API cuMemsetD16_v2_ptds(CUdeviceptr dst_device, unsigned short us, size_t n) {
  return per_thread<cuMemsetD16_v2>(dst_device, us, n);
}

KLAP_DRIVER_API cuMemsetD2D16Async_ptsz(CUdeviceptr dst_device, size_t dst_pitch, unsigned short us,
                                        size_t width, size_t height, CUstream h_stream) {
  return per_thread<cuMemsetD2D16Async>(dst_device, dst_pitch, us, width, height, h_stream);
}

KLAP_DRIVER_API cuMemsetD2D16_v2_ptds(CUdeviceptr dst_device, size_t dst_pitch, unsigned short us,
                                      size_t width, size_t height) {
  return per_thread<cuMemsetD2D16_v2>(dst_device, dst_pitch, us, width, height);
}

KLAP_DRIVER_API cuMemsetD2D32Async_ptsz(CUdeviceptr dst_device, size_t dst_pitch, unsigned int ui,
                                        size_t width, size_t height, CUstream h_stream) {
  return per_thread<cuMemsetD2D32Async>(dst_device, dst_pitch, ui, width, height, h_stream);
}

KLAP_DRIVER_API cuMemsetD2D32_v2_ptds(CUdeviceptr dst_device, size_t dst_pitch, unsigned int ui, size_t width,
                                      size_t height) {
  return per_thread<cuMemsetD2D32_v2>(dst_device, dst_pitch, ui, width, height);
}

KLAP_DRIVER_API cuMemsetD2D8Async_ptsz(CUdeviceptr dst_device, size_t dst_pitch, unsigned char uc,
                                       size_t width, size_t height, CUstream h_stream) {
  return per_thread<cuMemsetD2D8Async>(dst_device, dst_pitch, uc, width, height, h_stream);
}

KLAP_DRIVER_API cuMemsetD2D8_v2_ptds(CUdeviceptr dst_device, size_t dst_pitch, unsigned char uc, size_t width,
                                     size_t height) {
  return per_thread<cuMemsetD2D8_v2>(dst_device, dst_pitch, uc, width, height);
}

KLAP_DRIVER_API cuMemsetD32Async_ptsz(CUdeviceptr dst_device, unsigned int ui, size_t n, CUstream h_stream) {
  return per_thread<cuMemsetD32Async>(dst_device, ui, n, h_stream);
}

KLAP_DRIVER_API cuMemsetD32_v2_ptds(CUdeviceptr dst_device, unsigned int ui, size_t n) {
  return per_thread<cuMemsetD32_v2>(dst_device, ui, n);
}

KLAP_DRIVER_API cuMemsetD8Async_ptsz(CUdeviceptr dst_device, unsigned char uc, size_t n, CUstream h_stream) {
  return per_thread<cuMemsetD8Async>(dst_device, uc, n, h_stream);
}

KLAP_DRIVER_API cuMemsetD8_v2_ptds(CUdeviceptr dst_device, unsigned char uc, size_t n) {
  return per_thread<cuMemsetD8_v2>(dst_device, uc, n);
}

KLAP_DRIVER_API cuStreamAddCallback_ptsz(CUstream h_stream, CUstreamCallback callback, void* user_data,
                                         unsigned int flags) {
  return per_thread<cuStreamAddCallback>(h_stream, callback, user_data, flags);
}

KLAP_DRIVER_API cuStreamAttachMemAsync_ptsz(CUstream h_stream, CUdeviceptr dptr, size_t length,
                                            unsigned int flags) {
  return per_thread<cuStreamAttachMemAsync>(h_stream, dptr, length, flags);
}

KLAP_DRIVER_API cuStreamBeginCaptureToGraph_ptsz(CUstream h_stream, CUgraph h_graph,
                                                 const CUgraphNode* dependencies,
                                                 const CUgraphEdgeData* dependency_data,
                                                 size_t num_dependencies, CUstreamCaptureMode mode) {
  return per_thread<cuStreamBeginCaptureToGraph>(h_stream, h_graph, dependencies, dependency_data,
                                                 num_dependencies, mode);
}

KLAP_DRIVER_API cuStreamBeginCapture_ptsz(CUstream h_stream) {
  return per_thread<cuStreamBeginCapture>(h_stream);
}

KLAP_DRIVER_API cuStreamBeginCapture_v2_ptsz(CUstream h_stream, CUstreamCaptureMode mode) {
  return per_thread<cuStreamBeginCapture_v2>(h_stream, mode);
}

KLAP_DRIVER_API cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src) {
  return per_thread<cuStreamCopyAttributes>(dst, src);
}

KLAP_DRIVER_API cuStreamEndCapture_ptsz(CUstream h_stream, CUgraph* ph_graph) {
  return per_thread<cuStreamEndCapture>(h_stream, ph_graph);
}

KLAP_DRIVER_API cuStreamGetAttribute_ptsz(CUstream h_stream, CUstreamAttrID attr,
                                          CUstreamAttrValue* value_out) {
  return per_thread<cuStreamGetAttribute>(h_stream, attr, value_out);
}

KLAP_DRIVER_API cuStreamGetCaptureInfo_ptsz(CUstream h_stream, CUstreamCaptureStatus* capture_status_out,
                                            cuuint64_t* id_out) {
  return per_thread<cuStreamGetCaptureInfo>(h_stream, capture_status_out, id_out);
}

KLAP_DRIVER_API cuStreamGetCaptureInfo_v2_ptsz(CUstream h_stream, CUstreamCaptureStatus* capture_status_out,
                                               cuuint64_t* id_out, CUgraph* graph_out,
                                               const CUgraphNode** dependencies_out,
                                               size_t* num_dependencies_out) {
  return per_thread<cuStreamGetCaptureInfo_v2>(h_stream, capture_status_out, id_out, graph_out,
                                               dependencies_out, num_dependencies_out);
}

KLAP_DRIVER_API cuStreamGetCaptureInfo_v3_ptsz(CUstream h_stream, CUstreamCaptureStatus* capture_status_out,
                                               cuuint64_t* id_out, CUgraph* graph_out,
                                               const CUgraphNode** dependencies_out,
                                               const CUgraphEdgeData** edge_data_out,
                                               size_t* num_dependencies_out) {
  return per_thread<cuStreamGetCaptureInfo_v3>(h_stream, capture_status_out, id_out, graph_out,
                                               dependencies_out, edge_data_out, num_dependencies_out);
}

KLAP_DRIVER_API cuStreamGetCtx_ptsz(CUstream h_stream, CUcontext* pctx) {
  return per_thread<cuStreamGetCtx>(h_stream, pctx);
}

KLAP_DRIVER_API cuStreamGetCtx_v2_ptsz(CUstream h_stream, CUcontext* p_ctx, CUgreenCtx* p_green_ctx) {
  return per_thread<cuStreamGetCtx_v2>(h_stream, p_ctx, p_green_ctx);
}

KLAP_DRIVER_API cuStreamGetDevice_ptsz(CUstream h_stream, CUdevice* device) {
  return per_thread<cuStreamGetDevice>(h_stream, device);
}

KLAP_DRIVER_API cuStreamGetFlags_ptsz(CUstream h_stream, unsigned int* flags) {
  return per_thread<cuStreamGetFlags>(h_stream, flags);
}

KLAP_DRIVER_API cuStreamGetId_ptsz(CUstream h_stream, unsigned long long* stream_id) {
  return per_thread<cuStreamGetId>(h_stream, stream_id);
}

KLAP_DRIVER_API cuStreamGetPriority_ptsz(CUstream h_stream, int* priority) {
  return per_thread<cuStreamGetPriority>(h_stream, priority);
}

KLAP_DRIVER_API cuStreamIsCapturing_ptsz(CUstream h_stream, CUstreamCaptureStatus* capture_status) {
  return per_thread<cuStreamIsCapturing>(h_stream, capture_status);
}

KLAP_DRIVER_API cuStreamQuery_ptsz(CUstream h_stream) { return per_thread<cuStreamQuery>(h_stream); }

KLAP_DRIVER_API cuStreamSetAttribute_ptsz(CUstream h_stream, CUstreamAttrID attr,
                                          const CUstreamAttrValue* value) {
  return per_thread<cuStreamSetAttribute>(h_stream, attr, value);
}

KLAP_DRIVER_API cuStreamSynchronize_ptsz(CUstream h_stream) {
  return per_thread<cuStreamSynchronize>(h_stream);
}

KLAP_DRIVER_API cuStreamUpdateCaptureDependencies_ptsz(CUstream h_stream, CUgraphNode* dependencies,
                                                       size_t num_dependencies, unsigned int flags) {
  return per_thread<cuStreamUpdateCaptureDependencies>(h_stream, dependencies, num_dependencies, flags);
}

KLAP_DRIVER_API cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream h_stream, CUgraphNode* dependencies,
                                                          const CUgraphEdgeData* dependency_data,
                                                          size_t num_dependencies, unsigned int flags) {
  return per_thread<cuStreamUpdateCaptureDependencies_v2>(h_stream, dependencies, dependency_data,
                                                          num_dependencies, flags);
}

KLAP_DRIVER_API cuStreamWaitEvent_ptsz(CUstream h_stream, CUevent h_event, unsigned int flags) {
  return per_thread<cuStreamWaitEvent>(h_stream, h_event, flags);
}
