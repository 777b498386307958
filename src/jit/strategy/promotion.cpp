#include "jit/strategy/promotion.h"

#include <fmt/format.h>

#include "jit/compile/templates.h"
#include "jit/strategy/kernel_names.h"
#include "jit/strategy/promotion_plan.h"
#include "support/generated_name.h"
#include "transform/aggregate/aggregate.h"
#include "transform/promotion/promote.h"

namespace klap::jit {
namespace {

class Promotion final : public Strategy {
 public:
  [[nodiscard]] std::string_view name() const override { return "promotion"; }

  [[nodiscard]] SiteTemplates templates(const PlannedSite& site, bool /*has_other_sites*/) const override {
    const transform::PromotedShape& shape = site.promotion->shape;
    SiteTemplates out;
    out.kernel = promote_template(shape);
    out.site = promote_link_template(shape);
    if (shape.launches) out.launch = promote_launch_template(shape);
    return out;
  }

  // The parent's variant is the whole chain.
  [[nodiscard]] std::string consumer_name(const Plan& /*plan*/, const PlannedSite& /*site*/) const override {
    return {};
  }

  [[nodiscard]] std::string parent_name(const Plan& plan, const PlannedSite& site) const override {
    return generated_name(site.parent->function.name, fmt::format("{}_{}", site.promotion->shape.name(),
                                                                  unit_tag(plan, site.parent_unit)));
  }

  [[nodiscard]] transform::Generated parent(const ParentSites& of, const std::string& name,
                                            transform::LineTables& lines) const override {
    const PlannedSite& site = of.sites.front();
    const SiteTemplates& templates = of.templates.front();
    return transform::promoted_kernel(*site.parent, *site.promotion->chain, site.promotion->shape,
                                      {*templates.kernel, *templates.site, templates.launch.get()}, name,
                                      lines);
  }

  [[nodiscard]] Variant variant(const Plan& /*plan*/, std::span<const PlannedSite> sites,
                                const std::string& name) const override {
    const PlannedSite& site = sites.front();
    const PlannedPromotion& promotion = *site.promotion;
    const ptx::Function& parent = site.parent->function;
    Variant v;
    v.parent = parent.name;
    v.parent_variant = name;
    v.parent_param_count = static_cast<uint32_t>(parent.parameters.size());
    v.parent_param_bytes = parent.parameter_bytes;
    v.queue_param_offset = transform::queue_parameter_offset(parent);
    v.promoted = PromotedChain{promotion.shape.name(), promotion.chain->block, promotion.chain->shared_bytes,
                               promotion.shape.slot_bytes, promotion.shape.double_buffered};
    v.pool_bytes = site.options.pool_bytes;
    v.pool = site.options.pool;
    v.concurrency = site.options.concurrency;
    return v;
  }

  [[nodiscard]] std::string granularity(const PlannedSite& /*site*/) const override { return kPromotion; }

  [[nodiscard]] std::optional<std::string> own_detail(const PlannedSite& site) const override {
    return promotion_text(*site.promotion, *site.parent);
  }

  [[nodiscard]] std::vector<std::string> notes(const PlannedSite& site) const override {
    return site.promotion->notes;
  }

  [[nodiscard]] std::string plan_text(const PlannedSite& site) const override {
    return fmt::format("  promotion        {}\n", promotion_text(*site.promotion, *site.parent));
  }
};

}  // namespace

const Strategy& promotion_strategy() {
  static const auto& strategy = *new Promotion;  // never destroyed: programs load code until they end
  return strategy;
}

}  // namespace klap::jit
