// Preloaded arguments: a consumer reads a child's first arguments once for all blocks or threads that it runs
// one after another.
#include "jit/optimise/optimisations.h"

namespace klap::jit {
namespace {

bool applies(const SiteToOptimise& at) {
  return at.is_on("preload_arguments") && at.strategy().has_plain_host_consumer();
}

void apply(SiteToOptimise& at) { transform::preload_arguments(at.site.shape); }

}  // namespace

const Optimisation kPreloadArguments{"preload_arguments", applies, apply, nullptr};

}  // namespace klap::jit
