#include "analysis/synchronisation/single_thread.h"

#include <algorithm>
#include <array>
#include <optional>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/values/guard.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

constexpr std::array<const char*, 3> kThreadIndex = {"tid.x", "tid.y", "tid.z"};
constexpr std::array<const char*, 3> kBlockIndex = {"ctaid.x", "ctaid.y", "ctaid.z"};
constexpr std::array<const char*, 3> kBlockExtent = {"ntid.x", "ntid.y", "ntid.z"};

// True for a value that is the same for all threads of a grid, whenever it is read. The next function asks
// this for a block.
bool is_grid_value(const ExprNode& leaf) {
  if (leaf.kind == ExprKind::Constant || leaf.kind == ExprKind::Parameter) return true;
  return leaf.kind == ExprKind::Special &&
         (leaf.name.starts_with("nctaid.") || leaf.name.starts_with("ntid."));
}
bool is_block_value(const ExprNode& leaf) {
  return is_grid_value(leaf) || (leaf.kind == ExprKind::Special && leaf.name.starts_with("ctaid."));
}

class Guards {
 public:
  // Reads the guards of the basic block of that number, in thread blocks of that size.
  Guards(const FunctionFacts& parent, uint32_t block, const KnownExtents& size)
      : k_(parent), values_(parent.values()) {
    required_extents();
    known_extents(size);
    for (const PassedBranch& passed : passed_branches(k_.flow, values_.dominance, block)) {
      const Statement& branch = *k_.flow.instructions()[passed.branch].statement;
      if (passed.when) predicate(k_.module.text(branch.predicate), *passed.when, 0);
    }
  }

  [[nodiscard]] bool leave_first_thread() const { return zero_[0] && zero_[1] && zero_[2]; }
  [[nodiscard]] bool leave_one_thread() const { return fixed_[0] && fixed_[1] && fixed_[2]; }
  [[nodiscard]] bool leave_one_of_a_row() const { return fixed_[0]; }
  // True if the guards leave one block in grids of that size.
  [[nodiscard]] bool leave_one_block(const KnownExtents& grid) const {
    for (size_t axis = 0; axis < grid.size(); ++axis) {
      if (grid.at(axis) != 1U && !fixed_block_.at(axis)) return false;
    }
    return true;
  }

 private:
  void known_extents(const KnownExtents& size) {
    const bool is_one_thread = most_threads_allowed(k_.module, k_.function) == 1;
    for (size_t axis = 0; axis < size.size(); ++axis) {
      if (size.at(axis) != 1U && !is_one_thread) continue;
      fixed_.at(axis) = true;
      zero_.at(axis) = true;
    }
  }

  // `.reqntid` says the size in every dimension.
  void required_extents() {
    const ptx::Module& m = k_.module;
    const ptx::TokenRange attributes = k_.function.attributes;
    for (uint32_t t = attributes.first; t < attributes.last; ++t) {
      if (!m.is(t, ".reqntid")) continue;
      fixed_ = {false, true, true};
      size_t axis = 0;
      for (++t; t < attributes.last && axis < 3; ++t) {
        if (m.is(t, ",")) continue;
        const auto extent = ptx::integer_value(m.text(t));
        if (!extent) return;
        fixed_.at(axis++) = *extent == 1;
      }
      return;
    }
  }

  // The predicate had that value.
  void predicate(std::string_view name, bool value, int depth) {
    const auto& definitions = k_.data.definitions(name);
    if (definitions.size() != 1 || k_.data.is_ambiguous(name) || depth > 8) return;
    const Statement& s = *k_.flow.instructions()[definitions[0]].statement;
    const ptx::Module& m = k_.module;
    if (s.predicated || s.modifiers.empty() || s.operands.size() < 2) return;
    const bool both = (m.is(s.head, "and") && value) || (m.is(s.head, "or") && !value);
    if (m.is(s.head, "setp")) return comparison(definitions[0], value);
    if (m.is(s.head, "not")) return predicate(m.text(s.operands[1]), !value, depth + 1);
    if (!both || s.operands.size() != 3) return;
    predicate(m.text(s.operands[1]), value, depth + 1);
    predicate(m.text(s.operands[2]), value, depth + 1);
  }

  void comparison(uint32_t setp, bool value) {
    const Statement& s = *k_.flow.instructions()[setp].statement;
    const ptx::Module& m = k_.module;
    const std::string_view type = m.text(s.modifiers.last - 1);
    const bool equal = m.is(s.modifiers.first, value ? ".eq" : ".ne");
    if (!equal || s.modifiers.size() != 2 || s.operands.size() != 3 || ptx::type_bytes(type) != 4 ||
        type == ".f32")
      return;
    const auto read = [&](size_t operand) {
      return values_.symbolic.read(setp, m.compact(s.operands[operand]), 32);
    };
    is_zero(read(1) - read(2));
  }

