// Correctly rounded arithmetic in single and double precision.
//
// The host computes: its operations are IEEE's in both widths and in all four rounding modes, as the GPU's
// are. Left to do are NaNs, .ftz and .sat.
#include "emulator/alu/float.h"

#include "emulator/alu/families.h"

namespace klap::emulator::alu {
namespace {

template <class T>
T add(T a, T b) {
  return a + b;
}
template <class T>
T subtract(T a, T b) {
  return a - b;
}
template <class T>
T multiply(T a, T b) {
  return a * b;
}
// .ftz looks at the product before it is rounded: a product that rounds up to the smallest normal number is
// flushed.
float multiply_flushed(float a, float b) {
  const bool is_denormal = std::fabs(double{a} * double{b}) < 0x1p-126;
  const float product = a * b;
  return is_denormal ? std::copysign(0.0f, product) : product;
}
template <class T>
T divide(T a, T b) {
  return a / b;
}
template <class T>
T multiply_add(T a, T b, T c) {
  return std::fma(a, b, c);
}
template <class T>
T reciprocal(T a) {
  return T{1} / a;
}
template <class T>
T square_root(T a) {
  return std::sqrt(a);
}

// The function with everything that surrounds it, for any number of operands.
template <auto Function, bool Flush, bool Saturate, class S = decltype(Function)>
struct Single;
template <auto Function, bool Flush, bool Saturate, class... Operands>
struct Single<Function, Flush, Saturate, float (*)(Operands...)> {
  static float run(Operands... operands) {
    const float result = Function(flush_if<Flush>(operands)...);
    return flush_if<Flush>(Saturate ? saturate(result) : canonical(result));
  }
};
template <auto Function, class S = decltype(Function)>
struct Double;
// The hardware's own operations prefer the second operand's NaN.
template <auto Function>
struct HardwareDouble {
  static double run(double a, double b) { return canonical(Function(a, b), b, a); }
};
template <auto Function, class... Operands>
struct Double<Function, double (*)(Operands...)> {
  static double run(Operands... operands) { return canonical(Function(operands...), operands...); }
};

struct Flags {
  Rounding rounding = Rounding::Nearest;
  bool flush = false, saturate = false;
};

template <auto Function>
AluOp pick_single(Flags flags) {
  if (flags.flush) {
    return flags.saturate ? rounded_operation<&Single<Function, true, true>::run>(flags.rounding)
                          : rounded_operation<&Single<Function, true, false>::run>(flags.rounding);
  }
  return flags.saturate ? rounded_operation<&Single<Function, false, true>::run>(flags.rounding)
                        : rounded_operation<&Single<Function, false, false>::run>(flags.rounding);
}
template <auto InSingle, auto InDouble>
AluOp pick(Type type, Flags flags) {
  if (type == Type::F32) return pick_single<InSingle>(flags);
  return rounded_operation<&Double<InDouble>::run>(flags.rounding);
}
template <auto InSingle, auto InDouble>
AluOp pick_hardware(Type type, Flags flags) {
  if (type == Type::F32) return pick_single<InSingle>(flags);
  return rounded_operation<&HardwareDouble<InDouble>::run>(flags.rounding);
}

Found find_by_name(std::string_view opcode, Type type, Flags flags) {
  if (opcode == "add") return pick_hardware<add<float>, add<double>>(type, flags);
  if (opcode == "sub") return pick_hardware<subtract<float>, subtract<double>>(type, flags);
  if (opcode == "mul") {
    if (flags.flush) return pick_hardware<multiply_flushed, multiply<double>>(type, flags);
    return pick_hardware<multiply<float>, multiply<double>>(type, flags);
  }
  if (opcode == "fma" || opcode == "mad") return pick<multiply_add<float>, multiply_add<double>>(type, flags);
  if (opcode == "div") return pick<divide<float>, divide<double>>(type, flags);
  if (opcode == "rcp") return pick<reciprocal<float>, reciprocal<double>>(type, flags);
  if (opcode == "sqrt") return pick<square_root<float>, square_root<double>>(type, flags);
  return std::nullopt;
}

}  // namespace

Found find_float(std::string_view opcode, Modifiers& modifiers) {
  const bool optional_rounding = opcode == "add" || opcode == "sub" || opcode == "mul";
  const bool may_saturate = optional_rounding || opcode == "fma" || opcode == "mad";
  const auto rounding = modifiers.take_rounding();
  const auto type = modifiers.take_type();
  if (!type || !is_float(*type) || (!rounding && !optional_rounding)) return std::nullopt;
  Flags flags;
  flags.rounding = rounding.value_or(Rounding::Nearest);
  if (*type == Type::F32) {
    flags.flush = modifiers.take(".ftz");
    flags.saturate = may_saturate && modifiers.take(".sat");
  }
  return find_by_name(opcode, *type, flags);
}

}  // namespace klap::emulator::alu
