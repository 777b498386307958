// Packing of blocks: children of one warp that use shared memory or barriers run several to a block of the
// consumer, each in a warp of its own (analysis/legality/warp_block.h).
#include "jit/optimise/optimisations.h"

namespace klap::jit {
namespace {

constexpr uint32_t kWarp = 32;

bool applies(const SiteToOptimise& at) {
  const transform::ConsumerShape& shape = at.site.shape;
  return at.is_on("pack_blocks") && at.strategy().has_plain_host_consumer() && !shape.blocks_differ() &&
         shape.sync_scope == analysis::SyncScope::Block && !shape.sizes && shape.shared_bytes == 0 &&
         shape.child_threads() == kWarp;
}

void apply(SiteToOptimise& at) {
  PlannedSite& planned = at.site;
  const analysis::WarpBlockVerdict verdict =
      analysis::judge_warp_block(at.child_module(), *planned.child, planned.shape.block);
  if (!verdict.block) {
    planned.not_packed = verdict.why_not;
  } else if (!transform::pack_warps(planned.shape, *verdict.block)) {
    planned.not_packed = "too much shared memory";
  } else {
    transform::use_threads(planned.shape, planned.options.consumer_threads);
  }
}

OptimisationRemark remark(const PlannedSite& site) {
  OptimisationRemark out;
  if (!site.not_packed.empty()) out.note = "not packed: " + site.not_packed;
  return out;
}

}  // namespace

const Optimisation kPackBlocks{"pack_blocks", applies, apply, remark};

}  // namespace klap::jit
