// Parts of ranges: a child that sums up a range of elements runs as several, each for a part of it, mostly
// with a block of one warp (analysis/ranges/range_split.h).
#include <fmt/format.h>

#include "analysis/ranges/range_split.h"
#include "jit/optimise/optimisations.h"

namespace klap::jit {
namespace {

// The child is one block of a constant number of threads in one row, without dynamic shared memory.
bool applies(const SiteToOptimise& at) {
  const transform::ConsumerShape& shape = at.site.shape;
  const auto is_one = [&](const std::string& extent) { return at.site.parent->data.constant(extent) == 1; };
  return at.is_on("split_ranges") && at.strategy().has_plain_host_consumer() && !shape.flat && !shape.sizes &&
         shape.shared_bytes == 0 && !at.site.keeps_launches && at.has_one_row() &&
         std::ranges::all_of(at.site.site->grid, is_one);
}

analysis::SplitRules rules(const SiteToOptimise& at, bool is_all, bool may_use_warps) {
  const auto& options = at.site.options;
  analysis::SplitRules out{.warps = may_use_warps,
                           .blocks = is_all,
                           .join = is_all,
                           .round = options.assume_reassociate,
                           .merge = at.is_on("merge_parts"),
                           .stream = at.is_on("stream_loads")};
  const std::string& elements = options.optimisations.value("part_elements");
  if (elements != "auto") out.elements = static_cast<uint32_t>(std::stoul(elements));
  return out;
}

// Blocks of one warp share a block of the consumer, or they would be too few on a multiprocessor.
bool may_share_block(const SiteToOptimise& at) {
  constexpr std::array<uint32_t, 3> kWarpBlock = {32, 1, 1};
  if (at.site.shape.sync_scope != analysis::SyncScope::Block) return true;
  return at.is_on("pack_blocks") &&
         analysis::judge_warp_block(at.child_module(), *at.site.child, kWarpBlock).block.has_value();
}

void apply(SiteToOptimise& at) {
  PlannedSite& planned = at.site;
  const bool is_all = planned.options.optimisations.value("split_ranges") == "all";
  const bool may_use_warps = may_share_block(at);
  if (!may_use_warps && !is_all) return;
  const auto child = std::make_shared<const analysis::FunctionFacts>(at.child_module(), *planned.child);
  const analysis::RangeSplitVerdict verdict =
      analysis::judge_range_split(child, *planned.parent, *planned.site, planned.shape.child_threads(),
                                  planned.aggregation.block, true, rules(at, is_all, may_use_warps));
  if (!verdict.split) {
    if (verdict.has_range) planned.not_split_range = verdict.why_not;
    return;
  }
  // Nobody would check the conditions where the image is not loaded by the library.
  if (!at.request.blocks && !verdict.split->conditions.apart.empty()) return;
  transform::split_range(planned.shape, at.child_module(), *planned.child, *verdict.split);
  transform::use_threads(planned.shape, planned.options.consumer_threads);
}

OptimisationRemark remark(const PlannedSite& site) {
  OptimisationRemark out;
  if (!site.not_split_range.empty()) out.note = "its range is not cut into parts: " + site.not_split_range;
  if (!site.shape.range) return out;
  const analysis::RangeSplit& range = *site.shape.range;
  out.fact = fmt::format("its range in parts of {} elements{}{}{}", range.elements,
                         range.merges ? ", neighbours as one" : "", range.joined ? ", joined" : "",
                         range.streamed.empty() ? "" : ", streamed");
  if (site.shape.range->is_rounded) out.note = "floating-point numbers are added in another order";
  return out;
}

}  // namespace

const Optimisation kSplitRanges{"split_ranges", applies, apply, remark};

}  // namespace klap::jit
