// This file finds the calls by which some threads may end while others go on: the called code may exit.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"

namespace klap::analysis {

// True if the instruction is a call and the called code may end threads.
bool may_end_threads(const ptx::Module& module, const ptx::Statement& instruction, const LocalNames& names);

class EndingCalls {
 public:
  // The flow of one function, which must live as long as this.
  explicit EndingCalls(const ControlFlow& flow);

  // True if such a call may have ended some of the threads before the instruction.
  [[nodiscard]] bool is_behind(uint32_t instruction) const;

 private:
  const ControlFlow& flow_;
  std::vector<bool> behind_;     // blocks before which a call may have ended some of the threads
  std::vector<uint32_t> calls_;  // such calls
};

}  // namespace klap::analysis
