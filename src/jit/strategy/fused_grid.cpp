#include "jit/strategy/fused_grid.h"

#include <algorithm>

#include "analysis/optimise/fusing.h"
#include "jit/compile/templates.h"
#include "jit/strategy/recorded.h"
#include "transform/aggregate/aggregate.h"

namespace klap::jit {
namespace {

class FusedGrid final : public QueuePerSite {
 public:
  [[nodiscard]] std::string_view name() const override { return "fused-grid"; }
  [[nodiscard]] bool has_plain_host_consumer() const override { return true; }

  [[nodiscard]] SiteTemplates templates(const PlannedSite& site, bool /*has_other_sites*/) const override {
    SiteTemplates out;
    out.site = record(site, true);
    out.kernel = site.shape.flat ? flat_consumer_template(site.shape) : packed_consumer_template(site.shape);
    out.launch = fused_template();
    return out;
  }

  [[nodiscard]] std::string consumer_name(const Plan& /*plan*/, const PlannedSite& /*site*/) const override {
    return {};
  }

  [[nodiscard]] std::string counted_text(const PlannedSite& site) const override {
    return unit_of_count(site.shape);
  }

  [[nodiscard]] transform::Generated parent(const ParentSites& of, const std::string& name,
                                            transform::LineTables& lines) const override {
    std::vector<transform::FusedConsumer> consumers;
    for (size_t i = 0; i < of.sites.size(); ++i) {
      const PlannedSite& site = of.sites[i];
      consumers.push_back(
          {*of.plan.units[site.child_unit]->module(), *site.child, site.shape, *of.templates[i].kernel});
    }
    const PlannedSite& any = of.sites.front();
    const transform::FusedParts parts{consumers, *of.templates.front().launch,
                                      analysis::may_have_more(*any.parent), any.in_slices};
    return transform::fused_parent(*any.parent, recording_sites(of), parts, name, lines);
  }

  [[nodiscard]] Variant variant(const Plan& plan, std::span<const PlannedSite> sites,
                                const std::string& name) const override {
    Variant v = QueuePerSite::variant(plan, sites, name);
    for (const PlannedSite& site : sites)
      v.fused_threads = std::max(v.fused_threads, fused_threads(site.shape));
    const analysis::MoreThanAsked more = analysis::may_have_more(*sites.front().parent);
    v.where_few = sites.front().where_few;
    v.more_threads = more.threads;
    v.more_blocks = more.blocks;
    v.fixed_launches = false;  // the variant beside this one is what the guard compares
    return v;
  }
};

}  // namespace

uint32_t fused_threads(const transform::ConsumerShape& shape) {
  constexpr uint32_t kWarp = 32;
  return shape.flat || shape.blocks_differ() ? kWarp : std::max(kWarp, shape.child_threads());
}

const Strategy& fused_grid_strategy() {
  static const auto& strategy = *new FusedGrid;  // never destroyed: programs load code until they end
  return strategy;
}

}  // namespace klap::jit
