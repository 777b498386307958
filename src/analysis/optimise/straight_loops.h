// Loops of one basic block that only load and compute, and of which is known, without running a round,
// whether another one follows.
//
//   do { sum += values[i] * x[columns[i]]; i += n; } while (i < end);
//
// A thread of such a loop waits for memory once or twice in each round. Rounds that stand one behind the
// other, with no branch between them, wait for theirs together: the assembler moves loads ahead of what comes
// before them, but not ahead of a branch. Compilers write four rounds in a row. Where a long child runs when
// most of the device has nothing left to do, more are faster.
//
// What is found here is all that it takes to write rounds in a row (transform/text/splice.cpp): the branch
// goes by what a round computes from counters alone, so that this can be computed for several rounds ahead of
// the first. Nothing else about the loop matters, as each round runs as often as before and in the same
// order. Loops that the program wants as they are (`#pragma unroll 1`, the rest of a loop that the compiler
// unrolled) say so, and are not found.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

struct StraightLoop {
  const ptx::Statement* label = nullptr;     // with which it begins
  std::vector<const ptx::Statement*> round;  // behind it, with line directives, without the branch
  const ptx::Statement* branch = nullptr;    // back to the label
  uint32_t loads = 0;                        // of a round, from the device's memory; at least one
  // Those of the round that compute the branch's predicate, and what they read in the next round, in the
  // order in which they stand.
  std::vector<const ptx::Statement*> counting;
  // Registers that these write, each once.
  struct Counter {
    std::string_view name;
    uint32_t bits = 0;  // 0 for a predicate
  };
  std::vector<Counter> counters;
};

// Those of a function's outermost scope, in the order of the text.
std::vector<StraightLoop> find_straight_loops(const ptx::Module& module, const ptx::Function& function);

}  // namespace klap::analysis
