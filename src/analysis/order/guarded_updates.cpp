#include "analysis/order/guarded_updates.h"

#include <algorithm>
#include <set>

#include "analysis/facts/facts.h"
#include "analysis/values/values.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;

class GuardFinder {
 public:
  GuardFinder(const FunctionFacts& kernel, const MemoryAccess& load, const MemoryAccess& update)
      : k_(kernel), m_(kernel.module), load_(load), update_(update) {}

  [[nodiscard]] bool run() const {
    const bool is_minimum = update_.operation.starts_with("min.");
    if (!is_minimum && !update_.operation.starts_with("max.")) return false;
    if (update_.returns || !update_.value || !is_single(load_) || !have_one_address()) return false;
    const std::string loaded = components(m_, at(load_.instruction).operands[0])[0];
    const std::string operand = text_of(at(update_.instruction).operands[*update_.value]);
    if (!is_written_once(loaded)) return false;
    const auto& uses = k_.data.uses(loaded);
    return uses.size() == 1 && compares(uses[0], loaded, operand, is_minimum);
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *k_.flow.instructions()[i].statement; }
  [[nodiscard]] std::string text_of(ptx::TokenRange range) const { return m_.compact(range); }

  [[nodiscard]] bool is_single(const MemoryAccess& access) const {
    return access.address && components(m_, at(access.instruction).operands[0]).size() == 1 &&
           access.bytes == update_.bytes && !at(access.instruction).predicated;
  }

  [[nodiscard]] bool is_written_once(const std::string& reg) const {
    return k_.data.definitions(reg).size() == 1 && !k_.data.is_ambiguous(reg);
  }

  // True if control gets from the load to the comparison and on to the update without another value for the
  // operand. `branch` ends the block of the first two, and the update stands in the block that follows. With
  // no branch all three stand in one block.
  [[nodiscard]] bool is_straight(uint32_t test, const std::string& operand,
                                 std::optional<uint32_t> branch) const {
    const auto& instructions = k_.flow.instructions();
    const uint32_t block = instructions[test].block;
    if (instructions[load_.instruction].block != block || load_.instruction > test) return false;
    const uint32_t end = branch ? *branch : update_.instruction;
    if (instructions[end].block != block || end < test) return false;
    const uint32_t updating = k_.flow.blocks()[instructions[update_.instruction].block].first;
    return std::ranges::none_of(k_.data.definitions(operand), [&](uint32_t d) {
      return (d > load_.instruction && d < end) || (branch && d >= updating && d < update_.instruction);
    });
  }

  [[nodiscard]] bool have_one_address() const {
    const Symbolic& symbolic = k_.values().symbolic;
    const auto address = [&](const MemoryAccess& access) {
      return symbolic.address(access.instruction, at(access.instruction).operands[*access.address]);
    };
    return address(load_) == address(update_);
  }

  // True if the comparison is between these two, and the update runs at least where its operand is the better
  // one.
  [[nodiscard]] bool compares(uint32_t test, const std::string& loaded, const std::string& operand,
                              bool is_minimum) const {
    const Statement& s = at(test);
    if (!m_.is(s.head, "setp") || s.predicated || s.operands.size() != 3 || s.modifiers.size() != 2)
      return false;
    const std::string type = update_.operation.substr(4);
    if (m_.text(s.modifiers.last - 1).substr(1) != type) return false;
    const std::string first = text_of(s.operands[1]), second = text_of(s.operands[2]);
    const bool operand_first = first == operand && second == loaded;
    if (!operand_first && !(first == loaded && second == operand)) return false;
    const auto runs_when = decision_for_update(test, operand, text_of(s.operands[0]));
    if (!runs_when) return false;
    return runs_where_better(m_.text(s.modifiers.first), *runs_when, operand_first == is_minimum);
  }

