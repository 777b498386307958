// PTX text in the making, and expressions in it.
#pragma once

#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>

#include "random/program.h"

namespace klap::differential::random {

// The instructions of one function, with registers and labels as they are asked for.
class Code {
 public:
  Code(std::string name, std::string label_prefix)
      : name_(std::move(name)), label_prefix_(std::move(label_prefix)) {}

  // Kinds: 'r' 32 bits, 'd' 64 bits, 's' 16 bits, 'f' float, 'p' predicate.
  std::string new_register(char kind);
  std::string new_label() { return label_prefix_ + std::to_string(++labels_); }
  void place(const std::string& label) { text_ += "\n" + label + ":\n"; }
  template <class... Values>
  void emit(fmt::format_string<Values...> format, Values&&... values) {
    text_ += "\t" + fmt::format(format, std::forward<Values>(values)...) + "\n";
  }
  template <class... Values>
  void raw(fmt::format_string<Values...> format, Values&&... values) {
    text_ += fmt::format(format, std::forward<Values>(values)...);
  }
  void swap_text(std::string& text) { text_.swap(text); }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::string declarations() const;

 private:
  std::string name_, label_prefix_, text_;
  std::array<int, 5> counts_{};
  int labels_ = 0;
};

// Leaves and loads are the function's business, everything else is arithmetic.
class ExpressionPrinter {
 public:
  using Leaf = std::function<std::string(const Expression&)>;
  ExpressionPrinter(Code& code, Leaf leaf) : code_(code), leaf_(std::move(leaf)) {}
  // A register or an immediate.
  std::string print(const Expression& e);
  // Whether code chooses between two values by a branch.
  void use_branches(bool uses) { branches_ = uses; }

 private:
  std::string in_register(const std::string& operand);
  std::string binary(const Expression& e, const char* opcode);
  std::string by_constant(const Expression& e, const char* opcode, uint32_t value);
  std::string comparison(const Expression& e, const char* opcode);

  Code& code_;
  Leaf leaf_;
  bool branches_ = false;
};

}  // namespace klap::differential::random
