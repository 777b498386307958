// The modifiers of an instruction, taken one by one by the code that knows them.
//
// Modifiers that are left over at the end were not understood, so an operation can never ignore one by
// accident.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "emulator/alu/alu.h"

namespace klap::emulator::alu {

enum class Type : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  BF16,
  TF32,
  F32,
  F64,
  F16x2,
  BF16x2,
  U16x2,
  S16x2,
  E4M3x2,
  E5M2x2,
  U2,
  S2,
  U4,
  S4,
};

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, NearestAway };

class Modifiers {
 public:
  Modifiers(std::span<const std::string_view> list, std::span<const uint8_t> register_bits)
      : list_(list), register_bits_(register_bits) {}

  // True once for a modifier that is there.
  bool take(std::string_view name);
  // The index of the first of `names` that is there, -1 if none is.
  int take_one(std::initializer_list<std::string_view> names);
  // The types, in their order.
  std::optional<Type> take_type();
  // .rn, .rz, .rm, .rp
  std::optional<Rounding> take_rounding();
  [[nodiscard]] bool all_taken() const;
  // Operands of the instruction, destinations too.
  [[nodiscard]] size_t operand_count() const { return register_bits_.size(); }
  // The width of the first destination's register; 0 if it is not one.
  [[nodiscard]] uint8_t destination_bits() const { return register_bits_.empty() ? 0 : register_bits_[0]; }

 private:
  std::span<const std::string_view> list_;
  std::span<const uint8_t> register_bits_;
  uint32_t taken_ = 0;  // one bit a modifier
};

[[nodiscard]] bool is_float(Type type);  // .f32 and .f64 only
[[nodiscard]] bool is_half(Type type);   // .f16, .bf16 and their pairs

}  // namespace klap::emulator::alu
