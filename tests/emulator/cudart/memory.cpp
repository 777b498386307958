// Memory, copies and sets.
#include <cstdint>

#include "call.h"
#include "registry.h"

namespace klap::cudart {
namespace {

CUdeviceptr device(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's own convention
void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult copy(const Driver& cu, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cu.memcpy_htod(device(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return cu.memcpy_dtoh(to, device(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return cu.memcpy_dtod(device(to), device(from), bytes);
    default:
      return cu.memcpy(device(to), device(from), bytes);
  }
}

CUresult copy_async(const Driver& cu, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                    cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cu.memcpy_htod_async(device(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return cu.memcpy_dtoh_async(to, device(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return cu.memcpy_dtod_async(device(to), device(from), bytes, stream);
    default:
      return cu.memcpy_async(device(to), device(from), bytes, stream);
  }
}

bool is_kind(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

CUmemorytype source_type(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype destination_type(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

// Where `bytes` of a variable from `offset` on are.
cudaError_t find_part(const void* symbol, size_t bytes, size_t offset, void*& part) {
  DeviceVariable variable;
  const cudaError_t error = find_variable(symbol, variable);
  if (error != cudaSuccess) return error;
  if (offset > variable.bytes || bytes > variable.bytes - offset) return cudaErrorInvalidValue;
  part = pointer(variable.address + offset);
  return cudaSuccess;
}

}  // namespace
}  // namespace klap::cudart

using namespace klap::cudart;

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return drive([&](const Driver& cu) {
    CUdeviceptr address = 0;
    const CUresult result = bytes == 0 ? CUDA_SUCCESS : cu.mem_alloc(&address, bytes);
    if (result == CUDA_SUCCESS) *memory = pointer(address);
    return result;
  });
}

cudaError_t cudaFree(void* memory) {
  return drive(
      [&](const Driver& cu) { return memory == nullptr ? CUDA_SUCCESS : cu.mem_free(device(memory)); });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return drive([&](const Driver& cu) { return cu.mem_get_info(free, total); });
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return drive([&](const Driver& cu) { return cu.mem_host_alloc(memory, bytes, flags); });
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaHostAlloc(memory, bytes, 0); }

cudaError_t cudaFreeHost(void* memory) {
  return drive([&](const Driver& cu) { return memory == nullptr ? CUDA_SUCCESS : cu.mem_free_host(memory); });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (!is_kind(kind)) return note(cudaErrorInvalidMemcpyDirection);
  return drive([&](const Driver& cu) { return copy(cu, to, from, bytes, kind); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (!is_kind(kind)) return note(cudaErrorInvalidMemcpyDirection);
  return drive([&](const Driver& cu) { return copy_async(cu, to, from, bytes, kind, stream); });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!is_kind(kind)) return note(cudaErrorInvalidMemcpyDirection);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = source_type(kind);
  copy.srcHost = from;
  copy.srcDevice = device(from);
  copy.srcPitch = from_pitch;
  copy.dstMemoryType = destination_type(kind);
  copy.dstHost = to;
  copy.dstDevice = device(to);
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return drive([&](const Driver& cu) { return cu.memcpy_2d_async(&copy, stream); });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return in_context([&](const Driver& cu) {
    void* to = nullptr;
    const cudaError_t error = find_part(symbol, bytes, offset, to);
    return error == cudaSuccess ? runtime_error(copy(cu, to, from, bytes, kind)) : error;
  });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return in_context([&](const Driver& cu) {
    void* from = nullptr;
    const cudaError_t error = find_part(symbol, bytes, offset, from);
    return error == cudaSuccess ? runtime_error(copy(cu, to, from, bytes, kind)) : error;
  });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return in_context([&](const Driver&) { return find_part(symbol, 0, 0, *address); });
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return drive([&](const Driver& cu) {
    return cu.memset_d8(device(memory), static_cast<unsigned char>(value), bytes);
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return drive([&](const Driver& cu) {
    return cu.memset_d8_async(device(memory), static_cast<unsigned char>(value), bytes, stream);
  });
}

}  // extern "C"
