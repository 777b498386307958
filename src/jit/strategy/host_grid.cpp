#include "jit/strategy/host_grid.h"

#include <fmt/format.h>

#include "analysis/optimise/early_start.h"
#include "jit/compile/templates.h"
#include "jit/strategy/kernel_names.h"
#include "jit/strategy/recorded.h"
#include "transform/aggregate/aggregate.h"

namespace klap::jit {
namespace {

using analysis::Rejection;

std::string_view sync_text(analysis::SyncScope sync_scope) {
  switch (sync_scope) {
    case analysis::SyncScope::Thread:
      return "";
    case analysis::SyncScope::Warp:
      return " in full warps";
    case analysis::SyncScope::Block:
      return " with a barrier after each";
  }
  return "";
}

class HostGrid final : public QueuePerSite {
 public:
  [[nodiscard]] std::string_view name() const override { return "host-grid"; }
  [[nodiscard]] bool has_plain_host_consumer() const override { return true; }

  [[nodiscard]] std::optional<Rejection> make_shape(const ptx::Module& child_module,
                                                    PlannedSite& site) const override {
    make_shape_of(child_module, site, false);
    site.shape.awaits_parent = analysis::may_start_early(child_module, *site.child);
    return std::nullopt;
  }

  [[nodiscard]] SiteTemplates templates(const PlannedSite& site, bool /*has_other_sites*/) const override {
    SiteTemplates out;
    out.site = record(site, true);
    out.kernel = site.shape.flat ? flat_consumer_template(site.shape) : packed_consumer_template(site.shape);
    if (site.shape.range && site.shape.range->joined) out.join = join_parts_template(site.shape);
    return out;
  }

  [[nodiscard]] std::string consumer_name(const Plan& plan, const PlannedSite& site) const override {
    const transform::ConsumerShape& shape = site.shape;
    const std::string division =
        shape.flat ? fmt::format("flat{}{}", shape.flat_threads, shape.in_one_row() ? "row" : "")
                   : std::to_string(shape.pack);
    return one_child_name(plan, site, "run", division, optimisations_tag(shape));
  }

  [[nodiscard]] transform::Generated parent(const ParentSites& of, const std::string& name,
                                            transform::LineTables& lines) const override {
    const PlannedSite& any = of.sites.front();
    return transform::recording_parent(*any.parent, recording_sites(of), name, lines, any.in_slices);
  }

  [[nodiscard]] std::string counted_text(const PlannedSite& site) const override {
    return unit_of_count(site.shape);
  }

  [[nodiscard]] std::string run_text(const PlannedSite& site) const override {
    const transform::ConsumerShape& shape = site.shape;
    if (shape.blocks_differ()) return fmt::format("run warp by warp, {} to a consumer block", shape.pack);
    return fmt::format("{} to a consumer block{}{}", shape.pack, sync_text(shape.sync_scope),
                       early_exit_text(shape.may_exit));
  }
  [[nodiscard]] std::string brief_text(const PlannedSite& site) const override {
    return site.shape.blocks_differ() ? "warp by warp" : "block by block";
  }
};

}  // namespace

const Strategy& host_grid_strategy() {
  static const auto& strategy = *new HostGrid;  // never destroyed: programs load code until they end
  return strategy;
}

}  // namespace klap::jit
