#include "jit/strategy/device_grid.h"

#include "jit/compile/templates.h"
#include "jit/strategy/kernel_names.h"
#include "transform/aggregate/aggregate.h"

namespace klap::jit {

std::optional<analysis::Rejection> DeviceGrid::make_shape(const ptx::Module& child_module,
                                                          PlannedSite& site) const {
  make_shape_of(child_module, site, true);
  return std::nullopt;
}

SiteTemplates DeviceGrid::templates(const PlannedSite& site, bool has_other_sites) const {
  SiteTemplates out;
  out.site = record(site, false);
  out.kernel = exact_consumer_template(site.shape);
  out.launch = launch_consumer_template(site.shape, site.aggregation.group_blocks, has_other_sites);
  return out;
}

std::string DeviceGrid::consumer_name(const Plan& plan, const PlannedSite& site) const {
  return one_child_name(plan, site, "exact", std::to_string(site.shape.pack));
}

transform::Generated DeviceGrid::parent(const ParentSites& of, const std::string& name,
                                        transform::LineTables& lines) const {
  const PlannedSite& any = of.sites.front();
  std::vector<transform::DeviceLaunch> launches;
  for (size_t i = 0; i < of.sites.size(); ++i)
    launches.push_back(device_launch(of.plan, of.sites[i], of.templates[i]));
  return transform::launching_parent(*any.parent, recording_sites(of), launches, name, lines, any.in_slices);
}

std::string DeviceGrid::run_text(const PlannedSite& site) const {
  return "an exact grid " + launching_thread_text(site.aggregation);
}

std::string DeviceGrid::fixed_block_text() const { return "the consumer's blocks are the children's"; }

const Strategy& device_grid_strategy() {
  static const auto& strategy = *new DeviceGrid;  // never destroyed: programs load code until they end
  return strategy;
}

}  // namespace klap::jit
