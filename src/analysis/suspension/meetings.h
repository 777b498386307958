// How many barriers a thread has passed when it comes to an instruction.
//
// All threads of a block meet at a barrier, whichever barrier each of them stands at. So two threads of a
// block meet only if they have passed equally many. A thread that waits for children stops the others at the
// barriers where they can meet it, and at no others.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/graph/flow.h"

namespace klap::analysis {

class Meetings {
 public:
  // For a function without branches to unknown places. `barriers` are instructions.
  Meetings(const ControlFlow& flow, const std::vector<uint32_t>& barriers);

  // False only if no thread can stand in front of `barrier` while another one of its block, which has passed
  // as many barriers, stands in front of `wait`.
  [[nodiscard]] bool can_meet(uint32_t barrier, uint32_t wait) const;

 private:
  struct Range {
    uint64_t least = kUnbounded, most = 0;
  };
  static constexpr uint64_t kUnbounded = ~uint64_t{0};
  void find_least();
  void find_most();
  [[nodiscard]] Range before(uint32_t instruction) const;

  const ControlFlow& flow_;
  std::vector<bool> is_barrier_;    // by instruction
  std::vector<uint64_t> in_block_;  // barriers of a block
  std::vector<Range> at_entry_;     // by block
};

}  // namespace klap::analysis
