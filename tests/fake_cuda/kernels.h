/* What module and launch functions share. */
#ifndef FAKE_CUDA_KERNELS_H
#define FAKE_CUDA_KERNELS_H

#include "fake.h"

struct CUmod_st {
  struct fake_object object;
  CUcontext context;
  CUlibrary library; /* of cuLibraryGetModule; it owns the image then */
  struct fake_image image;
};

struct CUlib_st {
  struct fake_object object;
  struct fake_image image;
};

struct CUkern_st {
  struct fake_object object;
  CUlibrary library;
  struct fake_kernel_info info;
};

struct CUfunc_st {
  struct fake_object object;
  CUcontext context;
  CUmodule module;
  CUkernel kernel; /* of cuKernelGetFunction */
  int loaded;
  struct fake_kernel_info info;
};

/* Loads the function where FAKE_CUDA_LAZY is set and it is not loaded yet. A driver would wait for what runs,
 * here for ever where the gate is closed: CUDA_ERROR_LAUNCH_TIMEOUT. The caller holds the lock. */
CUresult fake_load(CUfunction function);

/* The kernel behind a CUfunction of the current context or a CUkernel. */
CUresult fake_resolve(const void* handle, struct fake_kernel_info** info);

#endif