  // `less_is_better`: the update is wanted where the first operand of the comparison is the smaller one.
  static bool runs_where_better(std::string_view comparison, bool runs_when, bool less_is_better) {
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::ranges::find(names, comparison) != names.end();
    };
    const bool less = is({".lt", ".lo", ".le", ".ls"}), greater = is({".gt", ".hi", ".ge", ".hs"});
    if (is({".ne"})) return runs_when;
    if (is({".eq"})) return !runs_when;
    if (!less && !greater) return false;
    return (less == less_is_better) == runs_when;
  }

  // The value of the predicate with which the update runs. Nothing if the predicate decides over anything
  // else.
  [[nodiscard]] std::optional<bool> decision_for_update(uint32_t test, const std::string& operand,
                                                        const std::string& predicate) const {
    if (!is_written_once(predicate)) return std::nullopt;
    const auto& uses = k_.data.uses(predicate);
    if (uses.size() != 1) return std::nullopt;
    const Statement& use = at(uses[0]);
    if (!use.predicated || m_.text(use.predicate) != predicate) return std::nullopt;
    const bool at_once = uses[0] == update_.instruction;
    if (!is_straight(test, operand, at_once ? std::nullopt : std::optional(uses[0]))) return std::nullopt;
    return at_once ? !use.predicate_negated : decision_of_branch(uses[0]);
  }

  [[nodiscard]] std::optional<bool> decision_of_branch(uint32_t branch) const {
    const Dominance& dominance = k_.values().dominance;
    const uint32_t deciding = k_.flow.instructions()[branch].block;
    const uint32_t updating = k_.flow.instructions()[update_.instruction].block;
    const BasicBlock& block = k_.flow.blocks()[deciding];
    if (!dominance.known() || !dominance.control_known() || k_.flow.has_unknown_branch()) return std::nullopt;
    if (block.end != BlockEnd::Branch || block.successors.size() != 2 || block.last != branch + 1)
      return std::nullopt;
    if (at(update_.instruction).predicated) return std::nullopt;
    const auto controllers = dominance.controllers(updating);
    if (controllers.size() != 1 || controllers[0] != deciding) return std::nullopt;
    if (!is_all_that_is_decided(deciding)) return std::nullopt;
    for (const uint32_t next : block.successors) {
      if (k_.flow.blocks()[next].predecessors.size() != 1 || next != updating) continue;
      const bool jumped = k_.flow.blocks()[next].first != block.last;
      return jumped != at(branch).predicate_negated;
    }
    return std::nullopt;
  }

  // True if the code that the branch decides over computes nothing that is used elsewhere, and does nothing
  // but the update.
  [[nodiscard]] bool is_all_that_is_decided(uint32_t deciding) const {
    std::set<uint32_t> blocks;
    std::vector<uint32_t> work = {deciding};
    while (!work.empty()) {
      const uint32_t from = work.back();
      work.pop_back();
      for (const uint32_t block : k_.values().dominance.controlled(from)) {
        if (block == deciding) return false;  // it decides how often it comes again
        if (blocks.insert(block).second) work.push_back(block);
      }
    }
    return std::ranges::all_of(blocks, [&](uint32_t block) {
      const BasicBlock& b = k_.flow.blocks()[block];
      if (b.exits_function) return false;
      for (uint32_t i = b.first; i < b.last; ++i) {
        if (i != update_.instruction && !is_unnoticed(i, blocks)) return false;
      }
      return true;
    });
  }

  [[nodiscard]] bool is_unnoticed(uint32_t i, const std::set<uint32_t>& blocks) const {
    const Statement& s = at(i);
    if (m_.is(s.head, "bra")) return true;
    if (!ptx::opcode_of(m_, s).is_computation()) return false;
    const Registers registers = registers_of(m_, s, k_.data.names());
    return std::ranges::all_of(registers.written, [&](std::string_view reg) {
      return !k_.data.is_ambiguous(reg) && std::ranges::all_of(k_.data.uses(reg), [&](uint32_t use) {
        return blocks.contains(k_.flow.instructions()[use].block);
      });
    });
  }

  const FunctionFacts& k_;
  const Module& m_;
  const MemoryAccess& load_;
  const MemoryAccess& update_;
};

}  // namespace

void join_guards(Footprint& footprint, const FunctionFacts& kernel) {
  std::vector<std::pair<size_t, std::string>> joined;
  for (size_t i = 0; i < footprint.accesses.size(); ++i) {
    const MemoryAccess& load = footprint.accesses[i];
    if (load.kind != MemoryAccess::Kind::Read || !load.address) continue;
    for (const MemoryAccess& update : footprint.accesses) {
      if (update.kind != MemoryAccess::Kind::Atomic || !update.address) continue;
      if (!GuardFinder(kernel, load, update).run()) continue;
      joined.emplace_back(i, update.operation);
      break;
    }
  }
  for (auto& [i, operation] : joined) {
    footprint.accesses[i].kind = MemoryAccess::Kind::Atomic;
    footprint.accesses[i].operation = std::move(operation);
  }
}

}  // namespace klap::analysis
