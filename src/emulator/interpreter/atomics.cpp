// Atomic read-modify-writes: one lane after another, so that nothing comes between.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "emulator/interpreter/interpreter.h"

namespace klap::emulator::execution {
namespace {

template <typename T>
T choose(AtomicOp op, T a, T b) {
  return op == AtomicOp::Min ? std::min(a, b) : std::max(a, b);
}

uint64_t combine_integers(AtomicOp op, bool is_signed, uint32_t bytes, uint64_t old, uint64_t value) {
  switch (op) {
    case AtomicOp::And:
      return old & value;
    case AtomicOp::Or:
      return old | value;
    case AtomicOp::Xor:
      return old ^ value;
    case AtomicOp::Add:
      return old + value;
    case AtomicOp::Inc:
      return old >= value ? 0 : old + 1;
    case AtomicOp::Dec:
      return old == 0 || old > value ? value : old - 1;
    case AtomicOp::Min:
    case AtomicOp::Max: {
      if (!is_signed) return choose(op, old, value);
      uint32_t unused = 64 - 8 * bytes;
      auto extended = [unused](uint64_t x) { return static_cast<int64_t>(x << unused) >> unused; };
      return static_cast<uint64_t>(choose(op, extended(old), extended(value)));
    }
    default:  // Exch
      return value;
  }
}

// Global memory adds f32 with subnormals flushed, shared memory does not (PTX ISA, atom).
float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

template <typename T>
T combine_floats(AtomicOp op, T old, T value) {
  if (op == AtomicOp::Add) return old + value;
  return op == AtomicOp::Min ? std::fmin(old, value) : std::fmax(old, value);
}

uint64_t combine_floats(AtomicOp op, uint32_t bytes, uint64_t old, uint64_t value, bool flush) {
  if (bytes == 8)
    return std::bit_cast<uint64_t>(
        combine_floats(op, std::bit_cast<double>(old), std::bit_cast<double>(value)));
  auto a = std::bit_cast<float>(static_cast<uint32_t>(old));
  auto b = std::bit_cast<float>(static_cast<uint32_t>(value));
  bool flushes = flush && op == AtomicOp::Add;
  float sum = combine_floats(op, flushes ? flushed(a) : a, flushes ? flushed(b) : b);
  if (std::isnan(sum)) return 0x7fffffff;
  return std::bit_cast<uint32_t>(flushes ? flushed(sum) : sum);
}

// 16-bit floating point is the instruction set's own: the same functions as for add, min and max.
uint64_t combine_halves(AtomicOp op, NumberType type, uint64_t old, uint64_t value) {
  std::string_view suffix = type == NumberType::Half       ? ".f16"
                            : type == NumberType::HalfPair ? ".f16x2"
                            : type == NumberType::BFloat   ? ".bf16"
                                                           : ".bf16x2";
  std::string_view name = op == AtomicOp::Add ? "add" : op == AtomicOp::Min ? "min" : "max";
  uint8_t bits = type == NumberType::Half || type == NumberType::BFloat ? 16 : 32;
  std::array<uint8_t, 3> widths{bits, bits, bits};
  auto alu = find_alu(name, std::array{suffix}, widths);
  if (!alu) throw Fault(kNotSupported, 0, "atomic " + std::string(name) + std::string(suffix));
  std::array<uint64_t, kLanes> a{old}, b{value}, result{}, carry{};
  AluCall call{{result.data()}, {a.data(), b.data()}, carry.data(), 1, alu->setting};
  alu->run(call);
  return result[0];
}

uint64_t combine(const MemoryDetail& memory, uint64_t old, uint64_t value, bool flush) {
  bool is_logic = memory.atomic == AtomicOp::Exch || memory.type == NumberType::Bits;
  if (!is_logic && memory.type == NumberType::Float)
    return combine_floats(memory.atomic, memory.bytes, old, value, flush);
  if (!is_logic && memory.type > NumberType::Float)
    return combine_halves(memory.atomic, memory.type, old, value);
  return combine_integers(memory.atomic, memory.type == NumberType::Signed, memory.bytes, old, value);
}

}  // namespace

void Interpreter::atomic(const Instruction& instruction, uint32_t mask) {
  strong_access();
  const MemoryDetail& memory = instruction.memory;
  ConstColumn base = operands_.source(instruction.sources[0], 0);
  const uint32_t bytes = uint32_t{memory.bytes} * memory.elements;
  auto each = [&](uint32_t lane) {
    uint64_t address = address_of(instruction, base[lane]);
    Window window = addresses_.find(here_, lane, memory.space, address, bytes, true);
    if (window.lane_step != 0) throw Fault(kInvalidAddressSpace, lane, "atomic operation on local memory");
    bool shared = window.ordered && address + window.delta - block_->shared_address < block_->shared_bytes;
    for (uint32_t e = 0; e < memory.elements; ++e)
      atomic_of(instruction, lane, e, address + window.delta + uint64_t{e} * memory.bytes, !shared);
  };
  // Which lane of a warp comes first is open.
  uint32_t first = context_.adversarial() ? static_cast<uint32_t>(context_.random.below(kLanes)) : 0;
  uint32_t from_first = ~0u << first;
  for_lanes(mask & from_first, each);
  for_lanes(mask & ~from_first, each);
}

void Interpreter::atomic_of(const Instruction& instruction, uint32_t lane, uint32_t element, uint64_t data,
                            bool is_global) {
  const MemoryDetail& memory = instruction.memory;
  const bool wide = memory.bytes == 16;
  auto operand = [&](size_t position) {
    ConstColumn column = operands_.source(instruction.sources[position], position);
    return std::array<uint64_t, 2>{column[lane], wide ? column[kLanes + lane] : 0};
  };
  std::array<uint64_t, 2> old{};
  std::memcpy(old.data(), pointer_to(data), memory.bytes);
  std::array<uint64_t, 2> value = operand(1 + element);
  bool writes = true;
  if (memory.atomic == AtomicOp::Cas) {
    if (memory.bytes < 8) value[0] &= (1ull << (8 * memory.bytes)) - 1;
    writes = old == value;
    value = writes ? operand(2) : old;
  } else if (!wide) {
    value[0] = combine(memory, old[0], value[0], is_global);
  }
  std::span<const std::byte> stored = std::as_bytes(std::span(value)).first(memory.bytes);
  if (context_.ordered)
    context_.order.update(warp_->agents[lane], data, stored, writes, {memory.semantics, memory.scope, true},
                          place_in_code());
  std::memcpy(pointer_to(data), stored.data(), stored.size());
  if (instruction.kind == Kind::Reduction) return;
  Column to = operands_.destination(instruction.destinations[element]);
  to[lane] = old[0];
  if (wide) to[kLanes + lane] = old[1];
}

}  // namespace klap::emulator::execution
