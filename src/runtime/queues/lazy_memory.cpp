#include "runtime/queues/lazy_memory.h"

#include <algorithm>

#include "runtime/driver.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 60;  // no device has as many

// The program may take so many bytes at most before the driver is asked again, as others take memory, too.
constexpr uint64_t kMostSpare = uint64_t{256} << 20;

bool has_attribute(CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  return driver()->device_get_attribute(&value, attribute, device) == CUDA_SUCCESS && value != 0;
}

// True if kernels may touch managed memory at any time, so that the driver brings its pages one by one.
bool has_managed_memory(CUdevice& device) {
  const Driver& cuda = *driver();
  return cuda.mem_advise && cuda.mem_prefetch_async && cuda.ctx_get_device(&device) == CUDA_SUCCESS &&
         has_attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) &&
         has_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
}

uint64_t free_memory() {
  size_t left = 0, total = 0;
  return driver()->mem_get_info(&left, &total) == CUDA_SUCCESS ? left : 0;
}

}  // namespace

LazyMemory::~LazyMemory() { users_.fetch_sub(blocks_.load()); }

bool LazyMemory::is_on() {
  State state = state_.load(std::memory_order_relaxed);
  if (state == State::Unknown) {
    state = has_managed_memory(device_) ? State::On : State::Off;
    state_.store(state, std::memory_order_relaxed);
  }
  return state == State::On;
}

void LazyMemory::turn_off() {
  State expected = State::On;  // not Ended
  state_.compare_exchange_strong(expected, State::Off);
}

void LazyMemory::fail(const char* what, CUresult result) {
  log().debug("new queues take all of their memory at once: {} fails ({})", what, error_name(result));
  turn_off();
}

CUdeviceptr LazyMemory::allocate(const LazyShape& shape) {
  CUdeviceptr address = 0;
  const CUresult result = driver()->mem_alloc_managed(&address, shape.addresses, CU_MEM_ATTACH_GLOBAL);
  if (result == CUDA_SUCCESS) return address;
  fail("cuMemAllocManaged", result);
  return 0;
}

bool LazyMemory::fetch(CUdeviceptr address, uint64_t bytes, CUstream stream) {
  const Driver& cuda = *driver();
  CUresult result = cuda.mem_advise(address, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device_);
  if (result != CUDA_SUCCESS) {
    fail("cuMemAdvise", result);
    return false;
  }
  result = cuda.mem_prefetch_async(address, bytes, device_, stream);
  if (result != CUDA_SUCCESS) fail("cuMemPrefetchAsync", result);
  return result == CUDA_SUCCESS;
}

bool LazyMemory::add(uint64_t bytes) {
  const uint64_t all = bytes_.load() + bytes, left = free_memory();
  if (left < all) {
    log().debug("new queues take all of their memory at once: {} bytes are free of {}", left, all);
    turn_off();
    return false;
  }
  bytes_.fetch_add(bytes);
  blocks_.fetch_add(1);
  users_.fetch_add(1);
  spare_.store(static_cast<int64_t>(std::min(left - all, kMostSpare)));
  return true;
}

void LazyMemory::remove(uint64_t bytes) {
  bytes_.fetch_sub(bytes);
  blocks_.fetch_sub(1);
  users_.fetch_sub(1);
}

bool LazyMemory::is_short_without(uint64_t bytes) {
  const uint64_t used = bytes_.load();
  if (used == 0 || bytes > kMostBytes) return false;
  if (spare_.fetch_sub(static_cast<int64_t>(bytes)) >= static_cast<int64_t>(bytes)) return false;
  const uint64_t left = free_memory();
  // An allocation that is larger than all this fails, and takes nothing.
  const bool can_succeed = bytes <= left + used;
  const uint64_t then = can_succeed ? left - std::min(left, bytes) : left;
  spare_.store(static_cast<int64_t>(std::min(then - std::min(then, used), kMostSpare)));
  return then < used;
}

}  // namespace klap::runtime
