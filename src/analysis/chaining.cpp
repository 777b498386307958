#include "analysis/chaining.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/barriers.h"
#include "analysis/coherence.h"
#include "analysis/consumer_block.h"
#include "analysis/own_streams.h"

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

bool any_has_order(const FunctionFacts& parent) {
  return std::ranges::any_of(parent.sites, [&](const Site& site) { return has_order(parent, site); });
}

// Where one of them takes back what others recorded, it launches all of it.
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

// The NULL stream of a block orders launches of different threads as well. What one site launches is not set
// apart from what another one does.
std::optional<Objection> object_to_order_of_blocks(const FunctionFacts& parent, const Way& way) {
  for (const Site& a : parent.sites) {
    for (const Site& b : parent.sites) {
      if (&a == &b || stream_kind(a) != StreamKind::Null || stream_kind(b) != StreamKind::Null) continue;
      if (way.ordering == Ordering::Stream) {
        return Objection{Reason::OrderKept,
                         fmt::format("of the launches in and beside a loop, different threads of a block may "
                                     "make those at {} and {}",
                                     ptx::place(a.position), ptx::place(b.position))};
      }
      const Finding finding =
          barrier_between(parent, parent.flow.index_of(a.get_call), parent.flow.index_of(b.get_call));
      if (finding.answer != Answer::No) {
        return Objection{Reason::BarrierBetweenLaunches,
                         fmt::format("in the NULL stream, at {} and {}, in or beside a loop: {}",
                                     ptx::place(a.position), ptx::place(b.position), finding.detail)};
      }
    }
  }
  return std::nullopt;
}

}  // namespace

bool has_order(const FunctionFacts& parent, const Site& site) {
  return stream_kind(site) != StreamKind::FireAndForget && has_order_within_thread(parent, site);
}

Chained chain_of(const FunctionFacts& parent, const std::vector<const Function*>& children) {
  Chained out;
  out.in_order = any_has_order(parent);
  for (size_t i = 0; i < children.size(); ++i) {
    const Site& site = parent.sites[i];
    const ChainedKernel kernel = {children[i], constant_block(site, parent).value(),
                                  constant_shared_bytes(site, parent).value()};
    const auto known = std::ranges::find(out.kernels, kernel);
    out.targets.push_back(static_cast<uint32_t>(known - out.kernels.begin()));
    if (known == out.kernels.end()) out.kernels.push_back(kernel);
  }
  return out;
}

std::optional<Objection> object_to_chaining(const Module& child_module, const Function& child,
                                            const FunctionFacts& parent, const Site& site) {
  if (site.idiom->form == LaunchForm::Documented)
    return object(site, "and the launch asks for a buffer before it knows the grid");
  if (!any_has_order(parent)) return std::nullopt;
  return object_to_noncoherent_callees(child_module, child, site);
}

std::optional<Objection> object_to_sharing_queue(const Module& child_module, const FunctionFacts& parent,
                                                 const Chained& chained, const Way& way) {
  if (auto objection = object_to_idioms(parent)) return objection;
  if (auto objection = object_to_order_of_blocks(parent, way)) return objection;
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
