#include "analysis/order/disjoint.h"

#include <algorithm>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/expressions/expression_ranges.h"
#include "analysis/order/launch_terms.h"

namespace klap::analysis {
namespace {

// Values from here on are not taken for small.
constexpr Wide kHalfOfWord = Wide{1} << 31;
// Offsets and distances beyond this could come back to the same address where 64 bits wrap around.
constexpr Wide kFarthest = Wide{1} << 62;
// A counter of 64 bits counts on by less while a parent and its children run.
constexpr Wide kMostCounted = Wide{1} << 48;

// Numbers beside a thread's place in its grid are not taken for small from here on.
constexpr Wide kWithinBlock = Wide{1} << 20;

struct Interval {
  Wide least = 0, most = 0;
  void add(const Interval& other) {
    least += other.least;
    most += other.most;
  }
};

// The base, the step and the rest of an address.
struct Split {
  Expr base;  // without a constant; 0 if there is none
  bool has_key = false;
  Wide step = 0;                   // of the widened key, in bytes
  std::vector<Expr> step_factors;  // that the step is multiplied with
  // The value that is widened before it is scaled: base + factor * key + rest. `kind` is Sum if nothing is
  // widened.
  ExprKind widening = ExprKind::Sum;
  Expr inner_base;
  Wide inner_factor = 1;
  Interval inner_rest;
  Wide most_distance = 0;  // of two widened keys
  Interval rest;
  // The part of the rest that is bounded by a value that is not constant. It is at most `scale * (bound -
  // 1)`.
  Wide scale = 0;
  Expr bound;
  Sign sign = Sign::Signed;
};

Wide magnitude(Wide value) { return value < 0 ? -value : value; }

bool is_zero(const Expr& e) { return e.as_constant() == uint64_t{0}; }

// So many steps do not come around to the address where they began.
bool are_near(Wide step, Wide steps) { return steps <= kFarthest && magnitude(step) <= kFarthest / steps; }

class Splitter {
 public:
  // `by_bounds`: a value that varies within a child is bounded by the value it is compared with, if there is
  // one.
  Splitter(const AccessShape& shape, const Key& key, bool by_bounds = false)
      : shape_(shape), key_(key), by_bounds_(by_bounds) {}

  std::optional<Split> run() {
    if (!shape_.address.known()) return std::nullopt;
    out_.base = Expr::constant(0, shape_.address->bits);
    for (const Term& term : terms_of(shape_.address)) {
      if (!add(term)) return std::nullopt;
    }
    if (out_.rest.least < -kFarthest || out_.rest.most > kFarthest) return std::nullopt;
    return std::move(out_);
  }

 private:
  struct Contents {
    bool key = false, child = false, unknown = false;
  };
  [[nodiscard]] Contents contents(const Expr& e) const {
    Contents out;
    any_leaf(e, [&](const ExprNode& leaf) {
      const Varies varies = LaunchTerms::varies(leaf);
      if (key_.is_key && key_.is_key(leaf)) {
        out.key = true;
      } else if (varies == Varies::Child || (varies == Varies::Thread && !key_.is_key)) {
        out.child = true;
      } else if (varies != Varies::No) {
        out.unknown = true;  // another key would be one as well
      }
      return false;
    });
    return out;
  }

  bool add(const Term& term) {
    const uint32_t bits = shape_.address->bits;
    const Wide coefficient = as_signed(term.coefficient, bits);
    if (term.factors.empty()) {
      out_.rest.add({coefficient, coefficient});
      return true;
    }
    const Expr* keyed = nullptr;
    bool child = false;
    for (const Expr& factor : term.factors) {
      const Contents is = contents(factor);
      if (is.unknown || (is.key && keyed != nullptr)) return false;
      if (is.key) keyed = &factor;
      child = child || (is.child && !is.key);
    }
    if (keyed != nullptr) return !child && add_key(term, coefficient, *keyed);
    if (child) return add_rest(term, coefficient);
    Expr part = Expr::constant(term.coefficient, bits);
    for (const Expr& factor : term.factors) part = part * factor;
    out_.base = out_.base + part;
    return true;
  }

