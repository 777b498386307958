// Launches from device code: argument buffers, and the calls that turn them into grids.
#include <utility>

#include "emulator/decode/builtins.h"
#include "emulator/device_runtime/device_runtime.h"
#include "support/error.h"

namespace klap::emulator {

namespace rt = runtime_error;

namespace {

constexpr uint64_t kBufferAlign = 16;  // no argument is aligned to more, unless the program says so itself
constexpr uint64_t kLargestAlign = 64;

}  // namespace

uint64_t DeviceRuntime::make_buffer(const ThreadCall& call, ArgumentBuffer buffer, uint64_t align) {
  const uint64_t bytes = std::max<uint64_t>(buffer.bytes, 1);
  const std::optional<uint64_t> address = host_.memory.allocate(bytes, Owner::Runtime, align);
  if (!address) {
    thread_of(call).last_error = rt::kMemoryAllocation;
    return 0;
  }
  host_.order.allocated(*address, bytes);
  block_of(call).buffers[*address] = buffer;
  return *address;
}

void DeviceRuntime::release_buffer(uint64_t address, const ArgumentBuffer& buffer) {
  host_.order.freed(address, std::max<uint64_t>(buffer.bytes, 1));
  host_.memory.free(address, Owner::Runtime);
}

// (kernel, grid, block, dynamic shared bytes). As on a GPU (driver 580), a launch that will be refused gets a
// buffer all the same, so its arguments are computed.
uint64_t DeviceRuntime::described_buffer(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  ArgumentBuffer buffer;
  buffer.kernel = function_at(call, arguments.next<uint64_t>());
  buffer.grid = arguments.next<Dim3>();
  buffer.block = arguments.next<Dim3>();
  buffer.dynamic_shared = arguments.next<uint32_t>();
  if (buffer.kernel != nullptr && buffer.kernel->is_kernel) {
    buffer.bytes = buffer.kernel->parameter_bytes;
    return make_buffer(call, buffer, kBufferAlign);
  }
  ++host_.counts.refused;
  thread_of(call).last_error = rt::kInvalidValue;
  return 0;
}

// (alignment, bytes)
uint64_t DeviceRuntime::documented_buffer(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  const auto align = arguments.next<uint64_t>();
  ArgumentBuffer buffer;
  buffer.bytes = arguments.next<uint64_t>();
  if (align > kLargestAlign || (align & (align - 1)) != 0) {
    thread_of(call).last_error = rt::kInvalidValue;
    return 0;
  }
  return make_buffer(call, buffer, std::max(align, kBufferAlign));
}

// Takes the arguments out of a buffer, which is gone afterwards.
static bool take_arguments(DeviceBlock& block, uint64_t address, ArgumentBuffer& buffer,
                           std::vector<std::byte>& arguments) {
  auto node = block.buffers.extract(address);
  if (!node) return false;
  buffer = node.mapped();
  arguments.resize(buffer.bytes);
  if (buffer.bytes != 0) std::memcpy(arguments.data(), pointer_to(address), arguments.size());
  return true;
}

// (buffer, stream)
int DeviceRuntime::launch_described(const ThreadCall& call, bool own) {
  CallArguments arguments(call.arguments);
  const auto address = arguments.next<uint64_t>();
  const auto stream = arguments.next<uint64_t>();
  ArgumentBuffer buffer;
  Launch wanted;
  wanted.image = call.grid.launch.image;
  if (!take_arguments(block_of(call), address, buffer, wanted.parameters)) return rt::kInvalidValue;
  release_buffer(address, buffer);
  wanted.kernel = buffer.kernel;
  wanted.grid = buffer.grid;
  wanted.block = buffer.block;
  wanted.dynamic_shared = buffer.dynamic_shared;
  return launch(call, std::move(wanted), stream, own);
}

// (kernel, buffer, grid, block, dynamic shared bytes, stream)
int DeviceRuntime::launch_documented(const ThreadCall& call, bool own) {
  CallArguments arguments(call.arguments);
  Launch wanted;
  wanted.image = call.grid.launch.image;
  wanted.kernel = function_at(call, arguments.next<uint64_t>());
  const auto address = arguments.next<uint64_t>();
  wanted.grid = arguments.next<Dim3>();
  wanted.block = arguments.next<Dim3>();
  wanted.dynamic_shared = arguments.next<uint32_t>();
  const auto stream = arguments.next<uint64_t>();
  if (address != 0) {  // a kernel without parameters needs no buffer
    ArgumentBuffer buffer;
    if (!take_arguments(block_of(call), address, buffer, wanted.parameters)) return rt::kInvalidValue;
    release_buffer(address, buffer);
  }
  return launch(call, std::move(wanted), stream, own);
}

int DeviceRuntime::launch(const ThreadCall& call, Launch wanted, uint64_t stream, bool own) {
  if (wanted.kernel == nullptr || !wanted.kernel->is_kernel) return rt::kInvalidValue;
  if (const int error = launch_error(wanted, host_.shared_limit(*wanted.kernel), true)) return error;
  DeviceStream where;
  if (!DeviceStreams::find(block_of(call), calling_thread(call), stream, own, where))
    return rt::kInvalidValue;
  if (const std::string text = host_.unsupported(*wanted.image, *wanted.kernel); !text.empty())
    throw Error(ErrorCode::Unsupported, text);
  GridOperation& launcher = calling_grid(call);
  if (host_.grids.pending() >= launcher.pending_limit) {
    ++host_.counts.over_limit;
    return rt::kPendingCountExceeded;
  }
  ++host_.counts.device_launches;
  const auto grid = host_.grids.make(std::move(wanted), &launcher);
  grid->parent_block = call.block;
  if (call.agent != nullptr) grid->before_begin = host_.order.now(call.agent);
  put(call, where, grid);
  return rt::kSuccess;
}

void DeviceRuntime::put(const ThreadCall& call, const DeviceStream& stream, const OperationRef& operation) {
  if (stream.kind != DeviceStream::Kind::Tail) block_of(call).launched.push_back(operation);
  streams_.put(stream, operation, calling_grid(call));
}

// Returns when all that the block has launched is finished. Until then the thread comes back.
void DeviceRuntime::wait_for_children(const ThreadCall& call) {
  DeviceBlock& block = block_of(call);
  call.waits = !DeviceStreams::has_finished(block);
  if (call.waits) return;
  if (call.agent != nullptr) host_.order.join(call.agent, block.awaited);
  finish(call, rt::kSuccess);
}

bool DeviceRuntime::call_launch(const ThreadCall& call) {
  const auto done = [&](int error) {
    host_.counts.refused += error == rt::kSuccess ? 0 : 1;
    finish(call, error);
    return true;
  };
  switch (static_cast<Builtin>(call.builtin)) {
    case Builtin::GetParameterBufferV2:
      give_result(call, described_buffer(call));
      return true;
    case Builtin::GetParameterBuffer:
      give_result(call, documented_buffer(call));
      return true;
    case Builtin::LaunchDeviceV2:
      return done(launch_described(call, false));
    case Builtin::LaunchDeviceV2PerThread:
      return done(launch_described(call, true));
    case Builtin::LaunchDevice:
      return done(launch_documented(call, false));
    case Builtin::LaunchDevicePerThread:
      return done(launch_documented(call, true));
    case Builtin::DeviceSynchronize:
      wait_for_children(call);
      return true;
    default:
      return false;
  }
}

// ---- streams and events ----

int DeviceRuntime::create_stream(const ThreadCall& call) {
  constexpr uint32_t kNonBlocking = 1;  // a device stream never waits for the NULL stream, and must say so
  CallArguments arguments(call.arguments);
  const auto where = arguments.next<uint64_t>();
  if (where == 0 || arguments.next<uint32_t>() != kNonBlocking) return rt::kInvalidValue;
  write_value(call, where, streams_.create_stream(block_of(call)));
  return rt::kSuccess;
}

int DeviceRuntime::destroy_stream(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  return block_of(call).streams.erase(arguments.next<uint64_t>()) == 0 ? rt::kInvalidValue : rt::kSuccess;
}

int DeviceRuntime::create_event(const ThreadCall& call) {
  constexpr uint32_t kBlockingSync = 1, kDisableTiming = 2;
  CallArguments arguments(call.arguments);
  const auto where = arguments.next<uint64_t>();
  if (where == 0 || (arguments.next<uint32_t>() & ~kBlockingSync) != kDisableTiming) return rt::kInvalidValue;
  write_value(call, where, streams_.create_event(block_of(call)));
  return rt::kSuccess;
}

int DeviceRuntime::destroy_event(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  return block_of(call).events.erase(arguments.next<uint64_t>()) == 0 ? rt::kInvalidValue : rt::kSuccess;
}

int DeviceRuntime::record_event(const ThreadCall& call, bool own, bool has_flags) {
  CallArguments arguments(call.arguments);
  const auto event = arguments.next<uint64_t>();
  const auto handle = arguments.next<uint64_t>();
  DeviceStream stream;
  if (has_flags && arguments.next<uint32_t>() != 0) return rt::kInvalidValue;
  if (!DeviceStreams::find(block_of(call), calling_thread(call), handle, own, stream))
    return rt::kInvalidValue;
  return DeviceStreams::record(block_of(call), event, stream) ? rt::kSuccess : rt::kInvalidValue;
}

int DeviceRuntime::wait_event(const ThreadCall& call, bool own) {
  CallArguments arguments(call.arguments);
  const auto handle = arguments.next<uint64_t>();
  const auto event = arguments.next<uint64_t>();
  DeviceStream stream;
  if (arguments.next<uint32_t>() != 0) return rt::kInvalidValue;
  if (!DeviceStreams::find(block_of(call), calling_thread(call), handle, own, stream))
    return rt::kInvalidValue;
  return streams_.wait(block_of(call), event, stream) ? rt::kSuccess : rt::kInvalidValue;
}

bool DeviceRuntime::call_stream(const ThreadCall& call) {
  const auto done = [&](int error) {
    finish(call, error);
    return true;
  };
  switch (static_cast<Builtin>(call.builtin)) {
    case Builtin::StreamCreateWithFlags:
      return done(create_stream(call));
    case Builtin::StreamDestroy:
      return done(destroy_stream(call));
    case Builtin::StreamWaitEvent:
      return done(wait_event(call, false));
    case Builtin::StreamWaitEventPerThread:
      return done(wait_event(call, true));
    case Builtin::EventCreateWithFlags:
      return done(create_event(call));
    case Builtin::EventDestroy:
      return done(destroy_event(call));
    case Builtin::EventRecord:
      return done(record_event(call, false, false));
    case Builtin::EventRecordPerThread:
      return done(record_event(call, true, false));
    case Builtin::EventRecordWithFlags:
      return done(record_event(call, false, true));
    case Builtin::EventRecordWithFlagsPerThread:
      return done(record_event(call, true, true));
    default:
      return false;
  }
}

}  // namespace klap::emulator
