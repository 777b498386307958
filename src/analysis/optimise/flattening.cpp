#include "analysis/optimise/flattening.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/optimise/known_arguments.h"
#include "analysis/values/linear_index.h"
#include "analysis/values/substitution.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

constexpr uint32_t kWarp = 32;

// The linear index in 32 or 64 bits: a narrower index would begin again at 0.
bool is_whole_index(const Expr& e) { return is_index(narrowed(e)) && narrowed(e).bits >= 32; }

// The bound if it is bytes of the parameter block, with the place of these bytes.
struct PlacedBound {
  FlatBound bound;
  uint32_t offset = 0;
};
std::optional<PlacedBound> plain_bound(const Guard& guard) {
  const bool extended = is_widening(*guard.bound);
  const ExprNode& n = narrowed(guard.bound);
  if (n.kind != ExprKind::Parameter || n.bits < 32) return std::nullopt;
  const bool is_signed = guard.sign == Sign::Signed;
  PlacedBound out;
  out.offset = static_cast<uint32_t>(n.value);
  out.bound.bytes = n.bits / 8;
  out.bound.inclusive = guard.inclusive;
  out.bound.is_signed = extended ? guard.bound->kind == ExprKind::SignExtend : is_signed;
  // Unsigned 32-bit values compare alike as signed 64-bit ones with zeros before them.
  const bool in_32_bits = guard.bound->bits == 32;
  out.bound.compares_signed = in_32_bits || is_signed;
  return out;
}

// A bound that the parent knows where it records, and where its argument stands in the parameter block.
struct KnownBound {
  FlatVerdict verdict;
  uint32_t offset = 0;
};
KnownBound with_bound(const Moldable& child, const FunctionFacts& parent, const Site& site, bool may_wait) {
  if (!child.guard) return {{std::nullopt, "its threads pass no guard first"}, 0};
  const Guard& guard = *child.guard;
  auto placed = is_whole_index(guard.index) ? plain_bound(guard) : std::nullopt;
  if (!placed) {
    return {
        {std::nullopt, fmt::format("its guard is not an index below an argument: if {}", to_string(guard))},
        0};
  }
  FlatBound& bound = placed->bound;
  const Argument* const argument = passed_argument(site, placed->offset, bound.bytes);
  if (argument == nullptr || !is_known_argument(parent, site, *argument, may_wait, bound.at_launch)) {
    return {{std::nullopt, fmt::format("{} is not known where the launch begins: if {}",
                                       to_string(guard.bound), to_string(guard))},
            0};
  }
  bound.operand = argument->source;
  return {{Flattening{bound, std::nullopt, fmt::format("threads with {}", to_string(guard))}, ""},
          placed->offset};
}

// True if the grid has at least as many threads as the bound says. A few bounds are tried, as the grid may be
// computed from the bound in many ways. A wrong answer only gives threads more than one iteration.
bool covers(const Expr& grid, const Expr& given, uint32_t block_threads) {
  constexpr uint64_t kManyBlocks = 4099;
  if (!grid.known() || !given.known()) return false;
  const Expr bound = is_widening(*given) ? given->operands[0] : given;
  const auto grid_for = [&](const Expr& atom, uint64_t value) {
    const Expr instead = Expr::constant(value, bound->bits) - (bound - atom);
    return substitute(grid,
                      [&](const Expr& part) { return part == atom ? std::optional(instead) : std::nullopt; });
  };
  const auto is_enough = [&](const Expr& atom, uint64_t value) {
    const Expr blocks = grid_for(atom, value);
    const auto constant = blocks.known() ? blocks.as_constant() : std::nullopt;
    return constant && *constant <= value && *constant * block_threads >= value;
  };
  return std::ranges::any_of(terms_of(bound), [&](const Term& term) {
    if (term.coefficient != 1 || term.factors.size() != 1) return false;
    const std::array<uint64_t, 5> probes = {1, block_threads, block_threads + 1, kManyBlocks * block_threads,
                                            kManyBlocks * block_threads - 1};
    return std::ranges::all_of(probes, [&](uint64_t value) { return is_enough(term.factors[0], value); });
  });
}

// The pointers that tell whether spans are apart, if the parent knows them where it records.
std::optional<IterationSplit> split_of(const StrideLoop& loop, const FunctionFacts& parent, const Site& site,
                                       bool may_wait, bool& at_launch) {
  constexpr uint32_t kPointerBytes = 8;
  IterationSplit split;
  split.spans = loop.spans;
  std::optional<uint32_t> last;
  for (const IterationSpan& span : loop.spans) {
    if (last == span.parameter) continue;
    last = span.parameter;
    const Argument* const argument = passed_argument(site, span.parameter, kPointerBytes);
    if (argument == nullptr || !is_known_argument(parent, site, *argument, may_wait, at_launch))
      return std::nullopt;
    split.pointers.push_back(argument->source);
  }
  return split;
}

FlatVerdict with_loop(const Moldable& child, const StrideLoop& loop, const FunctionFacts& parent,
                      const Site& site, std::optional<uint32_t> block_threads, bool may_wait) {
  if (!loop.only_strides) return {std::nullopt, "its threads loop"};
  auto [verdict, offset] = with_bound(child, parent, site, may_wait);
  if (!verdict.flattening) return verdict;
  Flattening& flat = *verdict.flattening;
  if (!block_threads) return {std::nullopt, "its threads loop, in blocks that differ"};
  const SiteValues values = site_values(parent.values(), site);
  const auto bound = std::ranges::find(values.arguments, offset, &SiteArgument::offset);
  if (bound != values.arguments.end() &&
      covers(values.grid[0].value.exact(), bound->operand.value.exact(), *block_threads)) {
    flat.threads += ", one iteration each";
    return verdict;
  }
  if (!loop.may_split())
    return {std::nullopt, fmt::format("its threads loop and keep their iterations: {}", loop.why_not)};
  flat.split = split_of(loop, parent, site, may_wait, flat.bound->at_launch);
  if (!flat.split) {
    return {std::nullopt,
            "its threads loop, and the memory that iterations access is not known when the launch begins"};
  }
  flat.split->one_row = child.one_row;
  flat.threads += ", iterations redistributed over threads";
  return verdict;
}

}  // namespace

FlatVerdict judge_bound(const Moldable& child, const FunctionFacts& parent, const Site& site, bool may_wait) {
  if (!child.yes()) return {std::nullopt, child.reason};
  return with_bound(child, parent, site, may_wait).verdict;
}

FlatVerdict judge_flattening(const Moldable& child, const StrideLoop* loop, const FunctionFacts& parent,
                             const Site& site, std::optional<uint32_t> block_threads, bool may_wait) {
  FlatVerdict verdict;
  if (child.yes() && child.loops) {
    // Measurements show such children a third slower.
    verdict.why_not = "its threads loop";
    if (loop != nullptr) verdict = with_loop(child, *loop, parent, site, block_threads, may_wait);
  } else if (child.yes()) {
    verdict = with_bound(child, parent, site, may_wait).verdict;
  } else {
    verdict.why_not = child.reason;
  }
  if (!verdict.flattening && block_threads && *block_threads % kWarp != 0)
    return {Flattening{std::nullopt, std::nullopt, "all threads"}, ""};
  return verdict;
}

}  // namespace klap::analysis
