// Kernel launches.
#include <fmt/format.h>

#include <cstring>

#include "emulator/driver/context.h"
#include "emulator/driver/images/module.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"
#include "emulator/driver/streams/launch.h"
#include "emulator/driver/streams/stream.h"

using namespace klap::emulator;
using namespace klap::emulator::driver;

namespace {

std::vector<std::byte> from_pointers(const Function& kernel, void** parameters) {
  std::vector<std::byte> out(kernel.parameter_bytes);
  for (size_t i = 0; i < kernel.parameter_offsets.size(); ++i) {
    require(parameters != nullptr && parameters[i] != nullptr);
    std::memcpy(out.data() + kernel.parameter_offsets[i], parameters[i], kernel.parameter_sizes[i]);
  }
  return out;
}

std::vector<std::byte> from_buffer(const Function& kernel, void** extra) {
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      std::memcpy(&bytes, extra[1], sizeof bytes);
    } else {
      fail(CUDA_ERROR_INVALID_VALUE);
    }
  }
  require(bytes >= kernel.parameter_bytes && (buffer != nullptr || kernel.parameter_bytes == 0));
  std::vector<std::byte> out(kernel.parameter_bytes);
  if (!out.empty()) std::memcpy(out.data(), buffer, out.size());
  return out;
}

void launch(Process& process, CUfunction function, CUstream stream, const LaunchArguments& arguments,
            bool dependent = false) {
  CUstream_st& in = resolve(process, stream);
  in.context->require_alive();
  KernelLaunch work = make_launch(process, function, *in.context, arguments);
  require(resolve(process, function, in.context).module->context == in.context, CUDA_ERROR_INVALID_HANDLE);
  work.dependent = dependent && !in.capture;  // in graphs it is a matter of edges, which are full ones here
  submit(process, in, std::move(work));
}

[[noreturn]] void refuse(const char* what) {
  say(fmt::format("{} cannot be emulated", what));
  fail(CUDA_ERROR_NOT_SUPPORTED);
}

// Refuses attributes that cannot be emulated. Attributes about speed only, or that allow an overlap which
// need not happen, are ignored.
void check_attribute(const CUlaunchAttribute& attribute) {
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      if (attribute.value.cooperative != 0) refuse("a cooperative launch");
      break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const auto& cluster = attribute.value.clusterDim;
      if (cluster.x > 1 || cluster.y > 1 || cluster.z > 1) refuse("a launch with clusters");
      break;
    }
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      refuse("a launch that records an event while it runs");
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      refuse("a graph node that the device updates");
    default:
      break;
  }
}

}  // namespace

namespace klap::emulator::driver {

KernelLaunch make_launch(Process& process, CUfunction function, CUctx_st& context,
                         const LaunchArguments& arguments) {
  require(arguments.parameters == nullptr || arguments.extra == nullptr);
  const CUfunc_st& resolved = resolve(process, function, &context);
  KernelLaunch out;
  out.function = function;
  out.launch.image = resolved.module->image;
  out.launch.kernel = resolved.function;
  out.launch.grid = arguments.grid;
  out.launch.block = arguments.block;
  out.launch.dynamic_shared = arguments.shared_bytes;
  out.launch.parameters = arguments.extra != nullptr
                              ? from_buffer(*resolved.function, arguments.extra)
                              : from_pointers(*resolved.function, arguments.parameters);
  return out;
}

}  // namespace klap::emulator::driver

KLAP_DRIVER_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                               CUstream stream, void** parameters, void** extra) {
  return call("cuLaunchKernel", [&](Process& process) {
    launch(process, function, stream,
           {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, parameters, extra});
  });
}

KLAP_DRIVER_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                 void** extra) {
  return call("cuLaunchKernelEx", [&](Process& process) {
    require(config != nullptr && (config->numAttrs == 0 || config->attrs != nullptr));
    bool dependent = false;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const CUlaunchAttribute& attribute = config->attrs[i];
      check_attribute(attribute);
      if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        dependent = attribute.value.programmaticStreamSerializationAllowed != 0;
    }
    launch(process, function, config->hStream,
           {{config->gridDimX, config->gridDimY, config->gridDimZ},
            {config->blockDimX, config->blockDimY, config->blockDimZ},
            config->sharedMemBytes,
            parameters,
            extra},
           dependent);
  });
}

KLAP_DRIVER_API cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                          unsigned, unsigned, CUstream, void**) {
  return call("cuLaunchCooperativeKernel", [](Process&) { refuse("a cooperative launch"); });
}