  // Takes the value to be 0, and finds what follows for the thread's index.
  void is_zero(const Expr& value) {
    if (!value.known()) return;
    if (value->kind == ExprKind::Or) {
      for (const Expr& part : value->operands) is_zero(part);
      return;
    }
    std::optional<size_t> axis;
    const std::vector<Term> terms = terms_of(value);
    block_of(terms);
    for (const Term& term : terms) {
      const auto index = index_in(term, kThreadIndex);
      if (index && axis) return;
      if (index) axis = index;
      if (!index && !is_all_of(term, is_block_value)) return;
    }
    if (axis) fixed_.at(*axis) = true;
    if (axis && terms.size() == 1) zero_.at(*axis) = true;
  }

  // Takes the sum of the terms to be 0, and finds what follows for the block's index. But for that index, or
  // a thread's index in one dimension of the grid, the sum must be the same for all threads.
  void block_of(const std::vector<Term>& terms) {
    std::optional<size_t> axis;
    bool of_thread = false;
    uint64_t coefficient = 0;
    for (const Term& term : terms) {
      auto index = index_in(term, kBlockIndex);
      const auto first = index ? std::nullopt : first_of_block(term);
      if (first) index = first;
      if (index && axis) return;
      if (!index && !index_in(term, kThreadIndex) && !is_all_of(term, is_grid_value)) return;
      if (index) axis = index, of_thread = first.has_value(), coefficient = term.coefficient;
    }
    if (!axis) return;
    // ctaid * ntid + tid is another number for each thread of the dimension; ctaid for each block.
    bool has_thread = false;
    for (const Term& term : terms) {
      const auto index = index_in(term, kThreadIndex);
      if (!index) continue;
      if (*index != *axis || term.coefficient != coefficient) return;
      has_thread = true;
    }
    if (has_thread == of_thread) fixed_block_.at(*axis) = true;
  }

  // The dimension of a term that is ctaid * ntid of one, or its negative.
  static std::optional<size_t> first_of_block(const Term& term) {
    if (!is_one(term) || term.factors.size() != 2) return std::nullopt;
    for (size_t axis = 0; axis < kBlockIndex.size(); ++axis) {
      const auto has = [&](const char* name) {
        return std::ranges::any_of(term.factors, [&](const Expr& factor) {
          return factor->kind == ExprKind::Special && factor->name == name;
        });
      };
      if (has(kBlockIndex.at(axis)) && has(kBlockExtent.at(axis))) return axis;
    }
    return std::nullopt;
  }

  // The dimension of a term that is the thread's index, or its negative.
  static std::optional<size_t> index_in(const Term& term, const std::array<const char*, 3>& names) {
    if (!is_one(term) || term.factors.size() != 1 || term.factors[0]->kind != ExprKind::Special)
      return std::nullopt;
    const auto* const found = std::ranges::find(names, term.factors[0]->name);
    if (found == names.end()) return std::nullopt;
    return static_cast<size_t>(found - names.begin());
  }

  static bool is_one(const Term& term) { return term.coefficient == 1 || term.coefficient == 0xffffffff; }

  static bool is_all_of(const Term& term, bool (*is_value)(const ExprNode&)) {
    return std::ranges::none_of(term.factors, [&](const Expr& factor) {
      return any_leaf(factor, [&](const ExprNode& leaf) { return !is_value(leaf); });
    });
  }

  const FunctionFacts& k_;
  const Values& values_;
  std::array<bool, 3> fixed_ = {};
  std::array<bool, 3> zero_ = {};         // and to which value: 0
  std::array<bool, 3> fixed_block_ = {};  // the block's index in the grid
};

}  // namespace

bool is_launched_by_one_thread(const FunctionFacts& parent, const Site& site, const KnownExtents& block) {
  if (parent.flow.has_unknown_branch()) return false;
  const uint32_t at = parent.flow.index_of(site.get_call);
  return Guards(parent, parent.flow.instructions()[at].block, block).leave_one_thread();
}

bool is_launched_by_one_thread_of_all(const FunctionFacts& parent, const Site& site,
                                      const KnownExtents& block, const KnownExtents& grid) {
  if (!is_launched_by_one_thread(parent, site, block)) return false;
  const uint32_t at = parent.flow.index_of(site.get_call);
  return Guards(parent, parent.flow.instructions()[at].block, block).leave_one_block(grid);
}

bool may_be_meant_for_one_thread(const FunctionFacts& parent, const Site& site) {
  if (parent.flow.has_unknown_branch()) return false;
  const uint32_t at = parent.flow.index_of(site.get_call);
  return Guards(parent, parent.flow.instructions()[at].block, {}).leave_one_of_a_row();
}

bool is_launched_by_first_thread(const FunctionFacts& parent, const Site& site, const KnownExtents& block) {
  if (parent.flow.has_unknown_branch()) return false;
  const uint32_t at = parent.flow.index_of(site.get_call);
  return Guards(parent, parent.flow.instructions()[at].block, block).leave_first_thread();
}

bool tells_threads_apart(const FunctionFacts& kernel) {
  return std::ranges::any_of(kernel.calls().closure(kernel.function).all(), [](const Effect& effect) {
    return effect.kind == EffectKind::LaneRegister ||
           (effect.kind == EffectKind::PositionRegister && effect.what.starts_with("%tid"));
  });
}

}  // namespace klap::analysis
