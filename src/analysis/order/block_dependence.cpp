#include "analysis/order/block_dependence.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/order/block_values.h"
#include "analysis/order/launch_terms.h"
#include "analysis/values/guard.h"
#include "analysis/values/values.h"
#include "ptx/opcodes.h"

namespace klap::analysis {

using ptx::Statement;

// Instructions and registers that they read.
using Readings = std::vector<std::pair<uint32_t, uint32_t>>;

class BlockDependence {
 public:
  // The parent knows its block by itself. With `finds_data`, data that it finds by the block's index depends
  // on the block as well.
  explicit BlockDependence(const FunctionFacts& parent, bool finds_data)
      : k_(parent), values_(parent.values()), m_(parent.module), finds_data_(finds_data) {}
  BlockDependence(const FunctionFacts& child, const LaunchTerms& terms, BlockInLaunch launch)
      : k_(child), values_(child.values()), m_(child.module), terms_(&terms), launch_(std::move(launch)) {}

  // True if one of the values may depend on the block.
  [[nodiscard]] bool has(Readings open) const {
    if (terms_ != nullptr && !launch_.any()) return false;
    if (k_.flow.has_unknown_branch() || !values_.dominance.control_known()) return true;
    std::set<std::pair<uint32_t, uint32_t>> seen;
    while (!open.empty()) {
      const auto reading = open.back();
      open.pop_back();
      if (!seen.insert(reading).second) continue;
      if (add_definitions(reading, open)) return true;
    }
    return false;
  }
  [[nodiscard]] bool has(uint32_t instruction, std::string_view operand) const {
    const uint32_t reg = values_.registers.find(instruction, operand);
    if (reg == VirtualRegisters::kNone) return is_of_block(operand);
    return has({{instruction, reg}});
  }
  // True if that may decide whether, or how often, a thread comes to the instruction.
  [[nodiscard]] bool decides_over(uint32_t instruction) const {
    Readings open;
    if (terms_ != nullptr && !launch_.any()) return false;
    if (add_decisions(instruction, open)) return true;
    const Statement& s = at(instruction);
    if (s.predicated) add_register(instruction, m_.text(s.predicate), open);
    return has(std::move(open));
  }
  [[nodiscard]] bool is_in_operand(uint32_t instruction, uint32_t operand) const {
    Readings open;
    const ptx::TokenRange range = at(instruction).operands[operand];
    for (uint32_t t = range.first; t < range.last; ++t) add_register(instruction, m_.text(t), open);
    return has(std::move(open));
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *k_.flow.instructions()[i].statement; }
  void add_register(uint32_t instruction, std::string_view name, Readings& open) const {
    const uint32_t reg = values_.registers.find(instruction, name);
    if (reg != VirtualRegisters::kNone) open.emplace_back(instruction, reg);
  }
  [[nodiscard]] Readings reads(uint32_t instruction) const {
    Readings out;
    for (const auto& access : values_.registers.accesses(instruction)) {
      if (access.read) out.emplace_back(instruction, access.reg);
    }
    return out;
  }

  // True for a special register that the block is in.
  [[nodiscard]] bool is_of_block(std::string_view name) const {
    const auto is = [&](std::string_view begin) { return name.starts_with(begin); };
    if (terms_ == nullptr) return is("%ctaid") || is("%cluster");
    if (is("%dynamic_smem") || is("%total_smem")) return launch_.shared;
    if (is("%tid") || is("%ntid") || is("%laneid") || is("%warpid") || is("%nwarpid")) return launch_.block;
    return launch_.grid && (is("%ctaid") || is("%nctaid") || is("%cluster") || is("%ncluster"));
  }

  // The rest of these say whether something was found that depends on the block. If not, they add what there
  // is to follow.

  // How control comes to the instruction.
  bool add_decisions(uint32_t instruction, Readings& open) const {
    const Dominance& dominance = values_.dominance;
    if (!dominance.control_known()) return true;
    const uint32_t reached = k_.flow.instructions()[instruction].block;
    const std::vector<PassedBranch> passed = passed_branches(k_.flow, dominance, reached);
    for (const uint32_t block : dominance.deciding_branches(reached)) {
      const uint32_t branch = k_.flow.blocks()[block].last - 1;
      const auto lets_all_but_one = [&](const PassedBranch& p) {
        return p.branch == branch && p.when && holds_where_data_differs(branch, *p.when);
      };
      if (std::ranges::any_of(passed, lets_all_but_one)) continue;
      std::ranges::copy(reads(branch), std::back_inserter(open));
    }
    return false;
  }

