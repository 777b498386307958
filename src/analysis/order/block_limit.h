// Comparisons of a block's index, as guards make them, with a bound that is a constant or the host's.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/expressions/expression.h"
#include "analysis/order/host_distance.h"

namespace klap::analysis {

// `left relation right` holds, for integers.
struct IndexComparison {
  Expr left, right, difference;
  std::string_view relation;  // ".lt", ".le", ".gt", ".ge", ".eq", ".ne"
  bool is_unsigned = false;
};

// A guard that the host can check: along an axis of the grid, the index of the block times the step is below
// a sum of products of numbers that it passes. A step of 0 stands for the block's size.
struct BlockLimit {
  uint32_t axis = 0, step = 0;
  HostDistance bound;
  auto operator<=>(const BlockLimit&) const = default;
};

// The limit that such a comparison sets, if it is of that form.
std::optional<BlockLimit> limit_of(const IndexComparison& c);

// A constant is above the index of a block, or of a thread in the grid, and above those of two blocks.
bool lets_two_blocks_through(const IndexComparison& c);

bool is_block_index(const ExprNode& node);
bool is_thread_index(const Term& term);

}  // namespace klap::analysis
