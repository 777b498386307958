#include "jit/planned/child_facts.h"

#include <algorithm>

#include "analysis/values/values.h"

namespace klap::jit {
namespace {

using analysis::SiteArgument;
using analysis::Uniform;

// An argument may be stored in pieces, and a piece that is never stored is not known.
bool is_uniform(const ptx::Parameter& parameter, const analysis::SiteValues& site, Uniform group) {
  uint32_t stored = 0;
  for (const SiteArgument& piece : site.arguments) {
    const uint32_t begin = std::max(piece.offset, parameter.offset);
    const uint32_t end = std::min(piece.offset + piece.bytes, parameter.offset + parameter.bytes);
    if (begin >= end) continue;
    if (piece.operand.uniform > group) return false;
    stored += end - begin;
  }
  return stored != 0;
}

// Declarations in inner scopes are of calls' parameters and results.
bool has_frame(const analysis::ControlFlow& flow) {
  const ptx::Module& m = flow.module();
  return std::ranges::any_of(flow.instructions(),
                             [&](const auto& i) { return m.is(i.statement->head, "call"); }) ||
         std::ranges::any_of(flow.function().body.body, [&](const ptx::Statement& s) {
           return s.kind == ptx::StatementKind::Directive && m.is(s.head, ".local");
         });
}

}  // namespace

ChildThreads child_threads(const ptx::Module& module, const ptx::Function& child, bool one_row) {
  const analysis::FunctionFacts facts(module, child);
  const analysis::Values& v = facts.values();
  const auto judge = one_row ? analysis::moldable_in_one_row : analysis::moldable;
  ChildThreads out{judge(v.flow, v.registers, v.reaching, v.symbolic), {}};
  out.loop = analysis::find_stride_loop(v, out.moldable);
  out.words = v.liveness.maximum().pressure.words;
  out.has_frame = has_frame(v.flow);
  return out;
}

size_t uniform_arguments(const analysis::FunctionFacts& parent, const analysis::Site& site,
                         const ptx::Function& child, Uniform group) {
  if (child.parameters.empty()) return 0;
  const analysis::SiteValues values = analysis::site_values(parent.values(), site);
  return static_cast<size_t>(std::ranges::count_if(
      child.parameters, [&](const ptx::Parameter& p) { return is_uniform(p, values, group); }));
}

}  // namespace klap::jit
