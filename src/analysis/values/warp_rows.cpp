#include "analysis/values/warp_rows.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/values/substitution.h"

namespace klap::analysis {
namespace {

constexpr uint64_t kLanes = 32;

// Stands for the number of a warp in its row.
Expr warp_number() { return Expr::symbol("warp", 32, 31); }

// True for x - x % 32, as which `x & ~31` is known.
bool is_without_rest(const Expr& value) {
  return std::ranges::any_of(value->terms, [&](const Term& term) {
    if (term.factors.size() != 1) return false;
    const Expr& rest = term.factors.front();
    if (rest->kind != ExprKind::Remainder && rest->kind != ExprKind::RemainderSigned) return false;
    const auto divisor = rest->operands[1].as_constant();
    return divisor && *divisor != 0 && *divisor % kLanes == 0 && value + rest == rest->operands[0];
  });
}

}  // namespace

bool is_warp_number(const ExprNode& leaf) {
  static const Expr symbol = warp_number();
  return leaf.kind == symbol->kind && leaf.value == symbol->value && leaf.name == symbol->name;
}

Expr of_lanes(const Expr& value) { return Expr::constant(kLanes, value.known() ? value->bits : 32); }

// The index in a row of whole warps, of which each lane has its own part. Divided by the size of several
// warps, it gives the warp's number divided by how many these are. The remainder is the remainder of the
// warps' numbers, together with the lane.
Expr by_warp(const Expr& value) {
  const Expr lane = Expr::symbol("lane", 32, kLanes - 1);
  return substitute(value, [&](const Expr& part) -> std::optional<Expr> {
    if (part->kind == ExprKind::Special && part->name == "tid.x")
      return warp_number() * Expr::constant(kLanes, 32) + lane;
    const bool divided = part->kind == ExprKind::Divide || part->kind == ExprKind::Remainder;
    const auto by = divided ? part->operands[1].as_constant() : std::nullopt;
    if (!by || *by <= kLanes || *by % kLanes != 0) return std::nullopt;
    const Expr row = by_warp(part->operands[0]), lanes = of_lanes(part);
    const Expr warps = Expr::constant(*by / kLanes, part->bits);
    const Expr warp = divide(row, lanes, Sign::Unsigned);
    if (part->kind == ExprKind::Divide) return divide(warp, warps, Sign::Unsigned);
    return remainder(warp, warps, Sign::Unsigned) * lanes + remainder(row, lanes, Sign::Unsigned);
  });
}

bool is_whole_warps(const Expr& value) {
  if (!value.known()) return false;
  switch (value->kind) {
    case ExprKind::Minimum:
    case ExprKind::MinimumSigned:
    case ExprKind::Maximum:
    case ExprKind::MaximumSigned:
    case ExprKind::ZeroExtend:
    case ExprKind::SignExtend:
    case ExprKind::Truncate:
      return std::ranges::all_of(value->operands, is_whole_warps);
    case ExprKind::And:
      return std::ranges::any_of(value->operands, is_whole_warps);
    case ExprKind::Constant:
    case ExprKind::Sum:
      break;
    default:
      return false;
  }
  return is_without_rest(value) || std::ranges::all_of(terms_of(value), [](const Term& term) {
           return term.coefficient % kLanes == 0 || std::ranges::any_of(term.factors, is_whole_warps);
         });
}

}  // namespace klap::analysis
