// Contexts: primary ones, those that the program makes, the stack of each thread, limits.
#include <algorithm>

#include "emulator/driver/context.h"
#include "emulator/driver/context_lifetime.h"
#include "emulator/driver/images/module.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"

using namespace klap::emulator::driver;

namespace {

constexpr unsigned kContextFlags = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
                                   CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE | CU_CTX_SYNC_MEMOPS;
constexpr unsigned kApiVersion = 3020;

void create(Process& process, CUcontext* context, unsigned flags, CUdevice device) {
  require(context != nullptr && (flags & ~kContextFlags) == 0);
  require_device(process, device);
  *context = make_context(process, device, flags, false);
  context_stack().push_back(*context);
}

void destroy(Process& process, CUcontext context) {
  require(process.contexts.knows(context) && !context->is_primary, CUDA_ERROR_INVALID_CONTEXT);
  destroy_context(process, context);
  std::vector<CUcontext>& stack = context_stack();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
}

void reset_primary(Process& process, PrimaryContext& primary) {
  if (primary.context != nullptr) destroy_context(process, primary.context);
  primary.context = nullptr;
}

// The limits of a device of that compute capability: 90 means sm_90.
size_t default_limit(CUlimit limit, uint32_t capability) {
  constexpr uint32_t kFirstWithoutWaits = 90;
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return 1 << 20;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
      if (capability >= kFirstWithoutWaits) fail(CUDA_ERROR_UNSUPPORTED_LIMIT);
      return 2;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return 128;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
      return 0;
    default:
      fail(CUDA_ERROR_UNSUPPORTED_LIMIT);
  }
}

}  // namespace

KLAP_DRIVER_API cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call("cuDevicePrimaryCtxRetain", [&](Process& process) {
    require(context != nullptr);
    require_device(process, device);
    PrimaryContext& primary = process.primary[static_cast<size_t>(device)];
    if (primary.context == nullptr) primary.context = make_context(process, device, primary.flags, true);
    ++primary.uses;
    *context = primary.context;
  });
}

KLAP_DRIVER_API cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call("cuDevicePrimaryCtxRelease", [&](Process& process) {
    require_device(process, device);
    PrimaryContext& primary = process.primary[static_cast<size_t>(device)];
    require(primary.uses > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--primary.uses == 0) reset_primary(process, primary);
  });
}

KLAP_DRIVER_API cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }

KLAP_DRIVER_API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return call("cuDevicePrimaryCtxSetFlags", [&](Process& process) {
    require_device(process, device);
    require((flags & ~kContextFlags) == 0);
    PrimaryContext& primary = process.primary[static_cast<size_t>(device)];
    primary.flags = flags;
    if (primary.context != nullptr) primary.context->flags = flags;
  });
}

KLAP_DRIVER_API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

KLAP_DRIVER_API cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return call("cuDevicePrimaryCtxGetState", [&](Process& process) {
    require_device(process, device);
    require(flags != nullptr && active != nullptr);
    const PrimaryContext& primary = process.primary[static_cast<size_t>(device)];
    *flags = primary.flags;
    *active = primary.context != nullptr;
  });
}

// A program that used it has to retain it again, and gets a new one.
KLAP_DRIVER_API cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return call("cuDevicePrimaryCtxReset", [&](Process& process) {
    require_device(process, device);
    PrimaryContext& primary = process.primary[static_cast<size_t>(device)];
    reset_primary(process, primary);
    primary.uses = 0;
  });
}

KLAP_DRIVER_API cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

KLAP_DRIVER_API cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return call("cuCtxCreate", [&](Process& process) { create(process, context, flags, device); });
}

KLAP_DRIVER_API cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int affinities, unsigned flags,
                               CUdevice device) {
  return call("cuCtxCreate", [&](Process& process) {
    require(affinities == 0, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    create(process, context, flags, device);
  });
}

KLAP_DRIVER_API cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned flags,
                               CUdevice device) {
  return call("cuCtxCreate", [&](Process& process) {
    require(parameters == nullptr || parameters->numExecAffinityParams == 0,
            CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    create(process, context, flags, device);
  });
}

KLAP_DRIVER_API cuCtxDestroy_v2(CUcontext context) {
  return call("cuCtxDestroy", [&](Process& process) { destroy(process, context); });
}

KLAP_DRIVER_API cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }

KLAP_DRIVER_API cuCtxPushCurrent_v2(CUcontext context) {
  return call("cuCtxPushCurrent", [&](Process& process) {
    require(process.contexts.knows(context), CUDA_ERROR_INVALID_CONTEXT);
    context_stack().push_back(context);
  });
}

KLAP_DRIVER_API cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }

