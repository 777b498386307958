// Copies, in all the forms that the driver has for them.
//
// When a copy reads and writes is as adverse as the driver's promises allow: a copy out of pinned memory
// reads when the stream comes to it, out of pageable memory at once; a copy from device to device is not
// waited for, whether its name says Async or not.
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"
#include "emulator/driver/streams/stream.h"

using namespace klap::emulator::driver;

namespace {

enum class Side { Host, Device };

uint64_t address(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

Side side_of(Process& process, uint64_t at) { return owner_of(process, at) ? Side::Device : Side::Host; }

bool is_pageable(Process& process, uint64_t at) { return !owner_of(process, at).has_value(); }

bool is_host_side(Process& process, uint64_t at) {
  const auto owned = owner_of(process, at);
  return !owned || owned->block.is_host();
}

std::shared_ptr<const std::vector<std::byte>> taken_now(const Copy& copy) {
  const std::byte* const from = klap::emulator::pointer_to(copy.from);
  const size_t bytes = copy.width + (copy.height - 1) * copy.from_pitch + (copy.depth - 1) * copy.from_slice;
  return std::make_shared<const std::vector<std::byte>>(from, from + bytes);
}

bool is_nothing(const Copy& copy) { return copy.width == 0 || copy.height == 0 || copy.depth == 0; }

void enqueue(Process& process, Copy copy, CUstream_st& stream) {
  validate(process, copy);
  const bool is_captured = capture_status(stream) != CU_STREAM_CAPTURE_STATUS_NONE;
  const bool pageable_source = is_pageable(process, copy.from);
  const bool pageable_target = is_pageable(process, copy.to);
  if (!is_captured && pageable_source && !is_nothing(copy)) copy.staged = taken_now(copy);
  submit(process, stream, std::move(copy));
  if (!is_captured && pageable_target) synchronise(process, stream);
}

void copy_now(Process& process, const Copy& copy) {
  CUctx_st& context = working(process);
  CUstream_st& stream = resolve(process, CUstream{});
  forbid_capture(stream);
  forbid_unsafe_call(process);
  const bool waits = is_host_side(process, copy.from) || is_host_side(process, copy.to);
  // The writes of another context's work to its memory must be complete.
  for (const uint64_t at : {copy.from, copy.to}) {
    const auto owned = owner_of(process, at);
    if (owned && owned->context != &context) owned->context->synchronise();
  }
  enqueue(process, copy, stream);
  if (waits) synchronise(process, stream);
}

Copy plain(uint64_t to, uint64_t from, size_t bytes) {
  Copy copy;
  copy.to = to;
  copy.from = from;
  copy.width = bytes;
  return copy;
}

void require_device(Process& process, uint64_t at, size_t bytes) {
  require(bytes == 0 || side_of(process, at) == Side::Device);
}

// ---- boxes ----

struct Corner {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  size_t x, y, z, pitch, height;
};

uint64_t start_of(Process& process, const Corner& corner, size_t pitch, size_t slice) {
  uint64_t base = corner.device;
  switch (corner.type) {
    case CU_MEMORYTYPE_HOST:
      base = address(corner.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
      require(side_of(process, base) == Side::Device);
      break;
    case CU_MEMORYTYPE_UNIFIED:
      break;
    default:  // arrays
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  return base + corner.z * slice + corner.y * pitch + corner.x;
}

Copy box(Process& process, const Corner& to, const Corner& from, size_t width, size_t height, size_t depth) {
  Copy copy;
  copy.width = width;
  copy.height = height;
  copy.depth = depth;
  const auto pitch_of = [&](const Corner& corner) { return corner.pitch == 0 ? width : corner.pitch; };
  const auto slice_of = [&](const Corner& c) { return pitch_of(c) * (c.height == 0 ? height : c.height); };
  copy.to_pitch = pitch_of(to);
  copy.to_slice = slice_of(to);
  copy.from_pitch = pitch_of(from);
  copy.from_slice = slice_of(from);
  require(height <= 1 || (copy.to_pitch >= width && copy.from_pitch >= width));
  if (is_nothing(copy)) return copy;
  copy.to = start_of(process, to, copy.to_pitch, copy.to_slice);
  copy.from = start_of(process, from, copy.from_pitch, copy.from_slice);
  return copy;
}

Copy box(Process& process, const CUDA_MEMCPY2D& c) {
  return box(process,
             {c.dstMemoryType, c.dstHost, c.dstDevice, c.dstXInBytes, c.dstY, 0, c.dstPitch, c.Height},
             {c.srcMemoryType, c.srcHost, c.srcDevice, c.srcXInBytes, c.srcY, 0, c.srcPitch, c.Height},
             c.WidthInBytes, c.Height, 1);
}

}  // namespace

namespace klap::emulator::driver {

Copy copy_of(Process& process, const CUDA_MEMCPY3D& c) {
  return box(
      process,
      {c.dstMemoryType, c.dstHost, c.dstDevice, c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch, c.dstHeight},
      {c.srcMemoryType, c.srcHost, c.srcDevice, c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch, c.srcHeight},
      c.WidthInBytes, c.Height, c.Depth);
}

CUDA_MEMCPY3D description_of(const Copy& copy) {
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = out.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  out.srcDevice = copy.from;
  out.dstDevice = copy.to;
  out.srcPitch = copy.from_pitch;
  out.dstPitch = copy.to_pitch;
  out.srcHeight = copy.from_pitch == 0 ? 0 : copy.from_slice / copy.from_pitch;
  out.dstHeight = copy.to_pitch == 0 ? 0 : copy.to_slice / copy.to_pitch;
  out.WidthInBytes = copy.width;
  out.Height = copy.height;
  out.Depth = copy.depth;
  return out;
}

}  // namespace klap::emulator::driver

// ---- waited for as the driver does ----

KLAP_DRIVER_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return call("cuMemcpy", [&](Process& process) { copy_now(process, plain(to, from, bytes)); });
}

KLAP_DRIVER_API cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return call("cuMemcpyHtoD", [&](Process& process) {
    require_device(process, to, bytes);
    copy_now(process, plain(to, address(from), bytes));
  });
}

KLAP_DRIVER_API cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return call("cuMemcpyDtoH", [&](Process& process) {
    require_device(process, from, bytes);
    copy_now(process, plain(address(to), from, bytes));
  });
}

