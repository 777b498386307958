#include "analysis/legality/chaining.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/effects/coherence.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/facts/stream_order.h"
#include "analysis/launches/retry.h"
#include "analysis/legality/consumer_block.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

Objection object(const Site& site, const std::string& detail) {
  return {Reason::SiteInLoop, fmt::format("in a loop ({}), {}", ptx::place(site.position), detail)};
}

std::optional<Objection> object_to_noncoherent_callees(const Module& m, const Function& child,
                                                       const Site& site) {
  const auto load = noncoherent_load_below(m, child);
  if (!load) return std::nullopt;
  return object(site, fmt::format("and {}, called by the child, reads past the coherent caches ({})",
                                  load->function->name, m.place(load->token)));
}

bool any_has_order(const FunctionFacts& parent, const Way& way) {
  return std::ranges::any_of(
      parent.sites, [&](const Site& site) { return order_scope(parent, site, way) != OrderScope::None; });
}

// Rejects a site whose thread would wait for room, because there is room only after the thread has left.
std::optional<Objection> object_to_retrying(const FunctionFacts& parent, const Site& site, const Way& way) {
  const bool in_groups = way.granularity == Granularity::Block || way.granularity == Granularity::MultiBlock;
  if (!is_refused_when_full(order_scope(parent, site, way), in_groups)) return std::nullopt;
  const std::string place =
      error_branch_place({parent.module, parent.function, parent.flow, parent.data}, site);
  if (place.empty()) return std::nullopt;
  return Objection{Reason::ParentWaits,
                   fmt::format("the loop may launch again until there is room ({})", place)};
}

// Rejects a parent whose sites use different idioms. A site that takes back the records of other sites would
// launch all of them in its own form.
std::optional<Objection> object_to_idioms(const FunctionFacts& parent) {
  const Site& first = parent.sites.front();
  for (const Site& site : parent.sites) {
    if (site.idiom->rewrite_with == first.idiom->rewrite_with) continue;
    return Objection{Reason::SeveralSites,
                     fmt::format("one queue for the launches in and beside a loop, at {} by {}, at {} by {}",
                                 ptx::place(first.position), first.idiom->launch, ptx::place(site.position),
                                 site.idiom->launch)};
  }
  return std::nullopt;
}

}  // namespace

OrderScope order_scope(const FunctionFacts& parent, const Site& site, const Way& way) {
  if (way.keeps_order && stream_kind(site) == StreamKind::Null) return OrderScope::Block;
  const bool has_order =
      stream_kind(site) != StreamKind::FireAndForget && has_order_within_thread(parent, site);
  return has_order ? OrderScope::Thread : OrderScope::None;
}

bool Chained::has(OrderScope scope) const { return std::ranges::find(scopes, scope) != scopes.end(); }

bool Chained::may_refuse(bool in_groups) const {
  return std::ranges::any_of(
      scopes, [in_groups](OrderScope scope) { return is_refused_when_full(scope, in_groups); });
}

Chained chain_of(const FunctionFacts& parent, const std::vector<const Function*>& children, const Way& way) {
  Chained out;
  for (size_t i = 0; i < children.size(); ++i) {
    const Site& site = parent.sites[i];
    const ChainedKernel kernel = {children[i], constant_block(site, parent).value(),
                                  constant_shared_bytes(site, parent).value()};
    const auto known = std::ranges::find(out.kernels, kernel);
    out.targets.push_back(static_cast<uint32_t>(known - out.kernels.begin()));
    out.scopes.push_back(order_scope(parent, site, way));
    if (known == out.kernels.end()) out.kernels.push_back(kernel);
  }
  return out;
}

std::optional<Objection> object_to_chaining(const Module& child_module, const Function& child,
                                            const FunctionFacts& parent, const Site& site, const Way& way) {
  if (site.idiom->form == LaunchForm::Documented)
    return object(site, "and the launch asks for a buffer before it knows the grid");
  if (auto objection = object_to_retrying(parent, site, way)) return objection;
  if (!any_has_order(parent, way)) return std::nullopt;
  return object_to_noncoherent_callees(child_module, child, site);
}

std::optional<Objection> object_to_sharing_queue(const Module& child_module, const FunctionFacts& parent,
                                                 const Chained& chained) {
  if (auto objection = object_to_idioms(parent)) return objection;
  std::vector<RunKernel> kernels;
  for (const ChainedKernel& kernel : chained.kernels)
    kernels.push_back({kernel.function, kernel.threads(), kernel.shared_bytes});
  if (auto found = object_to_smaller_block(child_module, kernels)) return std::move(found->second);
  return object_to_memory_of_all(child_module, kernels);
}

bool is_part_of_launching(const FunctionFacts& parent, const Statement& s) {
  return std::ranges::any_of(
             parent.sites, [&](const Site& site) { return &s == site.get_call || &s == site.launch_call; }) ||
         std::ranges::any_of(parent.error_queries, [&](const ErrorQuery& q) { return &s == q.call; });
}

}  // namespace klap::analysis
