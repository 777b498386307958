#include "analysis/values/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/graph/dataflow.h"
#include "analysis/values/linear_index.h"

namespace klap::analysis {
namespace {

// The index, widened or not, plus a term that does not contain it.
bool is_offset_index(const Expr& e) {
  size_t with_index = 0;
  bool plain = false;
  for (const Term& term : terms_of(e)) {
    if (std::ranges::none_of(term.factors, [](const Expr& f) { return any_leaf(f, is_index); })) continue;
    ++with_index;
    plain = term.coefficient == 1 && term.factors.size() == 1 && is_index(narrowed(term.factors[0]));
  }
  return with_index == 1 && plain;
}

// `index compare bound`, or its negation, as an upper bound of the index.
std::optional<Guard> oriented(Guard guard, std::string_view compare, bool when) {
  static constexpr std::array<std::array<std::string_view, 4>, 2> kOrder = {
      {{".lt", ".le", ".gt", ".ge"}, {".lo", ".ls", ".hi", ".hs"}}};
  size_t which = 4;
  for (const auto& names : kOrder) {
    const auto* const found = std::ranges::find(names, compare);
    if (found != names.end()) which = static_cast<size_t>(found - names.begin());
  }
  if (which == 4 || !guard.index.known() || !guard.bound.known()) return std::nullopt;
  if (!when) which = 3 - which;  // not less is greater or equal
  const bool swapped = !any_leaf(guard.index, is_index);
  if (swapped) {
    std::swap(guard.index, guard.bound);
    which = (which + 2) % 4;
  }
  if (which > 1 || !is_offset_index(guard.index) || any_leaf(guard.bound, is_index)) return std::nullopt;
  guard.inclusive = which == 1;
  return guard;
}

}  // namespace

std::optional<Guard> branch_guard(const ControlFlow& flow, const VirtualRegisters& registers,
                                  const ReachingDefinitions& reaching, uint32_t branch, bool when,
                                  const OperandValue& value) {
  const ptx::Module& m = flow.module();
  const auto at = [&](uint32_t i) -> const ptx::Statement& { return *flow.instructions()[i].statement; };
  const uint32_t predicate = registers.find(branch, m.text(at(branch).predicate));
  if (predicate == VirtualRegisters::kNone) return std::nullopt;
  const auto writer = reaching.only_definition(branch, predicate);
  if (!writer) return std::nullopt;
  const ptx::Statement& s = at(*writer);
  const bool plain = m.is(s.head, "setp") && !s.predicated && s.operands.size() == 3 &&
                     s.operands[0].size() == 1 && s.modifiers.size() == 2;
  if (!plain) return std::nullopt;
  const std::string_view type = m.text(s.modifiers.last - 1);
  const uint32_t bits = 8 * ptx::type_bytes(type);
  if (bits == 0 || (type[1] != 's' && type[1] != 'u')) return std::nullopt;
  Guard guard;
  guard.sign = type[1] == 's' ? Sign::Signed : Sign::Unsigned;
  guard.line = static_cast<uint32_t>(m.line(s.head));
  guard.index = value(*writer, components(m, s.operands[1])[0], bits);
  guard.bound = value(*writer, components(m, s.operands[2])[0], bits);
  return oriented(std::move(guard), m.text(s.modifiers.first), when);
}

std::vector<PassedBranch> passed_branches(const ControlFlow& flow, const Dominance& dominance,
                                          uint32_t block) {
  std::vector<PassedBranch> out;
  const auto& blocks = flow.blocks();
  for (uint32_t b = 0; b < blocks.size() && dominance.known(); ++b) {
    const BasicBlock& from = blocks[b];
    const bool by_table = from.end == BlockEnd::IndexedBranch;
    if (b == block || !(from.conditional || by_table) || !dominance.dominates(b, block)) continue;
    if (!by_table && from.successors.size() != (from.end == BlockEnd::Branch ? 2u : 1u)) continue;
    for (const uint32_t next : from.successors) {
      const bool only_way = blocks[next].predecessors.size() == 1;
      if (!only_way || !dominance.dominates(next, block)) continue;
      const bool falls_through = blocks[next].first == from.last;
      PassedBranch& passed = out.emplace_back(from.last - 1);
      if (!by_table)
        passed.when = falls_through == flow.instructions()[from.last - 1].statement->predicate_negated;
    }
  }
  return out;
}

bool ends_at_once(const ControlFlow& flow, uint32_t block) {
  for (size_t steps = 0; steps < flow.blocks().size(); ++steps) {
    const BasicBlock& b = flow.blocks()[block];
    if (b.last - b.first != 1 || b.conditional) return false;
    if (b.end == BlockEnd::Return || b.end == BlockEnd::Exit) return true;
    if (b.end != BlockEnd::Branch || b.successors.size() != 1) return false;
    block = b.successors[0];
  }
  return false;
}

std::optional<WayOn> way_on_from_entry(const ControlFlow& flow) {
  if (flow.blocks().empty()) return std::nullopt;
  const BasicBlock& entry = flow.blocks()[0];
  const ptx::Statement& last = *flow.instructions()[entry.last - 1].statement;
  if (!last.predicated || entry.successors.empty()) return std::nullopt;
  bool taken_ends = true;
  if (entry.end == BlockEnd::Branch) {
    if (entry.successors.size() != 2) return std::nullopt;
    taken_ends = ends_at_once(flow, entry.successors[0]);
    if (taken_ends == ends_at_once(flow, entry.successors[1])) return std::nullopt;
  } else if (entry.end != BlockEnd::Return && entry.end != BlockEnd::Exit) {
    return std::nullopt;
  }
  // Threads go on where the predicate is false if the branch taken ends them.
  const uint32_t on = taken_ends ? entry.successors.back() : entry.successors.front();
  return WayOn{on, taken_ends == last.predicate_negated};
}

std::string to_string(const Guard& guard) {
  const bool alike = guard.index->range.never_negative() && guard.bound->range.never_negative();
  const char* sign = guard.sign == Sign::Unsigned && !alike ? "u" : "";
  return fmt::format("{} {}{} {}", to_string(guard.index), guard.inclusive ? "<=" : "<", sign,
                     to_string(guard.bound));
}

}  // namespace klap::analysis
