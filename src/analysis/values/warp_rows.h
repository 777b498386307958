// This file has the terms for blocks whose rows are whole warps: every 32 threads of a row are a warp.
//
// There the index of a thread in its row is the number of its warp, times 32, plus the lane. An expression in
// these terms shows which of its parts differ between the threads of one warp.
#pragma once

#include "analysis/expressions/expression.h"

namespace klap::analysis {

// True for the symbol that stands for the number of a warp in its row.
bool is_warp_number(const ExprNode& leaf);

// The number of a warp's lanes, in the width of the value.
Expr of_lanes(const Expr& value);

// The value with the index in the row written as the warp's number and the lane.
Expr by_warp(const Expr& value);

// True if it is a multiple of a warp's lanes, whatever its symbols are and however often it wraps around.
bool is_whole_warps(const Expr& value);

}  // namespace klap::analysis