  // A part that varies within a child: by its range, or by the bound that it is compared with.
  bool add_rest(const Term& term, Wide coefficient) {
    if (term.factors.size() != 1) return false;
    const Expr& value = term.factors[0];
    const Interval range = range_behind_comparisons(value);
    if (range.most < kHalfOfWord && range.least > -kHalfOfWord && !(by_bounds_ && is_bounded(value))) {
      const Wide one = coefficient * range.least, other = coefficient * range.most;
      out_.rest.add({std::min(one, other), std::max(one, other)});
      return true;
    }
    if (coefficient <= 0 || out_.scale != 0) return false;
    for (const Bounded& bounded : shape_.bounded) {
      if (!is_same_number(bounded.value, value)) continue;
      out_.scale = coefficient;
      out_.bound = bounded.bound;
      out_.sign = bounded.sign;
      return true;
    }
    return false;
  }

  // True if the value is known to be below one that is not constant.
  [[nodiscard]] bool is_bounded(const Expr& value) const {
    return std::ranges::any_of(shape_.bounded, [&](const Bounded& b) {
      return !b.bound.as_constant() && is_same_number(b.value, value);
    });
  }

  // Gives the values that comparisons with constants leave.
  [[nodiscard]] Interval range_behind_comparisons(const Expr& value) const {
    Interval range = range_of_value(value);
    for (const Bounded& bounded : shape_.bounded) {
      const auto constant = bounded.bound.as_constant();
      if (!constant || !is_same_number(bounded.value, value)) continue;
      const uint32_t bits = bounded.bound->bits;
      const Wide bound = bounded.sign == Sign::Signed ? Wide{as_signed(*constant, bits)} : Wide{*constant};
      if (bound < 1) continue;  // no thread comes there
      range.least = std::max(range.least, Wide{0});
      range.most = std::min(range.most, bound - 1);
    }
    return range;
  }

  static Interval range_of_value(const Expr& value) {
    return {wide_bound(value->range, Sign::Signed, false), wide_bound(value->range, Sign::Signed, true)};
  }

  // True if both have the same number, in registers of perhaps different widths.
  static bool is_same_number(const Expr& a, const Expr& b) { return narrow(a) == narrow(b); }
  static Expr narrow(const Expr& e) {
    const bool widens = e->kind == ExprKind::ZeroExtend || e->kind == ExprKind::SignExtend;
    return widens ? e->operands[0] : e;
  }

  bool add_key(const Term& term, Wide coefficient, const Expr& keyed) {
    if (out_.has_key) return false;
    out_.has_key = true;
    out_.step = coefficient;
    bool skipped = false;
    for (const Expr& factor : term.factors) {
      if (!skipped && &factor == &keyed) {
        skipped = true;
      } else {
        out_.step_factors.push_back(factor);
      }
    }
    const bool widens = keyed->kind == ExprKind::ZeroExtend || keyed->kind == ExprKind::SignExtend;
    if (widens) out_.widening = keyed->kind;
    const Expr& narrow_key = widens ? keyed->operands[0] : keyed;
    if (!split_keyed(narrow_key)) return false;
    out_.most_distance = most_distance(narrow_key->bits);
    return are_near(coefficient, out_.most_distance);
  }

  // Two launches' keys differ by less, once they are widened. (Constants beside the keys differ by less than
  // one factor, or least_distance() is not positive.)
  [[nodiscard]] Wide most_distance(uint32_t bits) const {
    const Wide factor = magnitude(out_.inner_factor);
    if (key_.most != 0 && (bits == 64 || cannot_wrap(bits)))
      return factor * (static_cast<Wide>(key_.most) + 1);
    return bits < 64 ? Wide{1} << bits : kMostCounted;
  }