KLAP_DRIVER_API cuCtxPopCurrent_v2(CUcontext* context) {
  return call("cuCtxPopCurrent", [&](Process&) {
    std::vector<CUcontext>& stack = context_stack();
    require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
  });
}

KLAP_DRIVER_API cuCtxPopCurrent(CUcontext* context) { return cuCtxPopCurrent_v2(context); }

KLAP_DRIVER_API cuCtxSetCurrent(CUcontext context) {
  return call("cuCtxSetCurrent", [&](Process& process) {
    std::vector<CUcontext>& stack = context_stack();
    if (context != nullptr) require(process.contexts.knows(context), CUDA_ERROR_INVALID_CONTEXT);
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
  });
}

KLAP_DRIVER_API cuCtxGetCurrent(CUcontext* context) {
  return call("cuCtxGetCurrent", [&](Process&) {
    require(context != nullptr);
    *context = context_stack().empty() ? nullptr : context_stack().back();
  });
}

KLAP_DRIVER_API cuCtxGetDevice(CUdevice* device) {
  return call("cuCtxGetDevice", [&](Process& process) {
    require(device != nullptr);
    *device = current(process).device;
  });
}

KLAP_DRIVER_API cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  return call("cuCtxGetDevice", [&](Process& process) {
    require(device != nullptr);
    *device = context_or_current(process, context).device;
  });
}

KLAP_DRIVER_API cuCtxGetId(CUcontext context, unsigned long long* id) {
  return call("cuCtxGetId", [&](Process& process) {
    require(id != nullptr);
    *id = context_or_current(process, context).id;
  });
}

KLAP_DRIVER_API cuCtxGetFlags(unsigned* flags) {
  return call("cuCtxGetFlags", [&](Process& process) {
    require(flags != nullptr);
    *flags = current(process).flags;
  });
}

KLAP_DRIVER_API cuCtxSetFlags(unsigned flags) {
  return call("cuCtxSetFlags", [&](Process& process) {
    require((flags & ~kContextFlags) == 0);
    current(process).flags = flags;
  });
}

KLAP_DRIVER_API cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return call("cuCtxGetApiVersion", [&](Process& process) {
    require(version != nullptr);
    context_or_current(process, context);
    *version = kApiVersion;
  });
}

KLAP_DRIVER_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call("cuCtxGetStreamPriorityRange", [&](Process& process) {
    current(process);
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = 0;
  });
}

KLAP_DRIVER_API cuCtxSynchronize_v2(CUcontext context) {
  return call("cuCtxSynchronize", [&](Process& process) {
    CUctx_st& which = context_or_current(process, context);
    forbid_unsafe_call(process);
    which.synchronise();
  });
}

KLAP_DRIVER_API cuCtxSynchronize() { return cuCtxSynchronize_v2(nullptr); }

KLAP_DRIVER_API cuCtxSetLimit(CUlimit limit, size_t value) {
  return call("cuCtxSetLimit", [&](Process& process) {
    CUctx_st& context = working(process);
    if (limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) {
      context.machine->set_pending_limit(static_cast<uint32_t>(std::min<size_t>(value, UINT32_MAX)));
    } else if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
      context.machine->set_heap_bytes(value);
    } else {
      default_limit(limit, capability(process));
      constexpr size_t kMostDepth = 24;
      require(limit != CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || value <= kMostDepth);
      context.limits[limit] = value;
    }
  });
}

KLAP_DRIVER_API cuCtxGetLimit(size_t* value, CUlimit limit) {
  return call("cuCtxGetLimit", [&](Process& process) {
    require(value != nullptr);
    CUctx_st& context = current(process);
    if (limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) {
      *value = context.machine->pending_limit();
    } else if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
      *value = context.machine->heap_bytes();
    } else {
      const auto set = context.limits.find(limit);
      *value = set != context.limits.end() ? set->second : default_limit(limit, capability(process));
    }
  });
}

KLAP_DRIVER_API cuCtxSetCacheConfig(CUfunc_cache config) {
  return call("cuCtxSetCacheConfig", [&](Process& process) { current(process).cache_config = config; });
}

KLAP_DRIVER_API cuCtxGetCacheConfig(CUfunc_cache* config) {
  return call("cuCtxGetCacheConfig", [&](Process& process) {
    require(config != nullptr);
    *config = current(process).cache_config;
  });
}

KLAP_DRIVER_API cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return call("cuCtxSetSharedMemConfig", [&](Process& process) { current(process).shared_config = config; });
}

KLAP_DRIVER_API cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return call("cuCtxGetSharedMemConfig", [&](Process& process) {
    require(config != nullptr);
    *config = current(process).shared_config;
  });
}

KLAP_DRIVER_API cuCtxResetPersistingL2Cache() {
  return call("cuCtxResetPersistingL2Cache", [](Process& process) { current(process); });
}
