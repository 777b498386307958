#include "analysis/values/lone_store.h"

#include <string_view>
#include <vector>

#include "analysis/values/warp_invariant_load.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;

bool is_plain_store(const Module& m, const Statement& s) {
  if (!m.is(s.head, "st") || s.predicated || s.operands.size() != 2) return false;
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    const std::string_view modifier = m.text(t);
    const bool plain = modifier == ".global" || modifier == ".shared" || modifier == ".v2" ||
                       modifier == ".v4" || ptx::type_bytes(modifier) != 0;
    if (!plain) return false;
  }
  return true;
}

}  // namespace

bool is_behind_lone_store(const Values& values, uint32_t instruction) {
  const ControlFlow& flow = values.flow;
  const Module& m = flow.module();
  const std::vector<bool> alone = nothing_entered(flow);
  const uint32_t to = flow.instructions()[instruction].block;
  for (uint32_t i = 0; i < alone.size(); ++i) {
    const Statement& s = *flow.instructions()[i].statement;
    const uint32_t from = flow.instructions()[i].block;
    const bool before = from == to ? i < instruction : values.dominance.dominates(from, to);
    if (!before || !alone[i] || flow.in_loop(i) || !is_plain_store(m, s)) continue;
    const auto address = parse_address(m, s.operands[0]);
    if (address && values.uniformity.operand(i, address->base) <= Uniform::Block) return true;
  }
  return false;
}

}  // namespace klap::analysis
