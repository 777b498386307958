#include "jit/strategy/worklist.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/launch_shape.h"
#include "analysis/values/values.h"
#include "transform/promotion/residency.h"

namespace klap::jit {

using analysis::Objection;
using analysis::Reason;
using analysis::Site;

namespace {

// Says how a block of the consumer takes items. `apart`: no kernel has warps that belong together.
void take_several(transform::ConsumerShape& shape, bool apart) {
  constexpr uint32_t kMostItems = 8, kWarp = 32;
  shape.takes = std::min(kMostItems, shape.threads());
  shape.apart = apart && shape.threads() > kWarp && shape.threads() % kWarp == 0;
}

std::array<uint32_t, 3> body_block(const analysis::FedKernel& kernel) {
  std::array<uint32_t, 3> block{};
  std::ranges::transform(kernel.block, block.begin(),
                         [](const auto& extent) { return extent.value_or(transform::kOwnExtent); });
  return block;
}

}  // namespace

analysis::FamilyVerdict judge_worklist(const Plan& plan, const std::vector<PlannedSite>& sites) {
  const PlannedSite& any = sites.front();
  for (const PlannedSite& site : sites) {
    if (site.child_unit == any.child_unit) continue;
    return {nullptr, Objection{Reason::ChildLaunches, fmt::format("{} and {} are defined in different units",
                                                                  any.child->name, site.child->name)}};
  }
  auto verdict = analysis::judge_family(any.parent, *plan.units[any.child_unit]->module(), any.way);
  if (verdict.objection && any.child_unit != any.parent_unit)
    verdict.objection->detail += ", in " + plan.units[any.child_unit]->unit().name;
  return verdict;
}

transform::ConsumerShape worklist_shape(const std::vector<PlannedSite>& sites, const PlannedSite& site) {
  const analysis::Family& family = *site.family;
  const ptx::Module& module = family.kernels.front().facts->module;
  bool is_1d = have_grids_of_one_row(sites);
  std::vector<transform::FedBody> bodies;
  uint32_t shared_bytes = 0, words = 0;
  bool shares = false, apart = true;
  for (const analysis::FedKernel& kernel : family.kernels) {
    const transform::ConsumerShape own =
        transform::consumer_shape(module, kernel.facts->function, kernel.judged_block(), is_1d, false);
    bodies.push_back({body_block(kernel), own.layout, own.may_leave});
    shared_bytes = std::max(shared_bytes, kernel.shared_bytes);
    apart = apart && own.together != analysis::Together::Blocks;
    words = std::max(words, kernel.facts->values().liveness.maximum().pressure.words);
    shares = shares || analysis::most_static_shared_bytes(module, kernel.facts->function) != 0;
    is_1d = is_1d && std::ranges::all_of(kernel.facts->sites, [&](const Site& s) {
              return has_grid_of_one_row(s, kernel.facts->data);
            });
  }
  const analysis::FedKernel& child = family.kernels[family.number_of(site.child->name)];
  transform::ConsumerShape shape =
      transform::consumer_shape(module, *site.child, child.judged_block(), is_1d, false, true);
  shape.shared_bytes = shared_bytes;
  transform::add_bodies(shape, bodies);
  if (site.options.batch_items) take_several(shape, apart);
  // Shared memory may well leave room for fewer; and how large a block is must be known.
  if (site.options.occupancy && !shares && shared_bytes == 0 && !shape.has_own_extents())
    shape.least_blocks = transform::least_feeding_blocks(words, shape.threads());
  return shape;
}

}  // namespace klap::jit
