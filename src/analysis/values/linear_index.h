// The linear index of a thread: block index times block size plus thread index, in one to three dimensions.
//
// It is found in expressions by replacing %tid.x by `i` minus the rest of the linear form: a value computed
// from the index only then shows `i` and no position register. Products of all sizes are `n`, the number of
// all threads of the launch. Wrap-around is kept: a 32-bit index is the index modulo 2^32, as it is natively.
//
// Where it is known that a kernel is launched as one block of one row, %tid.x is the index, and %ntid.x the
// number of threads. Such a kernel may walk over a range of elements that begins at one of its arguments.
// That argument is then the base `a`, an integer of 32 bits that is not negative.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/expressions/expression.h"

namespace klap::analysis {

class LinearIndex {
 public:
  explicit LinearIndex(uint32_t dimensions, bool one_row = false)
      : dimensions_(dimensions), one_row_(one_row) {}
  // One block of one row, over a range that begins at the argument with that offset.
  static LinearIndex over_range(uint32_t base_offset);
  [[nodiscard]] uint32_t dimensions() const { return dimensions_; }
  static Expr index(uint32_t bits);
  static Expr count(uint32_t bits);
  static Expr base();

  // The expression in terms of the index and the number of threads, as far as it can be.
  [[nodiscard]] Expr apply(const Expr& e) const;

 private:
  [[nodiscard]] Expr linear(const char* const (&at)[3], const char* const (&size)[3], uint32_t bits) const;
  [[nodiscard]] Expr whole(uint32_t bits) const;
  [[nodiscard]] Expr to_index(const Expr& e) const;
  [[nodiscard]] Expr of_row(const Expr& e) const;
  [[nodiscard]] Expr fold_count(const Expr& e) const;
  [[nodiscard]] Expr fold_term(const Term& term, uint32_t bits) const;

  uint32_t dimensions_;
  bool one_row_;
  std::optional<uint32_t> base_offset_;
};

// Parts of what apply() gives: the index, the number of threads, the base, and a position that is none of
// them.
bool is_index(const ExprNode& n);
bool is_count(const ExprNode& n);
bool is_base(const ExprNode& n);
bool is_position(const ExprNode& n);
// The index or a position, which another thread has another one of.
bool is_own_index(const ExprNode& n);
// True for the index with zeros or signs in front.
bool is_widening(const ExprNode& n);
const ExprNode& narrowed(const Expr& e);

}  // namespace klap::analysis
