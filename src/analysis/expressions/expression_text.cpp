// This file writes expressions as expression.h describes for to_string().
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/expressions/expression_ranges.h"

namespace klap::analysis {

namespace {

// How tightly the outermost operator binds.
int precedence(const Expr& e) {
  switch (e->kind) {
    case ExprKind::Or:
      return 1;
    case ExprKind::Xor:
      return 2;
    case ExprKind::And:
      return 3;
    case ExprKind::ShiftLeft:
    case ExprKind::ShiftRight:
    case ExprKind::ShiftRightSigned:
      return 4;
    case ExprKind::Sum:
      return e->terms.size() > 1 ? 5 : 6;
    case ExprKind::Divide:
    case ExprKind::DivideSigned:
    case ExprKind::Remainder:
    case ExprKind::RemainderSigned:
      return 6;
    default:
      return 7;
  }
}

std::string wrapped(const Expr& e, int at_least) {
  return precedence(e) < at_least ? "(" + to_string(e) + ")" : to_string(e);
}

std::string infix(const ExprNode& node, std::string_view symbol, int level) {
  return fmt::format("{} {} {}", wrapped(node.operands[0], level), symbol,
                     wrapped(node.operands[1], level + 1));
}

std::string call(const ExprNode& node, std::string_view function) {
  return fmt::format("{}({}, {})", function, to_string(node.operands[0]), to_string(node.operands[1]));
}

std::string product_text(const std::vector<Expr>& factors) {
  std::string out;
  for (const Expr& factor : factors) out += (out.empty() ? "" : "*") + wrapped(factor, 7);
  return out;
}

std::string sum_text(const ExprNode& sum) {
  std::string out;
  std::vector<Term> terms = sum.terms;
  // Begin with something positive if there is something.
  const auto positive = std::find_if(terms.begin(), terms.end(), [&](const Term& term) {
    return !term.factors.empty() && as_signed(term.coefficient, sum.bits) > 0;
  });
  if (positive != terms.end()) std::rotate(terms.begin(), positive, positive + 1);
  for (const Term& term : terms) {
    const int64_t coefficient = as_signed(term.coefficient, sum.bits);
    // The most negative number has no positive counterpart.
    const bool negative = coefficient < 0 && coefficient != full_range(sum.bits).signed_least;
    const uint64_t magnitude = negative ? static_cast<uint64_t>(-coefficient) : term.coefficient;
    std::string text = product_text(term.factors);
    if (text.empty()) {
      text = std::to_string(magnitude);
    } else if (magnitude != 1) {
      text = std::to_string(magnitude) + "*" + text;
    } else if (term.factors.size() == 1 && precedence(term.factors[0]) == 6) {
      text = to_string(term.factors[0]);
    }
    if (out.empty()) {
      out = (negative ? "-" : "") + text;
    } else {
      out += (negative ? " - " : " + ") + text;
    }
  }
  return out;
}

std::string constant_text(const ExprNode& node) {
  const int64_t value = as_signed(node.value, node.bits);
  // Small negative numbers are easier to read as such.
  if (value < 0 && value > -65536) return std::to_string(value);
  return std::to_string(node.value);
}

// Where signed and unsigned differ, the unsigned form says so.
const char* divide_text(const ExprNode& node, const char* plain, const char* marked) {
  const bool alike = node.operands[0]->range.never_negative() && node.operands[1]->range.never_negative();
  return alike ? plain : marked;
}

}  // namespace

std::string to_string(const Expr& e) {
  if (!e.known()) return "unknown";
  const ExprNode& n = *e;
  switch (n.kind) {
    case ExprKind::Constant:
      return constant_text(n);
    case ExprKind::Parameter:
      return n.bits == 32 ? fmt::format("p[{}]", n.value) : fmt::format("p[{}:{}]", n.value, n.bits / 8);
    case ExprKind::ParameterBlock:
      return "&p";
    case ExprKind::Special:
    case ExprKind::Opaque:
    case ExprKind::Merged:
      return n.name;
    case ExprKind::Address:
      return "&" + n.name;
    case ExprKind::Sum:
      return sum_text(n);
    case ExprKind::Divide:
      return infix(n, divide_text(n, "/", "/u"), 6);
    case ExprKind::DivideSigned:
      return infix(n, "/", 6);
    case ExprKind::Remainder:
      return infix(n, divide_text(n, "%", "%u"), 6);
    case ExprKind::RemainderSigned:
      return infix(n, "%", 6);
    case ExprKind::ShiftLeft:
      return infix(n, "<<", 4);
    case ExprKind::ShiftRight:
      return infix(n, ">>u", 4);
    case ExprKind::ShiftRightSigned:
      return infix(n, ">>", 4);
    case ExprKind::And:
      return infix(n, "&", 3);
    case ExprKind::Or:
      return infix(n, "|", 1);
    case ExprKind::Xor:
      return infix(n, "^", 2);
    case ExprKind::Minimum:
      return call(n, "min_u");
    case ExprKind::MinimumSigned:
      return call(n, "min");
    case ExprKind::Maximum:
      return call(n, "max_u");
    case ExprKind::MaximumSigned:
      return call(n, "max");
    case ExprKind::MultiplyHigh:
      return call(n, "mulhi_u");
    case ExprKind::MultiplyHighSigned:
      return call(n, "mulhi");
    case ExprKind::ZeroExtend:
    case ExprKind::Truncate:
      return fmt::format("u{}({})", n.bits, to_string(n.operands[0]));
    case ExprKind::SignExtend:
      return fmt::format("s{}({})", n.bits, to_string(n.operands[0]));
    case ExprKind::ToGeneric:
      return fmt::format("generic_{}({})", n.name, to_string(n.operands[0]));
    case ExprKind::FromGeneric:
      return fmt::format("{}({})", n.name, to_string(n.operands[0]));
  }
  return "unknown";
}

std::string to_string(const Affine& a) {
  std::vector<Term> terms;
  for (const Affine::Part& part : a.parts)
    terms.push_back({static_cast<uint64_t>(part.coefficient), {part.symbol}});
  terms.push_back({static_cast<uint64_t>(a.constant), {}});
  const std::string sum = to_string(from_terms(a.bits, std::move(terms)));
  if (a.exact_unsigned || a.exact_signed) {
    const char* reading = a.exact_unsigned && a.exact_signed ? "exact"
                          : a.exact_signed                   ? "exact as signed"
                                                             : "exact as unsigned";
    return fmt::format("{} ({})", sum, reading);
  }
  return fmt::format("{} (modulo 2^{})", sum, a.bits);
}

}  // namespace klap::analysis
