#include "jit/strategy/strategy.h"

#include <fmt/format.h>

#include "analysis/facts/launch_shape.h"
#include "jit/strategy/kernel_names.h"
#include "transform/aggregate/consumer.h"

namespace klap::jit {

using analysis::Rejection;

std::optional<Rejection> Strategy::check(const ptx::Module& /*child_module*/,
                                         const PlannedSite& /*site*/) const {
  return std::nullopt;
}

std::optional<Rejection> Strategy::make_shape(const ptx::Module& /*child_module*/,
                                              PlannedSite& /*site*/) const {
  return std::nullopt;
}

const analysis::OrderVerdict* Strategy::known_order(const PlannedSite& /*site*/) const { return nullptr; }

transform::RecordLayout Strategy::packed_layout(const ptx::Module& /*child_module*/,
                                                const PlannedSite& site) const {
  return site.shape.layout;
}

transform::Generated Strategy::consumer(const Plan& plan, const PlannedSite& site,
                                        const SiteTemplates& templates, const std::string& name,
                                        transform::LineTables& lines) const {
  const ptx::Module& module = *plan.units[site.child_unit]->module();
  return transform::consumer_kernel(module, *site.child, site.shape, *templates.kernel, name, lines, nullptr,
                                    templates.join.get());
}

std::string Strategy::parent_name(const Plan& plan, const PlannedSite& site) const {
  return variant_name(plan, site);
}

std::string Strategy::granularity(const PlannedSite& site) const {
  return to_string(site.aggregation.granularity);
}

std::optional<std::string> Strategy::own_detail(const PlannedSite& /*site*/) const { return std::nullopt; }

std::string Strategy::block_text(const PlannedSite& site) const {
  const auto block = analysis::constant_block(*site.site, *site.parent);
  return block ? fmt::format("block {}x{}x{}", (*block)[0], (*block)[1], (*block)[2]) : "block of any size";
}

std::string Strategy::run_text(const PlannedSite& /*site*/) const { return {}; }
std::string Strategy::brief_text(const PlannedSite& site) const {
  const std::string run = run_text(site);
  return run.substr(0, run.find(','));
}

uint32_t Strategy::shared_bytes(const PlannedSite& site) const { return site.shape.most_shared_bytes(); }
bool Strategy::shared_differs(const PlannedSite& site) const {
  return site.shape.sizes && site.shape.sizes->shared_differs();
}

analysis::Uniform Strategy::aggregated_threads(const PlannedSite& site) const {
  return transform::group_that_shares(site.aggregation.group_blocks);
}

analysis::KnownExtents Strategy::known_block(const PlannedSite& site) const { return site.aggregation.block; }

std::vector<std::string> Strategy::notes(const PlannedSite& /*site*/) const { return {}; }

}  // namespace klap::jit
