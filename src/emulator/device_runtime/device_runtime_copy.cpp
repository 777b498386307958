// Copies and sets that device code puts into streams.
//
// They are grids of NVIDIA's library natively: they count as pending launches and wait their turn. Other
// threads see their writes as they see a kernel's.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "emulator/decode/builtins.h"
#include "emulator/device_runtime/device_runtime.h"

namespace klap::emulator {

namespace rt = runtime_error;

// Bytes in up to three dimensions. A set has no source.
struct CopyBox {
  uint64_t to = 0, to_pitch = 0, to_slice = 0;
  uint64_t from = 0, from_pitch = 0, from_slice = 0;
  uint64_t width = 0, height = 1, depth = 1;
  bool is_set = false;
  std::byte value{};
};

namespace {

class CopyOperation final : public Operation {
 public:
  CopyOperation(const CopyBox& box, const RuntimeHost& host, uint64_t number, Place place)
      : box_(box), host_(host), number_(number), place_(place) {}

 private:
  bool begin() override {
    if (host_.ordered) {
      const uint64_t block = ~uint64_t{0} - number_;  // of no grid
      agent_ = host_.order.start(block, before_begin, [set = box_.is_set] {
        return std::string(set ? "cudaMemsetAsync" : "cudaMemcpyAsync");
      });
    }
    for (uint64_t z = 0; z < box_.depth; ++z) {
      for (uint64_t y = 0; y < box_.height; ++y) {
        if (!row(box_.to + z * box_.to_slice + y * box_.to_pitch,
                 box_.from + z * box_.from_slice + y * box_.from_pitch))
          return true;
      }
    }
    before_end = agent_ == nullptr ? before_begin : host_.order.end(std::exchange(agent_, nullptr));
    return true;
  }

  bool may_touch(uint64_t address, const char* what) {
    if (host_.memory.find(address, box_.width) != nullptr) return true;
    host_.fail(rt::kIllegalAddress, fmt::format("{} of device code: {} {} bytes, {}",
                                                box_.is_set ? "cudaMemsetAsync" : "cudaMemcpyAsync", what,
                                                box_.width, host_.memory.describe(address, box_.width)));
    return false;
  }

  bool row(uint64_t to, uint64_t from) {
    if (!may_touch(to, "writes") || (!box_.is_set && !may_touch(from, "reads"))) return false;
    if (agent_ != nullptr) {
      row_in_order(to, from);
    } else if (box_.is_set) {
      std::memset(pointer_to(to), static_cast<int>(box_.value), box_.width);
    } else {
      std::memmove(pointer_to(to), pointer_to(from), box_.width);
    }
    return true;
  }

  // Piece by piece, each as large as both addresses are aligned.
  void row_in_order(uint64_t to, uint64_t from) {
    constexpr uint64_t kLargest = 8;
    for (uint64_t done = 0, bytes = 0; done < box_.width; done += bytes) {
      bytes = kLargest;
      while (((to + done) | (box_.is_set ? 0 : from + done)) % bytes != 0 || bytes > box_.width - done)
        bytes /= 2;
      std::array<std::byte, kLargest> piece{};
      const auto value = std::span(piece).first(bytes);
      if (box_.is_set) {
        std::fill(value.begin(), value.end(), box_.value);
      } else {
        std::memcpy(value.data(), pointer_to(from + done), bytes);
        host_.order.load(agent_, from + done, value, {}, place_);
      }
      host_.order.store(agent_, to + done, value, {}, place_);
      std::memcpy(pointer_to(to + done), value.data(), bytes);
    }
  }