  bool add_definitions(const std::pair<uint32_t, uint32_t>& reading, Readings& open) const {
    const auto origins = values_.reaching.origins(reading.first, reading.second);
    if (origins.entry && values_.registers[reading.second].is_parameter) return true;
    for (const uint32_t definition : origins.definitions) {
      const bool is_choice = origins.definitions.size() > 1 || at(definition).predicated;
      if (is_choice && add_decisions(definition, open)) return true;
      if (add_sources(definition, open)) return true;
    }
    return false;
  }

  bool add_sources(uint32_t definition, Readings& open) const {
    const Statement& s = at(definition);
    if (is_order_of_data(definition)) return false;
    for (const ptx::TokenRange& operand : s.operands) {
      for (uint32_t t = operand.first; t < operand.last; ++t) {
        if (is_of_block(m_.text(t))) return true;
      }
    }
    if (terms_ == nullptr && draws_among_blocks(k_, values_, definition)) return true;
    if (m_.is(s.head, "ld") && has_space(s, ".param")) {
      const bool is_own = values_.symbolic.parameter_offset(definition).has_value();
      return !is_own && is_result(definition) ? add_call(definition, open) : is_told(definition);
    }
    if (names_parameter(s) && !(launch_.arguments.empty() && launch_.data.empty())) return true;
    if (ptx::opcode_of(m_, s).result == ptx::OpcodeResult::Memory) {
      if (may_be_private(s) && is_in_private_memory()) return true;
      if (finds_data_ && loads_at_place_of_block(k_, values_, definition)) return true;
      if (may_be_private(s)) std::ranges::copy(reads(definition), std::back_inserter(open));
      if (s.predicated) add_register(definition, m_.text(s.predicate), open);
      return false;  // input
    }
    std::ranges::copy(reads(definition), std::back_inserter(open));
    return false;
  }

  // ---- what is loaded ----

  [[nodiscard]] bool has_space(const Statement& s, std::string_view space) const {
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      if (m_.text(t).starts_with(space)) return true;
    }
    return false;
  }
  // Memory that other grids do not see.
  [[nodiscard]] bool may_be_private(const Statement& s) const {
    return !has_space(s, ".global") && !has_space(s, ".const") && !has_space(s, ".param");
  }
  // True if what the kernel writes to such memory, or where, may depend on the block.
  [[nodiscard]] bool is_in_private_memory() const {
    std::optional<bool>& is = is_in_private_memory_.at(is_bound_ ? 1 : 0);
    if (!is) {
      is = false;  // also for what is stored there again
      for (uint32_t i = 0; i < k_.flow.instructions().size() && !*is; ++i)
        is = may_write_private(i) && (has(reads(i)) || decides_over(i));
    }
    return *is;
  }
  [[nodiscard]] bool may_write_private(uint32_t i) const {
    const Statement& s = at(i);
    const bool stores = m_.is(s.head, "st") || m_.is(s.head, "atom") || m_.is(s.head, "red");
    return (stores && may_be_private(s)) || (m_.is(s.head, "st") && is_passed(i));
  }
  // True for an operand of a call, which may write it to memory that it is given. A launch does not.
  [[nodiscard]] bool is_passed(uint32_t i) const {
    const Statement* const scope = k_.flow.instructions()[i].scope;
    return has_space(at(i), ".param") && std::ranges::none_of(k_.sites, [&](const Site& site) {
             return site.get_scope == scope || site.launch_scope == scope;
           });
  }

  // ---- parameters and calls ----

  // True for the parameters of the child that depend on the block. A load of one that is not understood may
  // be of any.
  [[nodiscard]] bool is_told(uint32_t load) const {
    if (terms_ == nullptr) return false;
    return is_among(launch_.arguments, load) || (!is_bound_ && is_among(launch_.data, load));
  }
  [[nodiscard]] bool is_among(const std::set<std::pair<uint32_t, uint32_t>>& arguments, uint32_t load) const {
    if (arguments.empty()) return false;
    const auto begin = values_.symbolic.parameter_offset(load);
    if (!begin) return true;
    const Statement& s = at(load);
    const size_t lanes = components(m_, s.operands[0]).size();
    const uint64_t end = *begin + lanes * ptx::type_bytes(m_.text(s.modifiers.last - 1));
    return std::ranges::any_of(arguments, [&](const auto& argument) {
      return argument.first < end && *begin < argument.first + argument.second;
    });
  }

