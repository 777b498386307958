// Operations that look at signs and kinds of .f32 and .f64 rather than compute: min, max, abs, neg, copysign,
// testp.
#include "emulator/alu/extreme.h"
#include "emulator/alu/families.h"

namespace klap::emulator::alu {
namespace {

// Settings: the mode of a minimum or maximum.
constexpr uint64_t kMin = 1, kNanWins = 2, kXorSign = 4, kFlush = 8;
ExtremeMode mode_of(Setting setting) {
  return {(setting.bits & kMin) != 0, (setting.bits & kNanWins) != 0, (setting.bits & kXorSign) != 0};
}

float extreme32(Setting setting, float a, float b) {
  if ((setting.bits & kFlush) != 0) a = flush(a), b = flush(b);
  return canonical(extreme(mode_of(setting), a, b));
}
float extreme32_of_3(Setting setting, float a, float b, float c) {
  return extreme32(setting, extreme32(setting, a, b), c);
}
double extreme64(Setting setting, double a, double b) {
  return canonical(extreme(mode_of(setting), a, b), b, a);
}

// Both are computed as 0 + x with the operand's sign changed: a NaN comes out as of an addition.
template <bool Flush>
float negate32(float a) {
  return canonical(flush_if<Flush>(-a));
}
template <bool Flush>
float absolute32(float a) {
  return canonical(flush_if<Flush>(std::fabs(a)));
}
double negate64(double a) { return is_nan(a) ? canonical(a, a) : -a; }
double absolute64(double a) { return is_nan(a) ? canonical(a, a) : std::fabs(a); }

// The sign is the first operand's, the magnitude the second's.
template <class T>
T copy_sign(T a, T b) {
  return std::copysign(b, a);
}

enum class Kind { Finite, Infinite, Number, NotANumber, Normal, Subnormal };
template <class T, Kind Test>
bool is_kind(T a) {
  const int kind = std::fpclassify(a);
  switch (Test) {
    case Kind::Finite:
      return kind != FP_NAN && kind != FP_INFINITE;
    case Kind::Infinite:
      return kind == FP_INFINITE;
    case Kind::Number:
      return kind != FP_NAN;
    case Kind::NotANumber:
      return kind == FP_NAN;
    case Kind::Normal:
      return kind == FP_NORMAL || kind == FP_ZERO;  // so the hardware
    case Kind::Subnormal:
      return kind == FP_SUBNORMAL;
  }
  return false;
}

template <class T>
Found find_kind(Modifiers& m) {
  switch (m.take_one({".finite", ".infinite", ".number", ".notanumber", ".normal", ".subnormal"})) {
    case 0:
      return operation<is_kind<T, Kind::Finite>>();
    case 1:
      return operation<is_kind<T, Kind::Infinite>>();
    case 2:
      return operation<is_kind<T, Kind::Number>>();
    case 3:
      return operation<is_kind<T, Kind::NotANumber>>();
    case 4:
      return operation<is_kind<T, Kind::Normal>>();
    case 5:
      return operation<is_kind<T, Kind::Subnormal>>();
    default:
      return std::nullopt;
  }
}

Found find_extreme(bool is_min, Type type, Modifiers& m) {
  uint64_t setting = is_min ? kMin : 0;
  if (type == Type::F64) return operation<extreme64>(setting);
  if (m.take(".ftz")) setting |= kFlush;
  if (m.take(".NaN")) setting |= kNanWins;
  if (m.take(".xorsign")) {
    if (!m.take(".abs")) return std::nullopt;
    setting |= kXorSign;
  }
  if (m.operand_count() == 4) return operation<extreme32_of_3>(setting);
  return operation<extreme32>(setting);
}

Found find_sign_change(bool is_neg, Type type, Modifiers& m) {
  if (type == Type::F64) return is_neg ? operation<negate64>() : operation<absolute64>();
  if (m.take(".ftz")) return is_neg ? operation<negate32<true>>() : operation<absolute32<true>>();
  return is_neg ? operation<negate32<false>>() : operation<absolute32<false>>();
}

}  // namespace

Found find_sign(std::string_view opcode, Modifiers& modifiers) {
  const auto type = modifiers.take_type();
  if (!type || !is_float(*type)) return std::nullopt;
  if (opcode == "min" || opcode == "max") return find_extreme(opcode == "min", *type, modifiers);
  if (opcode == "neg" || opcode == "abs") return find_sign_change(opcode == "neg", *type, modifiers);
  if (opcode == "copysign") {
    return *type == Type::F32 ? operation<copy_sign<float>>() : operation<copy_sign<double>>();
  }
  if (opcode == "testp")
    return *type == Type::F32 ? find_kind<float>(modifiers) : find_kind<double>(modifiers);
  return std::nullopt;
}

}  // namespace klap::emulator::alu
