#include "jit/planned/child_facts.h"

#include <fmt/format.h>

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

bool overlap(const ptx::Parameter& p, const transform::ArgumentPlace& place) {
  return place.from < p.offset + p.bytes && p.offset < place.from + place.bytes;
}

bool is_read(const ptx::Parameter& p, const transform::RecordLayout& layout) {
  return std::ranges::any_of(layout.places, [&](const auto& place) { return overlap(p, place); });
}

// With all that is read of it.
bool is_passed_once(const ptx::Parameter& p, const transform::RecordLayout& layout) {
  return is_read(p, layout) && std::ranges::none_of(layout.places, [&](const auto& place) {
           return overlap(p, place) && !place.once;
         });
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

std::string uniform_arguments_text(const analysis::FunctionFacts& parent, const analysis::Site& site,
                                   const ptx::Function& child, const transform::RecordLayout& layout,
                                   Uniform group) {
  if (child.parameters.empty()) return "";
  const analysis::SiteValues values = analysis::site_values(parent.values(), site);
  const auto uniform = std::ranges::count_if(
      child.parameters, [&](const ptx::Parameter& p) { return is_uniform(p, values, group); });
  const size_t all = child.parameters.size();
  std::string text =
      fmt::format("{} of {} argument{} {}-uniform", uniform, all, all == 1 ? "" : "s", to_string(group));
  if (!layout.packed) return text;
  const auto once = std::ranges::count_if(child.parameters,
                                          [&](const ptx::Parameter& p) { return is_passed_once(p, layout); });
  const auto unread =
      std::ranges::count_if(child.parameters, [&](const ptx::Parameter& p) { return !is_read(p, layout); });
  if (once != 0) text += once == uniform ? ", passed once" : fmt::format(", {} passed once", once);
  if (unread != 0) text += fmt::format(", {} never read", unread);
  return text;
}

}  // namespace klap::jit
