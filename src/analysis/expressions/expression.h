// This file has integer expressions in a normal form. expression_arithmetic.h computes with them.
//
// Every expression has a width, and every operation wraps around at it as the hardware does. Sums and
// products are kept as one polynomial over everything else ("atoms"), with coefficients modulo 2^bits; that
// is a ring, so expanding and collecting never loses a wrap-around. Widening is different: `u64(a + b)` is
// not `u64(a) + u64(b)` unless the sum cannot wrap, so it is split only where the ranges of the atoms show
// that it cannot. Equal expressions have equal values; expressions that differ may or may not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace klap::analysis {

enum class ExprKind : uint8_t {
  Constant,
  Parameter,        // bytes of the kernel's parameter block, from `value` on
  Special,          // a special register that does not change while a thread runs: `name`
  Address,          // of a variable or function: `name`
  ParameterBlock,   // address of the parameter block in the space .param
  Opaque,           // the result of instruction `value` in register `name`: nothing more is known
  Merged,           // register `name` as instruction `value` reads it: one of several definitions
  Sum,              // at least two terms, or one that is not a bare atom
  Divide,           // by zero: any value
  DivideSigned,     // rounds towards zero
  Remainder,        // by zero: any value
  RemainderSigned,  // has the sign of the dividend
  ShiftLeft,        // by an amount that is not constant; too much gives 0
  ShiftRight,       // likewise
  ShiftRightSigned,
  And,
  Or,
  Xor,
  Minimum,
  MinimumSigned,
  Maximum,
  MaximumSigned,
  MultiplyHigh,
  MultiplyHighSigned,
  ZeroExtend,
  SignExtend,
  Truncate,
  ToGeneric,    // the generic address of an address in the space `name`
  FromGeneric,  // the other way
};

enum class Sign : uint8_t { Unsigned, Signed };

// All values an expression can take lie between these, read as unsigned and read as signed.
struct Range {
  uint64_t least = 0, most = 0;
  int64_t signed_least = 0, signed_most = 0;
  [[nodiscard]] bool never_negative() const { return signed_least >= 0; }
};

struct ExprNode;

// A shared immutable expression, or none where the value is unknown: operations on an unknown expression
// give an unknown one. Expressions that grow too large become unknown.
class Expr {
 public:
  Expr() = default;
  static Expr constant(uint64_t value, uint32_t bits);
  static Expr parameter(uint32_t offset, uint32_t bits);
  static Expr parameter_block(uint32_t bits);
  static Expr special(std::string name);  // "tid.x", 32 bits
  static Expr address(std::string symbol, uint32_t bits);
  static Expr opaque(uint32_t instruction, std::string reg, uint32_t bits);
  static Expr merged(uint32_t instruction, std::string reg, uint32_t bits);
  // A symbol for use by a client, with its largest value.
  static Expr symbol(std::string name, uint32_t bits, uint64_t most);

  [[nodiscard]] bool known() const { return node_ != nullptr; }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* operator->() const { return node_.get(); }
  [[nodiscard]] std::optional<uint64_t> as_constant() const;

  // A total order for the normal form; unknown expressions come first.
  static int compare(const Expr& a, const Expr& b);
  // Unknown expressions equal nothing, not even themselves.
  friend bool operator==(const Expr& a, const Expr& b) {
    return a.known() && b.known() && compare(a, b) == 0;
  }

  // For the operations of expression_arithmetic.h: `node` with its range and size filled in.
  static Expr make(ExprNode node);

 private:
  std::shared_ptr<const ExprNode> node_;
};

// coefficient * factor * factor * ...; without factors the constant part.
struct Term {
  uint64_t coefficient = 0;  // modulo 2^bits
  std::vector<Expr> factors;
};

// Terms are in this order: those with more factors first, the constant last.
int compare_terms(const Term& a, const Term& b);
// A Sum with more terms than this becomes unknown.
inline constexpr size_t kMostTerms = 48;

struct ExprNode {
  ExprKind kind = ExprKind::Constant;
  uint32_t bits = 32;
  uint64_t value = 0;
  std::string name;
  std::vector<Expr> operands;
  std::vector<Term> terms;  // of a Sum
  Range range;
  uint32_t size = 1;  // nodes, counted as a tree
};

// The terms of any expression: of a Sum its own, of an atom itself.
std::vector<Term> terms_of(const Expr& expr);
Expr from_terms(uint32_t bits, std::vector<Term> terms);

// True if some leaf satisfies the predicate.
bool any_leaf(const Expr& expr, const std::function<bool(const ExprNode&)>& predicate);

// A sum of coefficient * symbol + constant, coefficients read as signed.
struct Affine {
  struct Part {
    int64_t coefficient = 0;
    Expr symbol;
  };
  std::vector<Part> parts;
  int64_t constant = 0;
  uint32_t bits = 32;
  // Whether the sum over the integers always equals the register's value, read as unsigned or as signed.
  // Where it does not, the sum holds modulo 2^bits only.
  bool exact_unsigned = false, exact_signed = false;
};
// Nothing where two symbols are multiplied or the value is unknown.
std::optional<Affine> affine(const Expr& expr);

// "(p[24] + 31) / 32". p[24] are the 4 bytes at offset 24 of the parameter block, p[24:8] the 8 bytes there;
// u64(), s64(), u16() convert; /u and %u are unsigned where that makes a difference.
std::string to_string(const Expr& expr);
// "4*tid.x + 16 (exact)", "... (modulo 2^32)".
std::string to_string(const Affine& affine);

}  // namespace klap::analysis
