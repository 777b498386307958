#include "analysis/expressions/expression_ranges.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace klap::analysis {

Range full_range(uint32_t bits) {
  return {0, mask(bits), as_signed(uint64_t{1} << (bits - 1), bits), static_cast<int64_t>(mask(bits - 1))};
}

Range unsigned_range(uint64_t least, uint64_t most, uint32_t bits) {
  Range range = full_range(bits);
  range.least = least;
  range.most = most;
  if (most <= mask(bits - 1)) {
    range.signed_least = static_cast<int64_t>(least);
    range.signed_most = static_cast<int64_t>(most);
  }
  return range;
}

namespace {

Range signed_range(int64_t least, int64_t most, uint32_t bits) {
  Range range = full_range(bits);
  range.signed_least = least;
  range.signed_most = most;
  if (least >= 0) {
    range.least = static_cast<uint64_t>(least);
    range.most = static_cast<uint64_t>(most);
  }
  return range;
}

// The range of the values that are in both ranges.
Range intersect(Range a, const Range& b) {
  a.least = std::max(a.least, b.least);
  a.most = std::min(a.most, b.most);
  a.signed_least = std::max(a.signed_least, b.signed_least);
  a.signed_most = std::min(a.signed_most, b.signed_most);
  return a;
}

// The launch limits of CUDA, the same for every compute capability that klap_jit serves.
Range special_range(std::string_view name) {
  struct Limit {
    std::string_view name;
    uint64_t least, most;
  };
  static constexpr std::array<Limit, 15> kLimits = {{{"tid.x", 0, 1023},
                                                     {"tid.y", 0, 1023},
                                                     {"tid.z", 0, 63},
                                                     {"ntid.x", 1, 1024},
                                                     {"ntid.y", 1, 1024},
                                                     {"ntid.z", 1, 64},
                                                     {"ctaid.x", 0, 0x7ffffffe},
                                                     {"ctaid.y", 0, 65534},
                                                     {"ctaid.z", 0, 65534},
                                                     {"nctaid.x", 1, 0x7fffffff},
                                                     {"nctaid.y", 1, 65535},
                                                     {"nctaid.z", 1, 65535},
                                                     {"laneid", 0, 31},
                                                     {"WARP_SZ", 32, 32},
                                                     {"warpid", 0, 1023}}};
  for (const Limit& limit : kLimits) {
    if (limit.name == name) return unsigned_range(limit.least, limit.most, 32);
  }
  return full_range(32);
}

struct WideRange {
  Wide least = 0, most = 0;
};

}  // namespace

Wide wide_bound(const Range& range, Sign sign, bool most) {
  if (sign == Sign::Signed) return most ? range.signed_most : range.signed_least;
  return most ? range.most : range.least;
}

namespace {

std::optional<WideRange> product(const WideRange& a, const WideRange& b) {
  std::array<Wide, 4> corners{};
  size_t next = 0;
  for (const Wide x : {a.least, a.most}) {
    for (const Wide y : {b.least, b.most}) {
      if (__builtin_mul_overflow(x, y, &corners.at(next++))) return std::nullopt;
    }
  }
  const auto [least, most] = std::minmax_element(corners.begin(), corners.end());
  return WideRange{*least, *most};
}

// The sum over the integers, with atoms read as `sign` says and coefficients as signed.
std::optional<WideRange> integer_range(const std::vector<Term>& terms, uint32_t bits, Sign sign) {
  WideRange sum;
  for (const Term& term : terms) {
    const Wide coefficient = as_signed(term.coefficient, bits);
    WideRange part{coefficient, coefficient};
    for (const Expr& factor : term.factors) {
      const auto next =
          product(part, {wide_bound(factor->range, sign, false), wide_bound(factor->range, sign, true)});
      if (!next) return std::nullopt;
      part = *next;
    }
    if (__builtin_add_overflow(sum.least, part.least, &sum.least)) return std::nullopt;
    if (__builtin_add_overflow(sum.most, part.most, &sum.most)) return std::nullopt;
  }
  return sum;
}

}  // namespace

