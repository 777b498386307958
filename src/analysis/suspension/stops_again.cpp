#include "analysis/suspension/stops_again.h"

#include <algorithm>

namespace klap::analysis {

bool stops_again(const FlowFacts& kernel, const Suspension& suspension) {
  const ControlFlow& flow = kernel.flow;
  return std::ranges::any_of(suspension.points, [&](const SuspensionPoint& wait) {
    return wait.at == SuspendsAt::Wait &&
           std::ranges::any_of(suspension.points, [&](const SuspensionPoint& from) {
             return !from.never_stops &&
                    flow.can_follow(flow.index_of(from.instruction), flow.index_of(wait.instruction));
           });
  });
}

}  // namespace klap::analysis
