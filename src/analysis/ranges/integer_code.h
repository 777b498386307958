// One instruction on integers, computed from the values of its operands.
//
// Code that is run for a thread (block_sum.h) needs what an instruction makes of numbers that are known
// there, with the exact arithmetic of PTX registers (expression_arithmetic.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "analysis/expressions/expression.h"
#include "ptx/tree.h"

namespace klap::analysis {

// An operand's value in so many bits; unknown for one that is no number.
using OperandNumber = std::function<Expr(size_t operand, uint32_t bits)>;

// The result of arithmetic and conversions; unknown if an operand is, or if the instruction is none of these.
Expr integer_result(const ptx::Module& module, const ptx::Statement& instruction,
                    const OperandNumber& number);

// The result of a plain `setp` of constants; nothing for others.
std::optional<bool> comparison_result(const ptx::Module& module, const ptx::Statement& setp,
                                      const OperandNumber& number);

// The lane that a lane reads by `shfl` with the operands b (below 32) and c, and its predicate, as the PTX
// manual has it.
std::pair<uint32_t, bool> shuffled_lane(const ptx::Module& module, const ptx::Statement& shfl, uint32_t lane,
                                        uint32_t b, uint32_t c);

}  // namespace klap::analysis
