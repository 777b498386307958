// The arithmetic of PTX: what one instruction makes of its operands, lane by lane.
//
// Everything that only computes (integer, logic, floating point, conversion, comparison, selection, packing)
// is a pure function from source registers to destination registers, and lives here; it knows neither memory
// nor threads. Functions work on one register of a whole warp at a time, so that finding out what to do is
// paid once for 32 lanes.
//
// A register is a column of 32 slots of 64 bits, one a lane; a value narrower than its slot is kept zero
// extended, floating point as its bit pattern, a predicate as 0 or 1. A 128-bit register takes two columns,
// one right after the other, the low half first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace klap::emulator {

inline constexpr uint32_t kLanes = 32;
using Column = uint64_t*;             // [kLanes]
using ConstColumn = const uint64_t*;  // [kLanes]

// The operands of one executed instruction. `carry` is the warp's condition code register (add.cc, addc,
// ...): one column of 0 and 1. A destination that is null is a bit bucket.
struct AluCall {
  std::array<Column, 4> destinations;
  std::array<ConstColumn, 8> sources;
  Column carry;
  uint32_t mask;     // lanes that execute
  uint64_t setting;  // AluOp::setting
};
using AluFunction = void (*)(const AluCall& call);

// A predicate that stands negated as source operand `k` (`!p`) is passed by setting bit kNegateSource << k in
// `setting`, beside what find_alu has set there.
inline constexpr uint64_t kNegateSource = 1ull << 56;

// How an immediate operand is to be read: integers are cut to `bits`, floating-point literals converted.
struct OperandForm {
  uint8_t bits = 0;       // 1 for a predicate
  bool is_float = false;  // of 16 (hexadecimal bit pattern only), 32 or 64 bits
};

struct AluOp {
  AluFunction run = nullptr;
  uint8_t destination_count = 0, source_count = 0;
  std::array<OperandForm, 4> destinations{};
  std::array<OperandForm, 8> sources{};
  bool optional_last_source = false;  // no operation has one so far: forms that differ in length differ in
                                      // their modifiers too, or are told apart by `register_bits`
  uint64_t setting = 0;               // whatever `run` needs to know beyond its operands (a truth table, ...)
};

// The operation of an opcode with its modifiers, "add.cc.u32" as {"add", {".cc", ".u32"}}. `register_bits`
// are the widths of the registers that stand as operands, destinations first, 0 for an immediate or a bit
// bucket `_`. There is one entry for every operand, and `p|q` counts as two: a second destination and a third
// input are known by their number only. Destinations of a conversion may be wider than its type, and then
// receive the extended value. Nothing for an opcode that is not arithmetic or not known, or for a combination
// of modifiers that PTX does not have.
std::optional<AluOp> find_alu(std::string_view opcode, std::span<const std::string_view> modifiers,
                              std::span<const uint8_t> register_bits);

// `mov.TYPE d, {a, b, ...}` and `mov.TYPE {d, e, ...}, a` with `count` elements, TYPE as ".b64". find_alu has
// only the scalar `mov`.
std::optional<AluOp> find_pack(std::string_view type, uint32_t count);
std::optional<AluOp> find_unpack(std::string_view type, uint32_t count);

}  // namespace klap::emulator
