// Grid-stride loops that the compiler wrote out: two loops for one.
//
// Where it can tell how many rounds a thread has, nvcc makes a loop of single rounds, which runs until what
// is left is a multiple of four, and one of four rounds at a time:
//
//   left = ((bound - 1 - i) / n + 1) % 4;
//   for (; left != 0; --left) { round(i); i += n; }
//   if ((bound - 1 - i at first) / n >= 3)
//     do { round(i); round(i + n); round(i + 2 * n); round(i + 3 * n); i += 4 * n; } while (i < bound);
//
// That is the one loop if both loops run the same round. Here this is shown instruction by instruction: a
// round of the first loop is compared with each of those that stand in the second one, on all ways through
// it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "analysis/optimise/round_loop.h"

namespace klap::analysis {

struct WrittenOut {
  std::unique_ptr<const RoundLoop> single;  // a round at a time
  std::unique_ptr<const RoundLoop> main;    // several
  std::vector<uint32_t> conditions;  // comparisons that lead around one or the other, and to nothing else
};

// The two loops of a kernel that has no others, all of whose threads but those that fail the guard come
// through as above. `block`: where they go on behind the guard.
std::optional<WrittenOut> find_written_out(const Values& child, const LinearIndex& form, const Guard& guard,
                                           uint32_t block);

}  // namespace klap::analysis
