// Loops whose trip count is fixed when a thread enters them.
//
// No thread waits in such a loop: nothing that it reads there, and no other thread, makes it stay longer or
// leave sooner. This is shown if every branch that leaves the loop stands on every way around. Its condition
// must be computed, once in every iteration, from values known before the loop and from itself: counters.
// Contents of memory, values from other threads, and the way taken through the loop must have no part in it.
#pragma once

#include <cstdint>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/dominance.h"
#include "analysis/graph/flow.h"
#include "analysis/graph/loops.h"

namespace klap::analysis {

class InvariantTripCount {
 public:
  InvariantTripCount(const ptx::Module& module, const ControlFlow& flow, const DataFlow& data)
      : module_(module), flow_(flow), data_(data), dominance_(flow), loops_(flow) {}

  // True if the instruction stands in loops, and all of these have a fixed trip count.
  [[nodiscard]] bool around(uint32_t instruction) const;

 private:
  [[nodiscard]] bool is_fixed(uint32_t loop) const;
  [[nodiscard]] bool exits_by_counters(uint32_t loop, uint32_t from) const;
  [[nodiscard]] bool runs_in_every_iteration(uint32_t loop, uint32_t block) const;
  [[nodiscard]] bool computes(const ptx::Statement& instruction) const;
  [[nodiscard]] const ptx::Statement& at(uint32_t i) const { return *flow_.instructions()[i].statement; }

  const ptx::Module& module_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  const Dominance dominance_;
  const Loops loops_;
};

}  // namespace klap::analysis
