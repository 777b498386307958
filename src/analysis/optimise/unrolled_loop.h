// Grid-stride loops that the compiler unrolled: two loops for one.
//
// If nvcc can tell a thread's trip count, it makes a loop of single iterations, which runs until a multiple
// of four is left. A second loop runs four iterations at a time:
//
//   left = ((bound - 1 - i) / n + 1) % 4;
//   for (; left != 0; --left) { iteration(i); i += n; }
//   if ((bound - 1 - i at first) / n >= 3)
//     do { iteration(i); iteration(i + n); iteration(i + 2 * n); iteration(i + 3 * n); i += 4 * n; } while (i
//     < bound);
//
// Or the rest comes last. Then the second loop runs as many times as there are whole fours, which a register
// of its own counts down, and the first loop runs behind it.
//
// Together they are the one loop if both run the same iteration. Here this is shown instruction by
// instruction. An iteration of the first loop is compared with each of those that stand in the second one, on
// all ways through it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "analysis/optimise/accumulators.h"
#include "analysis/optimise/iteration_loop.h"

namespace klap::analysis {

struct WrittenOut {
  std::unique_ptr<const IterationLoop> single;  // one iteration at a time
  std::unique_ptr<const IterationLoop> main;    // several
  std::vector<uint32_t> conditions;  // comparisons that lead around one or the other, and to nothing else
  // The sums that both hand on: of an iteration, and of a turn of the second loop. They stand in the same
  // order.
  std::vector<Accumulator> of_single, of_main;
};

// The place where threads go on behind both loops.
struct BehindLoops {
  std::optional<uint32_t> block;  // nothing: they end at once, and hand on nothing
};

// Finds the two loops of a kernel that has no others. All threads but those that fail the guard must come
// through as above. `block` is where they go on behind the guard.
std::optional<WrittenOut> find_unrolled_loop(const Values& child, const LinearIndex& form, const Guard& guard,
                                             uint32_t block, const BehindLoops& behind = {});

}  // namespace klap::analysis
