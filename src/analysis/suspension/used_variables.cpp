#include "analysis/suspension/used_variables.h"

#include <algorithm>
#include <cstdint>

namespace klap::analysis {

namespace {

// Instructions that threads may come to from a place to stop, itself included.
std::vector<bool> reached_from(const ControlFlow& flow, const std::vector<SuspensionPoint>& points) {
  std::vector<bool> reached(flow.instructions().size());
  std::vector<uint32_t> work;
  const auto reach = [&](uint32_t instruction) {
    if (reached[instruction]) return;
    reached[instruction] = true;
    work.push_back(instruction);
  };
  for (const SuspensionPoint& point : points)
    if (!point.never_stops) reach(flow.index_of(point.instruction));
  while (!work.empty()) {
    const uint32_t instruction = work.back();
    work.pop_back();
    const BasicBlock& block = flow.blocks()[flow.instructions()[instruction].block];
    if (instruction + 1 < block.last) {
      reach(instruction + 1);
    } else {
      for (const uint32_t next : block.successors) reach(flow.blocks()[next].first);
    }
  }
  return reached;
}

}  // namespace

std::vector<bool> used_behind(const FlowFacts& kernel, const VirtualRegisters& registers,
                              const OwnAddresses& addresses, const std::vector<OwnVariable>& variables,
                              const std::vector<SuspensionPoint>& points) {
  const std::vector<bool> reached = reached_from(kernel.flow, points);
  std::vector<bool> used(variables.size());
  for (uint32_t i = 0; i < reached.size(); ++i) {
    if (!reached[i]) continue;
    const ptx::TokenRange tokens = kernel.flow.instructions()[i].statement->tokens;
    for (uint32_t t = tokens.first; t < tokens.last; ++t) {
      const auto named = std::ranges::find(variables, kernel.module.text(t), &OwnVariable::name);
      if (named != variables.end()) used[static_cast<size_t>(named - variables.begin())] = true;
    }
    for (const Access& access : registers.accesses(i)) {
      if (addresses.is_mixed(access.reg)) return std::vector<bool>(variables.size(), true);
      if (const auto address = addresses.of(access.reg)) used[address->variable] = true;
    }
  }
  return used;
}

}  // namespace klap::analysis
