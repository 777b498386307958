// Queries of device code: errors, attributes, limits, occupancy.
#include <utility>

#include "emulator/decode/builtins.h"
#include "emulator/device_runtime/device_attributes.h"
#include "emulator/device_runtime/device_runtime.h"

namespace klap::emulator {

namespace rt = runtime_error;

namespace {

constexpr int kRuntimeVersion = 13000;
constexpr uint64_t kStackBytes = 1024, kPrintfBytes = 1 << 20;
constexpr uint32_t kMostThreads = 1024;

// The part of cudaFuncAttributes that the device runtime fills.
struct FunctionAttributes {
  uint64_t shared, constant, local;
  int32_t threads, registers, ptx_version, binary_version;
};

uint32_t most_threads(const Function& kernel) {
  uint64_t product = 1;
  for (const uint32_t d : kernel.limits.maximum[0] != 0 ? kernel.limits.maximum : kernel.limits.required)
    product *= d == 0 ? 1 : d;
  const bool limited = kernel.limits.maximum[0] != 0 || kernel.limits.required[0] != 0;
  return limited ? static_cast<uint32_t>(std::min<uint64_t>(product, kMostThreads)) : kMostThreads;
}

}  // namespace

int DeviceRuntime::store_int(const ThreadCall& call, int value) {
  CallArguments arguments(call.arguments);
  const auto where = arguments.next<uint64_t>();
  if (where == 0) return rt::kInvalidValue;
  write_value(call, where, value);
  return rt::kSuccess;
}

// (where, attribute, device)
int DeviceRuntime::attribute(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  const auto where = arguments.next<uint64_t>();
  const auto number = arguments.next<int32_t>();
  if (arguments.next<int32_t>() != 0) return rt::kInvalidDevice;
  const std::optional<int> value = device_attribute(host_.device, number);
  if (where == 0 || !value) return rt::kInvalidValue;
  write_value(call, where, *value);
  return rt::kSuccess;
}

// (where, limit): of cudaLimit
int DeviceRuntime::limit(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  const auto where = arguments.next<uint64_t>();
  if (where == 0) return rt::kInvalidValue;
  uint64_t value = 0;
  switch (arguments.next<uint32_t>()) {
    case 0:
      value = kStackBytes;
      break;
    case 1:
      value = kPrintfBytes;
      break;
    case 2:
      value = host_.heap.bytes();
      break;
    case 4:
      value = calling_grid(call).pending_limit;
      break;
    default:
      return rt::kUnsupportedLimit;
  }
  write_value(call, where, value);
  return rt::kSuccess;
}

// (where, function)
int DeviceRuntime::function_attributes(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  const auto where = arguments.next<uint64_t>();
  const Function* function = function_at(call, arguments.next<uint64_t>());
  if (where == 0 || function == nullptr || !function->is_kernel) return rt::kInvalidValue;
  const auto version = static_cast<int32_t>(host_.device.compute_capability);
  write_value(call, where,
              FunctionAttributes{function->shared_bytes, 0, function->local_bytes,
                                 static_cast<int32_t>(most_threads(*function)),
                                 static_cast<int32_t>(function->register_estimate), version, version});
  return rt::kSuccess;
}

// (where, function, block size, dynamic shared bytes, [flags])
int DeviceRuntime::occupancy(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  const auto where = arguments.next<uint64_t>();
  const Function* function = function_at(call, arguments.next<uint64_t>());
  const auto threads = arguments.next<int32_t>();
  const auto dynamic_shared = arguments.next<uint64_t>();
  if (where == 0 || function == nullptr || !function->is_kernel || threads <= 0) return rt::kInvalidValue;
  const bool fits = static_cast<uint32_t>(threads) <= most_threads(*function) &&
                    dynamic_shared + function->shared_bytes <= host_.shared_limit(*function);
  const uint32_t blocks =
      fits ? host_.occupancy(*function, static_cast<uint32_t>(threads), static_cast<uint32_t>(dynamic_shared))
           : 0;
  write_value(call, where, blocks);
  return rt::kSuccess;
}

// Made when first asked for, and kept.
uint64_t DeviceRuntime::text_address(std::string_view text) {
  const auto [entry, is_new] = texts_.try_emplace(std::string(text), 0);
  if (!is_new && entry->second != 0) return entry->second;
  const uint64_t bytes = text.size() + 1;
  const std::optional<uint64_t> address = host_.memory.allocate(bytes, Owner::Runtime, 1);
  if (!address) return 0;
  std::memcpy(pointer_to(*address), entry->first.c_str(), bytes);
  host_.order.initialised(*address, bytes);
  return entry->second = *address;
}

bool DeviceRuntime::call_query(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  const auto done = [&](int error) {
    finish(call, error);
    return true;
  };
  // An H100 (driver 580) returns these errors and leaves the last error as it is.
  const auto answered = [&](int error) {
    give_result(call, error);
    return true;
  };
  switch (static_cast<Builtin>(call.builtin)) {
    case Builtin::GetLastError:
      give_result(call, std::exchange(thread_of(call).last_error, rt::kSuccess));
      return true;
    case Builtin::PeekAtLastError:
      give_result(call, thread_of(call).last_error);
      return true;
    case Builtin::GetErrorString:
      give_result(call, text_address(runtime_error_name(arguments.next<int32_t>())));
      return true;
    case Builtin::GetErrorName:
      give_result(call, text_address(runtime_error_name(arguments.next<int32_t>())));
      return true;
    case Builtin::GetDevice:
    case Builtin::DeviceGetCacheConfig:      // no preference
    case Builtin::DeviceGetSharedMemConfig:  // default bank size
      return done(store_int(call, 0));
    case Builtin::GetDeviceCount:
      return done(store_int(call, 1));
    case Builtin::RuntimeGetVersion:
      return done(store_int(call, kRuntimeVersion));
    case Builtin::DeviceGetAttribute:
      return done(attribute(call));
    case Builtin::DeviceGetLimit:
      return answered(limit(call));
    case Builtin::FuncGetAttributes:
      return done(function_attributes(call));
    case Builtin::OccupancyMaxActiveBlocksPerMultiprocessor:
    case Builtin::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags:
      return answered(occupancy(call));
    default:
      return false;
  }
}

}  // namespace klap::emulator
