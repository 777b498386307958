// Memory: allocation on the device, of host memory that the device may use, and queries about an address.
#include <algorithm>
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"
#include "emulator/driver/streams/stream.h"

using namespace klap::emulator;
using namespace klap::emulator::driver;

namespace {

constexpr size_t kPitch = 512;
constexpr uint64_t kManagedPage = 64 << 10;  // where advice about a part of managed memory may begin

Owner owner_for(BlockKind kind) {
  switch (kind) {
    case BlockKind::Managed:
      return Owner::Managed;
    case BlockKind::Pinned:
      return Owner::Pinned;
    default:
      return Owner::Host;
  }
}

uint64_t allocate(Process& process, size_t bytes, BlockKind kind, unsigned flags) {
  CUctx_st& context = working(process);
  forbid_unsafe_call(process);
  require(bytes != 0);
  const uint64_t align = kind == BlockKind::Managed ? kManagedPage : 256;
  const auto address = context.machine->memory().allocate(bytes, owner_for(kind), align);
  require(address.has_value(), CUDA_ERROR_OUT_OF_MEMORY);
  // The host's writes to memory that it can reach itself are not seen, so all of it may have been written.
  MemoryModel& order = context.machine->order();
  kind == BlockKind::Device ? order.allocated(*address, bytes) : order.initialised(*address, bytes);
  context.blocks.add({*address, bytes, kind, flags, ++process.last_id});
  return *address;
}

// The block that begins at the address, in whichever context. Work that may use it is waited for, as in the
// driver.
Owned take(Process& process, uint64_t address) {
  const auto owned = owner_of(process, address);
  require(owned && owned->block.id != 0 && owned->block.address == address);
  forbid_unsafe_call(process);
  owned->context->require_alive();
  owned->context->synchronise();
  return *owned;
}

void release(const Owned& owned) {
  Machine& machine = *owned.context->machine;
  const uint64_t address = owned.block.address;
  if (owned.block.kind == BlockKind::Registered) {
    machine.memory().remove_foreign(address);
  } else {
    machine.order().freed(address, owned.block.bytes);
    machine.memory().free(address, owner_for(owned.block.kind));
  }
  owned.context->blocks.remove(address);
}

void release_host(Process& process, void* memory, BlockKind kind, CUresult otherwise) {
  const auto address = reinterpret_cast<uint64_t>(memory);
  const auto owned = owner_of(process, address);
  require(owned && owned->block.kind == kind && owned->block.address == address, otherwise);
  release(take(process, address));
}

}  // namespace

KLAP_DRIVER_API cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return call("cuMemAlloc", [&](Process& process) {
    require(address != nullptr);
    *address = allocate(process, bytes, BlockKind::Device, 0);
  });
}

KLAP_DRIVER_API cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                   unsigned element_bytes) {
  return call("cuMemAllocPitch", [&](Process& process) {
    require(address != nullptr && pitch != nullptr && width != 0 && height != 0);
    require(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
    const size_t row = (width + kPitch - 1) / kPitch * kPitch;
    require(row >= width && row <= SIZE_MAX / height, CUDA_ERROR_OUT_OF_MEMORY);
    *address = allocate(process, row * height, BlockKind::Device, 0);
    *pitch = row;
  });
}

KLAP_DRIVER_API cuMemFree_v2(CUdeviceptr address) {
  return call("cuMemFree", [&](Process& process) {
    if (address == 0) return;
    const auto owned = owner_of(process, address);
    require(owned && (owned->block.kind == BlockKind::Device || owned->block.kind == BlockKind::Managed));
    release(take(process, address));
  });
}

KLAP_DRIVER_API cuMemGetInfo_v2(size_t* free, size_t* total) {
  return call("cuMemGetInfo", [&](Process& process) {
    require(free != nullptr && total != nullptr);
    const Memory& memory = working(process).machine->memory();
    *total = memory.total();
    *free = memory.total() - std::min(memory.total(), memory.used());
  });
}

// In stream order only on the side of freeing: a new block can be used by earlier work without harm.
KLAP_DRIVER_API cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return call("cuMemAllocAsync", [&](Process& process) {
    require(address != nullptr);
    forbid_capture(resolve(process, stream));
    *address = allocate(process, bytes, BlockKind::Device, 0);
  });
}

