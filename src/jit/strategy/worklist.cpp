#include "jit/strategy/worklist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "analysis/facts/launch_shape.h"
#include "analysis/values/values.h"
#include "jit/compile/templates.h"
#include "jit/strategy/kernel_names.h"
#include "jit/strategy/plan_text.h"
#include "jit/strategy/recorded.h"
#include "support/generated_name.h"
#include "support/hash.h"
#include "transform/aggregate/aggregate.h"
#include "transform/aggregate/consumer.h"
#include "transform/promotion/residency.h"

namespace klap::jit {

using analysis::Reason;
using analysis::Rejection;
using analysis::Site;

namespace {

// Says how a block of the consumer takes items. `apart`: no kernel has warps that belong together.
void take_several(transform::ConsumerShape& shape, bool apart) {
  constexpr uint32_t kMostItems = 8, kWarp = 32;
  shape.takes = std::min(kMostItems, shape.threads());
  shape.apart = apart && shape.threads() > kWarp && shape.threads() % kWarp == 0;
}

// The kernels that the consumer runs beside the site's own child.
std::vector<ChildKernel> other_kernels(const PlannedSite& site) {
  std::vector<ChildKernel> others;
  for (const analysis::GroupKernel& kernel : site.recursive_group->kernels) {
    const std::string& name = kernel.facts->function.name;
    if (name != site.child->name)
      others.push_back({name, kernel.has_constant_block() ? kernel.threads() : 0});
  }
  return others;
}

// All kernels that the consumer runs, if some blocks follow the parent's. Otherwise empty.
std::vector<FollowingBlock> following_blocks(const PlannedSite& site) {
  std::vector<FollowingBlock> blocks;
  if (!site.shape.has_inherited_extents()) return blocks;
  for (size_t i = 0; i < site.recursive_group->kernels.size(); ++i) {
    const analysis::GroupKernel& kernel = site.recursive_group->kernels[i];
    blocks.push_back({kernel.facts->function.name, site.shape.bodies[i].block,
                      kernel.sync_scope == analysis::SyncScope::Block,
                      kernel.sync_scope != analysis::SyncScope::Thread});
  }
  return blocks;
}

// "block 32x4x1"; "block (blockDim.x, 1, 1)", of the block that the host launches the parent with.
std::string kernel_block_text(const analysis::RecursiveGroup& recursive_group, const std::string& child) {
  constexpr std::array kOwn = {"blockDim.x", "blockDim.y", "blockDim.z"};
  const analysis::GroupKernel& kernel = recursive_group.kernels[recursive_group.number_of(child)];
  std::array<std::string, 3> texts;
  for (size_t axis = 0; axis < texts.size(); ++axis)
    texts.at(axis) = kernel.block.at(axis) ? std::to_string(*kernel.block.at(axis)) : kOwn.at(axis);
  return kernel.has_constant_block() ? fmt::format("block {}", fmt::join(texts, "x"))
                                     : fmt::format("block ({})", fmt::join(texts, ", "));
}

// The blocks in which the host must launch the parent. Empty if any will do.
std::string launch_condition_text(const analysis::RecursiveGroup& recursive_group) {
  bool follows = false, full_warps = false;
  uint32_t least = 0, most = 0;
  for (const analysis::GroupKernel& kernel : recursive_group.kernels) {
    const bool meets = kernel.sync_scope == analysis::SyncScope::Block;
    full_warps =
        full_warps || (!kernel.has_constant_block() && kernel.sync_scope != analysis::SyncScope::Thread);
    if (!kernel.has_constant_block()) {
      follows = follows || meets;
    } else {
      least = std::max(least, kernel.threads());
      if (meets) most = kernel.threads();
    }
  }
  std::string blocks = full_warps ? "of whole warps" : "";
  if (follows && least != 0) blocks += fmt::format(" and at least {} threads", least);
  if (most != 0) blocks += fmt::format("{}at most {} threads", blocks.empty() ? "of " : " and ", most);
  if (blocks.empty() ||
      std::ranges::all_of(recursive_group.kernels, &analysis::GroupKernel::has_constant_block))
    return {};
  return fmt::format("where the host launches the parent in blocks {}; else the original runs", blocks);
}

std::vector<transform::LaunchTarget> targets_of(const PlannedSite& site,
                                                const analysis::FunctionFacts& from) {
  return transform::launch_targets(site.recursive_group->targets_of(from));
}

class Worklist final : public CommonQueue {
 public:
  [[nodiscard]] std::string_view name() const override { return "worklist"; }
  [[nodiscard]] bool may_have_second_variant() const override { return true; }
  [[nodiscard]] bool children_launch() const override { return true; }

