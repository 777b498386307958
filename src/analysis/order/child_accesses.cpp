#include "analysis/order/child_accesses.h"

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/expressions/expression_ranges.h"
#include "analysis/values/guard.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

enum class Relation : uint8_t { Unknown, Less, Greater, AtMost, AtLeast, Equal };

// Says how two operands are related once it is known whether their comparison holds.
Relation relation_of(std::string_view comparison, bool holds) {
  const auto is = [&](std::string_view one, std::string_view other) {
    return comparison == one || comparison == other;
  };
  if (is(".lt", ".lo")) return holds ? Relation::Less : Relation::AtLeast;
  if (is(".gt", ".hi")) return holds ? Relation::Greater : Relation::AtMost;
  if (is(".le", ".ls")) return holds ? Relation::AtMost : Relation::Greater;
  if (is(".ge", ".hs")) return holds ? Relation::AtLeast : Relation::Less;
  if (comparison == ".eq" && holds) return Relation::Equal;
  return comparison == ".ne" && !holds ? Relation::Equal : Relation::Unknown;
}

// Gives the number after a constant: a value that is at most the constant is less than it. There is none
// for a value that is not constant, nor for the largest one.
std::optional<Expr> next_of(const Expr& value, Sign sign) {
  const auto constant = value.as_constant();
  if (!constant) return std::nullopt;
  const uint64_t most = mask(value->bits) >> (sign == Sign::Signed ? 1U : 0U);
  if (*constant == most) return std::nullopt;
  return Expr::constant((*constant + 1) & mask(value->bits), value->bits);
}

// The most of a term that is a positive multiple of the thread's place in the child; nothing for others. For
// the block's number in a row, times no more than a block's threads, there is room for these threads below
// 2^31: a grid has fewer in a row, as more could not tell themselves apart by 32 bits.
std::optional<Wide> most_of_place(const Term& term, uint32_t bits) {
  constexpr uint64_t kMostThreads = 1024;
  constexpr Wide kMostInRow = Wide{1} << 31;
  Wide most = as_signed(term.coefficient, bits);
  if (most < 0) return std::nullopt;
  for (const Expr& factor : term.factors) {
    const bool is_thread = factor->kind == ExprKind::Opaque && factor->name.starts_with("#tid");
    const bool is_block = factor->kind == ExprKind::Opaque && factor->name.starts_with("#ctaid");
    if (!is_thread && !is_block) return std::nullopt;
    if (is_block && term.factors.size() == 1 && term.coefficient <= kMostThreads)
      return std::min(most * wide_bound(factor->range, Sign::Unsigned, true), kMostInRow - kMostThreads);
    most *= wide_bound(factor->range, Sign::Unsigned, true);
    if (most > kMostInRow) return std::nullopt;
  }
  return most;
}

// Made of the thread's place in the child alone, by sums of positive multiples that do not wrap around: it is
// not negative.
bool is_place_in_child(const Expr& e) {
  Wide most = 0;
  for (const Term& term : terms_of(e)) {
    const auto of_term = most_of_place(term, e->bits);
    if (!of_term) return false;
    most += *of_term;
  }
  return most < Wide{1} << (e->bits - 1);
}

}  // namespace

ChildAccesses::ChildAccesses(const FunctionFacts& parent, LaunchedChild launch, const KnownExtents& block)
    : site(launch.site),
      facts(std::move(launch.child)),
      effects(*facts),
      footprint(footprint_of(*facts, effects)),
      terms(parent, *site, *facts, block) {
  for (const MemoryAccess& access : footprint.accesses) add(access);
}

