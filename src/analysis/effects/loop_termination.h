// Loops that end by themselves, whatever memory holds: loops that read what other threads write, but that do
// not wait for them.
//
// A deferred child cannot be waited for, and blocks that a consumer runs one after another cannot wait for
// each other. Some loops look like waiting but are none, such as the two ends of a union-find or a walk up a
// tree:
//     while (a != b) { sort a > b; old = atomicMin(&parent[a], b); if (old == a) break; a = old; }
//     while (x != root) { x = parent[x]; if (atomicMax(&height[x], h) >= h) break; }
// Both decide by the result of an atomic whether to go on, as a lock does.
//
// The claim. A loop waits for no other thread if a thread that runs it alone, with all other threads stopped
// for good, comes to its end from *every* content of memory. Then it needs no write that another thread has
// still to make. (Two running threads could keep each other busy; but children that have not started take no
// part in that, and natively it would be the same.) Memory is assumed to show a plain load, sooner or later,
// what was written before; a stale value delays and does not wait.
//
// The method. The body is run symbolically along every path from the loop's head back to it; inner loops may
// have done anything to the registers and memory they write. A path is harmless if
//  1. its conditions contradict each other when memory is left alone: a retry that goes on only if another
//     thread interfered; or
//  2. an atomic on it changed memory, and all writes of the loop are atomic minima of one type (or all are
//     maxima): every cell then only falls, so this can happen only finitely often; or
//  3. a rank falls: for a set of registers, each one's new value is strictly less than the greatest of their
//     old values (or, mirrored, greater than the least). An atomic minimum that did not change its cell
//     returned at most its operand. That makes the index fall in the first loop above.
// Memory first, the rank of an outer loop next, inner loops last: this order cannot fall for ever, so the
// loop ends.
//
// Limits. A pointer chase `while (p[x] != x) x = p[x];` looks at another cell each time. But it goes round
// for ever if the cells form a ring that another thread has yet to break. A cell that points to itself until
// another thread fills it in is an ordinary wait. Such a loop ends only by an invariant of the data. `while
// (p[x] < x) x = p[x];` ends by rank. Position does not help either: a thread that has not launched yet may
// wait for the child of one that has. An example is `while (atomicAdd(&turn, 0) != i); launch;` with a child
// that passes the turn on. A loop that looks at one place a bounded number of times may be a wait with a
// time-out. So every strong load and atomic must have an address that the loop computes anew.
//
// These paths also show that some loops do wait:
//     while (got < n) if (atomicExch(&box[got], 0) != 0) { ...; ++got; }
// No exit goes by what the atomic returns. But on the way without a message nothing changes that the loop's
// branches, atomics and loads are computed from, and the path writes no memory. So the next iteration is the
// same again, until another thread writes what the loop looks at. Such a path is idle. A path that counts
// its iterations for nothing but a result is idle, too. One whose conditions contradict each other is not.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "analysis/graph/loops.h"

namespace klap::analysis {

class LoopTermination {
 public:
  // The arguments must outlive this object.
  LoopTermination(const ptx::Module& module, const ControlFlow& flow, const DataFlow& data,
                  const LoopParts& loops)
      : module_(module),
        flow_(flow),
        data_(data),
        loops_(loops),
        shown_(loops.all().size()),
        idle_(loops.all().size()) {}

  // True if the loop is shown to end by itself, and so are the loops in it that read memory strongly or by
  // atomics. `loop` is an index into all of them.
  bool ends_by_itself(uint32_t loop);

  // The loop's idle paths, each as the blocks from its head on. None are found in loops with too many paths.
  const std::set<std::vector<uint32_t>>& idle_paths(uint32_t loop);

 private:
  const ptx::Module& module_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  const LoopParts& loops_;
  std::vector<std::optional<bool>> shown_;
  std::vector<std::optional<std::set<std::vector<uint32_t>>>> idle_;
};

// One line for each loop that reads memory strongly or by atomics: "ends by itself" or "unknown".
std::string print_loop_termination(const ptx::Module& module, const ControlFlow& flow, const DataFlow& data);

}  // namespace klap::analysis