  // The address of a parameter may lead to any of them.
  [[nodiscard]] bool names_parameter(const Statement& s) const {
    return std::ranges::any_of(s.operands, [&](const ptx::TokenRange& operand) {
      return std::ranges::any_of(k_.function.parameters, [&](const ptx::Parameter& parameter) {
        return m_.compact(operand) == parameter.name;
      });
    });
  }

  // True for a load of what a call has returned.
  [[nodiscard]] bool is_result(uint32_t load) const {
    return k_.flow.enclosing(k_.flow.instructions()[load].scope) != nullptr;
  }
  // The call whose result is loaded. It may ask for the block itself.
  bool add_call(uint32_t load, Readings& open) const {
    const auto& instructions = k_.flow.instructions();
    const Statement* const scope = instructions[load].scope;
    for (uint32_t i = load; i-- > 0 && instructions[i].scope == scope;) {
      if (m_.is(at(i).head, "st")) std::ranges::copy(reads(i), std::back_inserter(open));
      if (const auto call = parse_call(m_, at(i), k_.data.names()); call && may_ask(*call)) return true;
    }
    return false;
  }
  [[nodiscard]] bool may_ask(const Call& call) const {
    const bool is_known = is_known_external(call.callee) || call.callee.starts_with("cuda") ||
                          call.callee.starts_with("__cuda");
    if (call.direct && is_known) return false;
    const ptx::Function* const callee = call.direct ? m_.find_function(call.callee) : nullptr;
    if (callee == nullptr || !k_.calls().contains(*callee)) return true;
    return std::ranges::any_of(k_.calls().closure(*callee).all(), [&](const Effect& effect) {
      using enum EffectKind;
      const bool is_unseen = effect.kind == UnknownCall || effect.kind == IndirectCall;
      const bool draws = terms_ == nullptr && effect.kind == Atomic;
      const bool loads = effect.kind == SharedAccess || effect.kind == LocalMemory;
      return is_unseen || draws || is_of_block(effect.what) || (loads && is_in_private_memory());
    });
  }

  // ---- comparisons ----

  // True for an order relation between the block's part and data, or between two values whose difference is
  // the same for all blocks.
  [[nodiscard]] bool is_order_of_data(uint32_t test) const {
    const Statement& s = at(test);
    static constexpr std::array kOrders = {".lt", ".le", ".gt", ".ge", ".lo", ".ls", ".hi", ".hs"};
    const auto orders = [&](const char* name) { return m_.has_modifier(s, name); };
    if (terms_ == nullptr || !m_.is(s.head, "setp") || s.predicated || s.operands.size() != 3 ||
        std::ranges::none_of(kOrders, orders))
      return false;
    // A loop's counter depends on the comparison that ends the loop, which then says nothing new.
    if (!under_way_.insert({test, is_bound_}).second) return true;
    const bool is = is_between_data(test) || is_with_data(test) || has_same_difference(test);
    under_way_.erase({test, is_bound_});
    return is;
  }
  // True if the block's part is data alone: bounds that differ from block to block.
  [[nodiscard]] bool is_between_data(uint32_t test) const {
    if (launch_.data.empty()) return false;
    const bool before = is_bound_;
    is_bound_ = true;
    const bool has_index = is_in_operand(test, 1) || is_in_operand(test, 2);
    is_bound_ = before;
    return !has_index;
  }
  // True if it compares the block's part with data.
  [[nodiscard]] bool is_with_data(uint32_t test) const {
    const bool first = is_loaded(test, 1), second = is_loaded(test, 2);
    return first != second && !is_in_operand(test, first ? 1 : 2);
  }
  // True if data is something else than the block's part where the branch's predicate has that value.
  [[nodiscard]] bool holds_where_data_differs(uint32_t branch, bool when) const {
    const uint32_t reg = values_.registers.find(branch, m_.text(at(branch).predicate));
    if (terms_ == nullptr || reg == VirtualRegisters::kNone) return false;
    const auto test = values_.reaching.only_definition(branch, reg);
    if (!test) return false;
    const Statement& s = at(*test);
    const bool compares = m_.is(s.head, "setp") && !s.predicated && s.operands.size() == 3;
    return compares && m_.has_modifier(s, when ? ".ne" : ".eq") && s.modifiers.size() == 2 &&
           is_with_data(*test);
  }
  // True if data is loaded for the operand.
  [[nodiscard]] bool is_loaded(uint32_t test, uint32_t operand) const {
    Readings open;
    add_register(test, m_.compact(at(test).operands[operand]), open);
    std::set<std::pair<uint32_t, uint32_t>> seen;
    while (!open.empty()) {
      const auto reading = open.back();
      open.pop_back();
      if (!seen.insert(reading).second) continue;
      for (const uint32_t d : values_.reaching.origins(reading.first, reading.second).definitions) {
        const bool is_memory = ptx::opcode_of(m_, at(d)).result == ptx::OpcodeResult::Memory;
        if (is_memory && !may_be_private(at(d)) && !has_space(at(d), ".param")) return true;
        if (!is_memory) std::ranges::copy(reads(d), std::back_inserter(open));
      }
    }
    return false;
  }
  [[nodiscard]] bool has_same_difference(uint32_t test) const {
    const Statement& s = at(test);
    const std::string_view type = m_.text(s.modifiers.last - 1);
    const uint32_t bits = 8 * ptx::type_bytes(type);
    if (launch_.grid || launch_.block || bits == 0 || type[1] == 'f') return false;
    const auto read = [&](size_t i) {
      return terms_->of(values_.symbolic.read(test, m_.compact(s.operands[i]), bits));
    };
    const Expr difference = read(1) - read(2);
    return difference.known() && !any_leaf(difference, [](const ExprNode& leaf) {
             const bool is_block = leaf.kind == ExprKind::Special && leaf.name.starts_with("ctaid");
             const bool is_place = leaf.kind == ExprKind::Special || LaunchTerms::is_thread_symbol(leaf) ||
                                   leaf.name.starts_with("#tid") || leaf.name.starts_with("#ctaid");
             const bool is_known = leaf.kind == ExprKind::Constant || leaf.kind == ExprKind::Parameter;
             return is_block || !(is_known || is_place);
           });
  }