  [[nodiscard]] const analysis::OrderVerdict* known_order(const PlannedSite& site) const override {
    return &site.recursive_group->order;
  }

  [[nodiscard]] SiteTemplates templates(const PlannedSite& site, bool /*has_other_sites*/) const override {
    SiteTemplates out;
    out.site = worklist_record_template(site.shape, site.aggregation.group_blocks, true);
    out.kernel = worklist_consumer_template(site.shape);
    return out;
  }

  // The name begins with the first kernel of the recursive group.
  [[nodiscard]] std::string consumer_name(const Plan& plan, const PlannedSite& site) const override {
    Hasher kernels;
    for (size_t i = 0; i < site.recursive_group->kernels.size(); ++i) {
      kernels.add(fmt::format("{} {}", site.recursive_group->kernels[i].facts->function.name,
                              fmt::join(site.shape.bodies[i].block, "x")));
    }
    return generated_name(site.recursive_group->kernels.front().facts->function.name,
                          fmt::format("worklist_{}_{}{}{}{}", unit_tag(plan, site.child_unit),
                                      kernels.hex().substr(0, 8), site.shape.grid_is_1d ? "_1d" : "",
                                      site.shape.takes == 1 ? "_single" : "", occupancy_tag(site.shape)));
  }

  [[nodiscard]] transform::Generated consumer(const Plan& plan, const PlannedSite& site,
                                              const SiteTemplates& templates, const std::string& name,
                                              transform::LineTables& lines) const override {
    transform::GroupKernels kernels{*templates.site, {}};
    for (const analysis::GroupKernel& kernel : site.recursive_group->kernels)
      kernels.kernels.push_back({*kernel.facts, targets_of(site, *kernel.facts)});
    const ptx::Module& module = *plan.units[site.child_unit]->module();
    const ptx::Function& first = kernels.kernels.front().kernel.function;
    return transform::consumer_kernel(module, first, site.shape, *templates.kernel, name, lines, &kernels);
  }

  // The host launches the consumer.
  [[nodiscard]] transform::Generated parent(const ParentSites& of, const std::string& name,
                                            transform::LineTables& lines) const override {
    const PlannedSite& any = of.sites.front();
    return transform::worklist_parent(*any.parent, targets_of(any, *any.parent), *of.templates.front().site,
                                      name, lines, nullptr);
  }

  [[nodiscard]] std::string block_text(const PlannedSite& site) const override {
    return kernel_block_text(*site.recursive_group, site.child->name);
  }

  [[nodiscard]] std::string run_text(const PlannedSite& site) const override {
    const size_t kernels = site.recursive_group->kernels.size();
    const std::string who = kernels == 1 ? "launches itself, run by a persistent consumer"
                                         : fmt::format("run by a persistent consumer of {} kernels", kernels);
    const uint32_t takes = site.shape.takes;
    const char* const how = site.shape.apart ? "side by side" : "at a time";
    return fmt::format("{}{}{}", who, takes == 1 ? "" : fmt::format(", up to {} items {}", takes, how),
                       early_exit_text(site.shape.may_exit));
  }

  [[nodiscard]] uint32_t shared_bytes(const PlannedSite& site) const override {
    return kernel_of(site).shared_bytes;
  }

  [[nodiscard]] analysis::KnownExtents known_block(const PlannedSite& site) const override {
    return analysis::known_block(site.recursive_group->kernels, *site.parent, site.aggregation.block);
  }

  [[nodiscard]] std::vector<std::string> notes(const PlannedSite& site) const override {
    std::vector<std::string> notes = {"launches that the queue has no room for are the program's own"};
    std::string condition = launch_condition_text(*site.recursive_group);
    if (!condition.empty()) notes.push_back(std::move(condition));
    return notes;
  }

