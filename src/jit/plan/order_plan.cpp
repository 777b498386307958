#include "jit/plan/order_plan.h"

#include <algorithm>

#include "analysis/order/site_order.h"
#include "analysis/synchronisation/single_thread.h"
#include "jit/strategy/strategy_of.h"

namespace klap::jit {

using analysis::Aggregation;
using analysis::FunctionFacts;
using analysis::OrderVerdict;
using analysis::Reason;
using analysis::Rejection;

const analysis::LaunchOrder* OrderPlanner::of(const std::vector<PlannedSite>& sites) {
  const PlannedSite& any = sites.front();
  if (any.aggregation.ordering == analysis::Ordering::Relaxed) return nullptr;
  if (std::ranges::any_of(sites, [](const PlannedSite& s) { return s.child == nullptr; })) return nullptr;
  const auto [known, is_new] = orders_.try_emplace({any.parent.get(), any.aggregation.block});
  if (is_new) {
    std::vector<analysis::LaunchedChild> launches;
    for (const PlannedSite& site : sites) launches.push_back({site.site, facts_of(site)});
    known->second =
        std::make_unique<analysis::LaunchOrder>(*any.parent, std::move(launches), any.aggregation.block);
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
void OrderPlanner::judge(std::vector<PlannedSite>& sites, std::vector<std::optional<Rejection>>& rejections,
                         const KeepOrder& keep) {
  const Aggregation aggregation = sites.front().aggregation;
  if (aggregation.granularity == Granularity::None || aggregation.ordering == analysis::Ordering::Relaxed)
    return;
  const Strategy& strategy = strategy_of(sites.front());
  if (strategy.is_immediate()) return judge_order_of_warps(sites, rejections);
  if (const OrderVerdict* const known = strategy.known_order(sites.front())) {
    if (!has_conditions_allowed(known->conditions))
      std::ranges::fill(rejections, Rejection{Reason::OrderKept, "it rests on how the parent is launched"});
    for (PlannedSite& site : sites) site.order = *strategy.known_order(site);
    return;
  }
  if (std::ranges::any_of(rejections, [](const auto& o) { return o.has_value(); })) return;
  const bool one_queue = !strategy.needs_queue_order();
  std::optional<OrderVerdict> kept;
  for (const analysis::KnownExtents& block : blocks_to_try(sites, aggregation)) {
    for (PlannedSite& site : sites) site.aggregation.block = block;
    OrderVerdict verdict = order_in_queues(sites, one_queue);
    if (verdict.order != analysis::Order::Kept) {
      for (PlannedSite& site : sites) site.order = verdict;
      return;
    }
    if (!kept) kept = std::move(verdict);
  }
  for (PlannedSite& site : sites) {
    site.aggregation.block = aggregation.block;
    site.order = {analysis::Order::Kept, kept->why, {}};
  }
  if (const auto rejection = keep(sites)) std::ranges::fill(rejections, rejection);
}

// Blocks in which fewer threads share a place: in any, in those of two dimensions and in rows.
std::vector<analysis::KnownExtents> OrderPlanner::blocks_to_try(const std::vector<PlannedSite>& sites,
                                                                const Aggregation& aggregation) const {
  std::vector<analysis::KnownExtents> out = {aggregation.block};
  if (!request_.blocks || aggregation.block != analysis::KnownExtents{}) return out;
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
      OrderVerdict pair = within(order->of_pair(a, b), sites.front().aggregation);
      // Queues are run one after another.
      if (!one_queue && a != b && pair.order == analysis::Order::Kept) continue;
      verdict.add(pair);
    }
  }
  if (one_queue || verdict.order == analysis::Order::Kept) return verdict;
  const auto rejection = analysis::order_sites(*sites.front().parent, order).rejection;
  if (rejection) verdict.add({analysis::Order::Kept, rejection->detail, {}});
  return verdict;
}

// The verdict under the ordering of `aggregation`. It becomes Kept if that ordering tolerates nothing, or if
// its conditions cannot be checked.
OrderVerdict OrderPlanner::within(OrderVerdict verdict, const Aggregation& aggregation) const {
  const bool is_strict =
      aggregation.ordering == analysis::Ordering::Stream && verdict.order == analysis::Order::Tolerated;
  if (is_strict || !has_conditions_allowed(verdict.conditions)) verdict.order = analysis::Order::Kept;
  return verdict;
}
bool OrderPlanner::has_conditions_allowed(const analysis::OrderConditions& conditions) const {
  return request_.blocks || (!conditions.several_blocks && conditions.apart.empty());
}

// Lanes of a warp that arrive together share a launch: their children overlap.
void OrderPlanner::judge_order_of_warps(std::vector<PlannedSite>& sites,
                                        std::vector<std::optional<Rejection>>& rejections) {
  if (std::ranges::all_of(rejections, [](const auto& o) { return o.has_value(); })) return;
  const Aggregation aggregation = sites.front().aggregation;
  for (const analysis::KnownExtents& block : blocks_to_try(sites, aggregation)) {
    for (PlannedSite& site : sites) site.aggregation.block = block;
    if (order_of_warps(sites, rejections, false)) return;
  }
  for (PlannedSite& site : sites) site.aggregation.block = aggregation.block;
  order_of_warps(sites, rejections, true);
}

// Whether the children that the lanes of a warp launch at one site may overlap.
OrderVerdict OrderPlanner::order_of_lanes(const std::vector<PlannedSite>& sites, size_t site) {
  if (const analysis::LaunchOrder* const order = of(sites)) return order->of_pair(site, site);
  std::vector<analysis::LaunchedChild> launches = {{sites[site].site, facts_of(sites[site])}};
  auto others = analysis::OtherLaunches::None;
  for (PlannedSite other : sites) {
    if (other.site == sites[site].site) continue;
    if (other.child == nullptr) {  // it is left for a reason of its own
      const ChildPlace place = find_child(plan_, other.site->callee, other.parent_unit);
      other.child = place.function;
      other.child_unit = place.unit;
    }
    if (other.child == nullptr) {
      others = analysis::OtherLaunches::Unknown;
    } else {
      launches.push_back({other.site, facts_of(other)});
    }
  }
  const analysis::LaunchOrder order(*sites[site].parent, std::move(launches), sites[site].aggregation.block,
                                    others);
  return order.of_pair(0, 0);
}

// False, and nothing is changed unless `objects`, where some site's lanes must not share.
bool OrderPlanner::order_of_warps(std::vector<PlannedSite>& sites,
                                  std::vector<std::optional<Rejection>>& rejections, bool objects) {
  OrderVerdict all;
  for (size_t i = 0; i < sites.size(); ++i) {
    if (rejections[i]) continue;
    const OrderVerdict verdict = within(order_of_lanes(sites, i), sites[i].aggregation);
    if (verdict.order == analysis::Order::Kept) {
      if (!objects) return false;
      rejections[i] = Rejection{Reason::OrderKept, verdict.why};
    } else {
      all.add(verdict);
    }
  }
  for (PlannedSite& site : sites) site.order = all;
  return true;
}

}  // namespace klap::jit
