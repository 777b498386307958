#include "jit/optimise/optimisations.h"

#include <array>

namespace klap::jit {

bool SiteToOptimise::has_plain_host_consumer() const {
  return site.promotion == nullptr && !site.way.is_at_once() && !site.way.has_own_room() &&
         site.way.launcher == Launcher::Host;
}

bool SiteToOptimise::has_one_row() const {
  const analysis::DataFlow& data = site.parent->data;
  return data.constant(site.site->block[1]) == 1 && data.constant(site.site->block[2]) == 1;
}

std::span<const Optimisation> optimisations() {
  static const std::array kOptimisations = {kFlatten,      kPackBlocks, kPreloadArguments, kUnroll,
                                            kDoubleBuffer, kOccupancy,  kThreshold,        kPackRecords};
  return kOptimisations;
}

void optimise(SiteToOptimise& at) {
  for (const Optimisation& optimisation : optimisations()) {
    if (optimisation.applies(at)) optimisation.apply(at);
  }
}

}  // namespace klap::jit
