// Queries of programs about an address.
#include <cstring>

#include "emulator/driver/context.h"
#include "emulator/driver/process.h"

using namespace klap::emulator::driver;

namespace {

template <typename T>
void put(void* where, T value) {
  std::memcpy(where, &value, sizeof value);
}

// For an address that the driver does not know: null, 0 or an error, by attribute.
bool put_unknown(CUpointer_attribute attribute, void* value) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      put<uint64_t>(value, 0);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      put<unsigned>(value, 0);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put<int>(value, CU_DEVICE_INVALID);
      return true;
    default:
      return false;
  }
}

void put_known(CUpointer_attribute attribute, void* value, const Owned& owned, CUdeviceptr address) {
  const Block& block = owned.block;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(value, owned.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: {
      const bool host = block.kind == BlockKind::Pinned || block.kind == BlockKind::Registered;
      return put<unsigned>(value, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    }
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(value, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(block.is_host());
      return put(value, address);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put<int>(value, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(value, block.id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put<int>(value, block.kind == BlockKind::Managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put<int>(value, owned.context->device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      // Memory from cuMemAlloc is capable. A variable of a module, which has no number, is not.
      return put<int>(value, block.kind == BlockKind::Device && block.id != 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put<int>(value, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(value, block.address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put<size_t>(value, block.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put<int>(value, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put<uint64_t>(value, 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put<int>(value, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace

KLAP_DRIVER_API cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return call("cuPointerGetAttribute", [&](Process& process) {
    require(value != nullptr);
    const auto owned = owner_of(process, address);
    require(owned.has_value());
    put_known(attribute, value, *owned, address);
  });
}

// Unlike the function for one attribute it has an answer for any address.
KLAP_DRIVER_API cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                       CUdeviceptr address) {
  return call("cuPointerGetAttributes", [&](Process& process) {
    require(count != 0 && attributes != nullptr && values != nullptr);
    const auto owned = owner_of(process, address);
    for (unsigned i = 0; i < count; ++i) {
      const bool no_host_side = owned && !owned->block.is_host();
      if (!owned || (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && no_host_side)) {
        require(put_unknown(attributes[i], values[i]));
      } else {
        put_known(attributes[i], values[i], *owned, address);
      }
    }
  });
}

KLAP_DRIVER_API cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return call("cuPointerSetAttribute", [&](Process& process) {
    require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    require(owner_of(process, address).has_value());
  });
}
