// A child's addresses in terms of the launch that made the child.
//
// Two launches of one block differ in the thread that makes them. To see whether their children access
// different memory, an address of the child is written down with the parent's expressions in place of the
// child's parameters. Then some of its parts are the same for every launch of the block. Other parts depend
// on the launching thread, or on the thread of the child.
//
// The names of the symbols that stand for the last two begin with '#', which no register's name does.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analysis/expressions/expression.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/values/values.h"

namespace klap::analysis {

// Whether a part of an address varies between the launches of a block, and with what.
enum class Varies : uint8_t {
  No,       // one value for all launches of the block
  Thread,   // an injective function of the launching thread takes part: thread_symbol()
  Child,    // differs between threads of one child, in the same way in each launch
  Unknown,  // differs between launches in a way that is not known
};

class LaunchTerms {
 public:
  // `block`: what is known of the parent's block.
  LaunchTerms(const FunctionFacts& parent, const Site& site, const FunctionFacts& child,
              const KnownExtents& block);

  // An expression of the child in terms of its launch.
  [[nodiscard]] Expr of(const Expr& in_child) const;

  // True if a parameter load of the child gives the same value for the whole grid of parents.
  [[nodiscard]] bool is_same_for_grid(uint32_t parameter_load) const;

  // Stands for the launching thread's number in its block: different for any two threads.
  static Expr thread_symbol(uint32_t bits);
  static bool is_thread_symbol(const ExprNode& leaf);
  // Tells how a leaf of such an expression varies.
  static Varies varies(const ExprNode& leaf);
  // The instruction of the child whose result the symbol is; nothing for other symbols.
  static std::optional<uint32_t> result_of(const ExprNode& leaf);
  // The register of the child that the symbol stands for, as an instruction reads it, where one of several
  // definitions gives its value.
  struct Merged {
    uint32_t instruction = 0;
    std::string name;
  };
  static std::optional<Merged> merged_of(const ExprNode& leaf);

 private:
  [[nodiscard]] Expr argument(uint32_t offset, uint32_t bits) const;
  [[nodiscard]] Expr of_parent(const Expr& value, uint32_t bits, uint32_t offset) const;
  [[nodiscard]] bool is_same_for_block(const ExprNode& leaf) const;
  [[nodiscard]] std::optional<Expr> of_leaf(const Expr& leaf) const;
  [[nodiscard]] Expr position(const std::string& name, uint32_t bits) const;

  const FunctionFacts& parent_;
  const Site& site_;
  const FunctionFacts& child_;
  const KnownExtents block_;
  const SiteValues values_;
};

}  // namespace klap::analysis
