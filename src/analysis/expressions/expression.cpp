#include "analysis/expressions/expression.h"

#include <algorithm>

#include "analysis/expressions/expression_ranges.h"

namespace klap::analysis {
namespace {

constexpr uint32_t kMostNodes = 400;

Expr leaf(ExprKind kind, uint32_t bits, uint64_t value, std::string name) {
  ExprNode node;
  node.kind = kind;
  node.bits = bits;
  node.value = value;
  node.name = std::move(name);
  return Expr::make(std::move(node));
}

}  // namespace

int compare_terms(const Term& a, const Term& b) {
  if (a.factors.size() != b.factors.size()) return a.factors.size() > b.factors.size() ? -1 : 1;
  for (size_t i = 0; i < a.factors.size(); ++i) {
    const int order = Expr::compare(a.factors[i], b.factors[i]);
    if (order != 0) return order;
  }
  return 0;
}

Expr Expr::make(ExprNode node) {
  node.range = range_of(node);
  for (const Expr& operand : node.operands) node.size += operand->size;
  for (const Term& term : node.terms) {
    for (const Expr& factor : term.factors) node.size += factor->size;
  }
  if (node.size > kMostNodes) return {};
  if (node.kind != ExprKind::Constant && node.range.least == node.range.most) {
    return constant(node.range.least, node.bits);
  }
  Expr out;
  out.node_ = std::make_shared<const ExprNode>(std::move(node));
  return out;
}

Expr Expr::constant(uint64_t value, uint32_t bits) {
  return leaf(ExprKind::Constant, bits, value & mask(bits), {});
}
Expr Expr::parameter(uint32_t offset, uint32_t bits) { return leaf(ExprKind::Parameter, bits, offset, {}); }
Expr Expr::parameter_block(uint32_t bits) { return leaf(ExprKind::ParameterBlock, bits, 0, {}); }
Expr Expr::special(std::string name) { return leaf(ExprKind::Special, 32, 0, std::move(name)); }
Expr Expr::address(std::string symbol, uint32_t bits) {
  return leaf(ExprKind::Address, bits, 0, std::move(symbol));
}
Expr Expr::opaque(uint32_t instruction, std::string reg, uint32_t bits) {
  return leaf(ExprKind::Opaque, bits, instruction, std::move(reg));
}
Expr Expr::merged(uint32_t instruction, std::string reg, uint32_t bits) {
  return leaf(ExprKind::Merged, bits, instruction, std::move(reg));
}

std::optional<uint64_t> Expr::as_constant() const {
  if (!known() || node_->kind != ExprKind::Constant) return std::nullopt;
  return node_->value;
}

int Expr::compare(const Expr& a, const Expr& b) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.node_ == b.node_) return 0;
  if (!a.known() || !b.known()) return a.known() ? 1 : -1;
  const ExprNode &x = *a, &y = *b;
  if (x.kind != y.kind) return order(x.kind, y.kind);
  if (x.bits != y.bits) return order(x.bits, y.bits);
  if (x.value != y.value) return order(x.value, y.value);
  if (x.name != y.name) return order(x.name, y.name);
  if (x.operands.size() != y.operands.size()) return order(x.operands.size(), y.operands.size());
  for (size_t i = 0; i < x.operands.size(); ++i) {
    if (const int o = compare(x.operands[i], y.operands[i]); o != 0) return o;
  }
  if (x.terms.size() != y.terms.size()) return order(x.terms.size(), y.terms.size());
  for (size_t i = 0; i < x.terms.size(); ++i) {
    if (const int o = compare_terms(x.terms[i], y.terms[i]); o != 0) return o;
    if (const int o = order(x.terms[i].coefficient, y.terms[i].coefficient); o != 0) return o;
  }
  return 0;
}

// ---- sums and products ----

std::vector<Term> terms_of(const Expr& e) {
  if (!e.known()) return {};
  if (e->kind == ExprKind::Sum) return e->terms;
  if (e->kind == ExprKind::Constant) {
    return e->value == 0 ? std::vector<Term>{} : std::vector<Term>{{e->value, {}}};
  }
  return {{1, {e}}};
}

namespace {

void collect(std::vector<Term>& terms, uint32_t bits) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return compare_terms(a, b) < 0; });
  std::vector<Term> out;
  for (Term& term : terms) {
    if (!out.empty() && compare_terms(out.back(), term) == 0) {
      out.back().coefficient += term.coefficient;
    } else {
      out.push_back(std::move(term));
    }
    out.back().coefficient &= mask(bits);
  }
  std::erase_if(out, [](const Term& term) { return term.coefficient == 0; });
  terms = std::move(out);
}

}  // namespace

Expr from_terms(uint32_t bits, std::vector<Term> terms) {
  collect(terms, bits);
  if (terms.empty()) return Expr::constant(0, bits);
  if (terms.size() > kMostTerms) return {};
  const Term& first = terms.front();
  if (terms.size() == 1 && first.factors.empty()) return Expr::constant(first.coefficient, bits);
  if (terms.size() == 1 && first.factors.size() == 1 && first.coefficient == 1) return first.factors[0];
  ExprNode node;
  node.kind = ExprKind::Sum;
  node.bits = bits;
  node.terms = std::move(terms);
  return Expr::make(std::move(node));
}

Expr Expr::symbol(std::string name, uint32_t bits, uint64_t most) {
  ExprNode node;
  node.kind = ExprKind::Opaque;
  node.bits = bits;
  node.value = ~uint64_t{0};
  node.name = std::move(name);
  Expr out = make(std::move(node));
  auto bounded = std::make_shared<ExprNode>(*out);
  bounded->range = unsigned_range(0, std::min(most, mask(bits)), bits);
  out.node_ = std::move(bounded);
  return out;
}

bool any_leaf(const Expr& e, const std::function<bool(const ExprNode&)>& predicate) {
  if (!e.known()) return false;
  if (e->operands.empty() && e->kind != ExprKind::Sum) return predicate(*e);
  for (const Expr& operand : e->operands) {
    if (any_leaf(operand, predicate)) return true;
  }
  for (const Term& term : e->terms) {
    for (const Expr& factor : term.factors) {
      if (any_leaf(factor, predicate)) return true;
    }
  }
  return false;
}

std::optional<Affine> affine(const Expr& e) {
  if (!e.known()) return std::nullopt;
  const std::vector<Term> terms = terms_of(e);
  Affine out;
  out.bits = e->bits;
  for (const Term& term : terms) {
    const int64_t coefficient = as_signed(term.coefficient, e->bits);
    if (term.factors.size() > 1) return std::nullopt;
    if (term.factors.empty()) {
      out.constant = coefficient;
    } else {
      out.parts.push_back({coefficient, term.factors[0]});
    }
  }
  out.exact_unsigned = cannot_wrap(terms, e->bits, Sign::Unsigned);
  out.exact_signed = cannot_wrap(terms, e->bits, Sign::Signed);
  return out;
}

}  // namespace klap::analysis
