// Guards: comparisons of a thread's linear index with a bound, by which a thread goes on or ends.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/expressions/expression.h"
#include "analysis/graph/dominance.h"
#include "analysis/graph/flow.h"
#include "analysis/graph/reaching.h"
#include "analysis/graph/registers.h"

namespace klap::analysis {

// A comparison under which a thread goes on.
struct Guard {
  Expr index;              // the compared value: `i`, or `i` plus a value that is the same for all threads
  bool inclusive = false;  // index <= bound rather than index < bound
  Sign sign = Sign::Signed;
  Expr bound;
  uint32_t line = 0;
};
// "i < p[12]"; unsigned comparisons say so.
std::string to_string(const Guard& guard);

// An operand as an instruction reads it, in terms of the linear index (linear_index.h).
using OperandValue = std::function<Expr(uint32_t instruction, std::string_view operand, uint32_t bits)>;

// The upper bound of the index that holds if the branch's predicate has the value `when`; nothing if there is
// none.
std::optional<Guard> branch_guard(const ControlFlow& flow, const VirtualRegisters& registers,
                                  const ReachingDefinitions& reaching, uint32_t branch, bool when,
                                  const OperandValue& value);

// A branch that control takes in one direction only on its way to some block.
struct PassedBranch {
  uint32_t branch = 0;       // an instruction
  std::optional<bool> when;  // the value of its predicate then; nothing for a branch by a table of labels
};
// The branches that lie on all ways to a block. There are none where the dominance is not known.
std::vector<PassedBranch> passed_branches(const ControlFlow& flow, const Dominance& dominance,
                                          uint32_t block);

// True if a thread that comes to the block ends and does nothing else.
bool ends_at_once(const ControlFlow& flow, uint32_t block);

// The block in which those threads go on that do not end behind the first block, and the value of its
// branch's predicate for them. Nothing if the branch does not end some of the threads.
struct WayOn {
  uint32_t block = 0;
  bool when = false;
};
std::optional<WayOn> way_on_from_entry(const ControlFlow& flow);

}  // namespace klap::analysis
