// Double buffering: a record queue has two sets of counters, used by alternate launches of the parent, so
// that no launch waits for the last block of the one before to reset them.
#include "jit/optimise/optimisations.h"

namespace klap::jit {
namespace {

bool applies(const SiteToOptimise& at) {
  return at.is_on("double_buffer") && at.request.double_buffered && at.strategy().has_plain_host_consumer();
}

void apply(SiteToOptimise& at) { at.site.shape.double_buffered = true; }

}  // namespace

const Optimisation kDoubleBuffer{"double_buffer", applies, apply, nullptr};

}  // namespace klap::jit
