#include "analysis/chaining.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/coherence.h"
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

}  // namespace

bool has_order(const FunctionFacts& parent, const Site& site) {
  return stream_kind(site) != StreamKind::FireAndForget && has_order_within_thread(parent, site);
}

std::optional<Objection> object_to_chaining(const Module& child_module, const Function& child,
                                            const FunctionFacts& parent, const Site& site) {
  if (site.idiom->form == LaunchForm::Documented)
    return object(site, "and the launch asks for a buffer before it knows the grid");
  if (!has_order(parent, site)) return std::nullopt;
  if (stream_kind(site) == StreamKind::Own)
    return object(site, "and the thread's launches into its own stream run one after another");
  return object_to_noncoherent_callees(child_module, child, site);
}

bool is_part_of_launching(const FunctionFacts& parent, const Statement& s) {
  return std::ranges::any_of(
             parent.sites, [&](const Site& site) { return &s == site.get_call || &s == site.launch_call; }) ||
         std::ranges::any_of(parent.error_queries, [&](const ErrorQuery& q) { return &s == q.call; });
}

}  // namespace klap::analysis
