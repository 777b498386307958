#include "analysis/order/block_limit.h"

#include <algorithm>
#include <vector>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/expressions/expression_ranges.h"

namespace klap::analysis {
namespace {

// A block has no more threads.
constexpr int64_t kThreadsOfBlock = 1024;

// blockIdx, or blockIdx * blockDim.
bool is_first_of_block(const Term& term) {
  const auto is = [](const Expr& factor, std::string_view name) {
    return factor->kind == ExprKind::Special && factor->name.starts_with(name);
  };
  if (term.factors.size() == 1) return is(term.factors[0], "ctaid.");
  if (term.factors.size() != 2) return false;
  return (is(term.factors[0], "ctaid.") && is(term.factors[1], "ntid.")) ||
         (is(term.factors[1], "ctaid.") && is(term.factors[0], "ntid."));
}

// `index - bound`. The index is that of a block times the step, or times the block's size where the step is
// 0. A thread's index may be beside it.
struct Difference {
  std::optional<uint32_t> block_axis, thread_axis;
  uint32_t step = 0;
  HostDistance bound;
  bool is_signed = false;
  bool has_number = false;
};

bool is_widened(const Expr& e) { return e->kind == ExprKind::ZeroExtend || e->kind == ExprKind::SignExtend; }

// Adds what is taken from the index: a product of the host's numbers, or a constant.
bool add_bound(Difference& out, const Term& term, int64_t coefficient) {
  HostProduct product{{}, static_cast<uint64_t>(-coefficient)};
  for (const Expr& factor : term.factors) {
    const bool widens = is_widened(factor);
    const Expr& number = widens ? factor->operands[0] : factor;
    if (number->kind != ExprKind::Parameter) return false;
    const bool is_signed = widens ? factor->kind == ExprKind::SignExtend : out.is_signed;
    product.factors.push_back({static_cast<uint32_t>(number->value), number->bits / 8, is_signed});
  }
  out.has_number = out.has_number || !product.factors.empty();
  out.bound.products.push_back(std::move(product));
  return true;
}

bool add_index(Difference& out, Term term, int64_t coefficient) {
  for (Expr& factor : term.factors) {
    if (is_widened(factor)) factor = factor->operands[0];
  }
  const bool is_thread = is_thread_index(term);
  if (!is_thread && !is_first_of_block(term)) return false;
  const bool has_extent = term.factors.size() == 2;
  const bool is_step = !is_thread && !has_extent && coefficient > 0 && coefficient <= kThreadsOfBlock;
  const auto is_index = [](const Expr& f) { return !f->name.starts_with("ntid."); };
  const auto index = std::ranges::find_if(term.factors, is_index);
  std::optional<uint32_t>& axis = is_thread ? out.thread_axis : out.block_axis;
  if (axis || !(coefficient == 1 || is_step)) return false;
  axis = static_cast<uint32_t>((*index)->name.back() - 'x');
  if (is_step) out.step = static_cast<uint32_t>(coefficient);
  return true;
}

bool add_terms(Difference& out, const Expr& e, int64_t sign) {
  return std::ranges::all_of(terms_of(e), [&](const Term& term) {
    const int64_t coefficient = sign * as_signed(term.coefficient, e->bits);
    const bool is_one = term.factors.size() == 1 && (coefficient == 1 || coefficient == -1);
    if (is_one && is_widened(term.factors[0])) {
      out.is_signed = term.factors[0]->kind == ExprKind::SignExtend;
      return add_terms(out, term.factors[0]->operands[0], coefficient);
    }
    return add_bound(out, term, coefficient) || add_index(out, term, coefficient);
  });
}

}  // namespace

std::optional<BlockLimit> limit_of(const IndexComparison& c) {
  Difference found;
  found.is_signed = !c.is_unsigned;
  const bool is_less = c.relation == ".lt" || c.relation == ".le";
  if (!add_terms(found, c.difference, is_less ? 1 : -1)) return std::nullopt;
  if (!found.block_axis || !found.has_number) return std::nullopt;
  if (found.thread_axis && found.thread_axis != found.block_axis) return std::nullopt;
  const bool is_inclusive = c.relation == ".le" || c.relation == ".ge";
  if (is_inclusive) found.bound.products.push_back({{}, 1});
  return BlockLimit{*found.block_axis, found.step, found.bound};
}

bool lets_two_blocks_through(const IndexComparison& c) {
  if (!c.difference.known()) return false;
  const std::vector<Term> terms = terms_of(c.difference);
  const auto first = std::ranges::find_if(terms, is_first_of_block);
  if (first == terms.end()) return false;
  int64_t step = as_signed(first->coefficient, c.difference->bits), bound = 0;
  const bool is_upper =
      step > 0 ? c.relation == ".lt" || c.relation == ".le" : c.relation == ".gt" || c.relation == ".ge";
  for (const Term& term : terms) {
    if (term.factors.empty()) bound = -as_signed(term.coefficient, c.difference->bits);
    if (!term.factors.empty() && !is_thread_index(term) && &term != &*first) return false;
  }
  if (step < 0) step = -step, bound = -bound;
  // blockDim is not known here.
  const int64_t threads = first->factors.size() == 1 ? 1 : kThreadsOfBlock;
  return is_upper && bound / threads > step;
}

bool is_block_index(const ExprNode& node) {
  return node.kind == ExprKind::Special && node.name.starts_with("ctaid.");
}

bool is_thread_index(const Term& term) {
  return term.factors.size() == 1 && term.factors[0]->kind == ExprKind::Special &&
         term.factors[0]->name.starts_with("tid.");
}

}  // namespace klap::analysis
