// Arithmetic in half precision, .f16 and .bf16, single and in pairs.
#include "emulator/alu/extreme.h"
#include "emulator/alu/families.h"
#include "emulator/alu/small_float.h"

namespace klap::emulator::alu {
namespace {

constexpr uint64_t kFlush = 1, kSaturate = 2, kRelu = 4, kMin = 8, kNanWins = 16, kXorSign = 32;

template <class T>
double operand(Setting setting, T value) {
  const double result = to_double(value);
  return (setting.bits & kFlush) != 0 ? flush_small(format_of<T>(), result) : result;
}
template <class T>
T result(Setting setting, double value) {
  if ((setting.bits & kSaturate) != 0) value = saturate(value);
  if ((setting.bits & kRelu) != 0 && !(value > 0) && !is_nan(value)) value = 0;
  T rounded = to_small<T>(value);
  if ((setting.bits & kFlush) != 0) rounded = to_small<T>(flush_small(format_of<T>(), to_double(rounded)));
  return rounded;
}

// The sum a + b. If that is inexact, it is the one of its two neighbours in double precision whose last bit
// is one. Rounding it once more to few bits then gives the rounded exact sum.
double add_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double of_b = sum - a;
  const double error = (a - (sum - of_b)) + (b - of_b);
  auto bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  return std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

template <class T>
T add(Setting setting, T a, T b) {
  return result<T>(setting, add_to_odd(operand(setting, a), operand(setting, b)));
}
template <class T>
T subtract(Setting setting, T a, T b) {
  return result<T>(setting, add_to_odd(operand(setting, a), -operand(setting, b)));
}
template <class T>
T multiply(Setting setting, T a, T b) {
  return result<T>(setting, operand(setting, a) * operand(setting, b));
}
template <class T>
T multiply_add(Setting setting, T a, T b, T c) {
  return result<T>(setting, add_to_odd(operand(setting, a) * operand(setting, b), operand(setting, c)));
}
template <class T>
T negate(Setting setting, T a) {
  return result<T>(setting, -operand(setting, a));
}
template <class T>
T absolute(Setting setting, T a) {
  return result<T>(setting, std::fabs(operand(setting, a)));
}
template <class T>
T pick_extreme(Setting setting, T a, T b) {
  const ExtremeMode mode{(setting.bits & kMin) != 0, (setting.bits & kNanWins) != 0,
                         (setting.bits & kXorSign) != 0};
  return result<T>(setting, extreme(mode, operand(setting, a), operand(setting, b)));
}
template <class T>
T power(Setting setting, T a) {
  return result<T>(setting, std::exp2(operand(setting, a)));
}
template <class T>
T hyperbolic_tangent(Setting setting, T a) {
  return result<T>(setting, std::tanh(operand(setting, a)));
}

// A setting beside the rounding of the operations in single precision.
constexpr uint64_t kSaturateMixed = kRoundingMask + 1;

// Sums and multiply-adds in single precision of which an operand, or two, is half precision.
template <class T, bool Subtract>
float add_mixed(Setting setting, T a, float c) {
  const auto wide = static_cast<float>(to_double(a));
  const float sum = Subtract ? wide - c : wide + c;
  return (setting.bits & kSaturateMixed) != 0 ? saturate(sum) : canonical(sum);
}
template <class T>
float multiply_add_mixed(Setting setting, T a, T b, float c) {
  const float sum = std::fma(static_cast<float>(to_double(a)), static_cast<float>(to_double(b)), c);
  return (setting.bits & kSaturateMixed) != 0 ? saturate(sum) : canonical(sum);
}
template <class T>
Found find_mixed(std::string_view opcode, Modifiers& m) {
  const Rounding rounding = m.take_rounding().value_or(Rounding::Nearest);
  const uint64_t setting = m.take(".sat") ? kSaturateMixed : 0;
  if (opcode == "add") return rounded_operation<add_mixed<T, false>>(rounding, setting);
  if (opcode == "sub") return rounded_operation<add_mixed<T, true>>(rounding, setting);
  if (opcode == "fma") return rounded_operation<multiply_add_mixed<T>>(rounding, setting);
  return std::nullopt;
}

template <auto OfHalf, auto OfBFloat>
Found pick(Type type, uint64_t setting) {
  switch (type) {
    case Type::F16:
      return operation<OfHalf>(setting);
    case Type::BF16:
      return operation<OfBFloat>(setting);
    case Type::F16x2:
      return packed_operation<OfHalf>(setting);
    case Type::BF16x2:
      return packed_operation<OfBFloat>(setting);
    default:
      return std::nullopt;
  }
}

// The modifiers that an opcode may have besides its type.
std::optional<uint64_t> take_setting(std::string_view opcode, bool is_f16, Modifiers& m) {
  uint64_t setting = 0;
  const bool is_extreme = opcode == "min" || opcode == "max";
  const bool is_approximate = opcode == "ex2" || opcode == "tanh";
  if (is_approximate && !m.take(".approx")) return std::nullopt;
  const bool rounds = m.take(".rn");
  if (rounds && (is_extreme || is_approximate || opcode == "neg" || opcode == "abs")) return std::nullopt;
  if (!rounds && opcode == "fma") return std::nullopt;
  // ex2.approx.ftz.bf16 must say so and means it; tanh.approx has no .ftz.
  if ((is_f16 || opcode == "ex2") && opcode != "tanh" && m.take(".ftz")) setting |= kFlush;
  if (!is_extreme && !is_approximate && is_f16 && m.take(".sat")) setting |= kSaturate;
  if (opcode == "fma" && m.take(".relu")) setting |= kRelu;
  if (!is_extreme) return setting;
  if (opcode == "min") setting |= kMin;
  if (m.take(".NaN")) setting |= kNanWins;
  if (m.take(".xorsign")) {
    if (!m.take(".abs")) return std::nullopt;
    setting |= kXorSign;
  }
  return setting;
}

Found find_by_name(std::string_view opcode, Type type, uint64_t setting) {
  if (opcode == "add") return pick<add<Half>, add<BFloat>>(type, setting);
  if (opcode == "sub") return pick<subtract<Half>, subtract<BFloat>>(type, setting);
  if (opcode == "mul") return pick<multiply<Half>, multiply<BFloat>>(type, setting);
  if (opcode == "fma") return pick<multiply_add<Half>, multiply_add<BFloat>>(type, setting);
  if (opcode == "neg") return pick<negate<Half>, negate<BFloat>>(type, setting);
  if (opcode == "abs") return pick<absolute<Half>, absolute<BFloat>>(type, setting);
  if (opcode == "min" || opcode == "max") {
    return pick<pick_extreme<Half>, pick_extreme<BFloat>>(type, setting);
  }
  if (opcode == "ex2") return pick<power<Half>, power<BFloat>>(type, setting);
  if (opcode == "tanh") return pick<hyperbolic_tangent<Half>, hyperbolic_tangent<BFloat>>(type, setting);
  return std::nullopt;
}

}  // namespace

Found find_half(std::string_view opcode, Modifiers& modifiers) {
  const auto type = modifiers.take_type();
  if (!type) return std::nullopt;
  if (*type == Type::F32) {
    const auto narrow = modifiers.take_type();
    if (narrow == Type::F16) return find_mixed<Half>(opcode, modifiers);
    if (narrow == Type::BF16) return find_mixed<BFloat>(opcode, modifiers);
    return std::nullopt;
  }
  if (!is_half(*type)) return std::nullopt;
  const auto setting = take_setting(opcode, *type == Type::F16 || *type == Type::F16x2, modifiers);
  if (!setting) return std::nullopt;
  return find_by_name(opcode, *type, *setting);
}

}  // namespace klap::emulator::alu