  // True if no value that is widened wraps around: each is what the sum is over the integers.
  [[nodiscard]] bool cannot_wrap(uint32_t bits) const {
    const Wide farthest = out_.inner_factor * static_cast<Wide>(key_.most);
    const Wide least = std::min(farthest, Wide{0}) + out_.inner_rest.least;
    const Wide most = std::max(farthest, Wide{0}) + out_.inner_rest.most;
    if (out_.widening == ExprKind::ZeroExtend && least < 0) return false;
    if (least < -kHalfOfWord || bits < 32) return false;
    if (is_zero(out_.inner_base)) return most < kHalfOfWord;
    return is_place_in_row(out_.inner_base) && most < kWithinBlock;
  }

  // True for the number of the first thread of the parent's block, counted along a row of its grid: with
  // small numbers beside it, no 32 bits wrap around. (A grid has fewer than 2^31 threads in a row, as more
  // could not tell themselves apart by 32 bits.)
  static bool is_place_in_row(const Expr& base) {
    constexpr uint64_t kMostThreads = 1024;
    size_t blocks = 0;
    for (const Term& term : terms_of(base)) {
      if (as_signed(term.coefficient, base->bits) < 0) return false;
      bool has_block = false, has_extent = false;
      for (const Expr& factor : term.factors) {
        const bool is_special = factor->kind == ExprKind::Special;
        if (is_special && factor->name.starts_with("ctaid.") && !has_block) {
          has_block = true;
        } else if (is_special && factor->name.starts_with("ntid.") && !has_extent) {
          has_extent = true;
        } else {
          return false;
        }
      }
      if (!has_block || term.coefficient > (has_extent ? 1 : kMostThreads)) return false;
      ++blocks;
    }
    return blocks == 1;
  }

  // base + factor * key + rest
  bool split_keyed(const Expr& e) {
    out_.inner_base = Expr::constant(0, e->bits);
    bool found = false;
    for (const Term& term : terms_of(e)) {
      const Wide coefficient = as_signed(term.coefficient, e->bits);
      if (term.factors.empty()) {
        out_.inner_rest.add({coefficient, coefficient});
        continue;
      }
      Expr product = Expr::constant(term.coefficient, e->bits);
      Contents all;
      for (const Expr& factor : term.factors) {
        const Contents is = contents(factor);
        all = {all.key || is.key, all.child || is.child, all.unknown || is.unknown};
        product = product * factor;
      }
      if (all.unknown) return false;
      if (all.key) {
        const Expr& factor = term.factors[0];
        if (found || term.factors.size() != 1 || !is_key_itself(factor)) return false;
        found = true;
        out_.inner_factor = coefficient;
      } else if (all.child) {
        if (term.factors.size() != 1) return false;
        const Interval range = range_behind_comparisons(term.factors[0]);
        const Wide one = coefficient * range.least, other = coefficient * range.most;
        out_.inner_rest.add({std::min(one, other), std::max(one, other)});
      } else {
        out_.inner_base = out_.inner_base + product;
      }
    }
    return found && cannot_meet_around(e->bits);
  }

  [[nodiscard]] bool is_key_itself(const Expr& e) const {
    const Expr inner = narrow(e);
    return inner->kind == ExprKind::Opaque && key_.is_key(*inner);
  }

  // Keys that are far apart must not come close again when the register wraps around.
  [[nodiscard]] bool cannot_meet_around(uint32_t bits) const {
    if (bits == 64) return true;
    const Wide factor = magnitude(out_.inner_factor);
    if (key_.most == 0) return factor == 1 && out_.inner_rest.least == out_.inner_rest.most;
    const Wide spread = out_.inner_rest.most - out_.inner_rest.least;
    return factor * static_cast<Wide>(key_.most) + spread < (Wide{1} << (bits - 1));
  }

