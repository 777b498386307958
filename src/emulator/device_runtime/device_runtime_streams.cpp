// Streams of device code, as operations that wait for each other.
#include "emulator/device_runtime/device_runtime_streams.h"

#include <array>
#include <utility>

namespace klap::emulator {
namespace {

// Handles that are no address and no small number, so that a wrong one is hardly right by accident.
constexpr uint64_t kStreamHandles = 0x5354000000000000ull, kEventHandles = 0x4556000000000000ull;

}  // namespace

DeviceBlock DeviceStreams::take(uint64_t block) {
  auto node = blocks_.extract(block);
  return node ? std::move(node.mapped()) : DeviceBlock{};
}

bool DeviceStreams::find(DeviceBlock& block, uint32_t thread, uint64_t handle, bool own, DeviceStream& out) {
  if (handle == kDeviceNullStream && own) handle = kDevicePerThreadStream;
  out = {};
  switch (handle) {
    case kDeviceNullStream:
    case kDeviceLegacyStream:
      out.last = &block.last;
      return true;
    case kDevicePerThreadStream:
      out.last = &block.threads[thread].last;
      return true;
    case kDeviceTailLaunch:
      out.kind = DeviceStream::Kind::Tail;
      return true;
    case kDeviceFireAndForget:
      out.kind = DeviceStream::Kind::FireAndForget;
      return true;
    default:
      break;
  }
  const auto found = block.streams.find(handle);
  if (found == block.streams.end()) return false;
  out.last = &found->second;
  return true;
}

void DeviceStreams::put(const DeviceStream& stream, const OperationRef& operation, GridOperation& launcher) {
  switch (stream.kind) {
    case DeviceStream::Kind::Tail:
      return grids_.add_tail(operation, launcher);
    case DeviceStream::Kind::FireAndForget:
      return grids_.add_child(operation, launcher, {});
    case DeviceStream::Kind::Ordered:
      grids_.add_child(operation, launcher, std::array{*stream.last});
      *stream.last = operation;
  }
}

bool DeviceStreams::has_finished(DeviceBlock& block) {
  std::erase_if(block.launched, [&block](const OperationRef& operation) {
    if (!operation->is_finished()) return false;
    block.awaited = joined(block.awaited, operation->before_end);
    return true;
  });
  return block.launched.empty();
}

uint64_t DeviceStreams::create_stream(DeviceBlock& block) {
  const uint64_t handle = kStreamHandles + 16 * ++next_;
  block.streams[handle];
  return handle;
}

uint64_t DeviceStreams::create_event(DeviceBlock& block) {
  const uint64_t handle = kEventHandles + 16 * ++next_;
  block.events[handle];
  return handle;
}

bool DeviceStreams::record(DeviceBlock& block, uint64_t event, const DeviceStream& stream) {
  const auto found = block.events.find(event);
  if (found == block.events.end() || stream.last == nullptr) return false;
  found->second = *stream.last;
  return true;
}

bool DeviceStreams::wait(DeviceBlock& block, uint64_t event, const DeviceStream& stream) {
  const auto found = block.events.find(event);
  if (found == block.events.end() || stream.last == nullptr) return false;
  if (!found->second) return true;
  const auto marker = std::make_shared<Marker>();
  operations_.add(marker, std::array{*stream.last, found->second});
  *stream.last = marker;
  return true;
}

}  // namespace klap::emulator
