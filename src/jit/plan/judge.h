// Judges the launch sites of one parent: how they are aggregated, and why others are rejected.
//
// The aggregations that the settings allow are tried in their order, best first. For each, every site is
// judged by itself; then recursion, loops and the order between launches are looked at, which concern all
// sites together.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jit/plan/order_plan.h"
#include "jit/planned/planned.h"

namespace klap::jit {

class SiteJudge {
 public:
  SiteJudge(Plan& plan, const Request& request) : plan_(plan), request_(request) {}

  // To be called before the sites of another parent are judged.
  void forget_parent() { order_.forget_parent(); }

  // Returns what stands against each site. Launches that are deferred keep their order only if all of a
  // parent's are, so such an aggregation is taken if it suits all sites; immediate launches may be any of
  // them. A site that is left is left for what stands against the first one: later ones only make up for it.
  std::vector<std::optional<analysis::Rejection>> judge(
      std::vector<PlannedSite>& sites, const std::vector<analysis::Aggregation>& aggregations);

  // Gives the sites one queue in which each launch knows the one before it, or to an executor that keeps all
  // orders if they are executed or recursive. Returns what stands against that.
  std::optional<analysis::Rejection> keep_order(std::vector<PlannedSite>& sites);

  // The order in which the queues of the sites are to be run. Where no launch is deferred or all are put into
  // one queue, any order will do.
  std::vector<const analysis::Site*> queue_order(const std::vector<PlannedSite>& planned);

 private:
  using Rejections = std::vector<std::optional<analysis::Rejection>>;

  void blame_others(const std::vector<PlannedSite>& sites, Rejections& rejections) const;
  [[nodiscard]] bool may_run_worklist(const analysis::Aggregation& aggregation) const;
  void prefer_exact_grid(std::vector<PlannedSite>& sites, const std::vector<PlannedSite>& before,
                         const std::vector<analysis::Aggregation>& aggregations);
  void prefer_blocks_of_one_thread(std::vector<PlannedSite>& sites, const std::vector<PlannedSite>& before,
                                   const analysis::Aggregation& aggregation);
  Rejections judge_in_any_block(std::vector<PlannedSite>& sites, const analysis::Aggregation& aggregation);
  Rejections judge_all(std::vector<PlannedSite>& sites, const analysis::Aggregation& aggregation);
  void add_mutual_rejections(const std::vector<PlannedSite>& sites, Rejections& rejections);
  void judge_recursion(std::vector<PlannedSite>& sites, Rejections& rejections) const;
  void judge_execution(std::vector<PlannedSite>& sites, Rejections& rejections);
  std::optional<analysis::Rejection> execute(std::vector<PlannedSite>& sites, bool conditions);
  void judge_loops(std::vector<PlannedSite>& sites, Rejections& rejections);
  [[nodiscard]] bool is_never_called(size_t unit, const ptx::Function& f) const;
  std::optional<analysis::Rejection> judge_aggregation(PlannedSite& planned);

  Plan& plan_;
  const Request& request_;
  OrderPlanner order_{plan_, request_};
};

}  // namespace klap::jit
