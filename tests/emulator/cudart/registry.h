// The device code that the program registered before main(), and the part of it that the driver knows by now.
//
// Code is loaded when something in it is first needed, as the runtime does by default: a program that never
// uses the device never opens the driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace klap::cudart {

// The handle of the kernel whose host function is `entry`.
cudaError_t find_kernel(const void* entry, CUkernel& kernel);

struct DeviceVariable {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};
// Where the variable whose host shadow is `symbol` lies in the current context.
cudaError_t find_variable(const void* symbol, DeviceVariable& variable);

}  // namespace klap::cudart
