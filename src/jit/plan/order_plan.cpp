#include "jit/plan/order_plan.h"

#include <algorithm>

#include "analysis/order/single_thread.h"
#include "analysis/order/site_order.h"
#include "jit/strategy/strategy_of.h"

namespace klap::jit {

using analysis::FunctionFacts;
using analysis::Objection;
using analysis::OrderVerdict;
using analysis::Reason;
using analysis::Way;

const analysis::LaunchOrder* OrderPlanner::of(const std::vector<PlannedSite>& sites) {
  const PlannedSite& any = sites.front();
  if (any.way.ordering == analysis::Ordering::Relaxed) return nullptr;
  if (std::ranges::any_of(sites, [](const PlannedSite& s) { return s.child == nullptr; })) return nullptr;
  const auto [known, is_new] = orders_.try_emplace({any.parent.get(), any.way.block});
  if (is_new) {
    std::vector<analysis::LaunchedChild> launches;
    for (const PlannedSite& site : sites) launches.push_back({site.site, facts_of(site)});
    known->second = std::make_unique<analysis::LaunchOrder>(*any.parent, std::move(launches), any.way.block);
  }
  return known->second.get();
}

std::shared_ptr<const FunctionFacts> OrderPlanner::facts_of(const PlannedSite& site) {
  auto& known = facts_[site.child];
  if (known == nullptr)
    known = std::make_shared<const FunctionFacts>(*plan_.units[site.child_unit]->module(), *site.child);
  return known;
}

// The launches of a block's threads into its NULL stream may overlap if that is proven or tolerated.
// Otherwise they keep their order.
void OrderPlanner::judge(std::vector<PlannedSite>& sites, std::vector<std::optional<Objection>>& objections,
                         const KeepOrder& keep) {
  const Way way = sites.front().way;
  if (way.granularity == Granularity::None || way.ordering == analysis::Ordering::Relaxed) return;
  const Strategy& strategy = strategy_of(sites.front());
  if (strategy.is_immediate()) return judge_order_of_warps(sites, objections);
  if (const OrderVerdict* const known = strategy.known_order(sites.front())) {
    if (!has_conditions_allowed(known->conditions))
      std::ranges::fill(objections, Objection{Reason::OrderKept, "it rests on how the parent is launched"});
    for (PlannedSite& site : sites) site.order = *strategy.known_order(site);
    return;
  }
  if (std::ranges::any_of(objections, [](const auto& o) { return o.has_value(); })) return;
  const bool one_queue = !strategy.needs_queue_order();
  std::optional<OrderVerdict> kept;
  for (const analysis::KnownExtents& block : blocks_to_try(sites, way)) {
    for (PlannedSite& site : sites) site.way.block = block;
    OrderVerdict verdict = order_in_queues(sites, one_queue);
    if (verdict.order != analysis::Order::Kept) {
      for (PlannedSite& site : sites) site.order = verdict;
      return;
    }
    if (!kept) kept = std::move(verdict);
  }
  for (PlannedSite& site : sites) {
    site.way.block = way.block;
    site.order = {analysis::Order::Kept, kept->why, {}};
  }
  if (const auto objection = keep(sites)) std::ranges::fill(objections, objection);
}

// Blocks in which fewer threads share a place: in any, in those of two dimensions and in rows.
std::vector<analysis::KnownExtents> OrderPlanner::blocks_to_try(const std::vector<PlannedSite>& sites,
                                                                const Way& way) const {
  std::vector<analysis::KnownExtents> out = {way.block};
  if (!request_.blocks || way.block != analysis::KnownExtents{}) return out;
  if (!analysis::tells_threads_apart(*sites.front().parent)) {
    out.push_back({1, 1, 1});
  } else {
    out.push_back({std::nullopt, std::nullopt, 1});
    out.push_back({std::nullopt, 1, 1});
  }
  return out;
}

// Whether what is recorded in a queue for each site, or in one for all, may overlap as it does there.
OrderVerdict OrderPlanner::order_in_queues(const std::vector<PlannedSite>& sites, bool one_queue) {
  const analysis::LaunchOrder* const order = of(sites);
  OrderVerdict verdict;
  if (order == nullptr) return verdict;
  for (size_t a = 0; a < sites.size(); ++a) {
    for (size_t b = a; b < sites.size(); ++b) {
      OrderVerdict pair = within(order->of_pair(a, b), sites.front().way);
      // Queues are run one after another.
      if (!one_queue && a != b && pair.order == analysis::Order::Kept) continue;
      verdict.add(pair);
    }
  }
  if (one_queue || verdict.order == analysis::Order::Kept) return verdict;
  const auto objection = analysis::order_sites(*sites.front().parent, order).objection;
  if (objection) verdict.add({analysis::Order::Kept, objection->detail, {}});
  return verdict;
}

// The verdict under the ordering of `way`. It becomes Kept if that ordering tolerates nothing, or if its
// conditions cannot be checked.
OrderVerdict OrderPlanner::within(OrderVerdict verdict, const Way& way) const {
  const bool is_strict =
      way.ordering == analysis::Ordering::Stream && verdict.order == analysis::Order::Tolerated;
  if (is_strict || !has_conditions_allowed(verdict.conditions)) verdict.order = analysis::Order::Kept;
  return verdict;
}
bool OrderPlanner::has_conditions_allowed(const analysis::OrderConditions& conditions) const {
  return request_.blocks || (!conditions.several_blocks && conditions.apart.empty());
}

// Lanes of a warp that arrive together share a launch: their children overlap.
void OrderPlanner::judge_order_of_warps(std::vector<PlannedSite>& sites,
                                        std::vector<std::optional<Objection>>& objections) {
  if (std::ranges::all_of(objections, [](const auto& o) { return o.has_value(); })) return;
  const Way way = sites.front().way;
  for (const analysis::KnownExtents& block : blocks_to_try(sites, way)) {
    for (PlannedSite& site : sites) site.way.block = block;
    if (order_of_warps(sites, objections, false)) return;
  }
  for (PlannedSite& site : sites) site.way.block = way.block;
  order_of_warps(sites, objections, true);
}

// False, and nothing is changed unless `objects`, where some site's lanes must not share.
bool OrderPlanner::order_of_warps(std::vector<PlannedSite>& sites,
                                  std::vector<std::optional<Objection>>& objections, bool objects) {
  OrderVerdict all;
  for (size_t i = 0; i < sites.size(); ++i) {
    if (objections[i]) continue;
    analysis::LaunchOrder order(*sites[i].parent, {{sites[i].site, facts_of(sites[i])}}, sites[i].way.block);
    const OrderVerdict verdict = within(order.of_pair(0, 0), sites[i].way);
    if (verdict.order == analysis::Order::Kept) {
      if (!objects) return false;
      objections[i] = Objection{Reason::OrderKept, verdict.why};
    } else {
      all.add(verdict);
    }
  }
  for (PlannedSite& site : sites) site.order = all;
  return true;
}

}  // namespace klap::jit
