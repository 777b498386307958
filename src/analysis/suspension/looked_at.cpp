#include "analysis/suspension/looked_at.h"

#include <algorithm>

#include "ptx/opcodes.h"

namespace klap::analysis {

// Inlined calls copy their results, and nobody may look at the copies. So a register has a use only if some
// branch, access or call reads it, or a computation whose result has one.
LookedAt::LookedAt(const FlowFacts& kernel, const VirtualRegisters& registers, const Liveness& liveness)
    : kernel_(kernel), registers_(registers), liveness_(liveness), has_use_(registers.all().size()) {
  const auto& instructions = kernel.flow.instructions();
  for (bool grows = true; grows;) {
    grows = false;
    for (auto i = static_cast<uint32_t>(instructions.size()); i-- > 0;) {
      const auto accesses = registers.accesses(i);
      const bool has_use =
          !ptx::opcode_of(kernel.module, *instructions[i].statement).is_computation() ||
          std::ranges::any_of(accesses, [&](const Access& a) { return a.written && has_use_[a.reg]; });
      if (!has_use) continue;
      for (const Access& access : accesses) {
        if (!access.read || has_use_[access.reg]) continue;
        has_use_[access.reg] = true;
        grows = true;
      }
    }
  }
}

bool LookedAt::is_live_behind(uint32_t instruction, uint32_t reg) const {
  const BasicBlock& block = kernel_.flow.blocks()[kernel_.flow.instructions()[instruction].block];
  if (instruction + 1 < block.last) return liveness_.is_live_before(reg, instruction + 1);
  return std::ranges::any_of(block.successors, [&](uint32_t next) {
    return liveness_.is_live_before(reg, kernel_.flow.blocks()[next].first);
  });
}

bool LookedAt::is_result_used(uint32_t instruction, uint32_t reg) const {
  return has_use_[reg] && is_live_behind(instruction, reg);
}

}  // namespace klap::analysis
