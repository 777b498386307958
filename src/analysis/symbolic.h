// Symbolic evaluation: what a register's value is in terms of the kernel's parameters, special registers and
// constants.
//
// Values are followed through instructions whose arithmetic is known exactly, from a register's definition to
// the definitions of what that reads. Where nothing is known about an instruction's result (a load from
// global memory, a floating-point operation), the result itself is a symbol, so that `(degree + 31) / 32` can
// be said of a degree that comes from memory. This rests on the property of static single assignment: where a
// register has one definition and that dominates the use, two values computed from it at one place come from
// the same run of the definition. Everything else (several definitions, a predicated one) is looked at as a
// set of possible values, or is unknown.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/dataflow.h"
#include "analysis/dominance.h"
#include "analysis/expression.h"
#include "analysis/flow.h"

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
  // Of the flow's function; all three must live as long as this.
  Symbolic(const ControlFlow& flow, const DataFlow& data, const Dominance& dominance);

  // The value of a register, a literal or a special register, in `bits` bits, at any place that the
  // register's definition dominates. All symbols of one answer, and of answers for operands of one
  // instruction, belong to the same moment; two answers for different places in a loop need not.
  [[nodiscard]] Value value(std::string_view operand, uint32_t bits) const;

  // What an instruction reads in an operand, and what it writes to a register, as one expression: registers
  // with several definitions stand for themselves (ExprKind::Merged, a symbol for this reading only).
  [[nodiscard]] Expr read(uint32_t index, std::string_view operand, uint32_t bits) const;
  // A whole register, in its own width.
  [[nodiscard]] Expr read(uint32_t index, std::string_view reg) const;
  [[nodiscard]] Expr written(uint32_t index, std::string_view reg) const;
  // The same if the instruction's arithmetic is known: not merely a symbol for its own result.
  [[nodiscard]] bool is_evaluated(uint32_t index, std::string_view reg) const;

  // The address that an operand `[base+offset]` of an instruction names, without its state space.
  [[nodiscard]] Expr address(uint32_t index, ptx::TokenRange operand) const;
  // The offset in the parameter block from which a load reads; nothing if it is another load or not constant.
  [[nodiscard]] std::optional<uint32_t> parameter_offset(uint32_t index) const;

 private:
  // A register as one instruction writes it.
  using Key = std::pair<uint32_t, std::string>;
  using Names = std::vector<std::string_view>;

  [[nodiscard]] const ptx::Statement& at(uint32_t index) const {
    return *flow_.instructions()[index].statement;
  }
  [[nodiscard]] bool parameters_stay() const;
  [[nodiscard]] bool precedes(uint32_t definition, uint32_t use) const;
  [[nodiscard]] Expr evaluate(uint32_t index, std::string_view reg) const;
  [[nodiscard]] Expr read_register(uint32_t index, std::string_view name) const;
  [[nodiscard]] uint32_t register_bits(std::string_view name) const;
  [[nodiscard]] bool is_own_parameter(std::string_view name) const;
  [[nodiscard]] Expr symbol_address(std::string_view name, uint32_t bits) const;

  [[nodiscard]] Expr result(uint32_t index, std::string_view reg) const;
  [[nodiscard]] Expr move(uint32_t index, size_t component, size_t components) const;
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
  const DataFlow& data_;
  const Dominance& dominance_;
  bool parameters_fixed_ = true;  // nothing can write the function's own parameters
  mutable std::map<Key, Expr> memo_;
  mutable std::set<Key> evaluating_;
  mutable uint32_t depth_ = 0;
};

// One line for each register definition of the function: "line 12: %r5 = (p[24] + 31) / 32".
std::string print_values(const ControlFlow& flow, const DataFlow& data, const Symbolic& symbolic);

}  // namespace klap::analysis
