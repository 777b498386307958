// A host of the driver API launches its module's kernels with this; it has nothing of them but declarations.
#pragma once

#include "../driver_program.h"

namespace waiting {

// The program's module, which CUDA refuses on newer devices.
CUmodule module();

// A launch takes the types of its arguments from the kernel's declaration.
template <class Kernel>
class Launch;

template <class... Parameters>
class Launch<void(Parameters...)> {
 public:
  Launch(const char* kernel, unsigned blocks, unsigned threads)
      : kernel_(kernel), blocks_(blocks), threads_(threads) {}

  void operator()(Parameters... arguments) const {
    CUfunction function = nullptr;
    void* pointers[] = {&arguments...};
    check(driver.module_function(&function, module(), kernel_), "cuModuleGetFunction");
    check(driver.launch(function, blocks_, 1, 1, threads_, 1, 1, 0, nullptr, pointers, nullptr),
          "cuLaunchKernel");
  }

 private:
  const char* kernel_;
  unsigned blocks_, threads_;
};

}  // namespace waiting