KLAP_DRIVER_API cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return call("cuMemFreeAsync", [&](Process& process) {
    CUstream_st& in = resolve(process, stream);
    forbid_capture(in);
    in.context->require_alive();
    const auto owned = owner_of(process, address);
    require(owned && owned->block.kind == BlockKind::Device && owned->block.address == address &&
            owned->block.id != 0);
    in.context->machine->enqueue(in.stream, [released = *owned] { release(released); });
  });
}

KLAP_DRIVER_API cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return call("cuMemAllocManaged", [&](Process& process) {
    require(address != nullptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
    *address = allocate(process, bytes, BlockKind::Managed, flags);
  });
}

KLAP_DRIVER_API cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return call("cuMemHostAlloc", [&](Process& process) {
    require(memory != nullptr);
    *memory = pointer_to(allocate(process, bytes, BlockKind::Pinned, flags));
  });
}

KLAP_DRIVER_API cuMemAllocHost_v2(void** memory, size_t bytes) { return cuMemHostAlloc(memory, bytes, 0); }

KLAP_DRIVER_API cuMemFreeHost(void* memory) {
  return call("cuMemFreeHost", [&](Process& process) {
    release_host(process, memory, BlockKind::Pinned, CUDA_ERROR_INVALID_VALUE);
  });
}

KLAP_DRIVER_API cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  return call("cuMemHostRegister", [&](Process& process) {
    CUctx_st& context = working(process);
    const auto address = reinterpret_cast<uint64_t>(memory);
    require(memory != nullptr && bytes != 0 && address + bytes > address);
    require(!owner_of(process, address) && !owner_of(process, address + bytes - 1),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    context.machine->memory().add_foreign(address, bytes);
    context.blocks.add({address, bytes, BlockKind::Registered, flags, ++process.last_id});
    context.machine->order().initialised(address, bytes);
  });
}

KLAP_DRIVER_API cuMemHostUnregister(void* memory) {
  return call("cuMemHostUnregister", [&](Process& process) {
    release_host(process, memory, BlockKind::Registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  });
}

KLAP_DRIVER_API cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned flags) {
  return call("cuMemHostGetDevicePointer", [&](Process& process) {
    require(address != nullptr && flags == 0);
    const auto owned = owner_of(process, reinterpret_cast<uint64_t>(memory));
    require(owned && owned->block.is_host());
    *address = reinterpret_cast<CUdeviceptr>(memory);
  });
}

KLAP_DRIVER_API cuMemHostGetFlags(unsigned* flags, void* memory) {
  return call("cuMemHostGetFlags", [&](Process& process) {
    require(flags != nullptr);
    const auto owned = owner_of(process, reinterpret_cast<uint64_t>(memory));
    require(owned && owned->block.is_host());
    *flags = owned->block.flags;
  });
}

KLAP_DRIVER_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return call("cuMemGetAddressRange", [&](Process& process) {
    const auto owned = owner_of(process, address);
    require(owned.has_value(), CUDA_ERROR_NOT_FOUND);
    if (base != nullptr) *base = owned->block.address;
    if (bytes != nullptr) *bytes = owned->block.bytes;
  });
}

// Managed memory is where both sides use it; there is nothing to move. Its pages are there from now on.
KLAP_DRIVER_API cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned flags,
                                      CUstream stream) {
  return call("cuMemPrefetchAsync", [&](Process& process) {
    const auto owned = owner_of(process, address);
    require(flags == 0 && owned && owned->block.kind == BlockKind::Managed &&
            bytes <= owned->block.address + owned->block.bytes - address);
    submit(process, resolve(process, stream), Empty{});
    owned->context->machine->memory().touch(address, bytes);
  });
}

KLAP_DRIVER_API cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync_v2(address, bytes, {CU_MEM_LOCATION_TYPE_DEVICE, {device}}, 0, stream);
}

KLAP_DRIVER_API cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise, CUmemLocation) {
  return call("cuMemAdvise", [&](Process& process) {
    const auto owned = owner_of(process, address);
    require(owned && owned->block.kind == BlockKind::Managed &&
            bytes <= owned->block.address + owned->block.bytes - address);
  });
}

KLAP_DRIVER_API cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(address, bytes, advice, {CU_MEM_LOCATION_TYPE_DEVICE, {device}});
}

KLAP_DRIVER_API cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t, unsigned) {
  return call("cuStreamAttachMemAsync", [&](Process& process) {
    const auto owned = owner_of(process, address);
    require(owned && owned->block.kind == BlockKind::Managed);
    submit(process, resolve(process, stream), Empty{});
  });
}
