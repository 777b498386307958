// Whether a program looks at the results of its calls.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/facts/flow_facts.h"
#include "analysis/graph/liveness.h"
#include "analysis/graph/registers.h"

namespace klap::analysis {

class LookedAt {
 public:
  // The arguments must outlive this object.
  LookedAt(const FlowFacts& kernel, const VirtualRegisters& registers, const Liveness& liveness);

  // True if something other than computations without a use may read the value that the instruction gives to
  // this register.
  [[nodiscard]] bool is_result_used(uint32_t instruction, uint32_t reg) const;

 private:
  [[nodiscard]] bool is_live_behind(uint32_t instruction, uint32_t reg) const;

  const FlowFacts& kernel_;
  const VirtualRegisters& registers_;
  const Liveness& liveness_;
  std::vector<bool> has_use_;  // by register: more than such computations reads it somewhere
};

}  // namespace klap::analysis
