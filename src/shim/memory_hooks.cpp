// These hooks allocate and free device memory. The memory is the program's first: if an allocation fails, the
// queues' memory is given back, and it is tried once more. Freeing memory ends the facts about its addresses.
#include "shim/guard.h"
#include "shim/hooks.h"

using namespace klap;
using runtime::Driver;
using shim::allocate;
using shim::release;

extern "C" {

KLAP_EXPORT CUresult CUDAAPI cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* form) {
  return allocate<&Driver::array_3d_create>("cuArray3DCreate_v2", array, form);
}

KLAP_EXPORT CUresult CUDAAPI cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* form) {
  return allocate<&Driver::array_create>("cuArrayCreate_v2", array, form);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return allocate<&Driver::mem_alloc>("cuMemAlloc_v2", address, bytes);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate<&Driver::mem_alloc_async>("cuMemAllocAsync", address, bytes, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate<&Driver::mem_alloc_async_ptsz>("cuMemAllocAsync_ptsz", address, bytes, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                                     CUstream stream) {
  return allocate<&Driver::mem_alloc_from_pool_async>("cuMemAllocFromPoolAsync", address, bytes, pool,
                                                      stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes,
                                                          CUmemoryPool pool, CUstream stream) {
  return allocate<&Driver::mem_alloc_from_pool_async_ptsz>("cuMemAllocFromPoolAsync_ptsz", address, bytes,
                                                           pool, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return allocate<&Driver::mem_alloc_managed>("cuMemAllocManaged", address, bytes, flags);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width,
                                                size_t height, unsigned element_bytes) {
  return allocate<&Driver::mem_alloc_pitch>("cuMemAllocPitch_v2", address, pitch, width, height,
                                            element_bytes);
}

KLAP_EXPORT CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                         const CUmemAllocationProp* properties, unsigned long long flags) {
  return allocate<&Driver::mem_create>("cuMemCreate", handle, bytes, properties, flags);
}

KLAP_EXPORT CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) { return release<&Driver::mem_free>(address); }

KLAP_EXPORT CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return release<&Driver::mem_free_async>(address, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return release<&Driver::mem_free_async_ptsz>(address, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray* array,
                                                    const CUDA_ARRAY3D_DESCRIPTOR* form, unsigned levels) {
  return allocate<&Driver::mipmapped_array_create>("cuMipmappedArrayCreate", array, form, levels);
}

}  // extern "C"
