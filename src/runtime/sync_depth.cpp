#include "runtime/sync_depth.h"

#include <map>
#include <mutex>

#include "runtime/context_ends.h"
#include "runtime/driver.h"

namespace klap::runtime {

namespace {

// CUDA's own numbers.
constexpr size_t kDefault = 2, kMost = 24;

class Depths {
 public:
  void set(uint64_t context, size_t depth) {
    const std::lock_guard lock(mutex_);
    depths_[context] = depth;
  }
  size_t get(uint64_t context) {
    const std::lock_guard lock(mutex_);
    const auto found = depths_.find(context);
    return found != depths_.end() ? found->second : kDefault;
  }
  void forget(uint64_t context) {
    const std::lock_guard lock(mutex_);
    depths_.erase(context);
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, size_t> depths_;
};

// Leaked on purpose: contexts may end while the program's static objects are being destroyed.
Depths& depths() {
  static auto& all = *new Depths;
  return all;
}

// The context, if its device lacks the limit. The driver is not asked about the limit, since tools would
// report its error as one of the program.
std::optional<uint64_t> context_without_limit() {
  constexpr int kFirstWithout = 9;
  const Driver& cuda = *driver();
  CUcontext context = nullptr;
  CUdevice device = 0;
  int major = 0;
  if (cuda.ctx_get_current(&context) != CUDA_SUCCESS || cuda.ctx_get_device(&device) != CUDA_SUCCESS ||
      cuda.device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS)
    return std::nullopt;
  return major < kFirstWithout ? std::nullopt : id_of_context(context);
}

}  // namespace

std::optional<CUresult> set_sync_depth(CUlimit limit, size_t value) {
  if (limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) return std::nullopt;
  const std::optional<uint64_t> context = context_without_limit();
  if (!context) return std::nullopt;
  if (value > kMost) return CUDA_ERROR_INVALID_VALUE;
  depths().set(*context, value);
  return CUDA_SUCCESS;
}

std::optional<CUresult> get_sync_depth(size_t* value, CUlimit limit) {
  if (limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || value == nullptr) return std::nullopt;
  const std::optional<uint64_t> context = context_without_limit();
  if (!context) return std::nullopt;
  *value = depths().get(*context);
  return CUDA_SUCCESS;
}

void forget_sync_depth(uint64_t id) { depths().forget(id); }

}  // namespace klap::runtime
