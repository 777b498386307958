// Devices, their primary contexts, and the last error.
#include <array>
#include <atomic>
#include <mutex>

#include "call.h"

namespace klap::cudart {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

constexpr int kMostDevices = 8;  // as the emulator has

// The primary context of a device. Those that there have been are counted, so that a thread knows whether it
// has seen the newest.
struct Context {
  std::mutex mutex;
  unsigned number = 0;
  CUcontext handle = nullptr;
};

Context& context_of(int device) {
  static auto& contexts = *new std::array<Context, kMostDevices>;
  return contexts[static_cast<size_t>(device)];
}

// The device that this thread uses, and the context that is current in it because of enter_context().
thread_local int used_device = 0;
thread_local int entered_device = 0;
thread_local unsigned entered = 0;

}  // namespace

cudaError_t note(cudaError_t error) {
  // Not an error but an answer, of those who ask whether work is done.
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

cudaError_t initialise() {
  if (driver() == nullptr) return cudaErrorInsufficientDriver;
  static const CUresult result = driver()->init(0);
  return runtime_error(result);
}

cudaError_t enter_context() {
  cudaError_t error = initialise();
  if (error != cudaSuccess) return error;
  Context& primary = context_of(used_device);
  const std::lock_guard lock(primary.mutex);
  if (primary.handle == nullptr) {
    error = runtime_error(driver()->primary_ctx_retain(&primary.handle, used_device));
    if (error != cudaSuccess) return error;
    ++primary.number;
  }
  if (entered_device == used_device && entered == primary.number) return cudaSuccess;
  error = runtime_error(driver()->ctx_set_current(primary.handle));
  if (error == cudaSuccess) {
    entered_device = used_device;
    entered = primary.number;
  }
  return error;
}

CUdevice current_device() { return used_device; }

void forget_context() {
  Context& primary = context_of(used_device);
  const std::lock_guard lock(primary.mutex);
  primary.handle = nullptr;
}

}  // namespace klap::cudart

using namespace klap::cudart;

extern "C" {

cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  const char* text = nullptr;
  if (driver() != nullptr) driver()->get_error_name(static_cast<CUresult>(error), &text);
  return text != nullptr ? text : "an error of the CUDA runtime";
}

const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorInsufficientDriver) return "there is no libcuda.so.1 or it is too old";
  const char* text = nullptr;
  if (driver() != nullptr) driver()->get_error_string(static_cast<CUresult>(error), &text);
  return text != nullptr ? text : cudaGetErrorName(error);
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return driver() == nullptr ? cudaSuccess : note(runtime_error(driver()->driver_get_version(version)));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  const cudaError_t error = initialise();
  return note(error == cudaSuccess ? runtime_error(driver()->device_get_count(count)) : error);
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return note(initialise());
}

cudaError_t cudaSetDevice(int device) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return error;
  if (device < 0 || device >= count || device >= kMostDevices) return note(cudaErrorInvalidDevice);
  used_device = device;
  return note(enter_context());
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const cudaError_t error = initialise();
  if (error != cudaSuccess) return note(error);
  return note(runtime_error(
      driver()->device_get_attribute(value, static_cast<CUdevice_attribute>(attribute), device)));
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return drive([&](const Driver& cu) { return cu.ctx_set_limit(static_cast<CUlimit>(limit), value); });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return drive([&](const Driver& cu) { return cu.ctx_get_limit(value, static_cast<CUlimit>(limit)); });
}

cudaError_t cudaDeviceSynchronize() {
  return drive([&](const Driver& cu) { return cu.ctx_synchronize(); });
}

cudaError_t cudaDeviceReset() {
  const cudaError_t error = initialise();
  if (error != cudaSuccess) return note(error);
  forget_context();
  return note(runtime_error(driver()->primary_ctx_reset(current_device())));
}

}  // extern "C"
