// The bases of all strategies that record launches in queues and run the children later.
//
// They share the parent's added parameters and the description of queues for the runtime. Below them stand
// two kinds: strategies with a queue for each site, and strategies with one queue for all sites of a parent.
#pragma once

#include "analysis/counts/fixed_launches.h"
#include "jit/strategy/strategy.h"

namespace klap::jit {

class Recorded : public Strategy {
 public:
  [[nodiscard]] bool needs_queue_order() const override { return true; }
  [[nodiscard]] bool may_have_second_variant() const override { return true; }
  [[nodiscard]] Variant variant(const Plan& plan, std::span<const PlannedSite> sites,
                                const std::string& name) const override;
  [[nodiscard]] std::string plan_text(const PlannedSite& site) const override;

 protected:
  [[nodiscard]] virtual ChildQueue queue(const Plan& plan, const PlannedSite& site) const;
  // Notes whether the parent, if its launches run those kernels, makes equally many each time.
  static void note_fixed_launches(Variant& v, const analysis::FunctionFacts& parent,
                                  const analysis::LaunchedKernels& launched);
  // How the parent's last thread launches the site's consumer.
  [[nodiscard]] transform::DeviceLaunch device_launch(const Plan& plan, const PlannedSite& site,
                                                      const SiteTemplates& templates) const;
};

// A queue for each site, and one kernel in each consumer. The queue's size follows the parent's grid.
class QueuePerSite : public Recorded {
 public:
  [[nodiscard]] bool has_queue_per_site() const override { return true; }
  [[nodiscard]] bool may_pack_records() const override { return true; }
  [[nodiscard]] transform::RecordLayout packed_layout(const ptx::Module& child_module,
                                                      const PlannedSite& site) const override;
  [[nodiscard]] Variant variant(const Plan& plan, std::span<const PlannedSite> sites,
                                const std::string& name) const override;
  [[nodiscard]] std::string block_text(const PlannedSite& site) const override;
  [[nodiscard]] std::vector<std::string> notes(const PlannedSite& site) const override;

 protected:
  // The shape of a consumer with its blocks. `exact`: each block of a child has a block of the consumer.
  static void make_shape_of(const ptx::Module& child_module, PlannedSite& site, bool exact);
  // `by_warps`: if blocks differ, the consumer runs them warp by warp.
  [[nodiscard]] static std::shared_ptr<const ptx::Module> record(const PlannedSite& site, bool by_warps);
  [[nodiscard]] static std::vector<transform::RecordingSite> recording_sites(const ParentSites& of);
};

// One queue for all sites, of a size of its own, because the number of launches is not known beforehand.
class CommonQueue : public Recorded {
 public:
  [[nodiscard]] Variant variant(const Plan& plan, std::span<const PlannedSite> sites,
                                const std::string& name) const override;

 protected:
  [[nodiscard]] ChildQueue queue(const Plan& plan, const PlannedSite& site) const override;
};

// ", warps may exit before barriers", if they may.
std::string_view early_exit_text(analysis::MayExit may_exit);

// The unit in which a queue of the host's consumer counts each child (ChildQueue::counted).
std::string unit_of_count(const transform::ConsumerShape& shape);

// The thread that launches the consumer if the host does not.
std::string launching_thread_text(const analysis::Aggregation& aggregation);

}  // namespace klap::jit
