// Loads, stores, fences and conversions of addresses.
//
// A plain access of up to 8 bytes an element goes straight to memory. Its lanes must stay in the window that
// the first one found. If the MemoryModel has to know of accesses, and for elements of 16 bytes, each element
// goes by itself.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "emulator/interpreter/interpreter.h"
#include "support/error.h"

namespace klap::emulator::execution {
namespace {

// A warp that makes so many strong accesses (volatile, relaxed, acquire, atomic) may be waiting for another
// thread by reading over and over. So its turn ends. A warp that did not wait loses little.
constexpr uint32_t kStrongAccesses = 32;

// A window for accesses of one size: accesses at begin...begin + starts - 1 fit.
struct Reach {
  uint64_t begin = 0, starts = 0, delta = 0, lane_step = 0;
  Reach() = default;
  Reach(const Window& window, uint32_t bytes)
      : begin(window.begin),
        starts(window.bytes - bytes + 1),
        delta(window.delta),
        lane_step(window.lane_step) {}
};

uint64_t low_bits(uint64_t value, uint32_t bits) { return bits >= 64 ? value : value & ((1ull << bits) - 1); }

bool is_strong(Semantics semantics) {
  return semantics != Semantics::Weak && semantics != Semantics::NonCoherent;
}

bool is_ordered_space(Space space) {
  return space == Space::Generic || space == Space::Global || space == Space::Shared;
}

}  // namespace

// Offsets within a space are 32 bits wide and wrap, if their register is.
uint64_t Interpreter::address_of(const Instruction& instruction, uint64_t base) const {
  uint64_t address = base + static_cast<uint64_t>(instruction.memory.offset);
  bool is_offset = instruction.memory.space >= Space::Shared && base >> 32 == 0;
  return is_offset ? address & 0xffffffff : address;
}

template <typename T>
void Interpreter::load_plain(const Instruction& instruction, uint32_t mask) {
  const MemoryDetail& memory = instruction.memory;
  ConstColumn base = operands_.source(instruction.sources[0], 0);
  const uint32_t elements = memory.elements, bytes = sizeof(T) * elements;
  using Extended = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  const bool widens = std::is_signed_v<T> && memory.register_bits < 64;
  std::array<Column, 8> to;
  for (uint32_t e = 0; e < elements; ++e) to[e] = operands_.destination(instruction.destinations[e]);
  Reach reach;
  for_lanes(mask, [&](uint32_t lane) {
    uint64_t address = address_of(instruction, base[lane]);
    if ((address & (bytes - 1)) != 0 || address - reach.begin >= reach.starts)
      reach = Reach(addresses_.find(here_, lane, memory.space, address, bytes, false), bytes);
    const std::byte* data = pointer_to(address + reach.delta + lane * reach.lane_step);
    for (uint32_t e = 0; e < elements; ++e, data += sizeof(T)) {
      T value;
      std::memcpy(&value, data, sizeof(T));
      auto wide = static_cast<uint64_t>(static_cast<Extended>(value));
      to[e][lane] = widens ? low_bits(wide, memory.register_bits) : wide;
    }
  });
}

template <typename T>
void Interpreter::store_plain(const Instruction& instruction, uint32_t mask) {
  const MemoryDetail& memory = instruction.memory;
  ConstColumn base = operands_.source(instruction.sources[0], 0);
  const uint32_t elements = memory.elements, bytes = sizeof(T) * elements;
  std::array<ConstColumn, 8> from;
  for (uint32_t e = 0; e < elements; ++e) from[e] = operands_.source(instruction.sources[1 + e], 1 + e);
  Reach reach;
  for_lanes(mask, [&](uint32_t lane) {
    uint64_t address = address_of(instruction, base[lane]);
    if ((address & (bytes - 1)) != 0 || address - reach.begin >= reach.starts)
      reach = Reach(addresses_.find(here_, lane, memory.space, address, bytes, true), bytes);
    std::byte* data = pointer_to(address + reach.delta + lane * reach.lane_step);
    for (uint32_t e = 0; e < elements; ++e, data += sizeof(T)) {
      auto value = static_cast<T>(from[e][lane]);
      std::memcpy(data, &value, sizeof(T));
    }
  });
}

// The lanes of `mask` that take part in a limited access.
uint32_t Interpreter::within_limit(const Instruction& instruction, uint32_t mask) {
  if (!instruction.memory.limited) return mask;
  const uint32_t last = instruction.source_count - 1u;
  ConstColumn number = operands_.source(instruction.sources[last], last);
  uint32_t within = 0;
  for_lanes(mask, [&](uint32_t lane) {
    if (static_cast<uint32_t>(number[lane]) > instruction.memory.above) within |= 1u << lane;
  });
  return within;
}

void Interpreter::load(const Instruction& instruction, uint32_t mask) {
  mask = within_limit(instruction, mask);
  const MemoryDetail& memory = instruction.memory;
  if (is_strong(memory.semantics)) strong_access();
  bool is_signed = memory.type == NumberType::Signed;
  if (memory.bytes == 16 || (context_.ordered && is_ordered_space(memory.space))) {
    load_wide(instruction, mask);
  } else if (memory.bytes == 8) {
    load_plain<uint64_t>(instruction, mask);
  } else if (memory.bytes == 4) {
    is_signed ? load_plain<int32_t>(instruction, mask) : load_plain<uint32_t>(instruction, mask);
  } else if (memory.bytes == 2) {
    is_signed ? load_plain<int16_t>(instruction, mask) : load_plain<uint16_t>(instruction, mask);
  } else {
    is_signed ? load_plain<int8_t>(instruction, mask) : load_plain<uint8_t>(instruction, mask);
  }
}

void Interpreter::store(const Instruction& instruction, uint32_t mask) {
  mask = within_limit(instruction, mask);
  const MemoryDetail& memory = instruction.memory;
  if (memory.bytes == 16 || (context_.ordered && is_ordered_space(memory.space))) {
    store_wide(instruction, mask);
  } else if (memory.bytes == 8) {
    store_plain<uint64_t>(instruction, mask);
  } else if (memory.bytes == 4) {
    store_plain<uint32_t>(instruction, mask);
  } else if (memory.bytes == 2) {
    store_plain<uint16_t>(instruction, mask);
  } else {
    store_plain<uint8_t>(instruction, mask);
  }
}

void Interpreter::load_wide(const Instruction& instruction, uint32_t mask) {
  const MemoryDetail& memory = instruction.memory;
  ConstColumn base = operands_.source(instruction.sources[0], 0);
  const uint32_t bytes = uint32_t{memory.bytes} * memory.elements;
  for_lanes(mask, [&](uint32_t lane) {
    uint64_t address = address_of(instruction, base[lane]);
    Window window = addresses_.find(here_, lane, memory.space, address, bytes, false);
    uint64_t data = address + window.delta + lane * window.lane_step;
    for (uint32_t e = 0; e < memory.elements; ++e, data += memory.bytes) {
      std::array<uint64_t, 2> value{};
      std::span<std::byte> loaded = std::as_writable_bytes(std::span(value)).first(memory.bytes);
      std::memcpy(loaded.data(), pointer_to(data), loaded.size());
      if (window.ordered && context_.ordered)
        context_.order.load(warp_->agents[lane], data, loaded, {memory.semantics, memory.scope, false},
                            place_in_code());
      if (memory.type == NumberType::Signed && memory.bytes < 8) {
        uint32_t unused = 64 - 8 * memory.bytes;
        value[0] = low_bits(static_cast<uint64_t>(static_cast<int64_t>(value[0] << unused) >> unused),
                            memory.register_bits);
      }
      Column to = operands_.destination(instruction.destinations[e]);
      to[lane] = value[0];
      if (memory.bytes == 16) to[kLanes + lane] = value[1];
    }
  });
}

void Interpreter::store_wide(const Instruction& instruction, uint32_t mask) {
  const MemoryDetail& memory = instruction.memory;
  ConstColumn base = operands_.source(instruction.sources[0], 0);
  const uint32_t bytes = uint32_t{memory.bytes} * memory.elements;
  for_lanes(mask, [&](uint32_t lane) {
    uint64_t address = address_of(instruction, base[lane]);
    Window window = addresses_.find(here_, lane, memory.space, address, bytes, true);
    uint64_t data = address + window.delta + lane * window.lane_step;
    for (uint32_t e = 0; e < memory.elements; ++e, data += memory.bytes) {
      ConstColumn from = operands_.source(instruction.sources[1 + e], 1 + e);
      std::array<uint64_t, 2> value{from[lane], memory.bytes == 16 ? from[kLanes + lane] : 0};
      std::span<const std::byte> stored = std::as_bytes(std::span(value)).first(memory.bytes);
      if (window.ordered && context_.ordered)
        context_.order.store(warp_->agents[lane], data, stored, {memory.semantics, memory.scope, false},
                             place_in_code());
      std::memcpy(pointer_to(data), stored.data(), stored.size());
    }
  });
}

void Interpreter::strong_access() {
  if (++warp_->strong_accesses < kStrongAccesses) return;
  warp_->strong_accesses = 0;
  end_turn_waiting();
}

// ---- for the machine, in the name of a thread that calls it ----

void Interpreter::read(const ThreadCall& call, uint64_t address, std::span<std::byte> out) {
  for (size_t done = 0; done < out.size();) done += transfer(call, address + done, out.subspan(done), {});
}

void Interpreter::write(const ThreadCall& call, uint64_t address, std::span<const std::byte> bytes) {
  for (size_t done = 0; done < bytes.size();) done += transfer(call, address + done, {}, bytes.subspan(done));
}

// Transfers as much as one aligned access can move: either out of memory or into it.
size_t Interpreter::transfer(const ThreadCall& call, uint64_t address, std::span<std::byte> out,
                             std::span<const std::byte> in) {
  uint32_t lane = thread_call_lane_;
  if (&call != thread_call_) throw Error(ErrorCode::Internal, "memory access of a thread that does not call");
  bool writes = out.empty();
  size_t bytes = 16;
  while (bytes > (writes ? in.size() : out.size()) || address % bytes != 0) bytes /= 2;
  Window window = addresses_.find(here_, lane, Space::Generic, address, static_cast<uint32_t>(bytes), writes);
  uint64_t data = address + window.delta + lane * window.lane_step;
  bool ordered = window.ordered && context_.ordered;
  if (writes) {
    if (ordered) context_.order.store(call.agent, data, in.first(bytes), {}, call.place);
    std::memcpy(pointer_to(data), in.data(), bytes);
  } else {
    std::memcpy(out.data(), pointer_to(data), bytes);
    if (ordered) context_.order.load(call.agent, data, out.first(bytes), {}, call.place);
  }
  return bytes;
}

// ---- addresses ----

void Interpreter::convert_address(const Instruction& instruction, uint32_t mask) {
  ConstColumn from = operands_.source(instruction.sources[0], 0);
  Column to = operands_.destination(instruction.destinations[0]);
  uint64_t window = window_begin(instruction.memory.space);
  if (instruction.kind == Kind::FromGeneric) window = -window;
  for_lanes(mask, [&](uint32_t lane) { to[lane] = from[lane] + window; });
}

void Interpreter::is_in_space(const Instruction& instruction, uint32_t mask) {
  Space space = instruction.memory.space;
  const std::vector<Variable>& variables = block_->run->grid->launch.image->variables;
  ConstColumn from = operands_.source(instruction.sources[0], 0);
  Column to = operands_.destination(instruction.destinations[0]);
  for_lanes(mask, [&](uint32_t lane) {
    uint64_t address = from[lane];
    if (uint64_t window = window_begin(space)) {
      to[lane] = address - window < kWindowBytes;
      return;
    }
    bool is_const = std::any_of(variables.begin(), variables.end(), [address](const Variable& variable) {
      return variable.is_const && address - variable.address < variable.bytes;
    });
    // Kernel parameters lie within the global window, constants do not (PTX ISA, generic addressing).
    bool is_global =
        !is_const && address - kSharedWindow >= kWindowBytes && address - kLocalWindow >= kWindowBytes;
    to[lane] = space == Space::Const ? is_const : is_global;
  });
}

// Every block is a cluster of its own, so there is only its own shared memory to be mapped.
void Interpreter::map_shared(const Instruction& instruction, uint32_t mask) {
  ConstColumn from = operands_.source(instruction.sources[0], 0),
              rank = operands_.source(instruction.sources[1], 1);
  Column to = operands_.destination(instruction.destinations[0]);
  for_lanes(mask, [&](uint32_t lane) {
    if (rank[lane] != 0)
      throw Fault(kIllegalAddress, lane,
                  "no block " + std::to_string(rank[lane]) + " in a cluster of 1 block");
    to[lane] = from[lane];
  });
}

void Interpreter::fence(const Instruction& instruction, uint32_t mask) {
  if (!context_.ordered) return;
  for_lanes(mask, [&](uint32_t lane) {
    context_.order.fence(warp_->agents[lane], instruction.memory.sequentially_consistent,
                         instruction.memory.scope);
  });
}

}  // namespace klap::emulator::execution
