// Differences between the GPU's floating point and the host's: NaN results, flushing of denormals,
// saturation, and rounding that is part of the instruction.
#pragma once

#include <cfenv>
#include <cmath>
#include <initializer_list>

#include "emulator/alu/lanes.h"
#include "emulator/alu/modifiers.h"

namespace klap::emulator::alu {

inline constexpr uint32_t kNan32 = 0x7fffffff;
inline constexpr uint64_t kNan64 = 0xfff8000000000000;  // as CUDART_NAN
inline constexpr uint64_t kQuiet64 = 0x0008000000000000;

template <class T>
inline bool is_nan(T value) {
  return value != value;
}

inline float nan32() { return std::bit_cast<float>(kNan32); }

// Every single-precision operation has one NaN as its result, whichever operands were NaN.
inline float canonical(float result) { return is_nan(result) ? nan32() : result; }

// In double precision a NaN operand comes out, quieted. It is the first one if there are several.
template <class... Operands>
inline double canonical(double result, Operands... operands) {
  if (!is_nan(result)) return result;
  for (const double operand : std::initializer_list<double>{operands...}) {
    if (is_nan(operand)) return std::bit_cast<double>(std::bit_cast<uint64_t>(operand) | kQuiet64);
  }
  return std::bit_cast<double>(kNan64);
}

// .ftz: a denormal counts as a zero of the same sign.
inline float flush(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
}
template <bool Flush>
inline float flush_if(float value) {
  return Flush ? flush(value) : value;
}

// .sat: to the range from 0 to 1, NaN and negative zero to positive zero.
template <class T>
inline T saturate(T value) {
  if (!(value > 0)) return 0;
  return value < 1 ? value : 1;
}

// While it lives, the host rounds as the instruction says.
//
// The compiler does not know that arithmetic depends on it. But operands and results of lanes lie in memory
// that a called function might change, so their arithmetic stays between the calls.
class RoundingMode {
 public:
  explicit RoundingMode(Rounding rounding) {
    constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    std::fesetround(kModes[static_cast<size_t>(rounding) & 3]);
  }
  ~RoundingMode() { std::fesetround(FE_TONEAREST); }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;
};

inline constexpr uint64_t kRoundingMask = 3;  // where a setting keeps it

template <AluFunction Run>
void run_rounded(const AluCall& call) {
  const RoundingMode mode(static_cast<Rounding>(call.setting & kRoundingMask));
  Run(call);
}

// The operation in another rounding mode than the usual one.
template <auto Function>
AluOp rounded_operation(Rounding rounding, uint64_t setting = 0) {
  AluOp op = operation<Function>(setting | static_cast<uint64_t>(rounding));
  if (rounding != Rounding::Nearest) op.run = run_rounded<each_lane<Function>>;
  return op;
}

}  // namespace klap::emulator::alu
