#include "jit/strategy/loop_launches.h"

#include <fmt/format.h>

#include "transform/aggregate/chain.h"

namespace klap::jit {

using analysis::Objection;
using analysis::Reason;

std::optional<Objection> judge_loop_launches(const Plan& plan, std::vector<PlannedSite>& sites) {
  const PlannedSite& any = sites.front();
  std::vector<const ptx::Function*> children;
  for (const PlannedSite& site : sites) {
    children.push_back(site.child);
    if (site.child_unit == any.child_unit) continue;
    return Objection{Reason::SeveralSites,
                     fmt::format("launched in and beside a loop, {} and {} are defined in different units",
                                 any.child->name, site.child->name)};
  }
  const ptx::Module& module = *plan.units[any.child_unit]->module();
  const auto chained =
      std::make_shared<const analysis::Chained>(analysis::chain_of(*any.parent, children, any.way));
  if (auto objection = analysis::object_to_sharing_queue(module, *any.parent, *chained)) return objection;
  const transform::ConsumerShape shape =
      transform::chain_shape(module, *chained, have_grids_of_one_row(sites));
  for (PlannedSite& site : sites) {
    site.chained = chained;
    site.shape = shape;
  }
  return std::nullopt;
}

}  // namespace klap::jit