// True if the sum over the integers is always the register's value.
bool cannot_wrap(const std::vector<Term>& terms, uint32_t bits, Sign sign) {
  const auto range = integer_range(terms, bits, sign);
  if (!range) return false;
  const Range limits = full_range(bits);
  return range->least >= wide_bound(limits, sign, false) && range->most <= wide_bound(limits, sign, true);
}

namespace {

Range sum_range(const std::vector<Term>& terms, uint32_t bits) {
  Range range = full_range(bits);
  if (cannot_wrap(terms, bits, Sign::Unsigned)) {
    const auto wide = integer_range(terms, bits, Sign::Unsigned);
    range = unsigned_range(static_cast<uint64_t>(wide->least), static_cast<uint64_t>(wide->most), bits);
  }
  if (cannot_wrap(terms, bits, Sign::Signed)) {
    const auto wide = integer_range(terms, bits, Sign::Signed);
    range = intersect(
        range, signed_range(static_cast<int64_t>(wide->least), static_cast<int64_t>(wide->most), bits));
  }
  return range;
}

Range quotient_range(const ExprNode& node) {
  const Range &a = node.operands[0]->range, &b = node.operands[1]->range;
  if (node.kind == ExprKind::Divide) {
    if (b.least == 0) return full_range(node.bits);
    return unsigned_range(a.least / b.most, a.most / b.least, node.bits);
  }
  if (b.signed_least <= 0) return full_range(node.bits);
  const int64_t least = a.signed_least / (a.signed_least < 0 ? b.signed_least : b.signed_most);
  const int64_t most = a.signed_most / (a.signed_most < 0 ? b.signed_most : b.signed_least);
  return signed_range(least, most, node.bits);
}

Range extremum_range(const ExprNode& node) {
  const Range &a = node.operands[0]->range, &b = node.operands[1]->range;
  switch (node.kind) {
    case ExprKind::Minimum:
      return unsigned_range(std::min(a.least, b.least), std::min(a.most, b.most), node.bits);
    case ExprKind::Maximum:
      return unsigned_range(std::max(a.least, b.least), std::max(a.most, b.most), node.bits);
    case ExprKind::MinimumSigned:
      return signed_range(std::min(a.signed_least, b.signed_least), std::min(a.signed_most, b.signed_most),
                          node.bits);
    default:
      return signed_range(std::max(a.signed_least, b.signed_least), std::max(a.signed_most, b.signed_most),
                          node.bits);
  }
}

}  // namespace

Range range_of(const ExprNode& node) {
  const uint32_t bits = node.bits;
  const auto operand = [&](size_t i) -> const Range& { return node.operands[i]->range; };
  switch (node.kind) {
    case ExprKind::Constant: {
      const int64_t value = as_signed(node.value, bits);
      return {node.value, node.value, value, value};
    }
    case ExprKind::Special:
      return special_range(node.name);
    case ExprKind::Sum:
      return sum_range(node.terms, bits);
    case ExprKind::Divide:
    case ExprKind::DivideSigned:
      return quotient_range(node);
    case ExprKind::Remainder:
      if (operand(1).least == 0) return full_range(bits);
      return unsigned_range(0, std::min(operand(0).most, operand(1).most - 1), bits);
    case ExprKind::ShiftRight:
      return unsigned_range(0, operand(0).most, bits);
    case ExprKind::ShiftRightSigned: {
      const auto amount = node.operands[1].as_constant();
      if (!amount) return full_range(bits);
      return signed_range(operand(0).signed_least >> *amount, operand(0).signed_most >> *amount, bits);
    }
    case ExprKind::And:
      return unsigned_range(0, std::min(operand(0).most, operand(1).most), bits);
    case ExprKind::Minimum:
    case ExprKind::Maximum:
    case ExprKind::MinimumSigned:
    case ExprKind::MaximumSigned:
      return extremum_range(node);
    case ExprKind::ZeroExtend:
      return unsigned_range(operand(0).least, operand(0).most, bits);
    case ExprKind::SignExtend:
      return signed_range(operand(0).signed_least, operand(0).signed_most, bits);
    case ExprKind::Truncate:
      if (operand(0).most <= mask(bits)) return unsigned_range(operand(0).least, operand(0).most, bits);
      return full_range(bits);
    default:
      return full_range(bits);
  }
}

}  // namespace klap::analysis
