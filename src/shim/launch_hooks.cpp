// Launching kernels, changing their settings, and ending streams.
#include "runtime/handles.h"
#include "runtime/launch.h"
#include "shim/guard.h"
#include "shim/hooks.h"
#include "shim/memory_guard.h"

using namespace klap;
using runtime::Driver;
using runtime::Launch;
using shim::attempt;
using shim::forward;
using shim::forward_with_room;
using shim::observe;

namespace {

std::optional<CUresult> try_redirect(const char* entry_point, const Launch& launch) {
  return attempt(entry_point, [&] { return runtime::redirect_launch(launch); });
}

std::optional<CUresult> try_redirect(const char* entry_point, const CUlaunchConfig* config,
                                     CUfunction function, void** params, void** extra, bool per_thread) {
  if (!config) return std::nullopt;  // the driver's to refuse
  Launch launch{function,
                {config->gridDimX, config->gridDimY, config->gridDimZ},
                {config->blockDimX, config->blockDimY, config->blockDimZ},
                config->sharedMemBytes,
                per_thread ? runtime::per_thread_stream(config->hStream) : config->hStream,
                params,
                extra,
                {config->attrs, config->attrs ? config->numAttrs : 0}};
  return try_redirect(entry_point, launch);
}

}  // namespace

extern "C" {

KLAP_EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                            unsigned grid_z, unsigned block_x, unsigned block_y,
                                            unsigned block_z, unsigned shared_bytes, CUstream stream,
                                            void** params, void** extra) {
  if (!runtime::nothing_rewritten()) {
    const auto result = try_redirect("cuLaunchKernel", {function,
                                                        {grid_x, grid_y, grid_z},
                                                        {block_x, block_y, block_z},
                                                        shared_bytes,
                                                        stream,
                                                        params,
                                                        extra,
                                                        {}});
    if (result) return *result;
  }
  return forward_with_room<&Driver::launch_kernel>("cuLaunchKernel", function, grid_x, grid_y, grid_z,
                                                   block_x, block_y, block_z, shared_bytes, stream, params,
                                                   extra);
}

KLAP_EXPORT CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                                 unsigned block_z, unsigned shared_bytes, CUstream stream,
                                                 void** params, void** extra) {
  if (!runtime::nothing_rewritten()) {
    const auto result = try_redirect("cuLaunchKernel_ptsz", {function,
                                                             {grid_x, grid_y, grid_z},
                                                             {block_x, block_y, block_z},
                                                             shared_bytes,
                                                             runtime::per_thread_stream(stream),
                                                             params,
                                                             extra,
                                                             {}});
    if (result) return *result;
  }
  return forward_with_room<&Driver::launch_kernel_ptsz>("cuLaunchKernel_ptsz", function, grid_x, grid_y,
                                                        grid_z, block_x, block_y, block_z, shared_bytes,
                                                        stream, params, extra);
}

KLAP_EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                              void** params, void** extra) {
  if (!runtime::nothing_rewritten()) {
    const auto result = try_redirect("cuLaunchKernelEx", config, function, params, extra, false);
    if (result) return *result;
  }
  return forward_with_room<&Driver::launch_kernel_ex>("cuLaunchKernelEx", config, function, params, extra);
}

KLAP_EXPORT CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function,
                                                   void** params, void** extra) {
  if (!runtime::nothing_rewritten()) {
    const auto result = try_redirect("cuLaunchKernelEx_ptsz", config, function, params, extra, true);
    if (result) return *result;
  }
  return forward_with_room<&Driver::launch_kernel_ex_ptsz>("cuLaunchKernelEx_ptsz", config, function, params,
                                                           extra);
}

KLAP_EXPORT CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                                int value) {
  const CUresult result = forward<&Driver::func_set_attribute>(function, attribute, value);
  if (result == CUDA_SUCCESS && !runtime::nothing_rewritten()) {
    observe("cuFuncSetAttribute", [&] { runtime::mirror_attribute(function, attribute, value); });
  }
  return result;
}

KLAP_EXPORT CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction function, CUfunc_cache cache) {
  const CUresult result = forward<&Driver::func_set_cache_config>(function, cache);
  if (result == CUDA_SUCCESS && !runtime::nothing_rewritten()) {
    observe("cuFuncSetCacheConfig", [&] { runtime::mirror_cache_config(function, cache); });
  }
  return result;
}

KLAP_EXPORT CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                                  CUdevice device) {
  const CUresult result = forward<&Driver::kernel_set_attribute>(attribute, value, kernel, device);
  if (result == CUDA_SUCCESS && !runtime::nothing_rewritten()) {
    observe("cuKernelSetAttribute", [&] { runtime::mirror_attribute(kernel, attribute, value, device); });
  }
  return result;
}

KLAP_EXPORT CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache cache, CUdevice device) {
  const CUresult result = forward<&Driver::kernel_set_cache_config>(kernel, cache, device);
  if (result == CUDA_SUCCESS && !runtime::nothing_rewritten()) {
    observe("cuKernelSetCacheConfig", [&] { runtime::mirror_cache_config(kernel, cache, device); });
  }
  return result;
}

KLAP_EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  observe("cuStreamDestroy", [&] { runtime::stream_about_to_end(stream); });
  return forward<&Driver::stream_destroy>(stream);
}

KLAP_EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
  observe("cuStreamDestroy_v2", [&] { runtime::stream_about_to_end(stream); });
  return forward<&Driver::stream_destroy_v2>(stream);
}

}  // extern "C"
