// The approximations: sin, cos, lg2, ex2, tanh, rsqrt, and the forms .approx and .full of rcp, sqrt and div.
//
// PTX bounds their error and leaves the bits to the hardware. Here they are computed in double precision and
// rounded once, which is within every bound; only the rules of PTX for special operands need care.
#include "emulator/alu/families.h"
#include "emulator/alu/float.h"

namespace klap::emulator::alu {
namespace {

double sine(double a) { return std::sin(a); }
double cosine(double a) { return std::cos(a); }
double logarithm(double a) { return std::log2(a); }
double power(double a) { return std::exp2(a); }
double hyperbolic_tangent(double a) { return std::tanh(a); }
double inverse_root(double a) { return 1 / std::sqrt(a); }
double root(double a) { return std::sqrt(a); }
double reciprocal(double a) { return 1 / a; }

template <double (*Function)(double), bool Flush>
float single(float a) {
  return flush_if<Flush>(canonical(static_cast<float>(Function(flush_if<Flush>(a)))));
}

// A divisor over 2^126 has a reciprocal that the approximation takes for zero; .full scales it first.
template <bool Full, bool Flush>
float divide(float a, float b) {
  a = flush_if<Flush>(a);
  b = flush_if<Flush>(b);
  constexpr float kLargest = 0x1p126f;
  if (!Full && std::fabs(b) > kLargest && !std::isinf(b)) {
    if (std::isinf(a) || is_nan(a)) return nan32();
    return std::copysign(0.0f, std::copysign(1.0f, a) * std::copysign(1.0f, b));
  }
  return flush_if<Flush>(canonical(static_cast<float>(static_cast<double>(a) / b)));
}

// In double precision only the upper halves of operand and result count.
constexpr uint64_t kUpperHalf = 0xffffffff00000000;
double cut_double(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value) & kUpperHalf;
  const bool denormal = (bits & 0x7ff0000000000000) == 0;
  return std::bit_cast<double>(denormal ? bits & 0x8000000000000000 : bits);
}
template <double (*Function)(double)>
double upper_half(double a) {
  if (is_nan(a)) return canonical(a, a);
  const double result = Function(cut_double(a));
  return is_nan(result) ? canonical(result) : cut_double(result);
}

template <double (*Function)(double)>
AluOp pick(bool flush) {
  return flush ? operation<single<Function, true>>() : operation<single<Function, false>>();
}

Found find_single(std::string_view opcode, bool flush) {
  if (opcode == "sin") return pick<sine>(flush);
  if (opcode == "cos") return pick<cosine>(flush);
  if (opcode == "lg2") return pick<logarithm>(flush);
  if (opcode == "ex2") return pick<power>(flush);
  if (opcode == "rsqrt") return pick<inverse_root>(flush);
  if (opcode == "sqrt") return pick<root>(flush);
  if (opcode == "rcp") return pick<reciprocal>(flush);
  if (opcode == "tanh" && !flush) return pick<hyperbolic_tangent>(false);
  return std::nullopt;
}

Found find_quotient(bool full, bool flush) {
  if (full) return flush ? operation<divide<true, true>>() : operation<divide<true, false>>();
  return flush ? operation<divide<false, true>>() : operation<divide<false, false>>();
}

}  // namespace

Found find_approximate(std::string_view opcode, Modifiers& modifiers) {
  const int kind = modifiers.take_one({".approx", ".full"});
  const bool flush = modifiers.take(".ftz");
  const auto type = modifiers.take_type();
  if (kind < 0) return std::nullopt;
  if (type == Type::F32) {
    if (opcode == "div") return find_quotient(kind == 1, flush);
    return kind == 0 ? find_single(opcode, flush) : std::nullopt;
  }
  if (type != Type::F64 || kind != 0) return std::nullopt;
  if (opcode == "rcp" && flush) return operation<upper_half<reciprocal>>();
  if (opcode == "rsqrt") return operation<upper_half<inverse_root>>();
  return std::nullopt;
}

}  // namespace klap::emulator::alu
