#include "analysis/values/substitution.h"

#include <vector>

#include "analysis/expressions/expression_arithmetic.h"

namespace klap::analysis {
namespace {

bool is_signed_kind(ExprKind kind) {
  return kind == ExprKind::DivideSigned || kind == ExprKind::RemainderSigned ||
         kind == ExprKind::ShiftRightSigned || kind == ExprKind::MinimumSigned ||
         kind == ExprKind::MaximumSigned || kind == ExprKind::MultiplyHighSigned;
}

Expr rebuild(const ExprNode& node, const std::vector<Expr>& operands) {
  const Sign sign = is_signed_kind(node.kind) ? Sign::Signed : Sign::Unsigned;
  switch (node.kind) {
    case ExprKind::Divide:
    case ExprKind::DivideSigned:
      return divide(operands[0], operands[1], sign);
    case ExprKind::Remainder:
    case ExprKind::RemainderSigned:
      return remainder(operands[0], operands[1], sign);
    case ExprKind::ShiftLeft:
      return shift_left(operands[0], operands[1]);
    case ExprKind::ShiftRight:
    case ExprKind::ShiftRightSigned:
      return shift_right(operands[0], operands[1], sign);
    case ExprKind::And:
      return bit_and(operands[0], operands[1]);
    case ExprKind::Or:
      return bit_or(operands[0], operands[1]);
    case ExprKind::Xor:
      return bit_xor(operands[0], operands[1]);
    case ExprKind::Minimum:
    case ExprKind::MinimumSigned:
      return minimum(operands[0], operands[1], sign);
    case ExprKind::Maximum:
    case ExprKind::MaximumSigned:
      return maximum(operands[0], operands[1], sign);
    case ExprKind::MultiplyHigh:
    case ExprKind::MultiplyHighSigned:
      return multiply_high(operands[0], operands[1], sign);
    case ExprKind::ZeroExtend:
    case ExprKind::Truncate:
      return convert(operands[0], node.bits, Sign::Unsigned);
    case ExprKind::SignExtend:
      return convert(operands[0], node.bits, Sign::Signed);
    case ExprKind::ToGeneric:
      return to_generic(operands[0], node.name);
    case ExprKind::FromGeneric:
      return from_generic(operands[0], node.name);
    default:
      return {};
  }
}

}  // namespace

Expr substitute(const Expr& e, const Replacement& replacement) {
  if (!e.known()) return {};
  if (const auto replaced = replacement(e)) return *replaced;
  if (e->kind == ExprKind::Sum) {
    Expr out = Expr::constant(0, e->bits);
    for (const Term& term : e->terms) {
      Expr part = Expr::constant(term.coefficient, e->bits);
      for (const Expr& factor : term.factors) part = part * substitute(factor, replacement);
      out = out + part;
    }
    return out;
  }
  if (e->operands.empty()) return e;
  std::vector<Expr> operands;
  for (const Expr& operand : e->operands) operands.push_back(substitute(operand, replacement));
  return rebuild(*e, operands);
}

}  // namespace klap::analysis