  const AccessShape& shape_;
  const Key& key_;
  const bool by_bounds_;
  Split out_;
};

bool are_equal(const Expr& a, const Expr& b) {
  if (!a.known() || !b.known()) return a.known() == b.known();
  return a == b || (is_zero(a) && is_zero(b));
}

// By how much the second interval, with what lies behind it, reaches over the first one's begin, and the
// other way round: the steps between the accesses must be at least as large.
Wide reach(const Split& a, uint32_t bytes_a, const Split& b, uint32_t bytes_b) {
  return std::max(a.rest.most + bytes_a - b.rest.least, b.rest.most + bytes_b - a.rest.least);
}

// The least difference of two widened keys, in units of the step.
Wide least_distance(const Split& a, const Split& b, uint64_t least_difference) {
  const Wide shift = std::max(magnitude(a.inner_rest.most - b.inner_rest.least),
                              magnitude(b.inner_rest.most - a.inner_rest.least));
  return magnitude(a.inner_factor) * static_cast<Wide>(least_difference) - shift;
}

bool have_same_steps(const Split& a, const Split& b) {
  return a.has_key && b.has_key && a.step == b.step && a.widening == b.widening &&
         a.inner_factor == b.inner_factor && are_equal(a.base, b.base) &&
         are_equal(a.inner_base, b.inner_base) &&
         std::ranges::equal(a.step_factors, b.step_factors, are_equal);
}

// Handles the step `step * n`, where the rest is at most `scale * (n - 1)`. A comparison with n precedes the
// access, so n is at least 1. Then (step - scale) * n + scale is at least the step.
bool are_apart_by_rows(const Split& a, uint32_t bytes_a, const Split& b, uint32_t bytes_b, Wide distance) {
  if (a.step_factors.size() != 1 || distance < 1) return false;
  const Wide most_rows = wide_bound(a.step_factors[0]->range, Sign::Signed, true);
  if (most_rows < 1 || most_rows > kFarthest || !are_near(a.step, a.most_distance * most_rows)) return false;
  const auto fits = [&](const Split& s) {
    const Expr& rows = a.step_factors[0];
    const bool is_same =
        s.bound == rows ||
        (rows->kind == ExprKind::SignExtend && s.sign == Sign::Signed && s.bound == rows->operands[0]) ||
        (rows->kind == ExprKind::ZeroExtend && s.sign == Sign::Unsigned && s.bound == rows->operands[0]);
    return s.scale != 0 && s.scale <= magnitude(a.step) && is_same;
  };
  // Unless a comparison precedes both, n may be 0.
  if (!fits(a) || !fits(b)) return false;
  return magnitude(a.step) >= reach(a, bytes_a, b, bytes_b);
}

}  // namespace

namespace {

bool are_disjoint(const AccessShape& a, const AccessShape& b, const Key& key_of_a, const Key& key_of_b,
                  bool by_bounds) {
  const auto split_a = Splitter(a, key_of_a, by_bounds).run(),
             split_b = Splitter(b, key_of_b, by_bounds).run();
  if (!split_a || !split_b || !have_same_steps(*split_a, *split_b)) return false;
  const Wide distance =
      least_distance(*split_a, *split_b, std::min(key_of_a.least_difference, key_of_b.least_difference));
  if (distance < 1) return false;
  if (!split_a->step_factors.empty())
    return are_apart_by_rows(*split_a, a.bytes, *split_b, b.bytes, distance);
  if (split_a->scale != 0 || split_b->scale != 0) return false;
  return magnitude(split_a->step) * distance >= reach(*split_a, a.bytes, *split_b, b.bytes);
}

}  // namespace

bool are_disjoint(const AccessShape& a, const AccessShape& b, const Key& key_of_a, const Key& key_of_b) {
  if (a.bytes == 0 || b.bytes == 0) return false;
  return are_disjoint(a, b, key_of_a, key_of_b, false) || are_disjoint(a, b, key_of_a, key_of_b, true);
}

bool are_at_different_offsets(const AccessShape& a, const AccessShape& b) {
  if (a.bytes == 0 || b.bytes == 0) return false;
  const Key none{};
  const auto split_a = Splitter(a, none).run(), split_b = Splitter(b, none).run();
  if (!split_a || !split_b || split_a->scale != 0 || split_b->scale != 0) return false;
  if (!are_equal(split_a->base, split_b->base)) return false;
  return split_a->rest.most + a.bytes <= split_b->rest.least ||
         split_b->rest.most + b.bytes <= split_a->rest.least;
}

}  // namespace klap::analysis
