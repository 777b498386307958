// Flattening: a consumer numbers the threads of all children through, so that threads of several children
// share a warp (analysis/optimise/flattening.h). Only for children whose threads have nothing to do with each
// other.
#include <fmt/format.h>

#include "analysis/optimise/flattening.h"
#include "jit/optimise/optimisations.h"

namespace klap::jit {
namespace {

bool applies(const SiteToOptimise& at) {
  const transform::ConsumerShape& shape = at.site.shape;
  return at.is_on("flatten") && at.strategy().has_plain_host_consumer() && shape.packs &&
         shape.sync_scope == analysis::SyncScope::Thread;
}

void apply(SiteToOptimise& at) {
  PlannedSite& planned = at.site;
  transform::ConsumerShape& shape = planned.shape;
  if (!shape.grid_is_1d || !at.has_one_row()) {
    planned.not_flat = "its grid or block has more than one dimension";
    return;
  }
  std::optional<uint32_t> block_threads;
  if (!shape.blocks_differ()) block_threads = shape.child_threads();
  // Whether a launch is the program's own is decided where it begins.
  const bool may_wait = !planned.keeps_launches;
  const analysis::StrideLoop* const loop = at.is_on("split_iterations") ? &at.child.loop : nullptr;
  const analysis::FlatVerdict verdict = analysis::judge_flattening(at.child.moldable, loop, *planned.parent,
                                                                   *planned.site, block_threads, may_wait);
  if (!verdict.flattening) {
    planned.not_flat = verdict.why_not;
    return;
  }
  transform::flatten(shape, *verdict.flattening);
  shape.split_all_iterations = planned.options.optimisations.value("split_iterations") == "all";
  transform::use_threads(shape, planned.options.consumer_threads);
}

OptimisationRemark remark(const PlannedSite& site) {
  OptimisationRemark out;
  if (site.shape.flat)
    out.run =
        fmt::format("flattened: {}, {} to a consumer block{}", site.shape.flat->threads, site.shape.threads(),
                    site.also_in_blocks ? ", or in blocks where they are large" : "");
  if (!site.not_flat.empty()) out.note = "not flattened: " + site.not_flat;
  return out;
}

}  // namespace

const Optimisation kFlatten{"flatten", applies, apply, remark};

}  // namespace klap::jit