KLAP_DRIVER_API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return call("cuMemcpyDtoD", [&](Process& process) {
    require_device(process, to, bytes);
    require_device(process, from, bytes);
    copy_now(process, plain(to, from, bytes));
  });
}

KLAP_DRIVER_API cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                             size_t bytes) {
  return call("cuMemcpyPeer", [&](Process& process) {
    context_or_current(process, to_context).synchronise();
    context_or_current(process, from_context).synchronise();
    copy_now(process, plain(to, from, bytes));
  });
}

KLAP_DRIVER_API cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return call("cuMemcpy2D", [&](Process& process) {
    require(copy != nullptr);
    copy_now(process, box(process, *copy));
  });
}

KLAP_DRIVER_API cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return cuMemcpy2DUnaligned_v2(copy); }

KLAP_DRIVER_API cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return call("cuMemcpy3D", [&](Process& process) {
    require(copy != nullptr);
    copy_now(process, copy_of(process, *copy));
  });
}

// ---- in a stream ----

KLAP_DRIVER_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call("cuMemcpyAsync",
              [&](Process& process) { enqueue(process, plain(to, from, bytes), resolve(process, stream)); });
}

KLAP_DRIVER_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return call("cuMemcpyHtoDAsync", [&](Process& process) {
    require_device(process, to, bytes);
    enqueue(process, plain(to, address(from), bytes), resolve(process, stream));
  });
}

KLAP_DRIVER_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoHAsync", [&](Process& process) {
    require_device(process, from, bytes);
    enqueue(process, plain(address(to), from, bytes), resolve(process, stream));
  });
}

KLAP_DRIVER_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return call("cuMemcpyDtoDAsync", [&](Process& process) {
    require_device(process, to, bytes);
    require_device(process, from, bytes);
    enqueue(process, plain(to, from, bytes), resolve(process, stream));
  });
}

KLAP_DRIVER_API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                  CUcontext from_context, size_t bytes, CUstream stream) {
  return call("cuMemcpyPeerAsync", [&](Process& process) {
    CUstream_st& in = resolve(process, stream);
    for (CUcontext const context : {to_context, from_context}) {
      CUctx_st& peer = context_or_current(process, context);
      if (&peer != in.context) peer.synchronise();
    }
    enqueue(process, plain(to, from, bytes), in);
  });
}

KLAP_DRIVER_API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return call("cuMemcpy2DAsync", [&](Process& process) {
    require(copy != nullptr);
    enqueue(process, box(process, *copy), resolve(process, stream));
  });
}

KLAP_DRIVER_API cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return call("cuMemcpy3DAsync", [&](Process& process) {
    require(copy != nullptr);
    enqueue(process, copy_of(process, *copy), resolve(process, stream));
  });
}
