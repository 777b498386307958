// cvt from one number to one number.
//
// Between integers the value is cut or clamped. A floating-point source of any precision is exact in double
// precision. So every conversion from or to floating point goes through it and rounds once, on the way out.
#include <algorithm>
#include <limits>
#include <utility>

#include "emulator/alu/families.h"
#include "emulator/alu/float.h"
#include "emulator/alu/integer.h"
#include "emulator/alu/small_float.h"

namespace klap::emulator::alu {
namespace {

// Settings, beside the rounding in the low bits.
constexpr uint64_t kFlush = 1 << 4, kSaturate = 1 << 5, kRelu = 1 << 6, kFinite = 1 << 7;
constexpr int kToIntegerShift = 8;    // 0, or 1 + Rounding for .rni, .rzi, .rmi, .rpi
constexpr int kUnusedBitsShift = 16;  // of 64, beyond the destination register

// An integer as it stands in a register of the width that the setting says.
template <class D>
uint64_t extended(Setting setting, D value) {
  return static_cast<uint64_t>(static_cast<int64_t>(value)) &
         ~0ull >> (setting.bits >> kUnusedBitsShift & 63);
}

template <class D, class S>
uint64_t integer_to_integer(Setting setting, S a) {
  return extended<D>(setting, static_cast<D>(a));
}
template <class D, class S>
uint64_t integer_to_integer_clamped(Setting setting, S a) {
  using Limits = std::numeric_limits<D>;
  if (std::cmp_less(a, Limits::min())) return extended<D>(setting, Limits::min());
  if (std::cmp_greater(a, Limits::max())) return extended<D>(setting, Limits::max());
  return extended<D>(setting, static_cast<D>(a));
}

template <class S>
constexpr bool kIsSmall = std::is_same_v<S, Half> || std::is_same_v<S, BFloat>;

// The source, with .ftz and rounding to an integral value.
template <class S>
double read(Setting setting, S a) {
  double value = 0;
  if constexpr (kIsSmall<S>) {
    value = to_double(a);
  } else if constexpr (std::is_same_v<S, float>) {
    value = (setting.bits & kFlush) != 0 ? flush(a) : a;
  } else {
    value = a;
  }
  switch (setting.bits >> kToIntegerShift & 7) {
    case 1:
      return std::nearbyint(value);
    case 2:
      return std::trunc(value);
    case 3:
      return std::floor(value);
    case 4:
      return std::ceil(value);
    default:
      return value;
  }
}

template <class D, class S>
uint64_t float_to_integer(Setting setting, S a) {
  using Limits = std::numeric_limits<D>;
  const double value = read(setting, a);
  if (is_nan(value)) {
    // The hardware's 64-bit conversions have another answer than its conversions from 32 bits to 32 bits.
    const bool wide = sizeof(D) == 8 || std::is_same_v<S, double>;
    return wide ? extended<D>(setting, static_cast<D>(uint64_t{1} << (sizeof(D) * 8 - 1))) : 0;
  }
  // The first value beyond the type is a power of two, hence exact.
  const double beyond = std::ldexp(1.0, Limits::digits);
  if (value >= beyond) return extended<D>(setting, Limits::max());
  if (value <= static_cast<double>(Limits::min())) return extended<D>(setting, Limits::min());
  return extended<D>(setting, static_cast<D>(value));
}

template <class D>
uint64_t write(Setting setting, double value) {
  if ((setting.bits & kSaturate) != 0) value = saturate(value);
  if ((setting.bits & kRelu) != 0 && !(value > 0) && !is_nan(value)) value = 0;
  const bool finite = (setting.bits & kFinite) != 0;
  if constexpr (kIsSmall<D>) {
    return to_small<D>(value, static_cast<Rounding>(setting.bits & kRoundingMask), finite).bits;
  } else if constexpr (std::is_same_v<D, float>) {
    const float result = canonical(static_cast<float>(value));
    return Slot<float>::write((setting.bits & kFlush) != 0 ? flush(result) : result);
  } else {
    return Slot<double>::write(canonical(value, value));
  }
}

// To and from double precision a NaN keeps its sign and its upper bits, quieted; .bf16 is the upper half of a
// .f32 whatever it holds.
constexpr int kMantissa64 = 52;
uint64_t quiet64(uint64_t bits) { return bits | kQuiet64; }
template <class D, class S>
std::optional<uint64_t> converted_nan(S a) {
  constexpr uint64_t kSign64 = 1ull << 63;
  if constexpr (std::is_same_v<S, double> && (std::is_same_v<D, float> || std::is_same_v<D, Half>)) {
    constexpr int kBits = std::is_same_v<D, float> ? 32 : 16, kMantissa = std::is_same_v<D, float> ? 23 : 10;
    const uint64_t bits = quiet64(std::bit_cast<uint64_t>(a));
    return (bits & kSign64) >> (64 - kBits) |
           ((bits & ~kSign64) >> (kMantissa64 - kMantissa) & ((1ull << (kBits - 1)) - 1));
  } else if constexpr (std::is_same_v<S, Half> && std::is_same_v<D, double>) {
    const uint64_t sign = (a.bits & 0x8000ull) << 48, mantissa = a.bits & 0x3ffull;
    return quiet64(sign | 0x7ff0000000000000 | mantissa << (kMantissa64 - 10));
  } else if constexpr (std::is_same_v<S, BFloat> && std::is_same_v<D, float>) {
    return uint64_t{a.bits} << 16;
  } else {
    return std::nullopt;
  }
}

template <class D, class S>
uint64_t float_to_float(Setting setting, S a) {
  const double value = read(setting, a);
  if (is_nan(value) && (setting.bits & kSaturate) == 0) {
    if (const auto nan = converted_nan<D>(a)) return *nan;
  }
  return write<D>(setting, value);
}

// For the narrow formats 64 bits are more than double precision holds. Their rounding must only know that one
// of the lowest bits is set.
template <class S>
double to_sticky_double(S a) {
  constexpr int kLow = 11;
  constexpr S kMask = static_cast<S>((1 << kLow) - 1);
  if constexpr (sizeof(S) == 8) {
    if ((a & kMask) != 0) {
      const S cut = static_cast<S>(a & ~kMask);
      const bool fits = std::cmp_less(a, int64_t{1} << 53) && std::cmp_greater(a, -(int64_t{1} << 53));
      if (!fits) return static_cast<double>(cut | S{1} << kLow);
    }
  }
  return static_cast<double>(a);
}

template <class D, class S>
uint64_t integer_to_float(Setting setting, S a) {
  if constexpr (kIsSmall<D>) {
    return write<D>(setting, to_sticky_double(a));
  } else {
    const D value = static_cast<D>(a);
    return Slot<D>::write((setting.bits & kSaturate) != 0 ? saturate(value) : value);
  }
}

// .tf32 is the upper part of a .f32.
uint32_t to_tf32(Setting setting, float a) {
  double value = a;
  if ((setting.bits & kRelu) != 0 && !(value > 0) && !is_nan(value)) value = 0;
  const uint32_t bits =
      encode(kTf32, value, static_cast<Rounding>(setting.bits & 7), (setting.bits & kFinite) != 0);
  if (!is_nan(value)) return bits << kTf32Shift;
  constexpr uint32_t kBelow = (1u << kTf32Shift) - 1, kHalf32 = 1u << (kTf32Shift - 1);
  if (static_cast<Rounding>(setting.bits & 7) != Rounding::NearestAway) return kNan32 & ~kBelow;
  return (std::bit_cast<uint32_t>(a) + kHalf32) & ~kBelow;  // rounded as if it were a number
}

template <class Visit>
Found for_integer_type(Type type, Visit&& visit) {
  if (type == Type::U8) return visit(uint8_t{});
  if (type == Type::S8) return visit(int8_t{});
  return for_integer(type, visit);
}
template <class Visit>
Found for_float_type(Type type, Visit&& visit) {
  switch (type) {
    case Type::F16:
      return visit(Half{});
    case Type::BF16:
      return visit(BFloat{});
    case Type::F32:
      return visit(float{});
    case Type::F64:
      return visit(double{});
    default:
      return std::nullopt;
  }
}

bool is_integer(Type type) { return type >= Type::U8 && type <= Type::S64; }
bool is_number(Type type) {
  return is_integer(type) || is_float(type) || type == Type::F16 || type == Type::BF16;
}

uint8_t width_of(Type type) {
  switch (type) {
    case Type::U8:
    case Type::S8:
      return 8;
    case Type::U16:
    case Type::S16:
    case Type::F16:
    case Type::BF16:
      return 16;
    case Type::U64:
    case Type::S64:
    case Type::F64:
      return 64;
    default:
      return 32;
  }
}

struct Conversion {
  Type to, from;
  std::optional<Rounding> rounding;
  int to_integer = -1;  // .rni, .rzi, .rmi, .rpi
  uint64_t setting = 0;
};

// True if the conversion has a rounding mode exactly when it needs one.
bool rounding_fits(const Conversion& c) {
  if (is_integer(c.to)) return !c.rounding && (is_integer(c.from) ? c.to_integer < 0 : c.to_integer >= 0);
  if (is_integer(c.from)) return c.rounding.has_value() && c.to_integer < 0;
  if (c.to == c.from) return !c.rounding;
  const bool narrows = width_of(c.to) < width_of(c.from) || width_of(c.to) == 16;
  return c.to_integer < 0 && c.rounding.has_value() == narrows;
}

Found pick_to_integer(const Conversion& c) {
  return for_integer_type(c.to, [&]<class D>(D) -> Found {
    if (is_integer(c.from)) {
      return for_integer_type(c.from, [&]<class S>(S) -> Found {
        if ((c.setting & kSaturate) != 0) return operation<integer_to_integer_clamped<D, S>>(c.setting);
        return operation<integer_to_integer<D, S>>(c.setting);
      });
    }
    return for_float_type(c.from,
                          [&]<class S>(S) -> Found { return operation<float_to_integer<D, S>>(c.setting); });
  });
}

// Rounding to a narrow format is done by encode(); the others are rounded by the host.
template <class D, auto Function>
AluOp rounded(const Conversion& c) {
  const Rounding rounding = c.rounding.value_or(Rounding::Nearest);
  if constexpr (kIsSmall<D>) return operation<Function>(c.setting | static_cast<uint64_t>(rounding));
  return rounded_operation<Function>(rounding, c.setting);
}

Found pick_to_float(const Conversion& c) {
  return for_float_type(c.to, [&]<class D>(D) -> Found {
    if (is_integer(c.from)) {
      return for_integer_type(c.from,
                              [&]<class S>(S) -> Found { return rounded<D, integer_to_float<D, S>>(c); });
    }
    return for_float_type(c.from, [&]<class S>(S) -> Found { return rounded<D, float_to_float<D, S>>(c); });
  });
}

Found find_tf32(Modifiers& m) {
  uint64_t setting = (m.take(".satfinite") ? kFinite : 0) | (m.take(".relu") ? kRelu : 0);
  const auto rounding = m.take(".rna") ? Rounding::NearestAway : m.take_rounding();
  if (!rounding || *rounding == Rounding::Down || *rounding == Rounding::Up) return std::nullopt;
  if (*rounding == Rounding::NearestAway && (setting & kRelu) != 0) return std::nullopt;
  return operation<to_tf32>(setting | static_cast<uint64_t>(*rounding));
}

// The modifiers besides types and rounding, as far as the conversion has them.
uint64_t take_setting(const Conversion& c, Modifiers& m) {
  uint64_t setting = 0;
  if ((c.to == Type::F32 || c.from == Type::F32) && m.take(".ftz")) setting |= kFlush;
  if (m.take(".sat")) setting |= kSaturate;
  if ((c.to == Type::F16 || c.to == Type::BF16) && c.from == Type::F32) {
    if (m.take(".relu")) setting |= kRelu;
    if (m.take(".satfinite")) setting |= kFinite;
  }
  return setting;
}

}  // namespace

Found find_convert(std::string_view opcode, Modifiers& modifiers) {
  if (opcode != "cvt") return std::nullopt;
  const auto to = modifiers.take_type();
  const auto from = modifiers.take_type();
  if (!to || !from) return std::nullopt;
  if (*to == Type::TF32 && *from == Type::F32) return find_tf32(modifiers);
  if (!is_number(*to) || !is_number(*from)) return std::nullopt;
  Conversion c{*to, *from, modifiers.take_rounding()};
  c.to_integer = modifiers.take_one({".rni", ".rzi", ".rmi", ".rpi"});
  if (!rounding_fits(c)) return std::nullopt;
  const uint8_t width = width_of(c.to);
  const uint8_t register_bits = std::max(modifiers.destination_bits(), width);
  c.setting = take_setting(c, modifiers) | static_cast<uint64_t>(c.to_integer + 1) << kToIntegerShift |
              static_cast<uint64_t>(64 - register_bits) << kUnusedBitsShift;
  Found found = is_integer(c.to) ? pick_to_integer(c) : pick_to_float(c);
  if (found) found->destinations[0] = {is_integer(c.to) ? register_bits : width, !is_integer(c.to)};
  return found;
}

}  // namespace klap::emulator::alu
