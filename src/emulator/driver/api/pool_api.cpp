// Memory pools that the program makes. Their purpose, reusing freed memory, is not seen from outside: a pool
// here only remembers its device and its attributes.
#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"
#include "emulator/driver/streams/stream.h"

using namespace klap::emulator::driver;

namespace {

CUmemPoolHandle_st& known(Process& process, CUmemoryPool pool) {
  require(process.pools.knows(pool));
  return *pool;
}

// The attributes that say how memory is reused and how much is kept. All others are about memory in use.
bool is_switch(CUmemPool_attribute attribute) {
  return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
         attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

}  // namespace

KLAP_DRIVER_API cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  return call("cuMemPoolCreate", [&](Process& process) {
    require(pool != nullptr && properties != nullptr);
    require(properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
            properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    require(properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
    require_device(process, properties->location.id);
    *pool = process.pools.make();
    (*pool)->device = properties->location.id;
  });
}

KLAP_DRIVER_API cuMemPoolDestroy(CUmemoryPool pool) {
  return call("cuMemPoolDestroy", [&](Process& process) {
    known(process, pool);
    process.pools.destroy(pool);
  });
}

KLAP_DRIVER_API cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return call("cuMemPoolSetAttribute", [&](Process& process) {
    CUmemPoolHandle_st& of = known(process, pool);
    require(value != nullptr);
    if (is_switch(attribute)) {
      of.switches[attribute] = *static_cast<int*>(value) != 0;
    } else {
      require(attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CUDA_ERROR_NOT_SUPPORTED);
      of.release_threshold = *static_cast<cuuint64_t*>(value);
    }
  });
}

KLAP_DRIVER_API cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return call("cuMemPoolGetAttribute", [&](Process& process) {
    CUmemPoolHandle_st& of = known(process, pool);
    require(value != nullptr);
    if (is_switch(attribute)) {
      *static_cast<int*>(value) = of.switches.try_emplace(attribute, true).first->second ? 1 : 0;
    } else {
      require(attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CUDA_ERROR_NOT_SUPPORTED);
      *static_cast<cuuint64_t*>(value) = of.release_threshold;
    }
  });
}

KLAP_DRIVER_API cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                        CUstream stream) {
  return call("cuMemAllocFromPoolAsync", [&](Process& process) {
    require(known(process, pool).device == resolve(process, stream).context->device);
    check(cuMemAllocAsync(address, bytes, stream));
  });
}