  CopyBox box_;
  const RuntimeHost& host_;
  uint64_t number_;
  Place place_;
  Agent* agent_ = nullptr;
};

bool is_global(uint64_t address) {
  return address != 0 && (address < kSharedWindow || address >= kCodeWindow + kWindowBytes);
}

// True for a cudaMemcpyKind from device to device, or as the addresses say.
bool is_device_kind(uint32_t kind) { return kind == 3 || kind == 4; }

// Whether rows are longer than their distance, or slices are.
bool overlaps_itself(const CopyBox& box) {
  const auto is_short = [&](uint64_t pitch, uint64_t slice) {
    return (box.height * box.depth > 1 && pitch < box.width) || (box.depth > 1 && slice < pitch * box.height);
  };
  return is_short(box.to_pitch, box.to_slice) || (!box.is_set && is_short(box.from_pitch, box.from_slice));
}

// The structures as they lie in memory (driver_types.h).
struct PitchedPointer {
  uint64_t pointer, pitch, width, height;
};
struct Extent {
  uint64_t width, height, depth;
};
struct Copy3D {
  uint64_t from_array;
  Extent from_position;  // x, y, z
  PitchedPointer from;
  uint64_t to_array;
  Extent to_position;
  PitchedPointer to;
  Extent extent;
  uint32_t kind;
};

uint64_t start_of(const PitchedPointer& p, const Extent& position) {
  return p.pointer + position.width + p.pitch * (position.height + p.height * position.depth);
}

}  // namespace

int DeviceRuntime::put_copy(const ThreadCall& call, const CopyBox& box, uint64_t stream, bool own) {
  if (box.width == 0 || box.height == 0 || box.depth == 0) return rt::kSuccess;
  if (!is_global(box.to) || (!box.is_set && !is_global(box.from))) return rt::kInvalidValue;
  // The codes are those of an H100 with driver 580.
  if (overlaps_itself(box)) return box.is_set ? rt::kInvalidValue : rt::kInvalidPitch;
  // The library launches a kernel, and tells no more of its failure than that it did not work.
  DeviceStream where;
  if (!DeviceStreams::find(block_of(call), calling_thread(call), stream, own, where)) return rt::kUnknown;
  GridOperation& launcher = calling_grid(call);
  if (host_.grids.pending() >= launcher.pending_limit) return rt::kUnknown;
  const auto operation = std::make_shared<CopyOperation>(box, host_, ++copies_, call.place);
  if (call.agent != nullptr) operation->before_begin = host_.order.now(call.agent);
  put(call, where, operation);
  return rt::kSuccess;
}

// (to, from, bytes, kind, stream)
int DeviceRuntime::copy(const ThreadCall& call, bool own) {
  CallArguments arguments(call.arguments);
  CopyBox box;
  box.to = arguments.next<uint64_t>();
  box.from = arguments.next<uint64_t>();
  box.width = arguments.next<uint64_t>();
  const auto kind = arguments.next<uint32_t>();
  if (box.width != 0 && !is_device_kind(kind)) return rt::kInvalidMemcpyDirection;
  return put_copy(call, box, arguments.next<uint64_t>(), own);
}

// (to, pitch, from, pitch, width, height, kind, stream)
int DeviceRuntime::copy_2d(const ThreadCall& call, bool own) {
  CallArguments arguments(call.arguments);
  CopyBox box;
  box.to = arguments.next<uint64_t>();
  box.to_pitch = arguments.next<uint64_t>();
  box.from = arguments.next<uint64_t>();
  box.from_pitch = arguments.next<uint64_t>();
  box.width = arguments.next<uint64_t>();
  box.height = arguments.next<uint64_t>();
  const auto kind = arguments.next<uint32_t>();
  if (box.width != 0 && box.height != 0 && !is_device_kind(kind)) return rt::kInvalidMemcpyDirection;
  return put_copy(call, box, arguments.next<uint64_t>(), own);
}

// (parameters, stream); arrays do not exist here.
int DeviceRuntime::copy_3d(const ThreadCall& call, bool own) {
  CallArguments arguments(call.arguments);
  const auto address = arguments.next<uint64_t>();
  if (address == 0) return rt::kInvalidValue;
  const auto p = read_value<Copy3D>(call, address);
  if (p.from_array != 0 || p.to_array != 0) return rt::kInvalidValue;
  const bool is_empty = p.extent.width == 0 || p.extent.height == 0 || p.extent.depth == 0;
  if (!is_empty && !is_device_kind(p.kind)) return rt::kInvalidMemcpyDirection;
  CopyBox box{.to = start_of(p.to, p.to_position),
              .to_pitch = p.to.pitch,
              .to_slice = p.to.pitch * p.to.height,
              .from = start_of(p.from, p.from_position),
              .from_pitch = p.from.pitch,
              .from_slice = p.from.pitch * p.from.height,
              .width = p.extent.width,
              .height = p.extent.height,
              .depth = p.extent.depth};
  return put_copy(call, box, arguments.next<uint64_t>(), own);
}

// (to, value, bytes, stream)
int DeviceRuntime::set(const ThreadCall& call, bool own) {
  CallArguments arguments(call.arguments);
  CopyBox box{.is_set = true};
  box.to = arguments.next<uint64_t>();
  box.value = static_cast<std::byte>(arguments.next<uint32_t>());
  box.width = arguments.next<uint64_t>();
  return put_copy(call, box, arguments.next<uint64_t>(), own);
}

// (to, pitch, value, width, height, stream)
int DeviceRuntime::set_2d(const ThreadCall& call, bool own) {
  CallArguments arguments(call.arguments);
  CopyBox box{.is_set = true};
  box.to = arguments.next<uint64_t>();
  box.to_pitch = arguments.next<uint64_t>();
  box.value = static_cast<std::byte>(arguments.next<uint32_t>());
  box.width = arguments.next<uint64_t>();
  box.height = arguments.next<uint64_t>();
  return put_copy(call, box, arguments.next<uint64_t>(), own);
}

// (pitched pointer, value, extent, stream)
int DeviceRuntime::set_3d(const ThreadCall& call, bool own) {
  CallArguments arguments(call.arguments);
  const auto to = arguments.next<PitchedPointer>();
  CopyBox box{.to = to.pointer, .to_pitch = to.pitch, .to_slice = to.pitch * to.height, .is_set = true};
  box.value = static_cast<std::byte>(arguments.next<uint32_t>());
  const auto extent = arguments.next<Extent>();
  box.width = extent.width;
  box.height = extent.height;
  box.depth = extent.depth;
  return put_copy(call, box, arguments.next<uint64_t>(), own);
}

bool DeviceRuntime::call_copy(const ThreadCall& call) {
  using Do = int (DeviceRuntime::*)(const ThreadCall&, bool own);
  const auto done = [&](Do function, bool own) {
    finish(call, (this->*function)(call, own));
    return true;
  };
  switch (static_cast<Builtin>(call.builtin)) {
    case Builtin::MemcpyAsync:
      return done(&DeviceRuntime::copy, false);
    case Builtin::MemcpyAsyncPerThread:
      return done(&DeviceRuntime::copy, true);
    case Builtin::Memcpy2DAsync:
      return done(&DeviceRuntime::copy_2d, false);
    case Builtin::Memcpy2DAsyncPerThread:
      return done(&DeviceRuntime::copy_2d, true);
    case Builtin::Memcpy3DAsync:
      return done(&DeviceRuntime::copy_3d, false);
    case Builtin::Memcpy3DAsyncPerThread:
      return done(&DeviceRuntime::copy_3d, true);
    case Builtin::MemsetAsync:
      return done(&DeviceRuntime::set, false);
    case Builtin::MemsetAsyncPerThread:
      return done(&DeviceRuntime::set, true);
    case Builtin::Memset2DAsync:
      return done(&DeviceRuntime::set_2d, false);
    case Builtin::Memset2DAsyncPerThread:
      return done(&DeviceRuntime::set_2d, true);
    case Builtin::Memset3DAsync:
      return done(&DeviceRuntime::set_3d, false);
    case Builtin::Memset3DAsyncPerThread:
      return done(&DeviceRuntime::set_3d, true);
    default:
      return false;
  }
}

}  // namespace klap::emulator
