// Accumulators: registers in which the iterations of a loop are summed up, one after another.
//
//   do { sum += values[i] * x[columns[i]]; ... } while (...);
//
// The values of iterations may be added in any order, by any number of threads, if the operation commutes and
// is associative. Integer sums, extrema and bitwise operations are. Sums of floating-point numbers are
// rounded, so another order may change their last bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/values/values.h"

namespace klap::analysis {

// The commuting operation of that name on operands of that type, in one spelling for all types that mean the
// same: "add.i32", "add.f32", "min.s32", "or.b32". Empty for others.
std::string commuting_operation(std::string_view name, std::string_view type);
// True if it makes no difference how often a value takes part.
bool is_idempotent(std::string_view operation);
bool is_rounded(std::string_view operation);

// An instruction that adds something to the register of one of its operands: `add`, `fma`, `min` and others.
struct Accumulation {
  std::string operation;
  size_t operand = 0;  // the one that has the sum so far
};
// The instruction as an accumulation to what it reads in `reg`; nothing if it does anything else with it.
std::optional<Accumulation> accumulation_to(const Values& values, uint32_t instruction, uint32_t reg);

struct Accumulator {
  struct Step {
    uint32_t instruction = 0;
    size_t operand = 0;
  };
  uint32_t reg = 0;
  std::string operation;
  std::vector<Step> steps;  // of one turn of the loop, each adding to what the one before left
};

// The accumulator that a loop of one basic block hands on in the register; nothing if it is none, or if an
// iteration uses the sum in another way.
std::optional<Accumulator> find_accumulator(const Values& values, const Loop& loop, uint32_t reg);

}  // namespace klap::analysis
