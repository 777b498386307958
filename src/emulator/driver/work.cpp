// This file does the work that work.h describes.
#include "emulator/driver/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "emulator/driver/graph.h"
#include "emulator/driver/process.h"

namespace klap::emulator::driver {
namespace {

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};

struct Rows {  // the bytes that one side of a copy touches
  uint64_t address;
  size_t pitch, slice;
};

void mark_initialised(CUctx_st& context, const Rows& rows, size_t width, size_t height, size_t depth) {
  for (size_t z = 0; z < depth; ++z) {
    for (size_t y = 0; y < height; ++y) {
      context.machine->order().initialised(rows.address + z * rows.slice + y * rows.pitch, width);
    }
  }
}

void carry_out(Process& process, const Copy& copy) {
  const auto* const from = copy.staged ? copy.staged->data() : pointer_to(copy.from);
  for (size_t z = 0; z < copy.depth; ++z) {
    for (size_t y = 0; y < copy.height; ++y) {
      std::memmove(pointer_to(copy.to + z * copy.to_slice + y * copy.to_pitch),
                   from + z * copy.from_slice + y * copy.from_pitch, copy.width);
    }
  }
  if (const auto owned = owner_of(process, copy.to)) {
    mark_initialised(*owned->context, {copy.to, copy.to_pitch, copy.to_slice}, copy.width, copy.height,
                     copy.depth);
  }
}

void fill_row(std::byte* row, const Fill& fill) {
  std::array<unsigned char, sizeof fill.value> value;
  std::memcpy(value.data(), &fill.value, sizeof fill.value);
  const auto end = value.begin() + fill.element_bytes;
  // Queues of hundreds of megabytes are cleared this way.
  if (std::all_of(value.begin(), end, [&](unsigned char byte) { return byte == value.front(); })) {
    std::memset(row, value.front(), fill.width * fill.element_bytes);
    return;
  }
  for (size_t x = 0; x < fill.width; ++x)
    std::memcpy(row + x * fill.element_bytes, value.data(), fill.element_bytes);
}

void carry_out(Process& process, const Fill& fill) {
  for (size_t y = 0; y < fill.height; ++y) fill_row(pointer_to(fill.to + y * fill.pitch), fill);
  if (const auto owned = owner_of(process, fill.to)) {
    mark_initialised(*owned->context, {fill.to, fill.pitch, 0}, fill.width * fill.element_bytes, fill.height,
                     1);
  }
}

// The bytes from the first to the last of a box.
uint64_t extent(size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
  return width + (height - 1) * pitch + (depth - 1) * slice;
}

// Device memory must be inside one allocation; memory that is the host's own is believed.
void validate_range(Process& process, uint64_t address, uint64_t bytes) {
  require(address != 0 && address + bytes >= address);
  if (const auto owned = owner_of(process, address)) {
    if (bytes <= owned->block.address + owned->block.bytes - address) return;
    if (owned->block.kind == BlockKind::Registered) return;  // the rest is the host's own as well
  }
  process.contexts.for_each([&](CUctx_st& context) {
    const Memory& memory = context.machine->memory();
    if (!memory.is_mapped(address, 1) && !memory.is_mapped(address + bytes - 1, 1)) return;
    if (memory.find(address, bytes) != nullptr) return;
    say("a copy or set is refused: " + memory.describe(address, bytes));
    fail(CUDA_ERROR_INVALID_VALUE);
  });
}

void launch(CUctx_st& context, StreamId stream, const KernelLaunch& kernel) {
  const int code = context.machine->launch(stream, kernel.launch, kernel.dependent);
  if (code == 0) return;
  const CUresult result = driver_error(code);
  if (result == CUDA_ERROR_NOT_SUPPORTED) say(context.machine->error_text());
  fail(result);
}

// Elapsed time is made of this. It grows with the work that has run, and with every event that is reached, so
// that two events are never at one moment.
void stamp(CUctx_st& context, StreamId stream, const std::shared_ptr<uint64_t>& moment) {
  context.machine->enqueue(stream, [&context, moment] {
    static uint64_t reached = 0;
    *moment = context.machine->executor().steps() + ++reached;
  });
}

// Machines do not know each other: an event of another context has happened before this returns.
void wait_for(const CUevent_st& event, CUctx_st& context, StreamId stream) {
  if (event.context == &context) {
    context.machine->wait(stream, event.event);
  } else {
    event.context->after_synchronising(event.context->machine->synchronise_event(event.event));
  }
}

}  // namespace

void call_host_function(const std::function<void()>& function) {
  in_host_function() = true;
  function();
  in_host_function() = false;
}

void validate(Process& process, const Copy& copy) {
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) return;
  validate_range(process, copy.to, extent(copy.width, copy.height, copy.depth, copy.to_pitch, copy.to_slice));
  if (copy.staged) return;
  validate_range(process, copy.from,
                 extent(copy.width, copy.height, copy.depth, copy.from_pitch, copy.from_slice));
}

void validate(Process& process, const Fill& fill) {
  require(fill.element_bytes == 1 || fill.element_bytes == 2 || fill.element_bytes == 4);
  require(fill.to % fill.element_bytes == 0);
  if (fill.width == 0 || fill.height == 0) return;
  require(fill.height == 1 || fill.pitch >= fill.width * fill.element_bytes);
  require(owner_of(process, fill.to).has_value());
  validate_range(process, fill.to, extent(fill.width * fill.element_bytes, fill.height, 1, fill.pitch, 0));
}

CUresult driver_error(int code) {
  constexpr int kInvalidConfiguration = 9;
  return code == kInvalidConfiguration ? CUDA_ERROR_INVALID_VALUE : static_cast<CUresult>(code);
}

void begin(Process& process, CUctx_st& context, StreamId stream, const Work& work) {
  context.require_alive();
  Machine& machine = *context.machine;
  std::visit(
      Overloaded{
          [&](const Empty&) { machine.enqueue(stream, [] {}); },
          [&](const KernelLaunch& kernel) { launch(context, stream, kernel); },
          [&](const Copy& copy) { machine.enqueue(stream, [&process, copy] { carry_out(process, copy); }); },
          [&](const Fill& fill) { machine.enqueue(stream, [&process, fill] { carry_out(process, fill); }); },
          [&](const HostCall& host) {
            machine.enqueue(stream, [host] { call_host_function([&] { host.function(host.data); }); });
          },
          [&](const RecordEvent& record) {
            require(process.events.knows(record.event) && record.event->context == &context,
                    CUDA_ERROR_INVALID_HANDLE);
            record.event->is_recorded = true;
            stamp(context, stream, record.event->moment);
            machine.record(record.event->event, stream);
          },
          [&](const WaitForEvent& wait) {
            require(process.events.knows(wait.event), CUDA_ERROR_INVALID_HANDLE);
            wait_for(*wait.event, context, stream);
          },
          [&](const ChildGraph& child) { begin(process, context, stream, *child.plan); },
      },
      work);
}

}  // namespace klap::emulator::driver
