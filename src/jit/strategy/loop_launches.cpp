#include "jit/strategy/loop_launches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/facts/launch_shape.h"
#include "analysis/legality/loop_launches.h"
#include "jit/compile/templates.h"
#include "jit/strategy/kernel_names.h"
#include "jit/strategy/recorded.h"
#include "ptx-patterns/templates/loop_launches/loop_records.h"
#include "support/generated_name.h"
#include "support/hash.h"
#include "transform/aggregate/aggregate.h"
#include "transform/aggregate/consumer.h"
#include "transform/aggregate/loop_launches.h"

namespace klap::jit {

using analysis::Reason;
using analysis::Rejection;

namespace {

// The launches that share a queue because some of them stand in a loop.
std::string queue_text(const PlannedSite& planned) {
  const size_t sites = planned.parent->sites.size(), kernels = planned.loop_launches->kernels.size();
  if (sites == 1) return "in a loop";
  if (kernels == 1) return fmt::format("one queue for {} launches in and beside a loop", sites);
  return fmt::format("one queue for {} launches in and beside a loop, of {} kernels or blocks", sites,
                     kernels);
}

// True if some launches have an order, so that each record names the one before it.
bool is_in_order(const PlannedSite& site) { return site.shape.loop_queue == transform::LoopQueue::InOrder; }

std::string_view kind_of(const PlannedSite& site) { return is_in_order(site) ? "ordered" : "loop"; }

// Names a consumer of several kernels.
std::string several_kernels_name(const Plan& plan, const PlannedSite& site) {
  Hasher kernels;
  for (const transform::ConsumerBody& body : site.shape.bodies)
    kernels.add(fmt::format("{} {}", body.kernel->name, fmt::join(body.block, "x")));
  return generated_name(site.shape.bodies.front().kernel->name,
                        fmt::format("{}_{}_{}{}", kind_of(site), unit_tag(plan, site.child_unit),
                                    kernels.hex().substr(0, 8), site.shape.grid_is_1d ? "_1d" : ""));
}

class LoopLaunches final : public CommonQueue {
 public:
  [[nodiscard]] std::string_view name() const override { return "loop-launches"; }
  // There is only one queue.
  [[nodiscard]] bool needs_queue_order() const override { return false; }

  [[nodiscard]] std::optional<Rejection> check(const ptx::Module& child_module,
                                               const PlannedSite& site) const override {
    return analysis::check_loop_launch(child_module, *site.child, *site.parent, *site.site, site.aggregation);
  }

  [[nodiscard]] SiteTemplates templates(const PlannedSite& site, bool /*has_other_sites*/) const override {
    const uint32_t group_blocks = site.aggregation.group_blocks;
    SiteTemplates out;
    if (is_in_order(site)) {
      out.site = loop_record_template(site.shape, group_blocks);
      out.kernel = ordered_consumer_template(site.shape);
    } else {
      out.site = worklist_record_template(site.shape, group_blocks, false);
      out.kernel = loop_consumer_template(site.shape);
    }
    if (site.aggregation.launcher == Launcher::Device)
      out.launch = launch_queue_consumer_template(site.shape, group_blocks);
    return out;
  }

  [[nodiscard]] std::string consumer_name(const Plan& plan, const PlannedSite& site) const override {
    return site.shape.bodies.size() > 1
               ? several_kernels_name(plan, site)
               : one_child_name(plan, site, kind_of(site), std::to_string(site.shape.pack));
  }

  [[nodiscard]] transform::Generated consumer(const Plan& plan, const PlannedSite& site,
                                              const SiteTemplates& templates, const std::string& name,
                                              transform::LineTables& lines) const override {
    const ptx::Module& module = *plan.units[site.child_unit]->module();
    return transform::consumer_kernel(module, *site.shape.bodies.front().kernel, site.shape,
                                      *templates.kernel, name, lines);
  }

  [[nodiscard]] transform::Generated parent(const ParentSites& of, const std::string& name,
                                            transform::LineTables& lines) const override {
    const PlannedSite& any = of.sites.front();
    const SiteTemplates& templates = of.templates.front();
    std::optional<transform::DeviceLaunch> launch;
    if (templates.launch != nullptr) launch.emplace(device_launch(of.plan, any, templates));
    const transform::DeviceLaunch* const by_device = launch ? &*launch : nullptr;
    if (is_in_order(any))
      return transform::loop_launches_parent(*any.parent, *any.loop_launches, *templates.site, name, lines,
                                             by_device);
    return transform::worklist_parent(*any.parent, transform::launch_targets(any.loop_launches->targets),
                                      *templates.site, name, lines, by_device);
  }

