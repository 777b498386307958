#include "analysis/feeding.h"

#include <fmt/format.h>

#include "analysis/single_thread.h"
#include "analysis/variance.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

Objection object(std::string detail) { return {Reason::ChildLaunches, std::move(detail)}; }

// The child's copy in the consumer is rewritten to read coherently; what it calls is not copied.
std::optional<Objection> object_to_noncoherent_callees(const FunctionFacts& child) {
  std::optional<Objection> found;
  for (const Function* callee : call_closure(child.module, child.function).functions) {
    ptx::for_each_statement(callee->body, [&](const Statement& s) {
      const Module& m = child.module;
      if (found || s.kind != ptx::StatementKind::Instruction) return;
      if (!m.is(s.head, "ldu") && !(m.is(s.head, "ld") && m.has_modifier(s, ".nc"))) return;
      found = object(fmt::format("launches itself, and {}, called by it, reads past the coherent caches ({})",
                                 callee->name, m.place(s.head)));
    });
  }
  return found;
}

// Whether the NULL stream of one block may be given several launches of the site. (It is in no loop.)
bool is_ordered(const FunctionFacts& kernel, const Site& site) {
  return stream_kind(site) == StreamKind::Null && !is_launched_by_one_thread(kernel, site);
}

}  // namespace

std::optional<Objection> object_to_feeding(const FunctionFacts& child, const FunctionFacts& parent,
                                           const Site& site, const Way& way) {
  const Site& own = child.sites.front();
  const std::string place = ptx::place(own.position);
  if (&own != &site) {
    if (auto objection = object_to_parent(child, own, way))
      return object(fmt::format("launches itself ({}): {}: {}", place, to_string(objection->reason),
                                objection->detail));
    if (constant_block(own, child) != constant_block(site, parent) ||
        constant_shared_bytes(own, child) != constant_shared_bytes(site, parent))
      return object(fmt::format("launches itself ({}) with another block or other shared memory", place));
    if (auto objection = object_to_child(child.module, child.function, child, own, way)) return objection;
  }
  for (const Site* launch : {&own, &site}) {
    if (launch->idiom->form == LaunchForm::Documented)
      return object(fmt::format("launches itself ({}), and {} asks for a buffer before it knows the grid",
                                place, ptx::place(launch->position)));
  }
  if (auto objection = object_to_noncoherent_callees(child)) return objection;
  if (is_ordered(child, own) || is_ordered(parent, site)) {
    const CallClosure closure = call_closure(child.module, child.function);
    if (const auto update = shared_update(child.module, child.function, closure, {}))
      return Objection{Reason::ChildReadModifyWrite, *update};
  }
  return std::nullopt;
}

}  // namespace klap::analysis
