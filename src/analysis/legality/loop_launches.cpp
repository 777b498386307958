#include "analysis/legality/loop_launches.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/effects/coherence.h"
#include "analysis/effects/waiting_for_room.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/facts/stream_order.h"
#include "analysis/legality/consumer_block.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

Rejection reject(const Site& site, const std::string& detail) {
  return {Reason::SiteInLoop, fmt::format("in a loop ({}), {}", ptx::place(site.position), detail)};
}

std::optional<Rejection> check_noncoherent_callees(const Module& m, const Function& child, const Site& site) {
  const auto load = noncoherent_load_below(m, child);
  if (!load) return std::nullopt;
  return reject(site, fmt::format("and {}, called by the child, reads past the coherent caches ({})",
                                  load->function->name, m.place(load->token)));
}

bool any_has_order(const FunctionFacts& parent, const Aggregation& aggregation) {
  return std::ranges::any_of(parent.sites, [&](const Site& site) {
    return order_scope(parent, site, aggregation) != OrderScope::None;
  });
}

// Rejects a site whose thread would wait for room, because there is room only after the thread has left.
std::optional<Rejection> check_retrying(const FunctionFacts& parent, const Site& site,
                                        const Aggregation& aggregation) {
  const bool in_groups =
      aggregation.granularity == Granularity::Block || aggregation.granularity == Granularity::MultiBlock;
  if (!is_refused_when_full(order_scope(parent, site, aggregation), in_groups)) return std::nullopt;
  const std::string place =
      waits_for_room_at({parent.module, parent.function, parent.flow, parent.data}, *site.get_call);
  if (place.empty()) return std::nullopt;
  return Rejection{Reason::ParentWaits,
                   fmt::format("the loop may launch again until there is room ({})", place)};
}

// Rejects a parent whose sites use different idioms. A site that takes back the records of other sites would
// launch all of them in its own form.
std::optional<Rejection> check_idioms(const FunctionFacts& parent) {
  const Site& first = parent.sites.front();
  for (const Site& site : parent.sites) {
    if (site.idiom->rewrite_with == first.idiom->rewrite_with) continue;
    return Rejection{Reason::SeveralSites,
                     fmt::format("one queue for the launches in and beside a loop, at {} by {}, at {} by {}",
                                 ptx::place(first.position), first.idiom->launch, ptx::place(site.position),
                                 site.idiom->launch)};
  }
  return std::nullopt;
}

}  // namespace

OrderScope order_scope(const FunctionFacts& parent, const Site& site, const Aggregation& aggregation) {
  if (aggregation.keeps_order && stream_kind(site) == StreamKind::Null) return OrderScope::Block;
  return has_order_within_thread(parent, site) ? OrderScope::Thread : OrderScope::None;
}

bool LoopLaunches::has(OrderScope scope) const { return std::ranges::find(scopes, scope) != scopes.end(); }

bool LoopLaunches::may_refuse(bool in_groups) const {
  return std::ranges::any_of(
      scopes, [in_groups](OrderScope scope) { return is_refused_when_full(scope, in_groups); });
}

LoopLaunches loop_launches_of(const FunctionFacts& parent, const std::vector<const Function*>& children,
                              const Aggregation& aggregation) {
  LoopLaunches out;
  for (size_t i = 0; i < children.size(); ++i) {
    const Site& site = parent.sites[i];
    const LoopKernel kernel = {children[i], constant_block(site, parent).value(),
                               constant_shared_bytes(site, parent).value()};
    const auto known = std::ranges::find(out.kernels, kernel);
    out.targets.push_back(static_cast<uint32_t>(known - out.kernels.begin()));
    out.scopes.push_back(order_scope(parent, site, aggregation));
    if (known == out.kernels.end()) out.kernels.push_back(kernel);
  }
  return out;
}

std::optional<Rejection> check_loop_launch(const Module& child_module, const Function& child,
                                           const FunctionFacts& parent, const Site& site,
                                           const Aggregation& aggregation) {
  if (site.idiom->form == LaunchForm::Documented)
    return reject(site, "and the launch asks for a buffer before it knows the grid");
  if (auto rejection = check_retrying(parent, site, aggregation)) return rejection;
  if (!any_has_order(parent, aggregation)) return std::nullopt;
  return check_noncoherent_callees(child_module, child, site);
}

std::optional<Rejection> check_common_queue(const Module& child_module, const FunctionFacts& parent,
                                            const LoopLaunches& loop_launches) {
  if (auto rejection = check_idioms(parent)) return rejection;
  std::vector<RunKernel> kernels;
  for (const LoopKernel& kernel : loop_launches.kernels)
    kernels.push_back({kernel.function, kernel.threads(), kernel.shared_bytes});
  if (auto found = check_smaller_block(child_module, kernels)) return std::move(found->second);
  return check_memory_of_all(child_module, kernels);
}

bool is_part_of_launching(const FunctionFacts& parent, const Statement& s) {
  return std::ranges::any_of(
             parent.sites, [&](const Site& site) { return &s == site.get_call || &s == site.launch_call; }) ||
         std::ranges::any_of(parent.error_queries, [&](const ErrorQuery& q) { return &s == q.call; });
}

}  // namespace klap::analysis
