// OrderPlanner decides whether launches of different threads of a block may overlap, for all sites of a
// parent together.
//
// The analysis answers for each pair of launches (analysis/order/launch_order.h). Here its answers are put
// together for the queues that an aggregation has, under the ordering that the settings ask for and for
// the blocks in which the parent may be launched. Where the order matters, the sites get one queue that keeps
// it, or are left.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/order/launch_order.h"
#include "jit/planned/planned.h"

namespace klap::jit {

class OrderPlanner {
 public:
  OrderPlanner(Plan& plan, const Request& request) : plan_(plan), request_(request) {}

  // Gives the sites of a parent one queue that keeps their order; what stands against that.
  using KeepOrder = std::function<std::optional<analysis::Rejection>(std::vector<PlannedSite>& sites)>;

  // Decides over the sites of one parent, which all have the same aggregation: each gets its verdict, and a
  // rejection where its launches can neither overlap nor be kept in order.
  void judge(std::vector<PlannedSite>& sites, std::vector<std::optional<analysis::Rejection>>& rejections,
             const KeepOrder& keep);

  // The facts about each pair of a parent's launches. Null if the ordering is relaxed or a child is unknown.
  const analysis::LaunchOrder* of(const std::vector<PlannedSite>& sites);

  // Facts of another parent may stand at the address of those of the last one.
  void forget_parent() { orders_.clear(); }

 private:
  std::shared_ptr<const analysis::FunctionFacts> facts_of(const PlannedSite& site);
  [[nodiscard]] std::vector<analysis::KnownExtents> blocks_to_try(
      const std::vector<PlannedSite>& sites, const analysis::Aggregation& aggregation) const;
  analysis::OrderVerdict order_in_queues(const std::vector<PlannedSite>& sites, bool one_queue);
  [[nodiscard]] analysis::OrderVerdict within(analysis::OrderVerdict verdict,
                                              const analysis::Aggregation& aggregation) const;
  [[nodiscard]] bool has_conditions_allowed(const analysis::OrderConditions& conditions) const;
  void judge_order_of_warps(std::vector<PlannedSite>& sites,
                            std::vector<std::optional<analysis::Rejection>>& rejections);
  analysis::OrderVerdict order_of_lanes(const std::vector<PlannedSite>& sites, size_t site);
  bool order_of_warps(std::vector<PlannedSite>& sites,
                      std::vector<std::optional<analysis::Rejection>>& rejections, bool objects);

  Plan& plan_;
  const Request& request_;
  std::map<std::pair<const analysis::FunctionFacts*, analysis::KnownExtents>,
           std::unique_ptr<analysis::LaunchOrder>>
      orders_;  // of parents in blocks
  std::map<const ptx::Function*, std::shared_ptr<const analysis::FunctionFacts>> facts_;  // of children
};

}  // namespace klap::jit
