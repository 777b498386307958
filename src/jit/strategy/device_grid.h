// The strategy for launches that the parent's last thread launches, aggregated over the grid.
//
// The host cannot launch the children if the program looks at their results on the device, or if their stream
// is known to the device only. Then the last thread of the parent launches one kernel with exactly the blocks
// of all recorded children.
#pragma once

#include "jit/strategy/recorded.h"

namespace klap::jit {

class DeviceGrid : public QueuePerSite {
 public:
  [[nodiscard]] std::string_view name() const override { return "device-grid"; }
  [[nodiscard]] std::optional<analysis::Rejection> make_shape(const ptx::Module& child_module,
                                                              PlannedSite& site) const override;
  [[nodiscard]] SiteTemplates templates(const PlannedSite& site, bool has_other_sites) const override;
  [[nodiscard]] std::string consumer_name(const Plan& plan, const PlannedSite& site) const override;
  [[nodiscard]] transform::Generated parent(const ParentSites& of, const std::string& name,
                                            transform::LineTables& lines) const override;
  [[nodiscard]] std::string run_text(const PlannedSite& site) const override;
  [[nodiscard]] std::string fixed_block_text() const override;
};

const Strategy& device_grid_strategy();

}  // namespace klap::jit
