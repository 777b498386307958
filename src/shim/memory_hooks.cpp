// These hooks allocate and free device memory. The memory is the program's first: if an allocation fails, the
// queues' memory is given back, and it is tried once more. Managed memory takes pages from others when it is
// used, if there are none, so it counts as nothing here. Freeing memory ends the facts about its addresses.
#include <algorithm>

#include "shim/guard.h"
#include "shim/hooks.h"

using namespace klap;
using runtime::Driver;
using shim::allocate;
using shim::allocate_in;
using shim::release;
using shim::release_in;

namespace {

// The driver rounds rows up.
uint64_t most_bytes(uint64_t width, uint64_t height) {
  constexpr uint64_t kPitch = 4096;
  return (width + kPitch) * height;
}

// Elements of an array have four channels of 4 bytes at most.
uint64_t most_bytes(const CUDA_ARRAY_DESCRIPTOR* form) {
  return form ? most_bytes(16 * uint64_t{form->Width}, std::max<uint64_t>(form->Height, 1)) : 0;
}

uint64_t most_bytes(const CUDA_ARRAY3D_DESCRIPTOR* form) {
  if (!form) return 0;
  return most_bytes(16 * uint64_t{form->Width},
                    std::max<uint64_t>(form->Height, 1) * std::max<uint64_t>(form->Depth, 1));
}

}  // namespace

extern "C" {

KLAP_EXPORT CUresult CUDAAPI cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* form) {
  return allocate<&Driver::array_3d_create>("cuArray3DCreate_v2", most_bytes(form), array, form);
}

KLAP_EXPORT CUresult CUDAAPI cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* form) {
  return allocate<&Driver::array_create>("cuArrayCreate_v2", most_bytes(form), array, form);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return allocate<&Driver::mem_alloc>("cuMemAlloc_v2", bytes, address, bytes);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_in<&Driver::mem_alloc_async>("cuMemAllocAsync", stream, bytes, address, bytes, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_in<&Driver::mem_alloc_async_ptsz>(
      "cuMemAllocAsync_ptsz", runtime::per_thread_stream(stream), bytes, address, bytes, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                                     CUstream stream) {
  return allocate_in<&Driver::mem_alloc_from_pool_async>("cuMemAllocFromPoolAsync", stream, bytes, address,
                                                         bytes, pool, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes,
                                                          CUmemoryPool pool, CUstream stream) {
  return allocate_in<&Driver::mem_alloc_from_pool_async_ptsz>("cuMemAllocFromPoolAsync_ptsz",
                                                              runtime::per_thread_stream(stream), bytes,
                                                              address, bytes, pool, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return allocate<&Driver::mem_alloc_managed>("cuMemAllocManaged", 0, address, bytes, flags);
}

KLAP_EXPORT CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width,
                                                size_t height, unsigned element_bytes) {
  return allocate<&Driver::mem_alloc_pitch>("cuMemAllocPitch_v2", most_bytes(width, height), address, pitch,
                                            width, height, element_bytes);
}

KLAP_EXPORT CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                         const CUmemAllocationProp* properties, unsigned long long flags) {
  return allocate<&Driver::mem_create>("cuMemCreate", bytes, handle, bytes, properties, flags);
}

KLAP_EXPORT CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) { return release<&Driver::mem_free>(address); }

KLAP_EXPORT CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return release_in<&Driver::mem_free_async>(stream, address, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return release_in<&Driver::mem_free_async_ptsz>(runtime::per_thread_stream(stream), address, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray* array,
                                                    const CUDA_ARRAY3D_DESCRIPTOR* form, unsigned levels) {
  return allocate<&Driver::mipmapped_array_create>("cuMipmappedArrayCreate", 2 * most_bytes(form), array,
                                                   form, levels);
}

}  // extern "C"
