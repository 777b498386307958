// This file checks what work.h describes before it is put into a stream.
#include "emulator/driver/streams/work.h"

#include "emulator/driver/process.h"

namespace klap::emulator::driver {
namespace {

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

}  // namespace

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

}  // namespace klap::emulator::driver
