/* Linked against libcuda itself, as programs of the driver API are. */
#include <cuda.h>

#include "driver_calls.h"
#include "wrapper.h"

int main(void) {
  CUcontext context;
  CUmodule module;
  CUfunction function;
  unsigned long long out = 0x1000;
  int n = 5;
  void* params[] = {&out, &n};
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, registered_wrapper()));
  CHECK(cuModuleGetFunction(&function, module, "parent"));
  CHECK(cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
  return 0;
}
