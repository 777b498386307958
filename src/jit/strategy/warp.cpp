#include "jit/strategy/warp.h"

#include <fmt/format.h>

#include "analysis/legality/cooperation.h"
#include "jit/compile/templates.h"
#include "jit/plan/plan.h"
#include "jit/strategy/aggregated.h"
#include "jit/strategy/kernel_names.h"
#include "jit/strategy/plan_text.h"
#include "support/generated_name.h"
#include "transform/aggregate/consumer.h"
#include "transform/aggregate/warp.h"

namespace klap::jit {
namespace {

using analysis::Rejection;

// The most dynamic shared memory that a launch may have without a limit that the program has raised.
uint32_t most_shared_bytes(const Plan& plan, const PlannedSite& site) {
  const auto constant = analysis::constant_shared_bytes(*site.site, *site.parent);
  return constant ? *constant
                  : analysis::default_shared_limit(*plan.units[site.child_unit]->module(), *site.child);
}

class Warp final : public Strategy {
 public:
  [[nodiscard]] std::string_view name() const override { return "warp"; }
  [[nodiscard]] bool is_immediate() const override { return true; }
  [[nodiscard]] bool may_pack_records() const override { return true; }

  [[nodiscard]] std::optional<Rejection> make_shape(const ptx::Module& child_module,
                                                    PlannedSite& site) const override {
    site.shape =
        transform::warp_shape(child_module, *site.child, has_grid_of_one_row(*site.site, site.parent->data));
    if (site.shape.lanes > 1) return std::nullopt;
    return Rejection{analysis::Reason::ParameterSpace,
                     fmt::format("two launches' arguments, {} bytes each, do not fit into the parameters "
                                 "of one",
                                 site.child->parameter_bytes)};
  }

  [[nodiscard]] transform::RecordLayout packed_layout(const ptx::Module& child_module,
                                                      const PlannedSite& site) const override {
    return transform::shared_layout(child_module, *site.child, *site.parent, *site.site);
  }

  [[nodiscard]] SiteTemplates templates(const PlannedSite& site, bool /*has_other_sites*/) const override {
    SiteTemplates out;
    out.kernel = warp_consumer_template(site.shape);
    out.site = warp_launch_template(site.shape, transform::warp_launch_shape(*site.parent, *site.site));
    return out;
  }

  [[nodiscard]] std::string consumer_name(const Plan& plan, const PlannedSite& site) const override {
    return generated_name(site.child->name,
                          fmt::format("warp_{}{}{}", unit_tag(plan, site.child_unit),
                                      site.shape.grid_is_1d ? "_1d" : "", layout_tag(site.shape.layout)));
  }

  [[nodiscard]] transform::Generated parent(const ParentSites& of, const std::string& name,
                                            transform::LineTables& lines) const override {
    std::vector<transform::WarpSite> shared;
    for (size_t i = 0; i < of.sites.size(); ++i) {
      const PlannedSite& site = of.sites[i];
      const SiteTemplates& templates = of.templates[i];
      const std::string consumer = consumer_name(of.plan, site);
      shared.push_back({site.site, templates.site.get(), &site.shape.layout, consumer, ""});
      if (site.parent_unit != site.child_unit)
        shared.back().declaration = transform::consumer_declaration(*templates.kernel, consumer);
    }
    return transform::warp_parent(*of.sites.front().parent, shared, name, lines);
  }

  [[nodiscard]] Variant variant(const Plan& plan, std::span<const PlannedSite> sites,
                                const std::string& name) const override {
    Variant v = aggregated_variant(sites.front(), name);
    for (const PlannedSite& site : sites) {
      if (const uint32_t bytes = most_shared_bytes(plan, site); bytes != 0)
        v.shared_limits.push_back({site.child->name, bytes, false});
    }
    return v;
  }

  [[nodiscard]] std::string run_text(const PlannedSite& site) const override {
    return fmt::format("one launch for up to {} lanes", site.shape.lanes);
  }

  [[nodiscard]] analysis::Uniform aggregated_threads(const PlannedSite& /*site*/) const override {
    return analysis::Uniform::Warp;
  }

  [[nodiscard]] std::string fixed_block_text() const override {
    return "the consumer's blocks are the children's";
  }

  [[nodiscard]] std::string one_thread_note() const override {
    return "only one thread of a block launches: nothing to share, nothing is gained";
  }

  [[nodiscard]] std::vector<std::string> notes(const PlannedSite& site) const override {
    if (site.options.buffer != Buffer::Malloc) return {};
    return {"buffer malloc is ignored: launches that are not deferred have no queue"};
  }

  [[nodiscard]] std::string plan_text(const PlannedSite& site) const override {
    return group_lines(site) + lane_lines(site.shape) + record_lines(site.shape.layout);
  }
};

}  // namespace

const Strategy& warp_strategy() {
  static const auto& strategy = *new Warp;  // never destroyed: programs load code until they end
  return strategy;
}

}  // namespace klap::jit
