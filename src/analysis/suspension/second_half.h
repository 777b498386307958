// The second halves of blocks that stop (transform/suspension/split_kernel.h).
//
// Blocks launch them into the tail-launch stream of their grid, which promises an order. But the program has
// none among the blocks of a grid: all of them may go on at once. Nothing else may be in that stream
// (suspension.h).
#pragma once

#include <string>

#include "support/generated_name.h"

namespace klap::analysis {

// Which kernel a block that stops launches to go on, for generated_name().
inline constexpr char kSecondHalf[] = "resumed";

inline bool is_second_half(const std::string& kernel) {
  const std::string first = name_made_from(kernel);
  return !first.empty() && kernel == generated_name(first, kSecondHalf);
}

}  // namespace klap::analysis
