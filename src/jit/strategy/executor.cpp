#include "jit/strategy/executor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/executed/calls.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/legality/consumer_block.h"
#include "analysis/legality/cooperation.h"
#include "analysis/suspension/second_half.h"
#include "jit/compile/templates.h"
#include "jit/strategy/kernel_names.h"
#include "jit/strategy/plan_text.h"
#include "jit/strategy/recorded.h"
#include "jit/strategy/worklist.h"
#include "ptx-patterns/templates/executor/copy_arguments.h"
#include "ptx-patterns/templates/executor/grid_records.h"
#include "support/generated_name.h"
#include "support/hash.h"
#include "transform/aggregate/aggregate.h"
#include "transform/aggregate/consumer.h"
#include "transform/promotion/residency.h"

namespace klap::jit {

using analysis::ExecutedOrder;
using analysis::GroupKernel;
using analysis::Rejection;
using analysis::Site;
using analysis::WithoutOrder;

namespace {

// The kernels that the launches of `from` name, with the limit of their blocks. `orders` are those of its
// launches.
std::vector<transform::LaunchTarget> launch_targets_of(const PlannedSite& site,
                                                       const analysis::FunctionFacts& from,
                                                       const std::vector<ExecutedOrder>& orders) {
  std::vector<transform::LaunchTarget> targets;
  for (const uint32_t number : site.recursive_group->targets_of(from)) {
    const GroupKernel& kernel = site.recursive_group->kernels[number];
    const analysis::FunctionFacts& to = *kernel.facts;
    const uint64_t allowed = analysis::most_threads_allowed(to.module, to.function);
    const size_t i = targets.size();
    transform::LaunchTarget& target = targets.emplace_back();
    target.kernel = number;
    target.most_threads = static_cast<uint32_t>(std::min<uint64_t>(allowed, site.shape.threads()));
    target.without_order = orders.at(i).without;
    if (!analysis::constant_shared_bytes(from.sites[i], from)) target.most_shared_bytes = kernel.shared_bytes;
  }
  return targets;
}

// The order of the site's launches when the host launches the parent.
const ExecutedOrder& order_of(const PlannedSite& site) {
  return site.recursive_group->parent_orders.at(static_cast<size_t>(site.site - site.parent->sites.data()));
}

// How launches are run whose order is that.
std::string_view order_text(const ExecutedOrder& order) {
  switch (order.without) {
    case WithoutOrder::Never:
      return "executed in the order of its stream";
    case WithoutOrder::InOneRow:
      return "executed without order in blocks of one row: proven apart";
    case WithoutOrder::InOneLayer:
      return "executed without order in blocks of one layer: proven apart";
    case WithoutOrder::Always:
      break;
  }
  return "executed without order: proven apart";
}

// The kernels that a kernel of the group launches.
analysis::LaunchedKernels launched_in(const analysis::RecursiveGroup& group) {
  return [&group](const analysis::FunctionFacts& from) {
    std::vector<const analysis::FunctionFacts*> launched;
    for (const uint32_t number : group.targets_of(from))
      launched.push_back(group.kernels[number].facts.get());
    return launched;
  };
}

// True if some kernel makes calls that are grids of the executor's own kernel.
bool needs_own_kernel(const analysis::FunctionFacts& kernel) {
  return !kernel.copies.empty() || !analysis::event_calls(kernel).empty();
}
bool needs_own_kernel(const PlannedSite& site) {
  return needs_own_kernel(*site.parent) ||
         std::ranges::any_of(site.recursive_group->kernels,
                             [](const GroupKernel& kernel) { return needs_own_kernel(*kernel.facts); });
}

std::vector<analysis::RunKernel> run_kernels(const analysis::RecursiveGroup& group) {
  std::vector<analysis::RunKernel> kernels;
  for (const GroupKernel& kernel : group.kernels) {
    const auto [x, y, z] = kernel.judged_block();
    const uint32_t threads = kernel.has_constant_block() ? x * y * z : kernel.most_threads;
    kernels.push_back({&kernel.facts->function, threads, kernel.shared_bytes});
  }
  return kernels;
}

// The kernel that copies and fills memory (templates/executor/copies.h). Its block is that of the consumer,
// which is made larger if no kernel has barriers that hold all of its threads.
transform::ConsumerBody copies_body(const ptx::Module& module, std::vector<analysis::RunKernel> kernels) {
  constexpr uint32_t kWantedThreads = 128;
  uint32_t threads = std::ranges::max(kernels, {}, &analysis::RunKernel::threads).threads;
  kernels.push_back({nullptr, kWantedThreads, 0});  // the largest one is not looked at
  if (threads < kWantedThreads && !analysis::check_smaller_block(module, kernels)) threads = kWantedThreads;
  transform::ConsumerBody body{{threads, 1, 1}, {}};
  body.layout.arguments_offset = KLAP_GRID_HEADER_BYTES;
  body.layout.record_bytes = KLAP_GRID_HEADER_BYTES + sizeof(KlapCopy);
  return body;
}

// The limits that the driver must have for kernels whose launches have dynamic shared memory.
std::vector<SharedLimit> shared_limits(const analysis::RecursiveGroup& group) {
  std::vector<SharedLimit> limits;
  for (const GroupKernel& kernel : group.kernels) {
    if (kernel.shared_bytes == 0) continue;
    const ptx::Function& function = kernel.facts->function;
    const uint32_t limit = analysis::default_shared_limit(kernel.facts->module, function);
    const bool is_limit = kernel.shared_differs && kernel.shared_bytes == limit;
    limits.push_back({function.name, kernel.shared_bytes, is_limit});
  }
  return limits;
}

// Bounds of all kernels that the consumer runs; none if it has all its threads whatever the parent's block.
std::vector<ThreadBound> thread_bounds(const PlannedSite& site) {
  const std::vector<GroupKernel>& kernels = site.recursive_group->kernels;
  std::vector<ThreadBound> bounds;
  bool is_less = true;
  for (size_t i = 0; i < site.shape.bodies.size(); ++i) {
    const uint32_t threads = site.shape.bodies[i].threads();
    ThreadBound bound{{threads, 1, 1}, {}, threads};  // of the kernel that copies, which is the last
    for (size_t axis = 0; axis < bound.block.size() && i < kernels.size(); ++axis) {
      bound.block.at(axis) = kernels[i].bound.at(axis).constant;
      bound.or_parents.at(axis) = kernels[i].bound.at(axis).or_other;
    }
    const uint64_t least = uint64_t{bound.block[0]} * bound.block[1] * bound.block[2];
    is_less = is_less && std::min<uint64_t>(least, threads) < site.shape.threads();
    bounds.push_back(bound);
  }
  return is_less ? bounds : std::vector<ThreadBound>();
}

// True if barriers of the kernel must not hold all threads of the consumer's block.
bool counts_barriers(const ptx::Module& module, const GroupKernel& kernel, uint32_t consumer_threads) {
  constexpr uint32_t kWarp = 32;
  const bool is_whole =
      kernel.has_constant_block() && kernel.threads() == consumer_threads && consumer_threads % kWarp == 0;
  return !is_whole && analysis::has_block_barriers(module, kernel.facts->function);
}

class Executor final : public CommonQueue {
 public:
  [[nodiscard]] std::string_view name() const override { return "executor"; }
  [[nodiscard]] bool needs_queue_order() const override { return false; }
  [[nodiscard]] bool keeps_all_orders() const override { return true; }
  [[nodiscard]] bool may_have_second_variant() const override { return true; }
  [[nodiscard]] bool children_launch() const override { return true; }

