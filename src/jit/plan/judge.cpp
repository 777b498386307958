#include "jit/plan/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/launches/calls.h"
#include "analysis/legality/child_checks.h"
#include "analysis/legality/parent_checks.h"
#include "analysis/legality/unit_checks.h"
#include "analysis/order/site_order.h"
#include "analysis/synchronisation/single_thread.h"
#include "jit/strategy/executor.h"
#include "jit/strategy/loop_launches.h"
#include "jit/strategy/strategy_of.h"
#include "jit/strategy/worklist.h"

namespace klap::jit {

using analysis::Aggregation;
using analysis::FunctionFacts;
using analysis::Reason;
using analysis::Rejection;
using analysis::Site;
using analysis::StreamKind;

namespace {

bool is_recursion(const std::optional<Rejection>& rejection) {
  return rejection && rejection->reason == Reason::ChildLaunches;
}

// True for what stands against other strategies and not against the executor.
bool may_be_executed(Reason reason) {
  switch (reason) {
    case Reason::OrderKept:
    case Reason::SeveralSites:
    case Reason::ChildBarrier:
    case Reason::ChildLaunches:
    case Reason::ChildSharedMemory:
    case Reason::ChildWaits:
    case Reason::StreamUnsupported:
    case Reason::SiteInLoop:
    case Reason::BlockNotConstant:
    case Reason::DynamicSharedMemory:
    case Reason::RuntimeCall:
      return true;
    default:
      return false;
  }
}

// Restricts an aggregation to the blocks and grids in which the parent's comparisons may leave one thread.
std::vector<Aggregation> aggregations_of_one_thread(const std::vector<PlannedSite>& sites,
                                                    const Aggregation& aggregation) {
  constexpr analysis::KnownExtents kOneRow = {std::nullopt, 1, 1}, kOne = {1, 1, 1};
  Aggregation factor = aggregation;
  factor.block = analysis::tells_threads_apart(*sites.front().parent) ? kOneRow : kOne;
  if (std::ranges::none_of(
          sites, [](const PlannedSite& s) { return analysis::stream_kind(*s.site) == StreamKind::Tail; }))
    return {factor};
  factor.grid = kOneRow;
  Aggregation of_block = factor;
  of_block.grid = kOne;
  return {factor, of_block};
}

// True if the executor has the parent for that reason, and for nothing else.
bool is_executed_for(const std::vector<PlannedSite>& sites, Reason reason) {
  const auto has_reason = [](const PlannedSite& site) { return site.why_executed.has_value(); };
  return std::ranges::any_of(sites, has_reason) && std::ranges::all_of(sites, [&](const PlannedSite& site) {
           return site.aggregation.is_executed && (!has_reason(site) || site.why_executed->reason == reason);
         });
}

// Says that the rejection is to the queue, and that the queue is needed because the order matters.
Rejection not_kept(const PlannedSite& site, Rejection rejection) {
  rejection.detail += fmt::format("; the order must be kept: {}", site.order.why);
  return rejection;
}

}  // namespace

std::vector<std::optional<Rejection>> SiteJudge::judge(std::vector<PlannedSite>& sites,
                                                       const std::vector<Aggregation>& aggregations) {
  const auto is_rejection = [](const std::optional<Rejection>& o) { return o.has_value(); };
  std::vector<std::optional<Rejection>> rejections;
  const std::vector<PlannedSite> before = sites;
  for (const Aggregation& aggregation : aggregations) {
    rejections = judge_in_any_block(sites, aggregation);
    if (std::ranges::none_of(rejections, is_rejection)) {
      if (is_executed_for(sites, Reason::DynamicSharedMemory)) prefer_exact_grid(sites, before, aggregations);
      if (is_executed_for(sites, Reason::OrderKept)) prefer_blocks_of_one_thread(sites, before, aggregation);
    }
    const bool is_taken = strategy_of(aggregation).is_immediate()
                              ? !std::ranges::all_of(rejections, is_rejection)
                              : std::ranges::none_of(rejections, is_rejection);
    for (size_t i = 0; i < sites.size(); ++i) {
      if (rejections[i]) sites[i].refused.emplace_back(aggregation, *rejections[i]);
    }
    if (is_taken) break;
  }
  for (size_t i = 0; i < sites.size(); ++i) {
    if (rejections[i]) rejections[i] = sites[i].refused.front().second;
  }
  return rejections;
}

// Gives the sites back to a grid that the parent launches itself, if that is asked for and can run them. Its
// blocks have the shared memory of the largest child only.
void SiteJudge::prefer_exact_grid(std::vector<PlannedSite>& sites, const std::vector<PlannedSite>& before,
                                  const std::vector<Aggregation>& aggregations) {
  const auto exact = std::ranges::find_if(aggregations, [](const Aggregation& aggregation) {
    return aggregation.granularity == Granularity::Grid && aggregation.launcher == Launcher::Device;
  });
  if (exact == aggregations.end()) return;
  std::vector<PlannedSite> launched = before;
  if (std::ranges::none_of(judge_in_any_block(launched, *exact), [](const auto& o) { return o.has_value(); }))
    sites = std::move(launched);
}

// Children that launch are no reason by themselves where one consumer might run them: then it is what
// stands against another site that keeps it from being asked for.
void SiteJudge::blame_others(const std::vector<PlannedSite>& sites,
                             std::vector<std::optional<Rejection>>& rejections) const {
  if (!may_run_worklist(sites.front().aggregation) || sites.front().aggregation.has_loop_queue) return;
  if (!std::ranges::any_of(rejections, [](const auto& o) { return o && !is_recursion(o); })) return;
  for (size_t i = 0; i < sites.size(); ++i) {
    if (!sites[i].aggregation.is_recursive && is_recursion(rejections[i])) rejections[i].reset();
  }
}

bool SiteJudge::may_run_worklist(const Aggregation& aggregation) const {
  return request_.work_queues && aggregation.granularity == Granularity::Grid &&
         aggregation.launcher == Launcher::Host;
}

// Gives the sites back to a consumer that runs a recursion without its order, if there is no order in the
// blocks in which only one thread can launch. In all others the executor keeps it. Where the guard compares
// the executor with the program's own kernel, it stays, as that comparison ends with the faster of the two.
void SiteJudge::prefer_blocks_of_one_thread(std::vector<PlannedSite>& sites,
                                            const std::vector<PlannedSite>& before,
                                            const Aggregation& aggregation) {
  if (!request_.blocks || has_fixed_launches(sites.front())) return;
  for (const Aggregation& of_one_thread : aggregations_of_one_thread(sites, aggregation)) {
    std::vector<PlannedSite> found = before;
    const Rejections rejections = judge_all(found, of_one_thread);
    if (std::ranges::any_of(rejections, [](const auto& o) { return o.has_value(); })) continue;
    if (found.front().aggregation.is_executed) continue;
    sites = std::move(found);
    return;
  }
}

// Judges one aggregation for any block that the host may launch the parent in. If it is rejected because
// several threads may launch, it is judged again for the blocks in which only one can. Returns the last
// rejections.
std::vector<std::optional<Rejection>> SiteJudge::judge_in_any_block(std::vector<PlannedSite>& sites,
                                                                    const Aggregation& aggregation) {
  const auto of_threads = [](const std::optional<Rejection>& o) {
    return o && (o->reason == Reason::OrderKept || o->reason == Reason::StreamUnsupported);
  };
  std::vector<std::optional<Rejection>> rejections = judge_all(sites, aggregation);
  if (strategy_of(aggregation).is_immediate() || !request_.blocks ||
      std::ranges::none_of(rejections, of_threads))
    return rejections;
  for (const Aggregation& of_one_thread : aggregations_of_one_thread(sites, aggregation)) {
    rejections = judge_all(sites, of_one_thread);
    if (std::ranges::none_of(rejections, [](const auto& o) { return o.has_value(); })) break;
  }
  return rejections;
}

std::vector<std::optional<Rejection>> SiteJudge::judge_all(std::vector<PlannedSite>& sites,
                                                           const Aggregation& aggregation) {
  std::vector<std::optional<Rejection>> rejections;
  for (PlannedSite& site : sites) {
    site.aggregation = site.options.granularity == Granularity::None
                           ? Aggregation{Granularity::None, Launcher::Host}
                           : aggregation;
    rejections.push_back(judge_aggregation(site));
  }
  judge_recursion(sites, rejections);
  judge_loops(sites, rejections);
  order_.judge(sites, rejections, [this](std::vector<PlannedSite>& kept) { return keep_order(kept); });
  blame_others(sites, rejections);
  judge_execution(sites, rejections);
  if (!strategy_of(aggregation).is_immediate()) add_mutual_rejections(sites, rejections);
  return rejections;
}

// ---- the order of a block's launches ----

// One queue in which each launch knows the one before it; what stands against that.
std::optional<Rejection> SiteJudge::keep_order(std::vector<PlannedSite>& sites) {
  if (!request_.work_queues) {
    return Rejection{Reason::OrderKept, sites.front().order.why};
  }
  const Aggregation& any = sites.front().aggregation;
  if (any.is_executed || any.is_recursive) return execute(sites, false);
  for (PlannedSite& site : sites) site.aggregation.has_loop_queue = site.aggregation.keeps_order = true;
  for (PlannedSite& site : sites) {
    if (auto rejection = judge_aggregation(site)) return not_kept(sites.front(), std::move(*rejection));
  }
  if (auto rejection = judge_loop_launches(plan_, sites))
    return not_kept(sites.front(), std::move(*rejection));
  return std::nullopt;
}

// A thread's launches keep their order only if all are deferred, or none.
void SiteJudge::add_mutual_rejections(const std::vector<PlannedSite>& sites,
                                      std::vector<std::optional<Rejection>>& rejections) {
  if (sites.size() < 2) return;
  const auto left = std::ranges::find_if(rejections, [](const auto& o) { return o.has_value(); });
  std::optional<Rejection> mutual;
  if (left != rejections.end()) {
    const PlannedSite& site = sites[static_cast<size_t>(left - rejections.begin())];
    mutual = Rejection{Reason::SeveralSites,
                       fmt::format("the launch at {} is left ({})", ptx::place(site.site->position),
                                   to_string((*left)->reason))};
  } else if (strategy_of(sites.front()).needs_queue_order()) {
    mutual = analysis::order_sites(*sites.front().parent, order_.of(sites)).rejection;
  }
  for (auto& rejection : rejections) {
    if (!rejection) rejection = mutual;
  }
}

// Children that launch need a persistent consumer, and then all children of the parent have that
// one: where nothing else stands against its sites.
void SiteJudge::judge_recursion(std::vector<PlannedSite>& sites,
                                std::vector<std::optional<Rejection>>& rejections) const {
  if (!may_run_worklist(sites.front().aggregation)) return;
  if (std::ranges::none_of(rejections, is_recursion) ||
      std::ranges::any_of(rejections, [](const auto& o) { return o && !is_recursion(o); }))
    return;
  const analysis::RecursiveGroupVerdict verdict = judge_worklist(plan_, sites);
  for (size_t i = 0; i < sites.size(); ++i) {
    if (rejections[i] || verdict.recursive_group) rejections[i] = verdict.rejection;
    if (!verdict.recursive_group) continue;
    sites[i].aggregation.is_recursive = true;
    sites[i].recursive_group = verdict.recursive_group;
    sites[i].shape = worklist_shape(sites, sites[i]);
  }
}

// The executor takes what the other strategies cannot run in order: then it has all launches of the parent.
void SiteJudge::judge_execution(std::vector<PlannedSite>& sites, Rejections& rejections) {
  const PlannedSite& any = sites.front();
  if (!any.options.optimisations.is_on("executor") || !may_run_worklist(any.aggregation)) return;
  if (std::ranges::none_of(rejections, [](const auto& o) { return o && may_be_executed(o->reason); })) return;
  std::vector<PlannedSite> executed = sites;
  if (const auto rejection = execute(executed, request_.blocks)) {
    for (auto& left : rejections) {
      const bool is_same = left && left->reason == rejection->reason;
      if (is_same && rejection->detail.starts_with(left->detail)) {
        left->detail = rejection->detail;
      } else if (left) {
        left->detail +=
            fmt::format("; not executed: {}: {}", to_string(rejection->reason), rejection->detail);
      }
    }
    return;
  }
  for (size_t i = 0; i < sites.size(); ++i) {
    executed[i].why_executed = rejections[i];
    rejections[i].reset();
  }
  sites = std::move(executed);
}

// Gives the sites to the executor; what stands against that.
std::optional<Rejection> SiteJudge::execute(std::vector<PlannedSite>& sites, bool conditions) {
  for (PlannedSite& site : sites) {
    site.aggregation.is_recursive = site.aggregation.has_loop_queue = true;
    site.aggregation.keeps_order = site.aggregation.is_executed = true;
    if (auto rejection = judge_aggregation(site)) return rejection;
  }
  const analysis::RecursiveGroupVerdict verdict = judge_executed(plan_, sites, conditions);
  if (!verdict.recursive_group) return verdict.rejection;
  for (PlannedSite& site : sites) site.recursive_group = verdict.recursive_group;
  for (PlannedSite& site : sites)
    site.order = {analysis::Order::Kept, "", verdict.recursive_group->executed_conditions()};
  set_executor_shapes(sites, request_.sm);
  return std::nullopt;
}

// Launches in loops need a queue of a size of its own, and then all launches of the parent share it: where
// nothing else stands against them. What such a loop may hold looks like waiting to launches before it.
void SiteJudge::judge_loops(std::vector<PlannedSite>& sites,
                            std::vector<std::optional<Rejection>>& rejections) {
  const auto in_loop = [](const std::optional<Rejection>& o) { return o && o->reason == Reason::SiteInLoop; };
  const auto other = [&](const std::optional<Rejection>& o) {
    return o && !in_loop(o) && o->reason != Reason::ParentWaits;
  };
  const Aggregation& aggregation = sites.front().aggregation;
  if (!request_.work_queues || strategy_of(aggregation).is_immediate() ||
      aggregation.granularity == Granularity::None)
    return;
  if (std::ranges::none_of(rejections, in_loop) || std::ranges::any_of(rejections, other)) return;
  for (size_t i = 0; i < sites.size(); ++i) {
    sites[i].aggregation.has_loop_queue = true;
    rejections[i] = judge_aggregation(sites[i]);
  }
  if (std::ranges::any_of(rejections, [](const auto& o) { return o.has_value(); })) return;
  const std::optional<Rejection> rejection = judge_loop_launches(plan_, sites);
  if (rejection) std::ranges::fill(rejections, rejection);
}

// Relocatable code keeps the functions that other units might call.
bool SiteJudge::is_never_called(size_t unit, const ptx::Function& f) const {
  if (f.kind == ptx::FunctionKind::Entry) return false;
  const ptx::Module& module = *plan_.units[unit]->module();
  const analysis::Callers callers = analysis::callers_of(module, f.name);
  if (!callers.calls.empty() || !callers.address_place.empty()) return false;
  // Its callers may call a copy of it instead (transform/text/inliner.h).
  const auto is_called_copy = [&](const ptx::Function& other) {
    return other.name.starts_with(f.name + "$") && !plan_.units[unit]->is_expanded(other);
  };
  if (std::ranges::any_of(module.functions, is_called_copy)) return false;
  const auto names_it = [&](const auto& other) {
    const Unit& u = other->unit();
    if (&u == &plan_.units[unit]->unit()) return false;
    return (u.ptx.empty() ? u.cubin : u.ptx).find(f.name) != std::string::npos;
  };
  return f.linkage == ptx::Linkage::Internal || std::ranges::none_of(plan_.units, names_it);
}

std::optional<Rejection> SiteJudge::judge_aggregation(PlannedSite& planned) {
  const FunctionFacts& parent = *planned.parent;
  const Site& s = *planned.site;
  if (planned.aggregation.granularity == Granularity::None)
    return Rejection{Reason::ConfigNone, "granularity none for this parent"};
  if (is_never_called(planned.parent_unit, parent.function)) {
    return Rejection{Reason::NeverCalled,
                     fmt::format("no code here calls {}; it stays where all its calls were inlined",
                                 parent.function.name)};
  }
  if (auto rejection = analysis::check_unit(parent.module, request_.debug_units)) return rejection;
  if (auto rejection = analysis::check_parent(parent, s, planned.aggregation)) return rejection;
  const ChildPlace child = find_child(plan_, s.callee, planned.parent_unit);
  if (child.function == nullptr)
    return Rejection{Reason::ChildNotFound, s.callee + " is defined in no unit's PTX"};
  planned.child_unit = child.unit;
  planned.child = child.function;
  const ptx::Module& module = *plan_.units[child.unit]->module();
  auto rejection = analysis::check_unit(module, request_.debug_units);
  if (!rejection) rejection = analysis::check_child(module, *child.function, parent, s, planned.aggregation);
  if (!rejection) rejection = strategy_of(planned).check(module, planned);
  if (rejection) {
    // The remark stands at the parent: places in another unit must say so. Arguments are the parent's.
    if (child.unit != planned.parent_unit && rejection->reason != Reason::ArgumentMismatch)
      rejection->detail += ", in " + plan_.units[child.unit]->unit().name;
    return rejection;
  }
  return strategy_of(planned).make_shape(module, planned);
}

std::vector<const Site*> SiteJudge::queue_order(const std::vector<PlannedSite>& planned) {
  const PlannedSite& any = planned.front();
  if (strategy_of(any).needs_queue_order())
    return analysis::order_sites(*any.parent, order_.of(planned)).sites;
  std::vector<const Site*> sites;
  for (const Site& site : any.parent->sites) sites.push_back(&site);
  return sites;
}

}  // namespace klap::jit
