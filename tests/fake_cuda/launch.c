/* Launches and the questions about kernels that come before them. A launch is checked and logged with the
 * values of its parameters, which are read exactly as far as the kernel declares them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

/* ---- settings ---- */

static int max_threads(const char* name) { return fake_setting(getenv("FAKE_CUDA_THREADS"), name, 1024); }

EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  struct fake_kernel_info* info;
  CUresult result = fake_resolve(function, &info);
  if (result != CUDA_SUCCESS) return result;
  *value = 0;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) *value = max_threads(info->name);
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
    *value = fake_setting(getenv("FAKE_CUDA_SHARED"), info->name, 48 << 10);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  struct fake_kernel_info* info;
  CUresult result = fake_resolve(function, &info);
  if (result == CUDA_SUCCESS) result = fake_failure("cuFuncSetAttribute", info->name);
  if (result == CUDA_SUCCESS) {
    fake_log("cuFuncSetAttribute kernel=%s attribute=%d value=%d", info->name, (int)attribute, value);
  }
  return result;
}

EXPORT CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache cache) {
  struct fake_kernel_info* info;
  CUresult result = fake_resolve(function, &info);
  if (result == CUDA_SUCCESS) fake_log("cuFuncSetCacheConfig kernel=%s cache=%d", info->name, (int)cache);
  return result;
}

EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                     CUdevice device) {
  fake_log("cuKernelSetAttribute kernel=%s attribute=%d value=%d device=%d", kernel->info.name,
           (int)attribute, value, device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache cache, CUdevice device) {
  fake_log("cuKernelSetCacheConfig kernel=%s cache=%d device=%d", kernel->info.name, (int)cache, device);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                            int block_threads, size_t shared_bytes) {
  struct fake_kernel_info* info;
  CUresult result = fake_resolve(function, &info);
  if (result == CUDA_SUCCESS)
    result = fake_failure("cuOccupancyMaxActiveBlocksPerMultiprocessor", info->name);
  *blocks = shared_bytes == 0 ? 2048 / block_threads : 1;
  if (result == CUDA_SUCCESS) *blocks = fake_setting(getenv("FAKE_CUDA_OCCUPANCY"), info->name, *blocks);
  return result;
}

/* ---- launches ---- */

struct launch {
  const char* entry;
  CUlaunchConfig config;
  CUfunction function;
  void** params;
  void** extra;
};

/* Appends the bytes in hex, one parameter after the other with ':' between; returns the new end. */
static char* append_hex(char* to, char* end, const unsigned char* from, size_t bytes) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < bytes && to + 3 < end; ++i) {
    *to++ = digits[from[i] >> 4];
    *to++ = digits[from[i] & 15];
  }
  *to++ = ':';
  *to = 0;
  return to;
}

static CUresult describe_params(const struct launch* launch, const struct fake_kernel_info* info, char* text,
                                size_t capacity) {
  const unsigned char* buffer = NULL;
  const size_t* size = NULL;
  char* end = text + capacity;
  snprintf(text, capacity, info->known_params ? "" : "unknown");
  if (launch->params && launch->extra) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; launch->extra && launch->extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (launch->extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = launch->extra[i + 1];
    if (launch->extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = launch->extra[i + 1];
  }
  for (unsigned i = 0; i < info->param_count; ++i) {
    if (!launch->params && (!buffer || !size || *size < info->param_offset[i] + info->param_bytes[i])) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const unsigned char* value = launch->params ? launch->params[i] : buffer + info->param_offset[i];
    text = append_hex(text, end, value, info->param_bytes[i]);
  }
  return CUDA_SUCCESS;
}

static void describe_attributes(const CUlaunchConfig* config, char* text, size_t capacity) {
  *text = 0;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    size_t used = strlen(text);
    snprintf(text + used, capacity - used, "%d=%d;", (int)config->attrs[i].id,
             config->attrs[i].value.priority);
  }
}

static CUresult launch(const struct launch* launch, CUstream stream) {
  const CUlaunchConfig* config = &launch->config;
  char params[2048] = "", attributes[256];
  struct fake_kernel_info* info = NULL;
  CUresult result = fake_resolve(launch->function, &info);
  if (result == CUDA_SUCCESS) result = fake_failure(launch->entry, info->name);
  uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
  if (result == CUDA_SUCCESS && (threads == 0 || threads > (uint64_t)max_threads(info->name) ||
                                 (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ == 0)) {
    result = CUDA_ERROR_INVALID_VALUE;
  }
  if (result == CUDA_SUCCESS) result = describe_params(launch, info, params, sizeof params);
  if (result == CUDA_SUCCESS) result = fake_enqueue();
  describe_attributes(config, attributes, sizeof attributes);
  pthread_mutex_lock(&fake_lock);
  unsigned long long id = fake_current() ? fake_stream_id(stream) : 0;
  int capturing = fake_capturing(stream);
  pthread_mutex_unlock(&fake_lock);
  fake_log(
      "%s kernel=%s grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%p stream_id=%llu captured=%d "
      "attributes=%s params=%s result=%d",
      launch->entry, info ? info->name : "?", config->gridDimX, config->gridDimY, config->gridDimZ,
      config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes, (void*)config->hStream,
      id, capturing, attributes, params, (int)result);
  return result;
}

#define PLAIN_LAUNCH(entry, stream_used)                                                             \
  EXPORT CUresult entry(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,      \
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, \
                        CUstream stream, void** params, void** extra) {                              \
    struct launch request = {                                                                        \
        #entry,                                                                                      \
        {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, NULL, 0},          \
        function,                                                                                    \
        params,                                                                                      \
        extra};                                                                                      \
    return launch(&request, stream_used);                                                            \
  }

PLAIN_LAUNCH(cuLaunchKernel, stream)
PLAIN_LAUNCH(cuLaunchKernel_ptsz, stream ? stream : CU_STREAM_PER_THREAD)

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                          unsigned grid_z, unsigned block_x, unsigned block_y,
                                          unsigned block_z, unsigned shared_bytes, CUstream stream,
                                          void** params) {
  struct launch request = {"cuLaunchCooperativeKernel",
                           {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, NULL, 0},
                           function,
                           params,
                           NULL};
  return launch(&request, stream);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                                 void** extra) {
  struct launch request = {"cuLaunchKernelEx", *config, function, params, extra};
  return launch(&request, config->hStream);
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** params,
                                      void** extra) {
  struct launch request = {"cuLaunchKernelEx_ptsz", *config, function, params, extra};
  return launch(&request, config->hStream ? config->hStream : CU_STREAM_PER_THREAD);
}
