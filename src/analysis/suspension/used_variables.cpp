#include "analysis/suspension/used_variables.h"

#include <algorithm>
#include <cstdint>

namespace klap::analysis {

std::vector<bool> used_behind(const FlowFacts& kernel, const VirtualRegisters& registers,
                              const OwnAddresses& addresses, const std::vector<OwnVariable>& variables,
                              const std::vector<SuspensionPoint>& points) {
  const ControlFlow& flow = kernel.flow;
  std::vector<bool> used(variables.size());
  const auto note_use = [&](size_t variable, uint32_t instruction) {
    used[variable] =
        used[variable] || std::ranges::any_of(points, [&](const SuspensionPoint& point) {
          return !point.never_stops && flow.can_follow(flow.index_of(point.instruction), instruction);
        });
  };
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    const ptx::TokenRange tokens = flow.instructions()[i].statement->tokens;
    for (uint32_t t = tokens.first; t < tokens.last; ++t) {
      const auto named = std::ranges::find(variables, kernel.module.text(t), &OwnVariable::name);
      if (named != variables.end()) note_use(static_cast<size_t>(named - variables.begin()), i);
    }
    for (const Access& access : registers.accesses(i)) {
      if (const auto address = addresses.of(access.reg)) note_use(address->variable, i);
      if (!addresses.is_mixed(access.reg)) continue;
      for (size_t variable = 0; variable < variables.size(); ++variable) note_use(variable, i);
    }
  }
  return used;
}

}  // namespace klap::analysis
