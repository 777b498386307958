#include "analysis/suspension/stops_again.h"

#include <algorithm>
#include <vector>

namespace klap::analysis {

bool stops_again(const FlowFacts& kernel, const Suspension& suspension) {
  const ControlFlow& flow = kernel.flow;
  if (flow.has_unknown_branch()) return true;
  const auto comes_to = [&](const SuspensionPoint& from, const SuspensionPoint& to) {
    const uint32_t first = flow.index_of(from.instruction), second = flow.index_of(to.instruction);
    return first == ControlFlow::npos || second == ControlFlow::npos || flow.can_follow(first, second);
  };
  return std::ranges::any_of(suspension.points, [&](const SuspensionPoint& to) {
    return to.at == SuspendsAt::Wait &&
           std::ranges::any_of(suspension.points, [&](const SuspensionPoint& from) {
             return !from.never_stops && comes_to(from, to);
           });
  });
}

}  // namespace klap::analysis
