// cvt that makes a packed destination of two numbers, or two numbers of a packed source, and cvt.pack.
#include <algorithm>

#include "emulator/alu/families.h"
#include "emulator/alu/float.h"
#include "emulator/alu/small_float.h"

namespace klap::emulator::alu {
namespace {

constexpr uint64_t kRelu = 1 << 4, kFinite = 1 << 5;

double clip(Setting setting, double value) {
  return (setting.bits & kRelu) != 0 && !(value > 0) && !is_nan(value) ? 0 : value;
}
uint32_t narrow(const SmallFormat& format, Setting setting, double value) {
  return encode(format, clip(setting, value), static_cast<Rounding>(setting.bits & kRoundingMask),
                (setting.bits & kFinite) != 0);
}

// The first operand becomes the high part.
template <const SmallFormat& Format>
uint32_t pack_halves(Setting setting, float a, float b) {
  return narrow(Format, setting, a) << 16 | narrow(Format, setting, b);
}
template <const SmallFormat& Format>
uint16_t pack_bytes(Setting setting, float a, float b) {
  return static_cast<uint16_t>(narrow(Format, setting, a) << 8 | narrow(Format, setting, b));
}
template <const SmallFormat& Format>
uint16_t halves_to_bytes(Setting setting, Pair<Half> a) {
  return static_cast<uint16_t>(narrow(Format, setting, to_double(a.high)) << 8 |
                               narrow(Format, setting, to_double(a.low)));
}
template <const SmallFormat& Format>
uint32_t bytes_to_halves(Setting setting, uint16_t a) {
  return narrow(kHalf, setting, decode(Format, a >> 8)) << 16 |
         narrow(kHalf, setting, decode(Format, a & 0xff));
}

Found find_float_packed(Type to, Type from, Modifiers& m) {
  uint64_t setting = (m.take(".relu") ? kRelu : 0) | (m.take(".satfinite") ? kFinite : 0);
  const auto rounding = m.take_rounding();
  if (!rounding || *rounding == Rounding::Down || *rounding == Rounding::Up) return std::nullopt;
  setting |= static_cast<uint64_t>(*rounding);
  const bool bytes = to == Type::E4M3x2 || to == Type::E5M2x2;
  if (bytes && ((setting & kFinite) == 0 || *rounding != Rounding::Nearest)) return std::nullopt;
  if (from == Type::F32) {
    if (to == Type::F16x2) return operation<pack_halves<kHalf>>(setting);
    if (to == Type::BF16x2) return operation<pack_halves<kBFloat>>(setting);
    if (to == Type::E4M3x2) return operation<pack_bytes<kE4M3>>(setting);
    if (to == Type::E5M2x2) return operation<pack_bytes<kE5M2>>(setting);
  } else if (from == Type::F16x2 && bytes) {
    return to == Type::E4M3x2 ? operation<halves_to_bytes<kE4M3>>(setting)
                              : operation<halves_to_bytes<kE5M2>>(setting);
  } else if (to == Type::F16x2 && (setting & kFinite) == 0) {
    if (from == Type::E4M3x2) return operation<bytes_to_halves<kE4M3>>(setting);
    if (from == Type::E5M2x2) return operation<bytes_to_halves<kE5M2>>(setting);
  }
  return std::nullopt;
}

// cvt.pack gives two clamped integers, and above them as much of the third operand as has room.
template <int Bits, bool Signed>
uint32_t clamp_to(int32_t value) {
  constexpr int32_t kMax = Signed ? (1 << (Bits - 1)) - 1 : (1 << Bits) - 1;
  constexpr int32_t kMin = Signed ? -(1 << (Bits - 1)) : 0;
  return static_cast<uint32_t>(std::clamp(value, kMin, kMax)) & ((1u << Bits) - 1);
}
template <int Bits, bool Signed>
uint32_t pack_integers(int32_t a, int32_t b) {
  return clamp_to<Bits, Signed>(a) << Bits | clamp_to<Bits, Signed>(b);
}
template <int Bits, bool Signed>
uint32_t pack_integers_below(int32_t a, int32_t b, uint32_t c) {
  return c << (2 * Bits) | pack_integers<Bits, Signed>(a, b);
}

Found find_integers_packed(Modifiers& m) {
  const auto to = m.take_type();
  const auto from = m.take_type();
  const auto rest = m.take_type();
  if (!m.take(".sat") || !to || from != Type::S32) return std::nullopt;
  if (!rest) {
    if (to == Type::S16) return operation<pack_integers<16, true>>();
    return to == Type::U16 ? Found(operation<pack_integers<16, false>>()) : std::nullopt;
  }
  if (rest != Type::B32) return std::nullopt;
  switch (*to) {
    case Type::S8:
      return operation<pack_integers_below<8, true>>();
    case Type::U8:
      return operation<pack_integers_below<8, false>>();
    case Type::S4:
      return operation<pack_integers_below<4, true>>();
    case Type::U4:
      return operation<pack_integers_below<4, false>>();
    case Type::S2:
      return operation<pack_integers_below<2, true>>();
    case Type::U2:
      return operation<pack_integers_below<2, false>>();
    default:
      return std::nullopt;
  }
}

}  // namespace

Found find_convert_packed(std::string_view opcode, Modifiers& modifiers) {
  if (opcode != "cvt") return std::nullopt;
  if (modifiers.take(".pack")) return find_integers_packed(modifiers);
  const auto to = modifiers.take_type();
  const auto from = modifiers.take_type();
  if (!to || !from) return std::nullopt;
  return find_float_packed(*to, *from, modifiers);
}

}  // namespace klap::emulator::alu
