// This file selects the function that is called, and implements the functions of the language: printf,
// assertions, the heap.
#include "emulator/device_runtime/device_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/decode/builtins.h"
#include "emulator/device_runtime/printf.h"
#include "support/error.h"

namespace klap::emulator {

namespace rt = runtime_error;

DeviceRuntime::DeviceRuntime(RuntimeHost host)
    : host_(std::move(host)), streams_(host_.operations, host_.grids) {}

void DeviceRuntime::call(const ThreadCall& call) {
  if (call_launch(call) || call_stream(call) || call_copy(call) || call_query(call) || call_language(call))
    return;
  refuse(call);
}

void DeviceRuntime::block_finished(uint64_t block) {
  const DeviceBlock state = streams_.take(block);
  for (const auto& [address, buffer] : state.buffers) release_buffer(address, buffer);
}

void DeviceRuntime::clear() { streams_.clear(); }

void DeviceRuntime::refuse(const ThreadCall& call) {
  throw Error(ErrorCode::Unsupported,
              fmt::format("the emulator does not provide {} to device code", builtin_name(call.builtin)));
}

// The executor adds the place to the text.
void DeviceRuntime::end_grid(const ThreadCall& call, int code, const std::string& text) {
  if (call.grid.error_code == 0) call.grid.error_code = code;
  throw Error(ErrorCode::Driver, text);
}

void DeviceRuntime::finish(const ThreadCall& call, int error) {
  if (error != rt::kSuccess) thread_of(call).last_error = error;
  give_result(call, error);
}

const Function* DeviceRuntime::function_at(const ThreadCall& call, uint64_t address) {
  const auto& functions = call.grid.launch.image->functions;
  const uint64_t offset = address - kCodeWindow;
  if (address < kCodeWindow || offset % 16 != 0 || offset / 16 >= functions.size()) return nullptr;
  return functions[offset / 16].get();
}

std::string DeviceRuntime::read_text(const ThreadCall& call, uint64_t address) {
  std::string text;
  for (;; ++address) {
    const char next = read_value<char>(call, address);
    if (next == '\0') return text;
    text += next;
  }
}

int DeviceRuntime::print(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  const auto format = arguments.next<uint64_t>();
  const auto buffer = arguments.next<uint64_t>();
  if (format == 0) return -1;
  const PrintfResult result = format_printf(
      read_text(call, format),
      {.argument = [&](uint64_t offset, std::span<std::byte> out) { host_.read(call, buffer + offset, out); },
       .text = [&](uint64_t address) { return read_text(call, address); }});
  if (host_.print) host_.print(result.text);
  return result.arguments;
}

void DeviceRuntime::fail_assertion(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  const std::string message = read_text(call, arguments.next<uint64_t>());
  const std::string file = read_text(call, arguments.next<uint64_t>());
  const auto line = arguments.next<uint32_t>();
  const std::string function = read_text(call, arguments.next<uint64_t>());
  const std::string text =
      fmt::format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.", file, line,
                  function, call.block_index[0], call.block_index[1], call.block_index[2],
                  call.thread_index[0], call.thread_index[1], call.thread_index[2], message);
  if (host_.print) host_.print(text + "\n");
  end_grid(call, rt::kAssert, text);
}

// All earlier accesses to memory happen before it is freed. For the checks, freeing is a write of a new value
// to all of it, so that every thread that reads or writes it is included.
void DeviceRuntime::note_free(const ThreadCall& call, uint64_t address) {
  const Allocation* const piece = host_.memory.find(address, 1);
  if (!host_.ordered || call.agent == nullptr || piece == nullptr || piece->address != address) return;
  for (uint64_t done = 0; done < piece->bytes;) {
    const uint64_t size = std::bit_floor(std::min<uint64_t>(piece->bytes - done, 8));
    std::array<std::byte, 8> other{};
    std::memcpy(other.data(), pointer_to(address + done), size);
    for (std::byte& byte : other) byte = ~byte;
    host_.order.store(call.agent, address + done, std::span(other).first(size), {}, call.place);
    done += size;
  }
}

void DeviceRuntime::heap_free(const ThreadCall& call, uint64_t address) {
  note_free(call, address);
  const std::string wrong = host_.heap.free(address);
  if (!wrong.empty()) end_grid(call, rt::kLaunchFailure, wrong);
}

int DeviceRuntime::runtime_malloc(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  const auto where = arguments.next<uint64_t>();
  const auto bytes = arguments.next<uint64_t>();
  if (where == 0 || bytes == 0) return rt::kInvalidValue;
  const uint64_t address = host_.heap.allocate(bytes);
  if (address == 0) return rt::kMemoryAllocation;
  write_value(call, where, address);
  return rt::kSuccess;
}

bool DeviceRuntime::call_language(const ThreadCall& call) {
  CallArguments arguments(call.arguments);
  switch (static_cast<Builtin>(call.builtin)) {
    case Builtin::Printf:
      give_result(call, print(call));
      return true;
    case Builtin::AssertFail:
      fail_assertion(call);
    case Builtin::HeapMalloc:
      give_result(call, host_.heap.allocate(arguments.next<uint64_t>()));
      return true;
    case Builtin::HeapFree:
      heap_free(call, arguments.next<uint64_t>());
      return true;
    case Builtin::Malloc:
      finish(call, runtime_malloc(call));
      return true;
    case Builtin::Free:
      heap_free(call, arguments.next<uint64_t>());
      finish(call, rt::kSuccess);
      return true;
    default:
      return false;
  }
}

}  // namespace klap::emulator
