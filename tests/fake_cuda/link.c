/* cuLink*: a driver whose linker refuses everything, as one does that lacks its compiler library. With
 * FAKE_CUDA_LINKER it takes all PTX but that which waits for children, and each result is that file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

struct CUlinkState_st {
  char* image;
};

static int waits(const char* ptx) {
  const char* call = strstr(ptx, "call.uni");
  return call != NULL && strstr(call, "cudaDeviceSynchronize") != NULL;
}

EXPORT CUresult cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  (void)count, (void)options, (void)values;
  fake_log("cuLinkCreate_v2");
  if (getenv("FAKE_CUDA_LINKER") == NULL) return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  *state = calloc(1, sizeof **state);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size,
                                 const char* name, unsigned count, CUjit_option* options, void** values) {
  (void)size, (void)name, (void)count, (void)options, (void)values;
  if (getenv("FAKE_CUDA_LINKER") == NULL) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result =
      type == CU_JIT_INPUT_PTX && waits(data) ? CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC : CUDA_SUCCESS;
  fake_log("cuLinkAddData_v2 link=%p result=%d", (void*)state, (int)result);
  return result;
}

EXPORT CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                                 CUjit_option* options, void** values) {
  (void)state, (void)type, (void)path, (void)count, (void)options, (void)values;
  return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  const char* name = getenv("FAKE_CUDA_LINKER");
  FILE* file = name != NULL ? fopen(name, "rb") : NULL;
  if (file == NULL) return CUDA_ERROR_INVALID_HANDLE;
  const size_t most = 1 << 20;
  state->image = malloc(most);
  *size = fread(state->image, 1, most, file);
  fclose(file);
  *image = state->image;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkDestroy(CUlinkState state) {
  if (getenv("FAKE_CUDA_LINKER") == NULL) return CUDA_ERROR_INVALID_HANDLE;
  fake_log("cuLinkDestroy link=%p", (void*)state);
  free(state->image);
  free(state);
  return CUDA_SUCCESS;
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
