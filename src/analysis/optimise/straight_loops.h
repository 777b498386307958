// Loops of one basic block that only load and compute. Whether another iteration follows must be known
// without running one.
//
//   do { sum += values[i] * x[columns[i]]; i += n; } while (i < end);
//
// A thread of such a loop waits for memory once or twice in each iteration. Iterations that stand one behind
// the other, with no branch between them, wait for theirs together. The assembler moves loads ahead of the
// code before them, but not ahead of a branch. Compilers unroll four times. If a long child runs when most of
// the device has nothing left to do, a larger unroll factor is faster.
//
// This file finds the loops that can be unrolled (transform/text/splice.cpp). The branch must go by a value
// that an iteration computes from counters alone. So this can be computed for several iterations ahead of the
// first. Nothing else about the loop matters, as each iteration runs as often as before and in the same
// order. Loops that the program wants as they are (`#pragma unroll 1`, the rest of a loop that the compiler
// unrolled) say so, and are not found.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

struct StraightLoop {
  const ptx::Statement* label = nullptr;         // the label with which it begins
  std::vector<const ptx::Statement*> iteration;  // behind it, with line directives, without the branch
  const ptx::Statement* branch = nullptr;        // back to the label
  uint32_t loads = 0;                            // of an iteration, from the device's memory; at least one
  // The instructions of the iteration that compute the branch's predicate, and the values that they read in
  // the next iteration, in text order.
  std::vector<const ptx::Statement*> counting;
  // Registers that these write, each once.
  struct Counter {
    std::string_view name;
    uint32_t bits = 0;  // 0 for a predicate
  };
  std::vector<Counter> counters;
};

// The straight loops of a function's outermost scope, in text order.
std::vector<StraightLoop> find_straight_loops(const ptx::Module& module, const ptx::Function& function);

}  // namespace klap::analysis
