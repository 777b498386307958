#include "analysis/chaining.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/own_streams.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

Objection object(const Site& site, const std::string& detail) {
  return {Reason::SiteInLoop, fmt::format("in a loop ({}), {}", ptx::place(site.position), detail)};
}

bool is_noncoherent_load(const Module& m, const Statement& s) {
  if (s.kind != ptx::StatementKind::Instruction) return false;
  return m.is(s.head, "ldu") || (m.is(s.head, "ld") && m.has_modifier(s, ".nc"));
}

// The child's copy in the consumer is rewritten to read coherently; what it calls is not copied.
std::optional<Objection> object_to_noncoherent_callees(const Module& m, const Function& child,
                                                       const Site& site) {
  std::optional<Objection> found;
  for (const Function* callee : call_closure(m, child).functions) {
    ptx::for_each_statement(callee->body, [&](const Statement& s) {
      if (found || !is_noncoherent_load(m, s)) return;
      found = object(site, fmt::format("and {}, called by the child, reads past the coherent caches ({})",
                                       callee->name, m.place(s.head)));
    });
  }
  return found;
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
