// Starting, and the devices.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/device_runtime/device_attributes.h"
#include "emulator/driver/process.h"

using namespace klap::emulator::driver;

namespace {

constexpr std::string_view kName = "klap emulated GPU";

void announce(const Settings& settings) {
  if (!settings.quiet) say("this is an emulated GPU; times mean nothing");
}

// The made-up UUID has bits from 0x80 on, so that no program takes it for that of a real GPU.
CUuuid uuid_of(CUdevice device) {
  CUuuid id{};
  std::memcpy(id.bytes, "klap-emulator", 13);
  id.bytes[15] = static_cast<char>(device);
  return id;
}

int attribute(const Process& process, CUdevice_attribute which, CUdevice device) {
  if (which == CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID) return device;
  if (which == CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED) return 1;
  const auto known =
      klap::emulator::device_attribute(process.settings.machine.executor.device, static_cast<int>(which));
  if (known) return *known;
  // A feature of real GPUs that this one has not.
  require(which > 0 && which < CU_DEVICE_ATTRIBUTE_MAX);
  return 0;
}

}  // namespace

KLAP_DRIVER_API cuInit(unsigned flags) {
  return call("cuInit", Needs::Nothing, [&](Process& process) {
    require(flags == 0);
    if (process.is_initialised) return;
    process.settings = settings_from_environment();
    process.primary.resize(process.settings.devices);
    process.is_initialised = true;
    announce(process.settings);
  });
}

KLAP_DRIVER_API cuDriverGetVersion(int* version) {
  return call("cuDriverGetVersion", Needs::Nothing, [&](Process&) {
    require(version != nullptr);
    *version = 13000;
  });
}

KLAP_DRIVER_API cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", [&](Process& process) {
    require(count != nullptr);
    *count = static_cast<int>(process.primary.size());
  });
}

KLAP_DRIVER_API cuDeviceGet(CUdevice* device, int ordinal) {
  return call("cuDeviceGet", [&](Process& process) {
    require(device != nullptr);
    require_device(process, ordinal);
    *device = ordinal;
  });
}

KLAP_DRIVER_API cuDeviceGetName(char* name, int length, CUdevice device) {
  return call("cuDeviceGetName", [&](Process& process) {
    require(name != nullptr && length > 0);
    require_device(process, device);
    const size_t size = std::min(kName.size(), static_cast<size_t>(length) - 1);
    std::memcpy(name, kName.data(), size);
    name[size] = '\0';
  });
}

KLAP_DRIVER_API cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return call("cuDeviceGetUuid", [&](Process& process) {
    require(uuid != nullptr);
    require_device(process, device);
    *uuid = uuid_of(device);
  });
}

KLAP_DRIVER_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid(uuid, device); }

KLAP_DRIVER_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return call("cuDeviceTotalMem", [&](Process& process) {
    require(bytes != nullptr);
    require_device(process, device);
    *bytes = process.settings.machine.executor.device.memory_bytes;
  });
}

KLAP_DRIVER_API cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  return call("cuDeviceGetAttribute", [&](Process& process) {
    require(value != nullptr);
    require_device(process, device);
    *value = attribute(process, which, device);
  });
}

KLAP_DRIVER_API cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  const CUresult result = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  return result != CUDA_SUCCESS
             ? result
             : cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

KLAP_DRIVER_API cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
  return call("cuDeviceGetProperties", [&](Process& process) {
    require(properties != nullptr);
    require_device(process, device);
    const auto get = [&](CUdevice_attribute which) { return attribute(process, which, device); };
    *properties = {
        .maxThreadsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .maxThreadsDim = {get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                          get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
        .maxGridSize = {get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                        get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
        .sharedMemPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        .totalConstantMemory = get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        .SIMDWidth = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .memPitch = get(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        .regsPerBlock = get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        .clockRate = get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .textureAlign = get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)};
  });
}

KLAP_DRIVER_API cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  return call("cuDeviceGetPCIBusId", [&](Process& process) {
    require_device(process, device);
    const std::string text = fmt::format("0000:00:{:02x}.0", device);
    require(id != nullptr && length > 0 && static_cast<size_t>(length) > text.size());
    std::memcpy(id, text.c_str(), text.size() + 1);
  });
}

KLAP_DRIVER_API cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  return call("cuDeviceGetByPCIBusId", [&](Process& process) {
    require(device != nullptr && id != nullptr);
    for (size_t d = 0; d < process.primary.size(); ++d) {
      const std::string text = fmt::format("0000:00:{:02x}.0", d);
      if (text == id || text.substr(5) == id) {
        *device = static_cast<CUdevice>(d);
        return;
      }
    }
    fail(CUDA_ERROR_INVALID_DEVICE);
  });
}

// Each context has a memory of its own in this emulator, and kernels reach no other.
KLAP_DRIVER_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return call("cuDeviceCanAccessPeer", [&](Process& process) {
    require(can != nullptr);
    require_device(process, device);
    require_device(process, peer);
    *can = 0;
  });
}

KLAP_DRIVER_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute, CUdevice device, CUdevice peer) {
  return cuDeviceCanAccessPeer(value, device, peer);
}

KLAP_DRIVER_API cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return call("cuCtxEnablePeerAccess", [&](Process& process) {
    require(flags == 0);
    require(process.contexts.knows(peer), CUDA_ERROR_INVALID_CONTEXT);
    fail(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  });
}

KLAP_DRIVER_API cuCtxDisablePeerAccess(CUcontext) {
  return call("cuCtxDisablePeerAccess", [](Process&) { fail(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED); });
}

KLAP_DRIVER_API cuProfilerStart() {
  return call("cuProfilerStart", [](Process&) {});
}

KLAP_DRIVER_API cuProfilerStop() {
  return call("cuProfilerStop", [](Process&) {});
}
