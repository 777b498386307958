#include "emulator/alu/small_float.h"

#include <cmath>

namespace klap::emulator::alu {
namespace {

int bias(const SmallFormat& format) { return (1 << (format.exponent - 1)) - 1; }
int lowest_exponent(const SmallFormat& format) { return 1 - bias(format); }  // of a normal number

// True if the fraction that is cut off raises the magnitude. `rest` is a fraction of one unit, `odd` the
// unit's last bit.
bool rounds_up(Rounding rounding, double rest, bool odd, bool negative) {
  switch (rounding) {
    case Rounding::Nearest:
      return rest > 0.5 || (rest == 0.5 && odd);
    case Rounding::NearestAway:
      return rest >= 0.5;
    case Rounding::Zero:
      return false;
    case Rounding::Down:
      return negative && rest > 0;
    case Rounding::Up:
      return !negative && rest > 0;
  }
  return false;
}

// The result for a magnitude beyond the largest number.
uint32_t overflow(const SmallFormat& format, Rounding rounding, bool negative, bool finite) {
  const bool stays = rounding == Rounding::Zero || (rounding == Rounding::Down && !negative) ||
                     (rounding == Rounding::Up && negative);
  if (finite || stays) return format.largest;
  return format.has_infinity ? format.largest + 1 : format.nan;
}

}  // namespace

uint32_t encode(const SmallFormat& format, double value, Rounding rounding, bool finite) {
  if (std::isnan(value)) return format.nan;
  const bool negative = std::signbit(value);
  const uint32_t sign = negative ? 1u << (format.mantissa + format.exponent) : 0;
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) {
    if (finite || !format.has_infinity) return sign | overflow(format, Rounding::Nearest, negative, finite);
    return sign | (format.largest + 1);
  }
  if (magnitude == 0) return sign;
  int exponent = std::ilogb(magnitude);
  if (exponent > bias(format) + 1) return sign | overflow(format, rounding, negative, finite);
  if (exponent < lowest_exponent(format)) exponent = lowest_exponent(format);
  // In units of the last place. Scaling by a power of two is exact: the units are far above double's
  // denormals.
  const double units = std::ldexp(magnitude, format.mantissa - exponent);
  const double whole = std::floor(units);
  auto bits = static_cast<uint32_t>(whole);
  if (rounds_up(rounding, units - whole, (bits & 1) != 0, negative)) ++bits;
  // The leading one of a normal number adds one to its exponent field, and so does a carry out of rounding.
  bits += static_cast<uint32_t>(exponent - lowest_exponent(format)) << format.mantissa;
  if (bits > format.largest) return sign | overflow(format, rounding, negative, finite);
  return sign | bits;
}

double decode(const SmallFormat& format, uint32_t bits) {
  const uint32_t mantissa = bits & ((1u << format.mantissa) - 1);
  const uint32_t field = bits >> format.mantissa & ((1u << format.exponent) - 1);
  const uint32_t magnitude = field << format.mantissa | mantissa;
  const double sign = (bits >> (format.mantissa + format.exponent) & 1) != 0 ? -1 : 1;
  if (magnitude > format.largest) {
    const bool infinite = format.has_infinity && magnitude == format.largest + 1;
    return infinite ? sign * HUGE_VAL : std::copysign(std::nan(""), sign);
  }
  const int unit = lowest_exponent(format) - format.mantissa;
  if (field == 0) return sign * std::ldexp(mantissa, unit);
  return sign * std::ldexp(mantissa | 1u << format.mantissa, unit + static_cast<int>(field) - 1);
}

double flush_small(const SmallFormat& format, double value) {
  if (std::fabs(value) >= std::ldexp(1.0, lowest_exponent(format)) || std::isnan(value)) return value;
  return std::copysign(0.0, value);
}

}  // namespace klap::emulator::alu
