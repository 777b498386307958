#include "analysis/expressions/expression_arithmetic.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/expressions/expression_ranges.h"

namespace klap::analysis {
namespace {

constexpr size_t kMostFactors = 8;

std::optional<uint32_t> power_of_two(uint64_t value) {
  if (value == 0 || (value & (value - 1)) != 0) return std::nullopt;
  return static_cast<uint32_t>(__builtin_ctzll(value));
}

Expr binary(ExprKind kind, const Expr& a, const Expr& b) {
  ExprNode node;
  node.kind = kind;
  node.bits = a->bits;
  node.operands = {a, b};
  return Expr::make(std::move(node));
}

Expr commutative(ExprKind kind, const Expr& a, const Expr& b) {
  return Expr::compare(a, b) <= 0 ? binary(kind, a, b) : binary(kind, b, a);
}

Expr unary(ExprKind kind, const Expr& a, uint32_t bits, std::string name = {}) {
  ExprNode node;
  node.kind = kind;
  node.bits = bits;
  node.name = std::move(name);
  node.operands = {a};
  return Expr::make(std::move(node));
}

// Both operands are known and have one width.
bool usable(const Expr& a, const Expr& b) { return a.known() && b.known() && a->bits == b->bits; }

// Low bits that are always zero.
uint32_t zero_bits(const Expr& e) {
  uint32_t least = e->bits;
  for (const Term& term : terms_of(e)) {
    least = std::min<uint32_t>(least, static_cast<uint32_t>(__builtin_ctzll(term.coefficient)));
  }
  return least;
}

// ---- sums and products ----

// a - (a / c) * c, as compilers write a remainder by a constant.
Expr fold_remainder(const Expr& sum) {
  if (!sum.known() || sum->kind != ExprKind::Sum) return sum;
  for (const Term& term : sum->terms) {
    if (term.factors.size() != 1) continue;
    const ExprNode& quotient = *term.factors[0];
    if (quotient.kind != ExprKind::Divide && quotient.kind != ExprKind::DivideSigned) continue;
    const auto divisor = quotient.operands[1].as_constant();
    if (!divisor || term.coefficient != ((~*divisor + 1) & mask(sum->bits))) continue;
    std::vector<Term> rest = terms_of(sum);
    std::erase_if(rest, [&](const Term& t) { return compare_terms(t, term) == 0; });
    if (!(from_terms(sum->bits, rest) == quotient.operands[0])) continue;
    const Sign sign = quotient.kind == ExprKind::Divide ? Sign::Unsigned : Sign::Signed;
    return remainder(quotient.operands[0], quotient.operands[1], sign);
  }
  return sum;
}

}  // namespace

Expr operator+(const Expr& a, const Expr& b) {
  if (!usable(a, b)) return {};
  std::vector<Term> terms = terms_of(a);
  for (Term& term : terms_of(b)) terms.push_back(std::move(term));
  return fold_remainder(from_terms(a->bits, std::move(terms)));
}

Expr operator-(const Expr& a) {
  if (!a.known()) return {};
  std::vector<Term> terms = terms_of(a);
  for (Term& term : terms) term.coefficient = ~term.coefficient + 1;
  return from_terms(a->bits, std::move(terms));
}

Expr operator-(const Expr& a, const Expr& b) { return a + -b; }

Expr operator*(const Expr& a, const Expr& b) {
  if (!usable(a, b)) return {};
  std::vector<Term> terms;
  for (const Term& x : terms_of(a)) {
    for (const Term& y : terms_of(b)) {
      Term term{x.coefficient * y.coefficient, x.factors};
      term.factors.insert(term.factors.end(), y.factors.begin(), y.factors.end());
      std::sort(term.factors.begin(), term.factors.end(),
                [](const Expr& p, const Expr& q) { return Expr::compare(p, q) < 0; });
      if (term.factors.size() > kMostFactors || terms.size() > 4 * kMostTerms) return {};
      terms.push_back(std::move(term));
    }
  }
  return from_terms(a->bits, std::move(terms));
}

// ---- division and shifts ----

namespace {

Expr divide_constants(uint64_t a, uint64_t b, uint32_t bits, bool want_remainder, Sign sign) {
  if (sign == Sign::Unsigned) return Expr::constant(want_remainder ? a % b : a / b, bits);
  const int64_t x = as_signed(a, bits), y = as_signed(b, bits);
  if (y == -1) return {};  // the one quotient that does not fit; rare enough not to be told apart
  return Expr::constant(static_cast<uint64_t>(want_remainder ? x % y : x / y), bits);
}

// Non-negative operands divide alike in both readings: one normal form.
Sign quotient_sign(const Expr& a, const Expr& b, Sign sign) {
  return a->range.never_negative() && b->range.never_negative() ? Sign::Unsigned : sign;
}

// A sum that cannot wrap, as multiple * divisor + rest with a rest below the divisor.
struct Split {
  Expr multiple, rest;
};
std::optional<Split> split(const Expr& sum, uint64_t divisor) {
  if (sum->kind != ExprKind::Sum || !cannot_wrap(sum->terms, sum->bits, Sign::Unsigned)) return std::nullopt;
  const auto by = static_cast<int64_t>(divisor);
  if (by <= 0) return std::nullopt;
  std::vector<Term> multiple, rest;
  for (Term term : sum->terms) {
    const int64_t coefficient = as_signed(term.coefficient, sum->bits);
    if (coefficient % by != 0) {
      rest.push_back(std::move(term));
    } else {
      term.coefficient = static_cast<uint64_t>(coefficient / by);
      multiple.push_back(std::move(term));
    }
  }
  const Expr tail = from_terms(sum->bits, rest);
  if (multiple.empty() || !tail.known() || tail->range.most >= divisor) return std::nullopt;
  if (!rest.empty() && !cannot_wrap(rest, sum->bits, Sign::Unsigned)) return std::nullopt;
  return Split{from_terms(sum->bits, std::move(multiple)), tail};
}

}  // namespace

Expr divide(const Expr& a, const Expr& b, Sign sign) {
  if (!usable(a, b)) return {};
  sign = quotient_sign(a, b, sign);
  const auto by = b.as_constant();
  if (by == 1) return a;
  if (by && *by != 0 && a.as_constant()) return divide_constants(a->value, *by, a->bits, false, sign);
  if (sign == Sign::Signed) return binary(ExprKind::DivideSigned, a, b);
  if (const auto parts = by ? split(a, *by) : std::nullopt) return parts->multiple;
  if (by && a->kind == ExprKind::Divide) {
    const auto inner = a->operands[1].as_constant();
    uint64_t both = 0;
    if (inner && !__builtin_mul_overflow(*inner, *by, &both) && both <= mask(a->bits)) {
      return divide(a->operands[0], Expr::constant(both, a->bits), Sign::Unsigned);
    }
  }
  // The top bit of a value shifted right with its sign is the sign.
  if (by == uint64_t{1} << (a->bits - 1) && a->kind == ExprKind::ShiftRightSigned) {
    return divide(a->operands[0], b, Sign::Unsigned);
  }
  return binary(ExprKind::Divide, a, b);
}

Expr remainder(const Expr& a, const Expr& b, Sign sign) {
  if (!usable(a, b)) return {};
  sign = quotient_sign(a, b, sign);
  const auto by = b.as_constant();
  if (by == 1) return Expr::constant(0, a->bits);
  if (by && *by != 0 && a.as_constant()) return divide_constants(a->value, *by, a->bits, true, sign);
  if (sign == Sign::Unsigned && by && *by != 0 && a->range.most < *by) return a;
  if (const auto parts = by && sign == Sign::Unsigned ? split(a, *by) : std::nullopt) return parts->rest;
  return binary(sign == Sign::Signed ? ExprKind::RemainderSigned : ExprKind::Remainder, a, b);
}

Expr shift_left(const Expr& a, const Expr& amount) {
  if (!a.known() || !amount.known()) return {};
  const auto by = amount.as_constant();
  if (by && *by >= a->bits) return Expr::constant(0, a->bits);
  if (by) return a * Expr::constant(uint64_t{1} << *by, a->bits);
  return binary(ExprKind::ShiftLeft, a, amount);
}

namespace {

// All bits alike: those of the sign.
Expr sign_bits(const Expr& x) {
  if (x->range.never_negative()) return Expr::constant(0, x->bits);
  return binary(ExprKind::ShiftRightSigned, x, Expr::constant(x->bits - 1, 32));
}

// Division by 2^k that rounds towards zero, as compilers write it: x + ((x >> bits-1) >>u bits-k) >> k.
Expr fold_signed_division(const Expr& shifted, uint32_t k) {
  if (shifted->kind != ExprKind::Sum) return {};
  const uint32_t bits = shifted->bits;
  const Expr fill = Expr::constant(uint64_t{1} << (bits - k), bits);
  for (const Term& term : shifted->terms) {
    const bool candidate = term.coefficient == 1 && term.factors.size() == 1 &&
                           term.factors[0]->kind == ExprKind::Divide && term.factors[0]->operands[1] == fill;
    if (!candidate) continue;
    const Expr x = shifted - term.factors[0];
    if (x.known() && divide(sign_bits(x), fill, Sign::Unsigned) == term.factors[0]) {
      return divide(x, Expr::constant(uint64_t{1} << k, bits), Sign::Signed);
    }
  }
  return {};
}

}  // namespace

Expr shift_right(const Expr& a, const Expr& amount, Sign sign) {
  if (!a.known() || !amount.known()) return {};
  auto by = amount.as_constant();
  if (by == 0) return a;
  if (a->range.never_negative()) sign = Sign::Unsigned;
  if (!by) return binary(sign == Sign::Signed ? ExprKind::ShiftRightSigned : ExprKind::ShiftRight, a, amount);
  if (sign == Sign::Unsigned) {
    if (*by >= a->bits) return Expr::constant(0, a->bits);
    return divide(a, Expr::constant(uint64_t{1} << *by, a->bits), Sign::Unsigned);
  }
  by = std::min<uint64_t>(*by, a->bits - 1);
  if (a.as_constant()) {
    return Expr::constant(static_cast<uint64_t>(as_signed(a->value, a->bits) >> *by), a->bits);
  }
  const Expr division = fold_signed_division(a, static_cast<uint32_t>(*by));
  if (division.known()) return division;
  return binary(ExprKind::ShiftRightSigned, a, Expr::constant(*by, 32));
}

// ---- bits, extrema, conversions ----

Expr bit_and(const Expr& a, const Expr& b) {
  if (!usable(a, b)) return {};
  if (a.as_constant() && !b.as_constant()) return bit_and(b, a);
  if (a == b) return a;
  const auto with = b.as_constant();
  if (!with) return commutative(ExprKind::And, a, b);
  if (a.as_constant()) return Expr::constant(a->value & *with, a->bits);
  if (*with == mask(a->bits)) return a;
  if (*with == 0) return Expr::constant(0, a->bits);
  if (power_of_two(*with + 1)) return remainder(a, Expr::constant(*with + 1, a->bits), Sign::Unsigned);
  const uint64_t cleared = ~*with & mask(a->bits);
  if (power_of_two(cleared + 1)) {
    return a - remainder(a, Expr::constant(cleared + 1, a->bits), Sign::Unsigned);
  }
  return binary(ExprKind::And, a, b);
}

Expr bit_or(const Expr& a, const Expr& b) {
  if (!usable(a, b)) return {};
  if (a == b) return a;
  if (a.as_constant() && b.as_constant()) return Expr::constant(a->value | b->value, a->bits);
  // An `or` of operands without a common bit is a sum.
  for (const auto& [high, low] : {std::pair(a, b), std::pair(b, a)}) {
    const uint32_t zeros = zero_bits(high);
    if (zeros > 0 && low->range.most <= mask(zeros)) return a + b;
  }
  return commutative(ExprKind::Or, a, b);
}

Expr bit_xor(const Expr& a, const Expr& b) {
  if (!usable(a, b)) return {};
  if (a == b) return Expr::constant(0, a->bits);
  if (a.as_constant() && !b.as_constant()) return bit_xor(b, a);
  const auto with = b.as_constant();
  if (with && a.as_constant()) return Expr::constant(a->value ^ *with, a->bits);
  if (with == 0) return a;
  if (with == mask(a->bits)) return -a - Expr::constant(1, a->bits);  // not
  return commutative(ExprKind::Xor, a, b);
}

namespace {

bool less(uint64_t a, uint64_t b, uint32_t bits, Sign sign) {
  return sign == Sign::Signed ? as_signed(a, bits) < as_signed(b, bits) : a < b;
}

Expr extremum(const Expr& a, const Expr& b, Sign sign, bool least) {
  if (!usable(a, b)) return {};
  if (a == b) return a;
  if (a->range.never_negative() && b->range.never_negative()) sign = Sign::Unsigned;
  if (a.as_constant() && b.as_constant()) return less(a->value, b->value, a->bits, sign) == least ? a : b;
  const bool in_order = wide_bound(a->range, sign, true) <= wide_bound(b->range, sign, false);
  const bool reversed = wide_bound(b->range, sign, true) <= wide_bound(a->range, sign, false);
  if (in_order) return least ? a : b;
  if (reversed) return least ? b : a;
  if (least) return commutative(sign == Sign::Signed ? ExprKind::MinimumSigned : ExprKind::Minimum, a, b);
  return commutative(sign == Sign::Signed ? ExprKind::MaximumSigned : ExprKind::Maximum, a, b);
}

}  // namespace

Expr minimum(const Expr& a, const Expr& b, Sign sign) { return extremum(a, b, sign, true); }
Expr maximum(const Expr& a, const Expr& b, Sign sign) { return extremum(a, b, sign, false); }

Expr multiply_high(const Expr& a, const Expr& b, Sign sign) {
  if (!usable(a, b)) return {};
  if (a->bits <= 32) {
    const uint32_t bits = a->bits;
    const Expr product = convert(a, 2 * bits, sign) * convert(b, 2 * bits, sign);
    return convert(shift_right(product, Expr::constant(bits, 32), Sign::Unsigned), bits, Sign::Unsigned);
  }
  return commutative(sign == Sign::Signed ? ExprKind::MultiplyHighSigned : ExprKind::MultiplyHigh, a, b);
}

namespace {

Expr truncate(const Expr& a, uint32_t bits);

Expr map_terms(const Expr& sum, uint32_t bits, const std::function<Expr(const Expr&)>& map) {
  Expr out = Expr::constant(0, bits);
  for (const Term& term : sum->terms) {
    Expr part = Expr::constant(static_cast<uint64_t>(as_signed(term.coefficient, sum->bits)), bits);
    for (const Expr& factor : term.factors) part = part * map(factor);
    out = out + part;
  }
  return out;
}

Expr truncate(const Expr& a, uint32_t bits) {
  if (a.as_constant()) return Expr::constant(a->value, bits);
  const Expr inner = a->operands.empty() ? Expr() : a->operands[0];
  switch (a->kind) {
    case ExprKind::Sum:
      return map_terms(a, bits, [bits](const Expr& factor) { return truncate(factor, bits); });
    case ExprKind::ZeroExtend:
      return convert(inner, bits, Sign::Unsigned);
    case ExprKind::SignExtend:
      return convert(inner, bits, Sign::Signed);
    case ExprKind::Truncate:
      return truncate(inner, bits);
    default:
      return unary(ExprKind::Truncate, a, bits);
  }
}

Expr extend(const Expr& a, uint32_t bits, Sign sign) {
  if (a.as_constant()) {
    const auto value = static_cast<uint64_t>(as_signed(a->value, a->bits));
    return Expr::constant(sign == Sign::Signed ? value : a->value, bits);
  }
  const bool alike = a->range.never_negative();
  if (a->kind == ExprKind::Sum) {
    for (const Sign reading : {Sign::Unsigned, Sign::Signed}) {
      if ((alike || reading == sign) && cannot_wrap(a->terms, a->bits, reading)) {
        return map_terms(a, bits, [&](const Expr& factor) { return extend(factor, bits, reading); });
      }
    }
  }
  if (alike) sign = Sign::Unsigned;
  // Widening twice, or undoing a narrowing that lost nothing.
  if (a->kind == ExprKind::ZeroExtend) return extend(a->operands[0], bits, Sign::Unsigned);
  if (a->kind == ExprKind::SignExtend && sign == Sign::Signed) {
    return extend(a->operands[0], bits, Sign::Signed);
  }
  if (a->kind == ExprKind::Truncate && sign == Sign::Unsigned &&
      a->operands[0]->range.most <= mask(a->bits)) {
    return convert(a->operands[0], bits, Sign::Unsigned);
  }
  return unary(sign == Sign::Signed ? ExprKind::SignExtend : ExprKind::ZeroExtend, a, bits);
}

}  // namespace

Expr convert(const Expr& a, uint32_t bits, Sign sign) {
  if (!a.known() || bits == a->bits) return a;
  return bits < a->bits ? truncate(a, bits) : extend(a, bits, sign);
}

Expr to_generic(const Expr& a, const std::string& space) {
  if (!a.known()) return {};
  if (a->kind == ExprKind::FromGeneric && a->name == space) return a->operands[0];
  return unary(ExprKind::ToGeneric, a, a->bits, space);
}

Expr from_generic(const Expr& a, const std::string& space) {
  if (!a.known()) return {};
  if (a->kind == ExprKind::ToGeneric && a->name == space) return a->operands[0];
  return unary(ExprKind::FromGeneric, a, a->bits, space);
}

}  // namespace klap::analysis
