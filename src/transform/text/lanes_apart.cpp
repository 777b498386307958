#include "transform/text/lanes_apart.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string_view>

#include "analysis/graph/flow.h"
#include "analysis/graph/loops.h"
#include "ptx/edit.h"

namespace klap::transform {

namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

constexpr std::string_view kRegister = "lanes_together";  // with a prefix where it is spliced

bool goes_apart(const analysis::ControlFlow& flow) {
  const analysis::Loops loops(flow);
  return std::ranges::any_of(std::views::iota(size_t{0}, flow.blocks().size()), [&](size_t block) {
    return flow.blocks()[block].reachable && loops.is_irreducible(static_cast<uint32_t>(block));
  });
}

// The register of lanes_together(); empty for any other instruction.
std::string_view register_of(const Module& module, const Statement& s) {
  if (!module.is(s.head, "activemask") || s.operands.empty()) return {};
  const std::string_view text = module.text(s.operands[0]);
  return text.ends_with(kRegister) ? text : std::string_view();
}

std::string changed(std::string_view lanes) {
  return fmt::format(
      " {{ .reg .pred %klap_all; .reg .b32 %klap_own; setp.eq.u32 %klap_all, {0}, 0xffffffff; mov.u32 "
      "%klap_own, %laneid; shl.b32 %klap_own, 1, %klap_own; selp.b32 {0}, {0}, %klap_own, %klap_all; }}",
      lanes);
}

}  // namespace

bool may_go_apart(const Module& module) {
  return std::ranges::any_of(module.functions, [&](const Function& function) {
    return function.is_definition && goes_apart(analysis::ControlFlow(module, function));
  });
}

std::string with_lanes_apart(std::string ptx, const std::string& name) {
  if (ptx.find(kRegister) == std::string::npos) return ptx;
  const Module module = ptx::parse(ptx, name);
  ptx::Edits edits(module);
  for (const Function& function : module.functions) {
    if (!function.is_definition) continue;
    if (module.text(function.tokens).find(kRegister) == std::string_view::npos) continue;
    const analysis::ControlFlow flow(module, function);
    if (!goes_apart(flow)) continue;
    for (const analysis::FlatInstruction& each : flow.instructions()) {
      const std::string_view lanes = register_of(module, *each.statement);
      if (!lanes.empty()) edits.insert_after(each.statement->tokens.last - 1, changed(lanes));
    }
  }
  return edits.empty() ? std::move(ptx) : edits.apply();
}

}  // namespace klap::transform
