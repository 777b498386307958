#include "analysis/values/linear_index.h"

#include <algorithm>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/values/substitution.h"

namespace klap::analysis {
namespace {

constexpr uint64_t kMostThreads = uint64_t{1} << 41;  // 2^31 - 1 blocks of 1,024 threads
constexpr uint64_t kMostBase = uint64_t{1} << 30;
constexpr const char* kBlockSize[3] = {"ntid.x", "ntid.y", "ntid.z"};
constexpr const char* kGridSize[3] = {"nctaid.x", "nctaid.y", "nctaid.z"};

Expr position(const char* name, uint32_t bits) { return convert(Expr::special(name), bits, Sign::Unsigned); }

bool take(std::vector<Expr>& factors, const Expr& factor) {
  const auto found = std::ranges::find(factors, factor);
  if (found == factors.end()) return false;
  factors.erase(found);
  return true;
}

}  // namespace

LinearIndex LinearIndex::over_range(uint32_t base_offset) {
  LinearIndex form(1, true);
  form.base_offset_ = base_offset;
  return form;
}

Expr LinearIndex::index(uint32_t bits) { return Expr::symbol("i", bits, kMostThreads); }

Expr LinearIndex::count(uint32_t bits) { return Expr::symbol("n", bits, kMostThreads); }

Expr LinearIndex::base() { return Expr::symbol("a", 32, kMostBase); }

Expr LinearIndex::apply(const Expr& e) const { return one_row_ ? of_row(e) : fold_count(to_index(e)); }

Expr LinearIndex::of_row(const Expr& e) const {
  const auto is = [](const Expr& part, const char* name) { return part == position(name, part->bits); };
  return substitute(e, [&](const Expr& part) -> std::optional<Expr> {
    if (base_offset_ && part == Expr::parameter(*base_offset_, 32)) return base();
    if (is(part, "tid.x")) return convert(index(32), part->bits, Sign::Unsigned);
    if (is(part, "ntid.x")) return convert(count(32), part->bits, Sign::Unsigned);
    for (const char* const first : {"ctaid.x", "ctaid.y", "ctaid.z", "tid.y", "tid.z"}) {
      if (is(part, first)) return Expr::constant(0, part->bits);
    }
    for (const char* const single : {"nctaid.x", "nctaid.y", "nctaid.z", "ntid.y", "ntid.z"}) {
      if (is(part, single)) return Expr::constant(1, part->bits);
    }
    return std::nullopt;
  });
}

// ((z * size_y) + y) * size_x + x
Expr LinearIndex::linear(const char* const (&at)[3], const char* const (&size)[3], uint32_t bits) const {
  Expr out = position(at[dimensions_ - 1], bits);
  for (uint32_t d = dimensions_ - 1; d-- > 0;) out = out * position(size[d], bits) + position(at[d], bits);
  return out;
}

Expr LinearIndex::whole(uint32_t bits) const {
  Expr block = linear({"ctaid.x", "ctaid.y", "ctaid.z"}, kGridSize, bits);
  for (uint32_t d = 0; d < dimensions_; ++d) block = block * position(kBlockSize[d], bits);
  return block + linear({"tid.x", "tid.y", "tid.z"}, kBlockSize, bits);
}

Expr LinearIndex::to_index(const Expr& e) const {
  return substitute(e, [&](const Expr& part) -> std::optional<Expr> {
    if (!(part == position("tid.x", part->bits))) return std::nullopt;
    return index(part->bits) - (whole(part->bits) - part);
  });
}

// Products of all sizes are the number of threads.
Expr LinearIndex::fold_count(const Expr& e) const {
  return substitute(e, [&](const Expr& part) -> std::optional<Expr> {
    if (part->kind != ExprKind::Sum) return std::nullopt;
    Expr out = Expr::constant(0, part->bits);
    for (const Term& term : part->terms) out = out + fold_term(term, part->bits);
    return out;
  });
}

Expr LinearIndex::fold_term(const Term& term, uint32_t bits) const {
  std::vector<Expr> rest = term.factors;
  bool all = true;
  for (uint32_t d = 0; d < dimensions_ && all; ++d) {
    all = take(rest, position(kBlockSize[d], bits)) && take(rest, position(kGridSize[d], bits));
  }
  Expr out = Expr::constant(term.coefficient, bits);
  if (all) out = out * count(bits);
  for (const Expr& factor : all ? rest : term.factors) out = out * fold_count(factor);
  return out;
}

bool is_index(const ExprNode& n) { return n.kind == ExprKind::Opaque && n.name == "i"; }
bool is_count(const ExprNode& n) { return n.kind == ExprKind::Opaque && n.name == "n"; }
bool is_base(const ExprNode& n) { return n.kind == ExprKind::Opaque && n.name == "a"; }
bool is_position(const ExprNode& n) { return n.kind == ExprKind::Special && n.name != "laneid"; }
bool is_own_index(const ExprNode& n) { return is_index(n) || is_position(n); }

bool is_widening(const ExprNode& n) {
  return n.kind == ExprKind::ZeroExtend || n.kind == ExprKind::SignExtend;
}
const ExprNode& narrowed(const Expr& e) { return is_widening(*e) ? *e->operands[0] : *e; }

}  // namespace klap::analysis
