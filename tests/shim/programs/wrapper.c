/* Stands in for the CUDA runtime where nvcc's host code refers to it: takes the image and does nothing else.
 * The test programs then drive the driver themselves, call for call as the static runtime does. */
#include "wrapper.h"

#include <stddef.h>
#include <stdlib.h>

static const void* wrapper;

const void* registered_wrapper(void) {
  if (!wrapper) abort();
  return wrapper;
}

void** __cudaRegisterFatBinary(void* image) {
  wrapper = image;
  return (void**)&wrapper;
}
void __cudaRegisterFatBinaryEnd(void** handle) { (void)handle; }
void __cudaUnregisterFatBinary(void** handle) { (void)handle; }
char __cudaInitModule(void** handle) { return handle != NULL; }
void __cudaRegisterVar(void) {}
void __cudaRegisterFunction(void) {}
/* Referred to by launch stubs, which the test programs never call. */
void __cudaGetKernel(void) { abort(); }
void __cudaLaunchKernel(void) { abort(); }
void __cudaPopCallConfiguration(void) { abort(); }