void ChildAccesses::add(const MemoryAccess& access) {
  ChildAccess& out = accesses.emplace_back();
  out.is = &access;
  out.shape.bytes = access.bytes;
  if (!access.address) {
    out.sources.unknown = true;
    return;
  }
  const Statement& s = *facts->flow.instructions()[access.instruction].statement;
  const Symbolic& symbolic = facts->values().symbolic;
  out.shape.address = terms.of(symbolic.address(access.instruction, s.operands[*access.address]));
  out.shape.bounded = bounds_at(access.instruction);
  out.sources = address_sources(*facts, access.instruction, *access.address);
  if (access.value) find_value(out, s);
  if (!out.shape.address.known()) return;
  any_leaf(out.shape.address, [&](const ExprNode& leaf) {
    const auto instruction = LaunchTerms::result_of(leaf);
    if (instruction && out.sources.atomics.contains(*instruction)) out.counters.push_back(*instruction);
    return false;
  });
}

void ChildAccesses::find_value(ChildAccess& out, const Statement& s) const {
  const ptx::Module& m = facts->module;
  const auto texts = components(m, s.operands[*out.is->value]);
  if (texts.size() != 1 || s.modifiers.empty()) return;
  out.literal = literal_of(texts[0]);
  const uint32_t bits = 8 * ptx::type_bytes(m.text(s.modifiers.last - 1));
  out.value = terms.of(facts->values().symbolic.read(out.is->instruction, texts[0], bits));
}

std::string ChildAccesses::literal_of(const std::string& operand) const {
  const ptx::Module& m = facts->module;
  std::string_view text = operand;
  for (int step = 0; step < 4 && facts->data.names().is_register(text); ++step) {
    const auto& definitions = facts->data.definitions(text);
    if (definitions.size() != 1 || facts->data.is_ambiguous(text)) return "";
    const Statement& s = *facts->flow.instructions()[definitions[0]].statement;
    if (s.predicated || !m.is(s.head, "mov") || s.operands.size() != 2) return "";
    if (s.operands[1].size() != 1) return "";
    text = m.text(s.operands[1].first);
  }
  return !text.empty() && text[0] >= '0' && text[0] <= '9' ? std::string(text) : "";
}

std::vector<Bounded> ChildAccesses::bounds_at(uint32_t instruction) const {
  std::vector<Bounded> out;
  if (facts->flow.has_unknown_branch()) return out;
  const uint32_t at = facts->flow.instructions()[instruction].block;
  for (const PassedBranch& passed : passed_branches(facts->flow, facts->values().dominance, at)) {
    if (passed.when) add_bound(out, passed.branch, *passed.when);
  }
  return out;
}

void ChildAccesses::add_bound(std::vector<Bounded>& out, uint32_t branch, bool when) const {
  const ptx::Module& m = facts->module;
  const Statement& s = *facts->flow.instructions()[branch].statement;
  const auto& definitions = facts->data.definitions(m.text(s.predicate));
  if (definitions.size() != 1 || facts->data.is_ambiguous(m.text(s.predicate))) return;
  const Statement& test = *facts->flow.instructions()[definitions[0]].statement;
  if (test.predicated || !m.is(test.head, "setp") || test.operands.size() != 3) return;
  if (test.modifiers.size() != 2) return;
  const std::string_view type = m.text(test.modifiers.last - 1);
  const bool is_signed = type.starts_with(".s");
  if (!is_signed && !type.starts_with(".u")) return;
  const Sign sign = is_signed ? Sign::Signed : Sign::Unsigned;
  const uint32_t bits = 8 * ptx::type_bytes(type);
  std::array<Expr, 2> compared;
  for (size_t i = 0; i < compared.size(); ++i) {
    compared.at(i) =
        terms.of(facts->values().symbolic.read(definitions[0], m.compact(test.operands[i + 1]), bits));
    if (!compared.at(i).known()) return;
  }
  const Relation relation = relation_of(m.text(test.modifiers.first), when);
  const auto add = [&](const Expr& value, const std::optional<Expr>& bound) {
    if (bound && is_place_in_child(value)) out.push_back({value, *bound, sign});
  };
  const auto& [first, second] = compared;
  if (relation == Relation::Less) add(first, second);
  if (relation == Relation::Greater) add(second, first);
  if (relation == Relation::AtMost || relation == Relation::Equal) add(first, next_of(second, sign));
  if (relation == Relation::AtLeast || relation == Relation::Equal) add(second, next_of(first, sign));
}

}  // namespace klap::analysis