  const FunctionFacts& k_;
  const Values& values_;
  const ptx::Module& m_;
  const LaunchTerms* const terms_ = nullptr;  // of the child; none for the parent
  const BlockInLaunch launch_;
  const bool finds_data_ = false;
  mutable std::set<std::pair<uint32_t, bool>> under_way_;            // comparisons that are asked about
  mutable bool is_bound_ = false;                                    // data arguments do not count now
  mutable std::array<std::optional<bool>, 2> is_in_private_memory_;  // by is_bound_, once it is known
};

BlockInLaunch block_in_launch(const FunctionFacts& parent, const Site& site) {
  BlockInLaunch out;
  const BlockDependence dependence(parent, false), by_data(parent, true);
  for (const Argument& argument : site.arguments) {
    const uint32_t store =
        argument.store == nullptr ? ControlFlow::npos : parent.flow.index_of(argument.store);
    if (store == ControlFlow::npos || dependence.has(store, argument.source))
      out.arguments.insert({argument.offset, argument.bytes});
    else if (by_data.has(store, argument.source))
      out.data.insert({argument.offset, argument.bytes});
  }
  // The extents are stored in the scope of a call.
  const auto has = [&](const std::string& extent) {
    return std::ranges::any_of(std::array{site.get_call, site.launch_call}, [&](const Statement* call) {
      const uint32_t at = parent.flow.index_of(call);
      const auto& instructions = parent.flow.instructions();
      if (at == ControlFlow::npos) return true;
      for (uint32_t i = at; i-- > 0 && instructions[i].scope == instructions[at].scope;) {
        if (dependence.has(i, extent)) return true;
      }
      return false;
    });
  };
  out.grid = std::ranges::any_of(site.grid, has);
  out.block = std::ranges::any_of(site.block, has);
  out.shared = has(site.shared);
  return out;
}

BlockInChild::BlockInChild(const FunctionFacts& child, const LaunchTerms& terms, BlockInLaunch launch)
    : dependence_(std::make_unique<BlockDependence>(child, terms, std::move(launch))) {}
BlockInChild::~BlockInChild() = default;

bool BlockInChild::decides_over(uint32_t instruction) const { return dependence_->decides_over(instruction); }

bool BlockInChild::is_in_address(uint32_t instruction, uint32_t operand) const {
  return dependence_->is_in_operand(instruction, operand);
}

}  // namespace klap::analysis
