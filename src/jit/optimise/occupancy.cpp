// Occupancy: a consumer whose threads run the threads of children one after another is assembled for a
// minimum number of blocks on a multiprocessor (transform/promotion/residency.h).
//
// Such a consumer must hold little besides: it needs no place in three dimensions, and no block that the
// record tells.
#include <fmt/format.h>

#include "analysis/facts/launch_shape.h"
#include "jit/optimise/optimisations.h"
#include "transform/promotion/residency.h"

namespace klap::jit {
namespace {

bool is_for_all(const SiteToOptimise& at) {
  return at.site.options.optimisations.value("occupancy") == "all";
}

bool applies(const SiteToOptimise& at) {
  const transform::ConsumerShape& shape = at.site.shape;
  return at.is_on("occupancy") && at.strategy().has_plain_host_consumer() && !shape.flat &&
         (shape.loops.empty() || is_for_all(at)) && shape.grid_is_1d && !shape.blocks_differ();
}

void apply(SiteToOptimise& at) {
  transform::ConsumerShape& shape = at.site.shape;
  const bool has_shared = shape.most_shared_bytes() != 0 ||
                          analysis::most_static_shared_bytes(at.child_module(), *at.site.child) != 0;
  if (at.child.has_frame || (has_shared && !is_for_all(at))) return;
  if (!has_shared && shape.loops.empty())
    shape.min_blocks_per_sm = transform::min_consumer_blocks(at.child.words, shape.threads(), at.request.sm);
  if (shape.min_blocks_per_sm == 0 && is_for_all(at))
    shape.min_blocks_per_sm = transform::usual_blocks(shape.threads());
}

OptimisationRemark remark(const PlannedSite& site) {
  OptimisationRemark out;
  const uint32_t blocks = site.shape.min_blocks_per_sm;
  if (blocks != 0) out.fact = fmt::format("registers for {} blocks per SM", blocks);
  return out;
}

}  // namespace

const Optimisation kOccupancy{"occupancy", applies, apply, remark};

}  // namespace klap::jit
