#include "jit/facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/values.h"

namespace klap::jit {
namespace {

using analysis::SiteArgument;
using analysis::Uniform;

// An argument may be stored in pieces, and a piece that is never stored is not known.
bool is_grid_uniform(const ptx::Parameter& parameter, const analysis::SiteValues& site) {
  uint32_t stored = 0;
  for (const SiteArgument& piece : site.arguments) {
    const uint32_t begin = std::max(piece.offset, parameter.offset);
    const uint32_t end = std::min(piece.offset + piece.bytes, parameter.offset + parameter.bytes);
    if (begin >= end) continue;
    if (piece.operand.uniform != Uniform::Grid) return false;
    stored += end - begin;
  }
  return stored != 0;
}

}  // namespace

bool is_moldable(const ptx::Module& module, const ptx::Function& child) {
  const analysis::FunctionFacts facts(module, child);
  const analysis::Values& v = facts.values();
  return analysis::moldable(v.flow, v.registers, v.reaching, v.symbolic).yes();
}

std::string uniform_arguments_text(const analysis::FunctionFacts& parent, const analysis::Site& site,
                                   const ptx::Function& child) {
  if (child.parameters.empty()) return "";
  const analysis::SiteValues values = analysis::site_values(parent.values(), site);
  const auto uniform = std::ranges::count_if(
      child.parameters, [&](const ptx::Parameter& p) { return is_grid_uniform(p, values); });
  const size_t all = child.parameters.size();
  return fmt::format("{} of {} argument{} grid-uniform", uniform, all, all == 1 ? "" : "s");
}

}  // namespace klap::jit
