#include "klap/doctor/device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "runtime/driver.h"

namespace klap::tool {

namespace {

constexpr const char* kGpu = "GPU";
constexpr const char* kDriver = "driver";

// Whether the kernel's part of the driver is loaded, with which a library that is missing is a fault.
bool has_kernel_driver() {
  std::error_code error;
  return std::filesystem::exists("/proc/driver/nvidia/version", error);
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

class Driver {
 public:
  explicit Driver(void* library) : library_(library) {
    functions_ = runtime::resolve_driver([this](const char* symbol) { return dlsym(library_, symbol); });
  }

  Devices look() {
    if (!can_be_used()) return std::move(out_);
    const CUresult started = function<PFN_cuInit_v2000>("cuInit")(0);
    int count = 0;
    const CUresult counted = started == CUDA_SUCCESS ? functions_.device_get_count(&count) : started;
    if (counted == CUDA_ERROR_NO_DEVICE || (counted == CUDA_SUCCESS && count == 0)) {
      add(kGpu, State::NotChecked, "this machine has none, or none may be seen (CUDA_VISIBLE_DEVICES)");
    } else if (counted != CUDA_SUCCESS) {
      const State state = has_kernel_driver() ? State::Broken : State::NotChecked;
      add(kGpu, state, fmt::format("the driver does not start: {}", name_of(counted)),
          "see whether nvidia-smi works; a container needs --gpus all");
    } else {
      for (int i = 0; i < count; ++i) add_device(i);
    }
    return std::move(out_);
  }

 private:
  template <class Function>
  Function function(const char* symbol) {
    return reinterpret_cast<Function>(dlsym(library_, symbol));
  }

  void add(const char* what, State state, std::string text, std::string fix = "") {
    out_.findings.push_back({what, state, std::move(text), std::move(fix)});
  }

  bool can_be_used() {
    if (functions_.driver_get_version != nullptr) functions_.driver_get_version(&out_.driver_version);
    const std::string version = version_text(out_.driver_version);
    if (functions_.missing != nullptr) {
      add(kDriver, State::Broken,
          fmt::format("too old: it is for CUDA {} and has no {}, so nothing is rewritten", version,
                      functions_.missing),
          "install a driver for CUDA 12.0 or newer");
      return false;
    }
    add(kDriver, State::Fine, fmt::format("for CUDA {}", version));
    return true;
  }

  std::string name_of(CUresult code) {
    const auto get = function<PFN_cuGetErrorString_v6000>("cuGetErrorString");
    const char* text = nullptr;
    return get != nullptr && get(code, &text) == CUDA_SUCCESS ? text : fmt::format("error {}", int{code});
  }

  void add_device(int index) {
    CUdevice device = 0;
    char name[256] = "unknown";
    int major = 0, minor = 0;
    functions_.device_get(&device, index);
    functions_.device_get_name(name, sizeof name, device);
    functions_.device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    functions_.device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    add(kGpu, State::Fine, fmt::format("{}, compute capability {}.{}", name, major, minor));
    if (!out_.sm) out_.sm = static_cast<uint32_t>(major * 10 + minor);
  }

  void* library_;
  runtime::Driver functions_;
  Devices out_;
};

}  // namespace

Devices find_devices() {
  if (void* const library = dlopen("libcuda.so.1", RTLD_NOW)) return Driver(library).look();
  const std::string why = dlerror();
  if (!has_kernel_driver())
    return {.findings = {{kDriver, State::NotChecked, "this machine has no CUDA driver", ""}}, .sm = {}};
  return {.findings = {{kDriver, State::Broken, why,
                        "install the driver's libcuda.so.1; a container needs --gpus all"}},
          .sm = {}};
}

}  // namespace klap::tool
