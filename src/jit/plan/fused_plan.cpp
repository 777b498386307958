#include "jit/plan/fused_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/optimise/fusing.h"
#include "jit/strategy/fused_grid.h"
#include "jit/strategy/strategy_of.h"

namespace klap::jit {

// Parts of ranges need conditions of their own, packed blocks the consumer's own threads, and arguments that
// are read beforehand a consumer's own kernel.
void fuse(PlannedSite& site) {
  site.fused = true;
  site.shape.fused = true;
  site.shape.awaits_parent = false;
  for (const char* const other : {"split_ranges", "pack_blocks", "preload_arguments"})
    site.options.optimisations.set(other, "off");
}

std::optional<std::string> why_not_fused(const Request& request, const std::vector<PlannedSite>& sites) {
  const PlannedSite& any = sites.front();
  if (!strategy_of(any.aggregation).has_plain_host_consumer())
    return "the host does not launch their consumer";
  if (any.keeps_launches) return "the parent may launch some itself";
  if (!any.options.optimisations.is_on("double_buffer") || !request.double_buffered)
    return "queues are not double-buffered";
  std::vector<analysis::FusedChild> children;
  for (const PlannedSite& site : sites) {
    if (site.child_unit != site.parent_unit) return "they are of another translation unit";
    children.push_back({*site.child, site.shape.shared_bytes});
  }
  return analysis::why_not_fused(*any.parent, children);
}

// Threads that children's blocks do not have end where the others meet at barriers. So only the last queue
// may be one of those.
std::optional<std::string> why_not_in_order(const std::vector<PlannedSite>& sites) {
  for (size_t i = 0; i + 1 < sites.size(); ++i) {
    const transform::ConsumerShape& shape = sites[i].shape;
    if (!shape.flat && shape.sync_scope == analysis::SyncScope::Block)
      return "blocks of one that others follow meet at barriers or share memory";
  }
  return std::nullopt;
}

std::string fused_note(const std::vector<PlannedSite>& sites, const std::optional<std::string>& why_not) {
  if (why_not) return "not in the parent's own kernel: " + *why_not;
  const char* const few = sites.front().where_few ? "where launches have few children, " : "";
  if (analysis::may_have_more(*sites.front().parent).threads)
    return fmt::format("{}the parent's own kernel runs them", few);
  uint32_t threads = 0;
  for (const PlannedSite& site : sites) threads = std::max(threads, fused_threads(site.shape));
  return fmt::format("{}in blocks of {} threads or more the parent's own kernel runs them", few, threads);
}

}  // namespace klap::jit
