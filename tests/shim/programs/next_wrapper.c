/* Another interposer, preloaded behind or before the shim: counts launches and passes them on by RTLD_NEXT.
 * Its own look-ups must see the libraries behind it and not the shim's point of view. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int launches;

static void* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (!found) {
    fprintf(stderr, "no next %s\n", name);
    abort();
  }
  return found;
}

__attribute__((visibility("default"))) CUresult cuLaunchKernel(CUfunction function, unsigned grid_x,
                                                               unsigned grid_y, unsigned grid_z,
                                                               unsigned block_x, unsigned block_y,
                                                               unsigned block_z, unsigned shared_bytes,
                                                               CUstream stream, void** params, void** extra) {
  static CUresult (*real)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          CUstream, void**, void**);
  if (!real) *(void**)&real = next("cuLaunchKernel");
  ++launches;
  return real(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params,
              extra);
}

/* A name outside the driver, looked up the same way; stands for OpenMP and MPI tools. */
__attribute__((visibility("default"))) int puts(const char* text) {
  static int (*real)(const char*);
  if (!real) *(void**)&real = next("puts");
  return real(text);
}

__attribute__((destructor)) static void report(void) {
  fprintf(stderr, "wrapper saw %d launches\n", launches);
}