  [[nodiscard]] Variant variant(const Plan& plan, std::span<const PlannedSite> sites,
                                const std::string& name) const override {
    Variant v = CommonQueue::variant(plan, sites, name);
    v.may_refuse = may_refuse(sites.front());
    const auto none = [](const auto&) { return std::vector<const analysis::FunctionFacts*>(); };
    if (v.group_blocks == 0) note_fixed_launches(v, *sites.front().parent, none);  // no child launches
    return v;
  }

  [[nodiscard]] std::string run_text(const PlannedSite& site) const override {
    const bool by_thread =
        analysis::order_scope(*site.parent, *site.site, site.aggregation) == analysis::OrderScope::Thread;
    const auto number = static_cast<size_t>(site.site - site.parent->sites.data());
    return fmt::format(
        "{}, {}{}{}", queue_text(site),
        by_thread ? "a thread's children run one after another" : "a child block to a consumer block",
        early_exit_text(site.shape.bodies.at(site.loop_launches->targets.at(number)).may_exit),
        site.aggregation.launcher == Launcher::Host
            ? ""
            : ", in a consumer " + launching_thread_text(site.aggregation));
  }
  [[nodiscard]] std::string brief_text(const PlannedSite& site) const override {
    return is_in_order(site) ? "in the order of their launches" : "from one queue";
  }

  [[nodiscard]] uint32_t shared_bytes(const PlannedSite& site) const override {
    return analysis::constant_shared_bytes(*site.site, *site.parent).value();
  }

  [[nodiscard]] std::vector<std::string> notes(const PlannedSite& site) const override {
    std::vector<std::string> notes = {may_refuse(site)
                                          ? "launches that the queue has no room for are refused, as by CUDA"
                                          : "launches that the queue has no room for are the program's own"};
    if (analysis::order_scope(*site.parent, *site.site, site.aggregation) == analysis::OrderScope::Thread &&
        site.aggregation.group_blocks == 0)
      notes.push_back(fmt::format(
          "grids of {} blocks or more that a thread launches first are the program's own", KLAP_LARGE_GRID));
    return notes;
  }

 protected:
  // The first kernel is the queue's child.
  [[nodiscard]] ChildQueue queue(const Plan& plan, const PlannedSite& site) const override {
    const std::vector<transform::ConsumerBody>& bodies = site.shape.bodies;
    ChildQueue queue = CommonQueue::queue(plan, site);
    queue.child = bodies.front().kernel->name;
    queue.child_block_threads = bodies.front().threads();
    for (size_t i = 1; i < bodies.size(); ++i)
      queue.others.push_back({bodies[i].kernel->name, bodies[i].threads()});
    return queue;
  }

 private:
  static bool may_refuse(const PlannedSite& site) {
    return site.loop_launches->may_refuse(site.aggregation.group_blocks != 0);
  }
};

}  // namespace

const Strategy& loop_launches_strategy() {
  static const auto& strategy = *new LoopLaunches;  // never destroyed: programs load code until they end
  return strategy;
}

std::optional<Rejection> judge_loop_launches(const Plan& plan, std::vector<PlannedSite>& sites) {
  const PlannedSite& any = sites.front();
  std::vector<const ptx::Function*> children;
  for (const PlannedSite& site : sites) {
    children.push_back(site.child);
    if (site.child_unit == any.child_unit) continue;
    return Rejection{Reason::SeveralSites,
                     fmt::format("launched in and beside a loop, {} and {} are defined in different units",
                                 any.child->name, site.child->name)};
  }
  const ptx::Module& module = *plan.units[any.child_unit]->module();
  const auto loop_launches = std::make_shared<const analysis::LoopLaunches>(
      analysis::loop_launches_of(*any.parent, children, any.aggregation));
  if (auto rejection = analysis::check_common_queue(module, *any.parent, *loop_launches)) return rejection;
  const transform::ConsumerShape shape =
      transform::loop_consumer_shape(module, *loop_launches, have_grids_of_one_row(sites));
  for (PlannedSite& site : sites) {
    site.loop_launches = loop_launches;
    site.shape = shape;
  }
  return std::nullopt;
}

}  // namespace klap::jit
