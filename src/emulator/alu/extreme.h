// The smaller and the larger of two floating-point numbers, as all precisions have them.
#pragma once

#include "emulator/alu/float.h"

namespace klap::emulator::alu {

struct ExtremeMode {
  bool is_min, nan_wins, xor_sign;
};

// The minimum or maximum of a and b, with -0 below +0. A NaN gives way to a number unless `nan_wins`. If only
// NaN is possible, the result is a NaN that the caller makes canonical. With `xor_sign`, magnitudes are
// compared and the signs multiplied.
template <class T>
inline T extreme(ExtremeMode mode, T a, T b) {
  const bool negative = std::signbit(a) != std::signbit(b);
  if (mode.xor_sign) {
    a = std::fabs(a);
    b = std::fabs(b);
  }
  T result;
  if (is_nan(a) || is_nan(b)) {
    result = is_nan(a) == mode.nan_wins ? a : b;
  } else {
    const bool a_less = a < b || (a == b && std::signbit(a));
    result = a_less == mode.is_min ? a : b;
  }
  if (mode.xor_sign && !is_nan(result)) result = std::copysign(result, negative ? T{-1} : T{1});
  return result;
}

}  // namespace klap::emulator::alu