  [[nodiscard]] SiteTemplates templates(const PlannedSite& site, bool /*has_other_sites*/) const override {
    SiteTemplates out;
    out.site = executor_record_template(site.shape);
    out.kernel = executor_template(site.shape);
    return out;
  }

  // All its variants keep orders, so a second one has a name of its own.
  [[nodiscard]] std::string parent_name(const Plan& plan, const PlannedSite& site) const override {
    return variant_name(plan, site, site.is_second ? "_all" : "");
  }

  // The name begins with the first kernel of the group.
  [[nodiscard]] std::string consumer_name(const Plan& plan, const PlannedSite& site) const override {
    const std::vector<GroupKernel>& kernels = site.recursive_group->kernels;
    Hasher hash;
    for (size_t i = 0; i < kernels.size(); ++i) {
      hash.add(fmt::format("{} {} {}", kernels[i].facts->function.name,
                           fmt::join(site.shape.bodies[i].block, "x"), site.shape.bodies[i].most_threads));
      if (kernels[i].shared_differs) hash.add(fmt::format("shared {}", kernels[i].shared_bytes));
      for (size_t j = 0; j < kernels[i].orders.size(); ++j) {
        if (kernels[i].orders[j].may_be_lost()) hash.add(fmt::format("unordered {}", j));
      }
    }
    return generated_name(kernels.front().facts->function.name,
                          fmt::format("executor_{}_{}{}{}{}", unit_tag(plan, site.child_unit),
                                      hash.hex().substr(0, 8), site.shape.grid_is_1d ? "_1d" : "",
                                      site.shape.copies ? "_copies" : "", occupancy_tag(site.shape)));
  }

