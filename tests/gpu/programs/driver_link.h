// Links by the driver's linker, with the device runtime.
#pragma once

#include <unistd.h>

#include "driver_program.h"

// The device runtime is linked from here, or from where other machines have it.
inline const char* device_runtime() {
  return access(KLAP_CUDADEVRT, R_OK) == 0 ? KLAP_CUDADEVRT : "/usr/local/cuda/lib64/libcudadevrt.a";
}

struct DriverLinker {
  decltype(&cuLinkCreate) create;
  decltype(&cuLinkAddData) add_data;
  decltype(&cuLinkAddFile) add_file;
  decltype(&cuLinkComplete) complete;
  decltype(&cuLinkDestroy) destroy;
};
inline DriverLinker driver_linker;

inline void open_linker() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto get = reinterpret_cast<decltype(&cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"));
  look_up(get, "cuLinkCreate", driver_linker.create);
  look_up(get, "cuLinkAddData", driver_linker.add_data);
  look_up(get, "cuLinkAddFile", driver_linker.add_file);
  look_up(get, "cuLinkComplete", driver_linker.complete);
  look_up(get, "cuLinkDestroy", driver_linker.destroy);
}

// CuPy takes the first versions of the functions, which have their plain names.
inline void open_first_linker() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  driver_linker.create = reinterpret_cast<decltype(driver_linker.create)>(dlsym(library, "cuLinkCreate"));
  driver_linker.add_data =
      reinterpret_cast<decltype(driver_linker.add_data)>(dlsym(library, "cuLinkAddData"));
  driver_linker.add_file =
      reinterpret_cast<decltype(driver_linker.add_file)>(dlsym(library, "cuLinkAddFile"));
}

// A link has a log, as programs ask for one.
class Link {
 public:
  Link() {
    step(driver_linker.create(2, names_, values_, &state_), "cuLinkCreate");
    add_file(CU_JIT_INPUT_LIBRARY, device_runtime());
  }
  ~Link() { end(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void add_data(CUjitInputType type, std::string bytes, const char* name) {
    const size_t size = type == CU_JIT_INPUT_PTX ? bytes.size() + 1 : bytes.size();
    step(driver_linker.add_data(state_, type, bytes.data(), size, name, 0, nullptr, nullptr),
         "cuLinkAddData");
  }
  void add_file(CUjitInputType type, const std::string& path) {
    step(driver_linker.add_file(state_, type, path.c_str(), 0, nullptr, nullptr), "cuLinkAddFile");
  }
  // The result, which ends with the link.
  const void* complete() {
    void* image = nullptr;
    step(driver_linker.complete(state_, &image, &bytes_), "cuLinkComplete");
    return image;
  }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  void end() {
    if (state_ != nullptr) check(driver_linker.destroy(state_), "cuLinkDestroy");
    state_ = nullptr;
  }

 private:
  void step(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS) give_up(std::string(what) + ": error " + std::to_string(result) + " " + log_);
  }

  CUlinkState state_ = nullptr;
  size_t bytes_ = 0;
  char log_[2048] = "";
  // The driver writes to the values, such as how long the log is, until the link ends.
  CUjit_option names_[2] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values_[2] = {log_, reinterpret_cast<void*>(sizeof log_)};
};
