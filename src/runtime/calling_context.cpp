#include "runtime/calling_context.h"

#include <cuda.h>

#include "runtime/driver.h"
#include "support/own_thread.h"

namespace klap::runtime {

namespace {

// The compute capability of a device, 90 for 9.0; 0 if the driver does not say.
uint32_t compute_capability(CUdevice device) {
  int major = 0, minor = 0;
  const Driver& cuda = *driver();
  if (cuda.device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) !=
          CUDA_SUCCESS ||
      cuda.device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) !=
          CUDA_SUCCESS) {
    return 0;
  }
  return static_cast<uint32_t>(major * 10 + minor);
}

// The compute capability that a library is compiled for. It is the one of all devices, since a library may be
// used on each and often is loaded before there is a context. It is 0 if they differ.
uint32_t capability_of_every_device() {
  int count = 0;
  if (driver()->device_get_count(&count) != CUDA_SUCCESS) return 0;
  uint32_t common = 0;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (driver()->device_get(&device, i) != CUDA_SUCCESS) return 0;
    const uint32_t capability = compute_capability(device);
    if (i != 0 && capability != common) return 0;
    common = capability;
  }
  return common;
}

}  // namespace

uint32_t target_capability(bool every_device) {
  if (every_device) return capability_of_every_device();
  CUdevice device = 0;
  return driver()->ctx_get_device(&device) == CUDA_SUCCESS ? compute_capability(device) : 0;
}

void in_own_thread(const std::function<void()>& work) {
  if (is_own_thread()) return work();
  CUcontext context = nullptr;
  const Driver* const cuda = driver();
  if (cuda == nullptr || cuda->ctx_get_current(&context) != CUDA_SUCCESS) context = nullptr;
  run_in_own_thread([&] {
    if (context != nullptr) cuda->ctx_set_current(context);
    work();
  });
}

}  // namespace klap::runtime
