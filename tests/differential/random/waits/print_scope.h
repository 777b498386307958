// The PTX of one kernel, or of one function that it calls: registers, places in the grid, variables,
// expressions.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "random/print_expression.h"
#include "random/waits/print.h"
#include "random/waits/program.h"

namespace klap::differential::waits {

class PrintedScope {
 public:
  // `labels` begin all labels, and `types` are those of its variables.
  PrintedScope(const Kernel& kernel, std::string name, const std::string& labels,
               const std::vector<Type>& types);
  PrintedScope(const PrintedScope&) = delete;
  PrintedScope& operator=(const PrintedScope&) = delete;

  // Loads the parameters and computes the thread's place, from which all else begins.
  void begin(bool is_function);

  std::string print(const Expression& e) { return expressions_.print(e); }
  // In a register, not as an immediate.
  std::string in_register(const Expression& e) { return in_register(print(e)); }
  std::string in_register(const std::string& operand);
  // A predicate that says whether the value is not 0.
  std::string predicate(const Expression& e);
  void assign(uint32_t variable, const std::string& operand);
  std::string read(uint32_t variable);
  [[nodiscard]] const std::string& variable(uint32_t number) const { return variables_.at(number); }

  // The address of word `word` of the thread of that linear number, in global memory.
  std::string word_address(const std::string& base, const std::string& thread, uint32_t words_before);
  // `a` * `by` + `offset` of 32 bits.
  std::string multiply_add(const std::string& a, const std::string& by, const std::string& offset);
  // `base` and so many words of 4 bytes.
  std::string words_behind(const std::string& base, const std::string& words);

  [[nodiscard]] std::string parameter(uint32_t number) const { return parameters_.at(number); }
  [[nodiscard]] std::string parameter_name(uint32_t number) const {
    return fmt::format("{}_param_{}", name, number);
  }
  [[nodiscard]] std::string declarations() const;

  const Kernel& kernel;
  const std::string name;
  random::Code code;
  std::string thread, block, linear;         // numbers counted through
  std::string input, own, above, own_words;  // addresses in global memory
  std::string slot;                          // the number of the iteration around a function's call
  std::vector<const Statement*> loops;

 private:
  std::string leaf(const Expression& e);
  std::string special(const char* what, uint32_t axis);
  std::string counted_through(const char* index, const char* extent);
  void load_parameters(bool is_function);

  const std::vector<Type>& types_;
  std::vector<std::string> variables_, parameters_;
  std::array<uint32_t, kTypes> counts_{};
  random::ExpressionPrinter expressions_;
};

}  // namespace klap::differential::waits
