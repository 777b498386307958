// Launching kernels, changing their settings and limits, and ending streams and contexts.
#include "runtime/context_ends.h"
#include "runtime/launch/launch.h"
#include "runtime/sync_depth.h"
#include "shim/guard.h"
#include "shim/hooks.h"

using namespace klap;
using runtime::Driver;
using runtime::redirect_launch;
using shim::after;
using shim::around;
using shim::before;
using shim::in_place;
using shim::launch_in_place;
constexpr auto kOnceRewritten = shim::When::OnceRewritten;

namespace {

CUstream stream_of(const CUlaunchConfig* config, bool per_thread) {
  const CUstream stream = config ? config->hStream : nullptr;
  return per_thread ? runtime::per_thread_stream(stream) : stream;
}

std::optional<CUresult> redirect(const CUlaunchConfig* config, CUfunction function, void** params,
                                 void** extra, bool per_thread) {
  if (!config) return std::nullopt;  // the driver refuses it
  return redirect_launch({function,
                          {config->gridDimX, config->gridDimY, config->gridDimZ},
                          {config->blockDimX, config->blockDimY, config->blockDimZ},
                          config->sharedMemBytes,
                          stream_of(config, per_thread),
                          params,
                          extra,
                          {config->attrs, config->attrs ? config->numAttrs : 0}});
}

}  // namespace

extern "C" {

KLAP_EXPORT CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                            unsigned grid_z, unsigned block_x, unsigned block_y,
                                            unsigned block_z, unsigned shared_bytes, CUstream stream,
                                            void** params, void** extra) {
  const auto launch = [&] {
    return redirect_launch({function,
                            {grid_x, grid_y, grid_z},
                            {block_x, block_y, block_z},
                            shared_bytes,
                            stream,
                            params,
                            extra,
                            {}});
  };
  return launch_in_place<&Driver::launch_kernel>("cuLaunchKernel", launch, stream, function, grid_x, grid_y,
                                                 grid_z, block_x, block_y, block_z, shared_bytes, stream,
                                                 params, extra);
}

KLAP_EXPORT CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                                 unsigned block_z, unsigned shared_bytes, CUstream stream,
                                                 void** params, void** extra) {
  const auto launch = [&] {
    return redirect_launch({function,
                            {grid_x, grid_y, grid_z},
                            {block_x, block_y, block_z},
                            shared_bytes,
                            runtime::per_thread_stream(stream),
                            params,
                            extra,
                            {}});
  };
  return launch_in_place<&Driver::launch_kernel_ptsz>(
      "cuLaunchKernel_ptsz", launch, runtime::per_thread_stream(stream), function, grid_x, grid_y, grid_z,
      block_x, block_y, block_z, shared_bytes, stream, params, extra);
}

KLAP_EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                              void** params, void** extra) {
  return launch_in_place<&Driver::launch_kernel_ex>(
      "cuLaunchKernelEx", [&] { return redirect(config, function, params, extra, false); },
      stream_of(config, false), config, function, params, extra);
}

KLAP_EXPORT CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function,
                                                   void** params, void** extra) {
  return launch_in_place<&Driver::launch_kernel_ex_ptsz>(
      "cuLaunchKernelEx_ptsz", [&] { return redirect(config, function, params, extra, true); },
      stream_of(config, true), config, function, params, extra);
}

KLAP_EXPORT CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                                int value) {
  return after<&Driver::func_set_attribute, kOnceRewritten>(
      "cuFuncSetAttribute", [&] { runtime::mirror_attribute(function, attribute, value); }, function,
      attribute, value);
}

KLAP_EXPORT CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction function, CUfunc_cache cache) {
  return after<&Driver::func_set_cache_config, kOnceRewritten>(
      "cuFuncSetCacheConfig", [&] { runtime::mirror_cache_config(function, cache); }, function, cache);
}

KLAP_EXPORT CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                                  CUdevice device) {
  return after<&Driver::kernel_set_attribute, kOnceRewritten>(
      "cuKernelSetAttribute", [&] { runtime::mirror_attribute(kernel, attribute, value, device); }, attribute,
      value, kernel, device);
}

KLAP_EXPORT CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache cache, CUdevice device) {
  return after<&Driver::kernel_set_cache_config, kOnceRewritten>(
      "cuKernelSetCacheConfig", [&] { runtime::mirror_cache_config(kernel, cache, device); }, kernel, cache,
      device);
}

KLAP_EXPORT CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  return around<&Driver::ctx_destroy_v1>(
      "cuCtxDestroy", [&] { return runtime::id_of_context(context); }, runtime::context_ended, context);
}

KLAP_EXPORT CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) {
  return around<&Driver::ctx_destroy>(
      "cuCtxDestroy_v2", [&] { return runtime::id_of_context(context); }, runtime::context_ended, context);
}

KLAP_EXPORT CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
  return in_place<&Driver::ctx_get_limit>(
      "cuCtxGetLimit", [&] { return runtime::get_sync_depth(value, limit); }, value, limit);
}

KLAP_EXPORT CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
  return in_place<&Driver::ctx_set_limit>(
      "cuCtxSetLimit", [&] { return runtime::set_sync_depth(limit, value); }, limit, value);
}

KLAP_EXPORT CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx context) {
  return around<&Driver::green_ctx_destroy>(
      "cuGreenCtxDestroy", [&] { return runtime::green_context_about_to_end(context); },
      runtime::context_ended, context);
}

KLAP_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  return around<&Driver::primary_ctx_reset_v1>(
      "cuDevicePrimaryCtxReset", [&] { return runtime::id_of_primary_context(device); },
      runtime::context_ended, device);
}

KLAP_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return around<&Driver::primary_ctx_reset>(
      "cuDevicePrimaryCtxReset_v2", [&] { return runtime::id_of_primary_context(device); },
      runtime::context_ended, device);
}

KLAP_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return around<&Driver::primary_ctx_release_v1>(
      "cuDevicePrimaryCtxRelease", [&] { return runtime::id_of_primary_context(device); },
      [&](uint64_t id) { runtime::primary_context_released(device, id); }, device);
}

KLAP_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return around<&Driver::primary_ctx_release>(
      "cuDevicePrimaryCtxRelease_v2", [&] { return runtime::id_of_primary_context(device); },
      [&](uint64_t id) { runtime::primary_context_released(device, id); }, device);
}

KLAP_EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  return before<&Driver::stream_destroy>(
      "cuStreamDestroy", [&] { runtime::stream_about_to_end(stream); }, stream);
}

KLAP_EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
  return before<&Driver::stream_destroy_v2>(
      "cuStreamDestroy_v2", [&] { runtime::stream_about_to_end(stream); }, stream);
}

}  // extern "C"
