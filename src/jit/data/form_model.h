// When children run faster in their blocks than thread by thread: the model by which the runtime chooses.
//
// Thread by thread no lane idles, but every step finds out which child it is in. In blocks the lanes behind
// the last thread of each child idle. So the share of the blocks' lanes that have a thread decides, and how
// large blocks are. benchmarks/fit_forms fits both numbers to measured times of this project's programs
// (benchmarks/results), which shortest paths, colouring, searches and spanning trees have on graphs of many
// degrees. No row may lose more than 3 % by the choice.
#pragma once

#include <cstdint>

namespace klap::jit {

// Blocks of more threads were slower in every row. Blocks that are no full warps leave lanes idle whatever
// their children are.
inline constexpr uint32_t kMostThreadsInBlocks = 128, kThreadsOfAWarp = 32;
// From this share of used lanes on, children run in their blocks.
inline constexpr double kLeastLanesUsed = 0.8;

}  // namespace klap::jit
