/* cuLink*: a driver whose linker refuses everything, as one does that lacks its compiler library. */
#include "fake.h"

EXPORT CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  (void)count, (void)options, (void)values, (void)state;
  fake_log("cuLinkCreate_v2");
  return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}

EXPORT CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size,
                                 const char* name, unsigned count, CUjit_option* options, void** values) {
  (void)state, (void)type, (void)data, (void)size, (void)name, (void)count, (void)options, (void)values;
  return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                                 CUjit_option* options, void** values) {
  (void)state, (void)type, (void)path, (void)count, (void)options, (void)values;
  return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  (void)state, (void)image, (void)size;
  return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuLinkDestroy(CUlinkState state) {
  (void)state;
  return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuLinkCreate(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  return cuLinkCreate_v2(count, options, values, state);
}

EXPORT CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size,
                              const char* name, unsigned count, CUjit_option* options, void** values) {
  return cuLinkAddData_v2(state, type, data, size, name, count, options, values);
}

EXPORT CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                              CUjit_option* options, void** values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}
