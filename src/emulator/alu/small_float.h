// The floating-point formats narrower than single precision, as bit patterns.
//
// Their arithmetic is done in double precision. There sums and products of two of them are exact, or so
// precise that rounding twice cannot be seen. The result is rounded here, once, in any mode.
#pragma once

#include "emulator/alu/modifiers.h"
#include "emulator/alu/types.h"

namespace klap::emulator::alu {

struct SmallFormat {
  int mantissa;  // bits, without the leading one
  int exponent;  // bits
  bool has_infinity;
  uint32_t largest;  // finite
  uint32_t nan;      // as an operation makes it
};
inline constexpr SmallFormat kHalf{10, 5, true, 0x7bff, 0x7fff};
inline constexpr SmallFormat kBFloat{7, 8, true, 0x7f7f, 0x7fff};
// A .tf32 is a .f32 of which the low 13 bits do not count; here it is without them.
inline constexpr SmallFormat kTf32{10, 8, true, 0x3fbff, 0x3ffff};
inline constexpr int kTf32Shift = 13;
inline constexpr SmallFormat kE4M3{3, 4, false, 0x7e, 0x7f};
inline constexpr SmallFormat kE5M2{2, 5, true, 0x7b, 0x7f};

// `finite`: values that are too large, infinities included, become the largest number.
uint32_t encode(const SmallFormat& format, double value, Rounding rounding = Rounding::Nearest,
                bool finite = false);
double decode(const SmallFormat& format, uint32_t bits);

template <class T>
inline constexpr const SmallFormat& format_of();
template <>
inline constexpr const SmallFormat& format_of<Half>() {
  return kHalf;
}
template <>
inline constexpr const SmallFormat& format_of<BFloat>() {
  return kBFloat;
}
template <class T>
inline double to_double(T value) {
  return decode(format_of<T>(), value.bits);
}
template <class T>
inline T to_small(double value, Rounding rounding = Rounding::Nearest, bool finite = false) {
  return {static_cast<uint16_t>(encode(format_of<T>(), value, rounding, finite))};
}

// A value's denormals as zero.
double flush_small(const SmallFormat& format, double value);

}  // namespace klap::emulator::alu
