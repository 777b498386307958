// Children that sum up a range of elements, and what each of their threads sums up.
//
//   for (e = begin + threadIdx.x; e < end; e += blockDim.x) sum += f(e);
//
// Such a child is launched as one block of one row, and `begin` and `end` are two of its arguments. Or it is
// given pointers to its elements, and counts them from 0. A thread comes to the end of the loop with the sum
// over its elements: those that are as far from `begin` as its number says, and every block's width further
// on. So whatever the range is and however many threads there are, the sums of all threads together are over
// all elements, each once. What becomes of these sums behind the loop is a question of its own (block_sum.h).
//
// This file shows that for all that a thread does up to the end of the loop:
//
//  - Threads go by one comparison into the loop, or around it. Nothing else stands before it.
//  - Iterations begin and end as above. Loops that the compiler unrolled are one loop (unrolled_loop.h).
//  - What an iteration computes depends on its element and on other arguments only. It only loads and
//    computes.
//  - The loop hands on nothing but sums (accumulators.h), which begin with what adds nothing.
//
// Ends and counter may be signed or not: of ranges that lie below 2^30, both comparisons say the same, and
// others are not cut (templates/aggregate/range_parts.h). So no counter of a part wraps around, either. Where
// they may, a thread must have the number and the steps that it has in the program's block.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/values/values.h"

namespace klap::analysis {

struct RangeLoop {
  std::string why_not;  // the reason why there is none; empty if there is one
  // Places of the two arguments in the parameter block, integers of 32 bits. Without the first one the range
  // begins at 0.
  std::optional<uint32_t> begin_offset;
  uint32_t end_offset = 0;
  uint32_t branch = 0;        // the instruction by which threads go into the loop or around it
  uint32_t behind = 0;        // the block in which all go on
  std::set<uint32_t> blocks;  // between both
  std::set<uint32_t> loads;   // instructions that load in an iteration
  // Some of them load in a row: for each element, what lies behind that for the one before. If no two ranges
  // overlap, nothing of that is loaded twice. That is a guess, which no result may depend on.
  std::set<uint32_t> loads_in_a_row;
  struct Sum {
    uint32_t reg = 0;
    std::string operation;
  };
  std::vector<Sum> sums;

  [[nodiscard]] bool yes() const { return why_not.empty(); }
};

RangeLoop find_range_loop(const Values& child);

// True for a load of global or constant memory that is no more than that.
bool is_plain_load(const ptx::Module& module, const ptx::Statement& instruction);

// A child that counts its elements from 0 has no argument that tells a part where to begin. So its threads
// are told a higher number up to the end of the loop. And where a part is smaller than the program's block,
// they may have to be told the width of that. Behind the loop they know their own number and width again: the
// instructions before the loop, which only compute, are run once more.
struct HigherThreads {
  std::set<const ptx::Statement*> statements;  // up to the end of the loop
  std::vector<const ptx::Statement*> again;    // of these, those that are run once more
  const ptx::Statement* behind = nullptr;      // in front of this one
};
// Nothing if running them once more could give another result.
std::optional<HigherThreads> higher_threads(const Values& child, const RangeLoop& loop);

// "yes: add.f32 over p[52] to p[56]", "no: line 31: ...".
std::string to_string(const RangeLoop& loop);

}  // namespace klap::analysis