  [[nodiscard]] transform::Generated consumer(const Plan& plan, const PlannedSite& site,
                                              const SiteTemplates& templates, const std::string& name,
                                              transform::LineTables& lines) const override {
    transform::GroupKernels kernels{*templates.site, {}};
    for (const GroupKernel& kernel : site.recursive_group->kernels)
      kernels.kernels.push_back({*kernel.facts, launch_targets_of(site, *kernel.facts, kernel.orders)});
    const ptx::Module& module = *plan.units[site.child_unit]->module();
    const ptx::Function& first = kernels.kernels.front().kernel.function;
    return transform::consumer_kernel(module, first, site.shape, *templates.kernel, name, lines, &kernels);
  }

  [[nodiscard]] transform::Generated parent(const ParentSites& of, const std::string& name,
                                            transform::LineTables& lines) const override {
    const PlannedSite& any = of.sites.front();
    return transform::executed_parent(*any.parent,
                                      launch_targets_of(any, *any.parent, any.recursive_group->parent_orders),
                                      *of.templates.front().site, name, lines);
  }

  [[nodiscard]] Variant variant(const Plan& plan, std::span<const PlannedSite> sites,
                                const std::string& name) const override {
    Variant v = CommonQueue::variant(plan, sites, name);
    v.may_refuse = true;
    v.kept_records = KLAP_GRID_RESERVE;
    note_fixed_launches(v, *sites.front().parent, launched_in(*sites.front().recursive_group));
    return v;
  }

  [[nodiscard]] std::string block_text(const PlannedSite& site) const override {
    const GroupKernel& kernel = kernel_of(site);
    if (!kernel.has_constant_block())
      return fmt::format("block from the record, of at most {} threads", kernel.most_threads);
    const auto [x, y, z] = kernel.judged_block();
    return fmt::format("block {}x{}x{}", x, y, z);
  }

  [[nodiscard]] std::string run_text(const PlannedSite& site) const override {
    const size_t kernels = site.recursive_group->kernels.size();
    return fmt::format("{}, {}{}", order_text(order_of(site)),
                       kernels == 1 ? "one kernel" : fmt::format("{} kernels", kernels),
                       early_exit_text(site.shape.may_exit));
  }

  [[nodiscard]] uint32_t shared_bytes(const PlannedSite& site) const override {
    return kernel_of(site).shared_bytes;
  }
  [[nodiscard]] bool shared_differs(const PlannedSite& site) const override {
    return kernel_of(site).shared_differs;
  }

  [[nodiscard]] std::vector<std::string> notes(const PlannedSite& site) const override {
    std::vector<std::string> notes;
    if (site.why_executed) {
      notes.push_back(fmt::format("executed, because other strategies would leave it: {}: {}",
                                  to_string(site.why_executed->reason), site.why_executed->detail));
    }
    for (const GroupKernel& kernel : site.recursive_group->kernels) {
      for (size_t i = 0; i < kernel.orders.size(); ++i) {
        if (kernel.orders[i].may_be_lost())
          notes.push_back(fmt::format("{} launches {} without order: proven apart ({})",
                                      kernel.facts->function.name, kernel.facts->sites[i].callee,
                                      ptx::place(kernel.facts->sites[i].position)));
      }
    }
    notes.emplace_back("launches beyond what the queue has room for are refused, as by CUDA");
    return notes;
  }

  [[nodiscard]] std::string plan_text(const PlannedSite& site) const override {
    return group_lines(site) + consumer_lines(site) + kernel_lines(*site.recursive_group) +
           record_lines(site.shape.layout);
  }

