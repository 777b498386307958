// Unrolling: several iterations of a child's loop that only loads and computes stand one after another, so
// that a thread waits for their loads together (analysis/optimise/straight_loops.h).
#include "jit/optimise/optimisations.h"

namespace klap::jit {
namespace {

bool applies(const SiteToOptimise& at) { return at.site.options.unroll != 1 && at.has_plain_host_consumer(); }

void apply(SiteToOptimise& at) {
  transform::unroll(at.site.shape, analysis::find_straight_loops(at.child_module(), *at.site.child),
                    at.site.options.unroll);
}

}  // namespace

const Optimisation kUnroll{"unroll", applies, apply};

}  // namespace klap::jit
