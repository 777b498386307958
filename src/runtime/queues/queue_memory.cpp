#include "runtime/queues/queue_memory.h"

#include <utility>

#include "runtime/driver.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// Makes a pool on the current context's device.
CUresult make_pool(CUmemoryPool& pool) {
  const Driver& cuda = *driver();
  CUdevice device = 0;
  CUresult result = cuda.ctx_get_device(&device);
  if (result != CUDA_SUCCESS) return result;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  result = cuda.mem_pool_create(&pool, &properties);
  if (result != CUDA_SUCCESS) return result;
  int no = 0;
  return cuda.mem_pool_set_attribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no);
}

}  // namespace

Block PooledMemory::take(uint64_t bytes, MaybeReason& why) { return pool_.take(bytes, why, of_); }

Block PooledMemory::take_lazy(const LazyShape& shape, MaybeReason& why) {
  return pool_.take_lazy(shape, stream_, why);
}

CUmemoryPool LaunchPool::get() {
  const std::lock_guard lock(mutex_);
  if (pool_) return *pool_;
  CUmemoryPool made = nullptr;
  const CUresult result = make_pool(made);
  if (result != CUDA_SUCCESS) {
    made = nullptr;
    log().warn(
        "buffer malloc: the driver has no memory for single launches ({}); queues are kept as with pool",
        error_name(result));
  }
  pool_ = made;
  return made;
}

void LaunchPool::trim() {
  const std::lock_guard lock(mutex_);
  if (pool_.value_or(nullptr)) driver()->mem_pool_trim_to(*pool_, 0);
}

Block LaunchMemory::take(uint64_t bytes, MaybeReason& why) {
  const uint64_t needed = taken_ + bytes;
  const uint64_t more = needed > reserved_ ? needed - reserved_ : 0;
  why = limit_.reserve(more);
  if (why) return {};
  CUdeviceptr address = 0;
  if (driver()->mem_alloc_from_pool_async(&address, bytes, source_.get(), stream_) != CUDA_SUCCESS) {
    limit_.unreserve(more);
    why = &reasons::kNoDeviceMemory;
    return {};
  }
  taken_ = needed;
  reserved_ += more;
  return {address, bytes};
}

void LaunchMemory::give_back(const Block& block) {
  // An error belongs to earlier work, and is the program's to see.
  (void)driver()->mem_free_async(block.address, stream_);
  taken_ -= block.bytes;
}

uint64_t LaunchMemory::take_reserved() { return std::exchange(reserved_, 0); }

}  // namespace klap::runtime
