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

std::optional<uint64_t> current_context() {
  CUcontext context = nullptr;
  if (driver()->ctx_get_current(&context) != CUDA_SUCCESS) return std::nullopt;
  return id_of_context(context);
}

}  // namespace

std::optional<CUresult> set_sync_depth(CUlimit limit, size_t value) {
  if (limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) return std::nullopt;
  const CUresult native = driver()->ctx_set_limit(limit, value);
  const std::optional<uint64_t> context = current_context();
  if (native != CUDA_ERROR_UNSUPPORTED_LIMIT || !context) return native;
  if (value > kMost) return CUDA_ERROR_INVALID_VALUE;
  depths().set(*context, value);
  return CUDA_SUCCESS;
}

std::optional<CUresult> get_sync_depth(size_t* value, CUlimit limit) {
  if (limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) return std::nullopt;
  const CUresult native = driver()->ctx_get_limit(value, limit);
  const std::optional<uint64_t> context = current_context();
  if (native != CUDA_ERROR_UNSUPPORTED_LIMIT || !context) return native;
  *value = depths().get(*context);
  return CUDA_SUCCESS;
}

void forget_sync_depth(uint64_t id) { depths().forget(id); }

}  // namespace klap::runtime
