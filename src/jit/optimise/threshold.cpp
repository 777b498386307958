// Thresholding: children of few threads are not recorded but run by the thread that launches them, or by its
// warp (analysis/optimise/thresholding.h), where each launch makes one and what is launched is known to be no
// error.
#include <fmt/format.h>

#include "jit/optimise/optimisations.h"

namespace klap::jit {
namespace {

bool applies(const SiteToOptimise& at) {
  const PlannedSite& planned = at.site;
  return planned.options.threshold && at.strategy().has_queue_per_site() && !planned.keeps_launches;
}

void apply(SiteToOptimise& at) {
  PlannedSite& planned = at.site;
  const uint32_t threshold = *planned.options.threshold;
  if (!has_grid_of_one_row(*planned.site, planned.parent->data) || !at.has_one_row()) {
    if (threshold != 0) planned.not_thresholded = "its grid or block has more than one dimension";
    return;
  }
  const analysis::ThresholdingVerdict verdict =
      analysis::judge_thresholding(at.child_module(), *planned.child, at.child.moldable, *planned.parent,
                                   *planned.site, at.may_run_in_place(), threshold);
  planned.thresholding = verdict.thresholding;
  planned.not_thresholded = verdict.why_not;
}

// Says which children are not recorded, and why no more of them.
OptimisationRemark remark(const PlannedSite& site) {
  OptimisationRemark out;
  if (site.thresholding && site.thresholding->most_threads == 0) {
    out.fact = "children without threads skipped";
  } else if (site.thresholding) {
    const uint32_t most = site.thresholding->most_threads;
    out.fact = fmt::format("children of up to {} thread{} run by the launching {}", most,
                           most == 1 ? "" : "s", site.thresholding->by_warps() ? "warp" : "thread");
  }
  if (!site.not_thresholded.empty())
    out.note = "small children are not run by the launching thread: " + site.not_thresholded;
  return out;
}

}  // namespace

const Optimisation kThreshold{"threshold", applies, apply, remark};

}  // namespace klap::jit
