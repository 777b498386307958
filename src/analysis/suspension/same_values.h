// Registers whose values are the same whenever they are computed, so that a kernel that goes on elsewhere
// computes them again instead of being given them.
//
// Such a register has one definition, which computes from constants, addresses of variables and functions,
// the kernel's parameters, the thread's place, and other such registers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/facts/flow_facts.h"
#include "analysis/graph/registers.h"

namespace klap::analysis {

class SameValues {
 public:
  SameValues(const FlowFacts& kernel, const VirtualRegisters& registers);

  bool is_same(uint32_t reg);
  // The instructions that compute these registers, each behind those whose results it needs.
  std::vector<const ptx::Statement*> computing(const std::vector<uint32_t>& registers);

 private:
  [[nodiscard]] bool may_be_repeated(uint32_t instruction) const;
  void add(uint32_t reg, std::vector<const ptx::Statement*>& to);

  const FlowFacts& kernel_;
  const VirtualRegisters& registers_;
  std::vector<uint32_t> definition_;  // by register: its only one; kNone, or kSeveral
  std::map<uint32_t, bool> known_;    // false as well while it is looked at, for values that go in circles
};

}  // namespace klap::analysis