  [[nodiscard]] std::string plan_text(const PlannedSite& site) const override {
    return group_lines(site) + consumer_lines(site) + kernel_lines(*site.recursive_group) +
           record_lines(site.shape.layout);
  }

 protected:
  [[nodiscard]] ChildQueue queue(const Plan& plan, const PlannedSite& site) const override {
    ChildQueue queue = CommonQueue::queue(plan, site);
    queue.others = other_kernels(site);
    queue.following = following_blocks(site);
    queue.shared_limits.clear();
    for (const analysis::GroupKernel& kernel : site.recursive_group->kernels) {
      if (kernel.shared_bytes != 0)
        queue.shared_limits.push_back({kernel.facts->function.name, kernel.shared_bytes, false});
    }
    return queue;
  }
};

}  // namespace

const Strategy& worklist_strategy() {
  static const auto& strategy = *new Worklist;  // never destroyed: programs load code until they end
  return strategy;
}

std::array<uint32_t, 3> body_block(const analysis::GroupKernel& kernel) {
  std::array<uint32_t, 3> block{};
  std::ranges::transform(kernel.block, block.begin(),
                         [](const auto& extent) { return extent.value_or(transform::kInheritedExtent); });
  return block;
}

const analysis::GroupKernel& kernel_of(const PlannedSite& site) {
  return site.recursive_group->kernels[site.recursive_group->number_of(site.child->name)];
}

analysis::RecursiveGroupVerdict judge_worklist(const Plan& plan, const std::vector<PlannedSite>& sites,
                                               bool conditions) {
  const PlannedSite& any = sites.front();
  for (const PlannedSite& site : sites) {
    if (site.child_unit == any.child_unit) continue;
    return {nullptr, Rejection{Reason::ChildLaunches, fmt::format("{} and {} are defined in different units",
                                                                  any.child->name, site.child->name)}};
  }
  auto verdict = analysis::judge_recursive_group(any.parent, *plan.units[any.child_unit]->module(),
                                                 any.aggregation, conditions);
  if (verdict.rejection && any.child_unit != any.parent_unit)
    verdict.rejection->detail += ", in " + plan.units[any.child_unit]->unit().name;
  return verdict;
}

transform::ConsumerShape worklist_shape(const std::vector<PlannedSite>& sites, const PlannedSite& site) {
  const analysis::RecursiveGroup& recursive_group = *site.recursive_group;
  const ptx::Module& module = recursive_group.kernels.front().facts->module;
  bool is_1d = have_grids_of_one_row(sites);
  std::vector<transform::ConsumerBody> bodies;
  uint32_t shared_bytes = 0, words = 0;
  bool shares = false, apart = true;
  for (const analysis::GroupKernel& kernel : recursive_group.kernels) {
    const transform::ConsumerShape own =
        transform::consumer_shape(module, kernel.facts->function, kernel.judged_block(), is_1d, false);
    bodies.push_back({body_block(kernel), own.layout, own.may_exit});
    shared_bytes = std::max(shared_bytes, kernel.shared_bytes);
    apart = apart && own.sync_scope != analysis::SyncScope::Block;
    words = std::max(words, kernel.facts->values().liveness.maximum().pressure.words);
    shares = shares || analysis::most_static_shared_bytes(module, kernel.facts->function) != 0;
    is_1d = is_1d && std::ranges::all_of(kernel.facts->sites, [&](const Site& s) {
              return has_grid_of_one_row(s, kernel.facts->data);
            });
  }
  const analysis::GroupKernel& child = recursive_group.kernels[recursive_group.number_of(site.child->name)];
  transform::ConsumerShape shape =
      transform::consumer_shape(module, *site.child, child.judged_block(), is_1d, false, true);
  shape.shared_bytes = shared_bytes;
  transform::add_bodies(shape, bodies);
  if (site.options.optimisations.is_on("batch_items")) take_several(shape, apart);
  // Shared memory may well leave room for fewer; and how large a block is must be known.
  if (site.options.optimisations.is_on("occupancy") && !shares && shared_bytes == 0 &&
      !shape.has_inherited_extents())
    shape.min_blocks_per_sm = transform::min_worklist_blocks(words, shape.threads());
  return shape;
}

}  // namespace klap::jit
