// Symbolic evaluation: what a register's value is in terms of the kernel's parameters, special registers and
// constants.
//
// Values are followed through instructions whose arithmetic is known exactly, from a register's definition to
// the definitions of the registers that it reads. An instruction's result may be unknown (a load from global
// memory, a floating-point operation). Such a result is a symbol of its own. So `(degree + 31) / 32` can be
// said of a degree that comes from memory.
//
// A definition is followed only where no other can reach the reading and the register is never read unset.
// Then two values computed from one definition and read at one place come from the same run of it, also in
// loops. A way that runs the definition again, but not the computation from it, would be a way on which the
// result is read unset. Every other value is a set of possible values, or is unknown.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/expressions/expression.h"
#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "analysis/graph/reaching.h"
#include "analysis/graph/registers.h"

namespace klap::analysis {

// The values that an operand can have: one, one of a few, or (no choices) any.
struct Value {
  std::vector<Expr> choices;
  [[nodiscard]] bool known() const { return !choices.empty(); }
  // The value if there is just one; else an unknown expression.
  [[nodiscard]] Expr exact() const { return choices.size() == 1 ? choices[0] : Expr(); }
  [[nodiscard]] std::optional<uint64_t> constant() const { return exact().as_constant(); }
};
// "(p[24] + 31) / 32", "one of {32, 64}", "unknown".
std::string to_string(const Value& value);

class Symbolic {
 public:
  // All of one function; all must live as long as this.
  Symbolic(const ControlFlow& flow, const VirtualRegisters& registers, const ReachingDefinitions& reaching);

  // The value of a register, a literal or a special register as instruction `index` reads it. All symbols of
  // the answers for one instruction belong to the same moment.
  [[nodiscard]] Value value(uint32_t index, std::string_view operand, uint32_t bits) const;
  // The value that the operand has wherever it has one, for a place that is not named. It is unknown for a
  // name that several registers share.
  [[nodiscard]] Value value(std::string_view operand, uint32_t bits) const;

  // The value that an instruction reads in an operand or writes to a register, as one expression: registers
  // that several definitions reach stand for themselves (ExprKind::Merged, a symbol for this reading only).
  [[nodiscard]] Expr read(uint32_t index, std::string_view operand, uint32_t bits) const;
  // A whole register, in its own width.
  [[nodiscard]] Expr read(uint32_t index, uint32_t reg) const;
  [[nodiscard]] Expr written(uint32_t index, uint32_t reg) const;
  // True if the instruction's arithmetic is known, so that the value is not merely a symbol for its own
  // result.
  [[nodiscard]] bool is_evaluated(uint32_t index, uint32_t reg) const;
  // True if the instruction writes registers, and this holds for all of them.
  [[nodiscard]] bool is_evaluated(uint32_t index) const;

  // The address that an operand `[base+offset]` of an instruction names, without its state space.
  [[nodiscard]] Expr address(uint32_t index, ptx::TokenRange operand) const;
  // The offset in the parameter block from which a load reads; nothing if it is another load or not constant.
  [[nodiscard]] std::optional<uint32_t> parameter_offset(uint32_t index) const;

 private:
  // A register as one instruction writes it.
  using Key = std::pair<uint32_t, uint32_t>;
  using Names = std::vector<std::string_view>;

  [[nodiscard]] const ptx::Statement& at(uint32_t index) const {
    return *flow_.instructions()[index].statement;
  }
  [[nodiscard]] bool parameters_stay() const;
  [[nodiscard]] uint32_t find(uint32_t index, std::string_view name) const;
  [[nodiscard]] bool always_writes(uint32_t index, uint32_t reg) const;
  [[nodiscard]] ReachingDefinitions::Origins origins(uint32_t index, uint32_t reg) const;
  [[nodiscard]] uint32_t bits_of(uint32_t reg) const;
  [[nodiscard]] bool is_own_parameter(std::string_view name) const;
  [[nodiscard]] Expr symbol_address(std::string_view name, uint32_t bits) const;

  [[nodiscard]] Expr result(uint32_t index, uint32_t reg) const;
  [[nodiscard]] Expr move(uint32_t index, size_t component, size_t targets) const;
  [[nodiscard]] Expr load(uint32_t index, size_t component) const;
  [[nodiscard]] Expr arithmetic(uint32_t index) const;
  [[nodiscard]] Expr product(uint32_t index) const;
  [[nodiscard]] Expr convert_type(uint32_t index) const;
  [[nodiscard]] Expr convert_address(uint32_t index) const;

  // All values of an expression with its Merged symbols and selections replaced by what they can be.
  [[nodiscard]] std::vector<Expr> expand(const Expr& expr, Names& under_way) const;
  [[nodiscard]] std::vector<Expr> alternatives(const ExprNode& symbol, Names& under_way) const;
  [[nodiscard]] bool is_selection(const ExprNode& symbol) const;

  const ptx::Module& m_;
  const ptx::Function& function_;
  const ControlFlow& flow_;
  const VirtualRegisters& registers_;
  const ReachingDefinitions& reaching_;
  LocalNames names_;
  std::map<std::string_view, std::vector<uint32_t>> by_name_;  // registers
  std::vector<std::vector<uint32_t>> writers_;                 // by register
  bool parameters_fixed_ = true;  // nothing can write the function's own parameters
  mutable std::map<Key, Expr> memo_;
  mutable std::set<Key> evaluating_;
  mutable uint32_t depth_ = 0;
};

// One line for each register definition of the function: "line 12: %r5 = (p[24] + 31) / 32".
std::string print_values(const ControlFlow& flow, const VirtualRegisters& registers,
                         const Symbolic& symbolic);

}  // namespace klap::analysis