 protected:
  [[nodiscard]] ChildQueue queue(const Plan& plan, const PlannedSite& site) const override {
    ChildQueue queue = CommonQueue::queue(plan, site);
    const std::vector<GroupKernel>& kernels = site.recursive_group->kernels;
    for (size_t i = 0; i < kernels.size(); ++i) {
      const std::string& name = kernels[i].facts->function.name;
      const uint32_t threads = site.shape.bodies[i].threads();
      if (name == site.child->name) {
        queue.child_block_threads = threads;
      } else {
        queue.others.push_back({name, threads});
      }
    }
    queue.shared_limits = shared_limits(*site.recursive_group);
    queue.bounds = thread_bounds(site);
    return queue;
  }
};

std::vector<const ptx::Function*> functions_of(const std::vector<analysis::RunKernel>& kernels) {
  std::vector<const ptx::Function*> functions;
  for (const analysis::RunKernel& kernel : kernels) functions.push_back(kernel.function);
  return functions;
}

bool launches_grids_of_one_row(const analysis::RecursiveGroup& group) {
  return std::ranges::all_of(group.kernels, [](const GroupKernel& kernel) {
    return std::ranges::all_of(kernel.facts->sites,
                               [&](const Site& s) { return has_grid_of_one_row(s, kernel.facts->data); });
  });
}

// All that the shapes of a parent's sites have in common. So each kernel is analysed once, however many sites
// there are.
class ExecutorOfGroup {
 public:
  explicit ExecutorOfGroup(const std::vector<PlannedSite>& sites)
      : group_(*sites.front().recursive_group),
        module_(group_.kernels.front().facts->module),
        run_(run_kernels(group_)),
        overlay_(analysis::shared_overlay(module_, functions_of(run_))),
        memory_(analysis::memory_of_all(module_, run_, overlay_)),
        is_1d_(have_grids_of_one_row(sites) && launches_grids_of_one_row(group_)),
        copies_(needs_own_kernel(sites.front())) {
    for (const GroupKernel& kernel : group_.kernels) add(kernel);
    if (copies_) bodies_.push_back(copies_body(module_, run_));
    const uint32_t threads = with_bodies(own_.front()).threads();
    for (size_t i = 0; i < group_.kernels.size(); ++i)
      bodies_[i].counts_barriers = counts_barriers(module_, group_.kernels[i], threads);
  }

  [[nodiscard]] transform::ConsumerShape shape(const PlannedSite& site, uint32_t sm) const {
    transform::ConsumerShape shape = with_bodies(own_.at(group_.number_of(site.child->name)));
    shape.copies = copies_;
    shape.has_halves = std::ranges::any_of(group_.kernels, [](const GroupKernel& kernel) {
      return analysis::is_second_half(kernel.facts->function.name);
    });
    shape.shared_bytes = static_cast<uint32_t>(memory_.dynamic);
    shape.overlay_bytes = overlay_.bytes;
    shape.overlay_align = overlay_.align;
    if (site.options.optimisations.is_on("occupancy"))
      shape.min_blocks_per_sm =
          transform::min_executor_blocks(words_, shape.threads(), memory_.of_consumer(), copies_, sm);
    return shape;
  }

 private:
  [[nodiscard]] transform::ConsumerShape with_bodies(transform::ConsumerShape shape) const {
    shape.is_executed = true;
    transform::add_bodies(shape, bodies_, KLAP_GRID_HEADER_BYTES);
    return shape;
  }

  void add(const GroupKernel& kernel) {
    own_.push_back(transform::consumer_shape(module_, kernel.facts->function, kernel.judged_block(), is_1d_,
                                             false, true));
    transform::ConsumerBody body{body_block(kernel), own_.back().layout, own_.back().may_exit};
    body.launches = !kernel.facts->sites.empty() || needs_own_kernel(*kernel.facts);
    body.order = analysis::block_order(*kernel.facts);
    body.overlaid = overlay_.kernels[bodies_.size()];
    if (!kernel.has_constant_block()) body.most_threads = kernel.most_threads;
    bodies_.push_back(body);
    words_ = std::max(words_, kernel.facts->values().liveness.maximum().pressure.words);
  }

  const analysis::RecursiveGroup& group_;
  const ptx::Module& module_;
  const std::vector<analysis::RunKernel> run_;
  const analysis::SharedOverlay overlay_;
  const analysis::MemoryOfAll memory_;
  const bool is_1d_, copies_;
  std::vector<transform::ConsumerShape> own_;  // of each kernel by itself
  std::vector<transform::ConsumerBody> bodies_;
  uint32_t words_ = 0;
};

}  // namespace

const Strategy& executor_strategy() {
  static const auto& strategy = *new Executor;  // never destroyed: programs load code until they end
  return strategy;
}

analysis::RecursiveGroupVerdict judge_executed(const Plan& plan, const std::vector<PlannedSite>& sites,
                                               bool conditions) {
  analysis::RecursiveGroupVerdict verdict = judge_worklist(plan, sites, conditions);
  if (verdict.recursive_group == nullptr || verdict.recursive_group->kernels.size() < KLAP_GRID_MOST_KERNELS)
    return verdict;
  return {nullptr, Rejection{analysis::Reason::ChildLaunches,
                             fmt::format("leads to {} kernels, more than items can name",
                                         verdict.recursive_group->kernels.size())}};
}

bool has_fixed_launches(const PlannedSite& site) {
  return analysis::has_fixed_launches(*site.parent, launched_in(*site.recursive_group));
}

void set_executor_shapes(std::vector<PlannedSite>& sites, uint32_t sm) {
  const ExecutorOfGroup executor(sites);
  for (PlannedSite& site : sites) site.shape = executor.shape(site, sm);
}

}  // namespace klap::jit
