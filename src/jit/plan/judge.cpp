#include "jit/plan/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/launches/calls.h"
#include "analysis/legality/child_checks.h"
#include "analysis/legality/parent_checks.h"
#include "analysis/legality/unit_checks.h"
#include "analysis/order/single_thread.h"
#include "analysis/order/site_order.h"
#include "jit/strategy/loop_launches.h"
#include "jit/strategy/strategy_of.h"
#include "jit/strategy/worklist.h"

namespace klap::jit {

using analysis::FunctionFacts;
using analysis::Objection;
using analysis::Reason;
using analysis::Site;
using analysis::StreamKind;
using analysis::Way;

namespace {

// The unit that defines `kernel`, the parent's own unit first. An internal kernel of another unit does not
// count.
struct ChildPlace {
  size_t unit = 0;
  const ptx::Function* function = nullptr;
};
ChildPlace find_child(Plan& plan, const std::string& kernel, size_t parent_unit) {
  std::vector<size_t> order = {parent_unit};
  for (size_t u = 0; u < plan.units.size(); ++u) {
    if (u != parent_unit) order.push_back(u);
  }
  for (size_t u : order) {
    const Unit& unit = plan.units[u]->unit();
    if (unit.is_device_runtime || unit.ptx.find(kernel) == std::string::npos) continue;
    const ptx::Module* module = plan.units[u]->module();
    const ptx::Function* f = module == nullptr ? nullptr : module->find_function(kernel);
    const bool visible = f != nullptr && (u == parent_unit || f->linkage != ptx::Linkage::Internal);
    if (visible && f->is_definition) return {u, f};
  }
  return {};
}

bool is_of_feeding(const std::optional<Objection>& objection) {
  return objection && objection->reason == Reason::ChildLaunches;
}

// Restricts a way to the blocks and grids in which the parent's comparisons may leave one thread.
std::vector<Way> ways_of_one_thread(const std::vector<PlannedSite>& sites, const Way& way) {
  constexpr analysis::KnownExtents kOneRow = {std::nullopt, 1, 1}, kOne = {1, 1, 1};
  Way in_row = way;
  in_row.block = analysis::tells_threads_apart(*sites.front().parent) ? kOneRow : kOne;
  if (std::ranges::none_of(
          sites, [](const PlannedSite& s) { return analysis::stream_kind(*s.site) == StreamKind::Tail; }))
    return {in_row};
  in_row.grid = kOneRow;
  Way of_block = in_row;
  of_block.grid = kOne;
  return {in_row, of_block};
}

// Says that the objection is to the queue, and that the queue is needed because the order matters.
Objection not_kept(const PlannedSite& site, Objection objection) {
  objection.detail += fmt::format("; the order must be kept: {}", site.order.why);
  return objection;
}

}  // namespace

std::vector<std::optional<Objection>> SiteJudge::judge(std::vector<PlannedSite>& sites,
                                                       const std::vector<Way>& ways) {
  const auto is_objection = [](const std::optional<Objection>& o) { return o.has_value(); };
  std::vector<std::optional<Objection>> objections;
  for (const Way& way : ways) {
    objections = judge_in_any_block(sites, way);
    const bool is_taken = strategy_of(way).is_immediate() ? !std::ranges::all_of(objections, is_objection)
                                                          : std::ranges::none_of(objections, is_objection);
    for (size_t i = 0; i < sites.size(); ++i) {
      if (objections[i]) sites[i].refused.emplace_back(way, *objections[i]);
    }
    if (is_taken) break;
  }
  for (size_t i = 0; i < sites.size(); ++i) {
    if (objections[i]) objections[i] = sites[i].refused.front().second;
  }
  return objections;
}

// Children that launch are no reason by themselves where one consumer might run them: then it is what
// stands against another site that keeps it from being asked for.
void SiteJudge::blame_others(const std::vector<PlannedSite>& sites,
                             std::vector<std::optional<Objection>>& objections) const {
  if (!may_feed(sites.front().way) || sites.front().way.chains) return;
  if (!std::ranges::any_of(objections, [](const auto& o) { return o && !is_of_feeding(o); })) return;
  for (size_t i = 0; i < sites.size(); ++i) {
    if (!sites[i].way.feeds && is_of_feeding(objections[i])) objections[i].reset();
  }
}

bool SiteJudge::may_feed(const Way& way) const {
  return request_.feeding && way.granularity == Granularity::Grid && way.launcher == Launcher::Host;
}

// One way, in any block that the host may launch the parent in; where that stands against it because
// several threads may launch, in those in which they may not. If it cannot be taken, what stands against it
// even there.
std::vector<std::optional<Objection>> SiteJudge::judge_in_any_block(std::vector<PlannedSite>& sites,
                                                                    const Way& way) {
  const auto of_threads = [](const std::optional<Objection>& o) {
    return o && (o->reason == Reason::OrderKept || o->reason == Reason::StreamUnsupported);
  };
  std::vector<std::optional<Objection>> objections = judge_all(sites, way);
  if (strategy_of(way).is_immediate() || !request_.blocks || std::ranges::none_of(objections, of_threads))
    return objections;
  for (const Way& of_one_thread : ways_of_one_thread(sites, way)) {
    objections = judge_all(sites, of_one_thread);
    if (std::ranges::none_of(objections, [](const auto& o) { return o.has_value(); })) break;
  }
  return objections;
}

std::vector<std::optional<Objection>> SiteJudge::judge_all(std::vector<PlannedSite>& sites, const Way& way) {
  std::vector<std::optional<Objection>> objections;
  for (PlannedSite& site : sites) {
    site.way = site.options.granularity == Granularity::None ? Way{Granularity::None, Launcher::Host} : way;
    objections.push_back(judge_way(site));
  }
  judge_feeding(sites, objections);
  judge_chaining(sites, objections);
  order_.judge(sites, objections, [this](std::vector<PlannedSite>& kept) { return keep_order(kept); });
  blame_others(sites, objections);
  if (!strategy_of(way).is_immediate()) add_mutual_objections(sites, objections);
  return objections;
}

// ---- the order of a block's launches ----

// One queue in which each launch knows the one before it; what stands against that.
std::optional<Objection> SiteJudge::keep_order(std::vector<PlannedSite>& sites) {
  if (!request_.feeding) {
    return Objection{Reason::OrderKept, sites.front().order.why};
  }
  for (PlannedSite& site : sites) site.way.chains = site.way.keeps_order = true;
  for (PlannedSite& site : sites) {
    if (auto objection = judge_way(site)) return not_kept(sites.front(), std::move(*objection));
  }
  if (auto objection = judge_loop_launches(plan_, sites))
    return not_kept(sites.front(), std::move(*objection));
  return std::nullopt;
}

// A thread's launches keep their order only if all are deferred, or none.
void SiteJudge::add_mutual_objections(const std::vector<PlannedSite>& sites,
                                      std::vector<std::optional<Objection>>& objections) {
  if (sites.size() < 2) return;
  const auto left = std::ranges::find_if(objections, [](const auto& o) { return o.has_value(); });
  std::optional<Objection> mutual;
  if (left != objections.end()) {
    const PlannedSite& site = sites[static_cast<size_t>(left - objections.begin())];
    mutual = Objection{Reason::SeveralSites,
                       fmt::format("the launch at {} is left ({})", ptx::place(site.site->position),
                                   to_string((*left)->reason))};
  } else if (strategy_of(sites.front()).needs_queue_order()) {
    mutual = analysis::order_sites(*sites.front().parent, order_.of(sites)).objection;
  }
  for (auto& objection : objections) {
    if (!objection) objection = mutual;
  }
}

// Children that launch need a consumer that feeds itself, and then all children of the parent have that
// one: where nothing else stands against its sites.
void SiteJudge::judge_feeding(std::vector<PlannedSite>& sites,
                              std::vector<std::optional<Objection>>& objections) const {
  if (!may_feed(sites.front().way)) return;
  if (std::ranges::none_of(objections, is_of_feeding) ||
      std::ranges::any_of(objections, [](const auto& o) { return o && !is_of_feeding(o); }))
    return;
  const analysis::FamilyVerdict verdict = judge_worklist(plan_, sites);
  for (size_t i = 0; i < sites.size(); ++i) {
    if (objections[i] || verdict.family) objections[i] = verdict.objection;
    if (!verdict.family) continue;
    sites[i].way.feeds = true;
    sites[i].family = verdict.family;
    sites[i].shape = worklist_shape(sites, sites[i]);
  }
}

// Launches in loops need a queue of a size of its own, and then all launches of the parent share it: where
// nothing else stands against them. What such a loop may hold looks like waiting to launches before it.
void SiteJudge::judge_chaining(std::vector<PlannedSite>& sites,
                               std::vector<std::optional<Objection>>& objections) {
  const auto in_loop = [](const std::optional<Objection>& o) { return o && o->reason == Reason::SiteInLoop; };
  const auto other = [&](const std::optional<Objection>& o) {
    return o && !in_loop(o) && o->reason != Reason::ParentWaits;
  };
  const Way& way = sites.front().way;
  if (!request_.feeding || strategy_of(way).is_immediate() || way.granularity == Granularity::None) return;
  if (std::ranges::none_of(objections, in_loop) || std::ranges::any_of(objections, other)) return;
  for (size_t i = 0; i < sites.size(); ++i) {
    sites[i].way.chains = true;
    objections[i] = judge_way(sites[i]);
  }
  if (std::ranges::any_of(objections, [](const auto& o) { return o.has_value(); })) return;
  const std::optional<Objection> objection = judge_loop_launches(plan_, sites);
  if (objection) std::ranges::fill(objections, objection);
}

// Relocatable code keeps the functions that other units might call.
bool SiteJudge::is_never_called(size_t unit, const ptx::Function& f) const {
  if (f.kind == ptx::FunctionKind::Entry) return false;
  const ptx::Module& module = *plan_.units[unit]->module();
  const analysis::Callers callers = analysis::callers_of(module, f.name);
  if (!callers.calls.empty() || !callers.address_place.empty()) return false;
  // Its callers may call a copy of it instead (transform/text/inliner.h).
  const auto is_called_copy = [&](const ptx::Function& other) {
    return other.name.starts_with(f.name + "$") && !plan_.units[unit]->is_written_out(other);
  };
  if (std::ranges::any_of(module.functions, is_called_copy)) return false;
  const auto names_it = [&](const auto& other) {
    const Unit& u = other->unit();
    if (&u == &plan_.units[unit]->unit()) return false;
    return (u.ptx.empty() ? u.cubin : u.ptx).find(f.name) != std::string::npos;
  };
  return f.linkage == ptx::Linkage::Internal || std::ranges::none_of(plan_.units, names_it);
}

std::optional<Objection> SiteJudge::judge_way(PlannedSite& planned) {
  const FunctionFacts& parent = *planned.parent;
  const Site& s = *planned.site;
  if (planned.way.granularity == Granularity::None)
    return Objection{Reason::ConfigNone, "granularity none for this parent"};
  if (is_never_called(planned.parent_unit, parent.function)) {
    return Objection{Reason::NeverCalled,
                     fmt::format("no code here calls {}; it stays where all its calls were inlined",
                                 parent.function.name)};
  }
  if (auto objection = analysis::object_to_unit(parent.module, request_.debug_units)) return objection;
  if (auto objection = analysis::object_to_parent(parent, s, planned.way)) return objection;
  const ChildPlace child = find_child(plan_, s.callee, planned.parent_unit);
  if (child.function == nullptr)
    return Objection{Reason::ChildNotFound, s.callee + " is defined in no unit's PTX"};
  planned.child_unit = child.unit;
  planned.child = child.function;
  const ptx::Module& module = *plan_.units[child.unit]->module();
  auto objection = analysis::object_to_unit(module, request_.debug_units);
  if (!objection) objection = analysis::object_to_child(module, *child.function, parent, s, planned.way);
  if (!objection) objection = strategy_of(planned).check(module, planned);
  if (objection) {
    // The remark stands at the parent: places in another unit must say so. Arguments are the parent's.
    if (child.unit != planned.parent_unit && objection->reason != Reason::ArgumentMismatch)
      objection->detail += ", in " + plan_.units[child.unit]->unit().name;
    return objection;
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
