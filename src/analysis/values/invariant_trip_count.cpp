#include "analysis/values/invariant_trip_count.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "analysis/effects/effects.h"
#include "ptx/opcodes.h"

namespace klap::analysis {

using ptx::Statement;

bool InvariantTripCount::around(uint32_t instruction) const {
  uint32_t loop = loops_.innermost(flow_.instructions()[instruction].block);
  if (!loops_.known() || !dominance_.known() || loop == Loop::kNone) return false;
  for (; loop != Loop::kNone; loop = loops_.all()[loop].parent) {
    if (!is_fixed(loop)) return false;
  }
  return true;
}

bool InvariantTripCount::is_fixed(uint32_t index) const {
  const Loop& loop = loops_.all()[index];
  return loop.is_natural() && !loop.exits.empty() &&
         std::ranges::all_of(loop.exits, [&](const Loop::Exit& exit) {
           return runs_in_every_iteration(index, exit.from) && exits_by_counters(index, exit.from);
         });
}

// True if the block runs once in every iteration, as it stands in no inner loop.
bool InvariantTripCount::runs_in_every_iteration(uint32_t loop, uint32_t block) const {
  const std::vector<uint32_t>& latches = loops_.all()[loop].latches;
  return loops_.innermost(block) == loop && !latches.empty() &&
         std::ranges::all_of(latches, [&](uint32_t latch) { return dominance_.dominates(block, latch); });
}

bool InvariantTripCount::exits_by_counters(uint32_t loop, uint32_t from) const {
  const Statement& branch = at(flow_.blocks()[from].last - 1);
  const bool is_known =
      module_.is(branch.head, "bra") || module_.is(branch.head, "ret") || module_.is(branch.head, "exit");
  if (!is_known || !branch.predicated) return false;
  std::set<std::string_view> seen;
  std::vector<std::string_view> work = {module_.text(branch.predicate)};
  while (!work.empty()) {
    const std::string_view reg = work.back();
    work.pop_back();
    if (!seen.insert(reg).second) continue;
    if (data_.is_ambiguous(reg)) return false;
    for (uint32_t definition : data_.definitions(reg)) {
      const uint32_t block = flow_.instructions()[definition].block;
      if (!loops_.contains(loop, block)) continue;
      if (!runs_in_every_iteration(loop, block) || !computes(at(definition))) return false;
      const Registers registers = registers_of(module_, at(definition), data_.names());
      work.insert(work.end(), registers.read.begin(), registers.read.end());
      if (at(definition).predicated) work.push_back(module_.text(at(definition).predicate));
    }
  }
  return true;
}

// True if the result depends only on the operands and on the thread's place.
bool InvariantTripCount::computes(const Statement& s) const {
  for (const std::string_view opcode : {"ld", "ldu", "call"}) {
    if (module_.is(s.head, opcode)) return false;
  }
  if (ptx::opcode_of(module_, s).reads_carry()) return false;
  for (const ptx::TokenRange& operand : s.operands) {
    for (uint32_t t = operand.first; t < operand.last; ++t) {
      const std::string_view text = module_.text(t);
      const bool is_special = text.starts_with('%') && !data_.names().is_register(text);
      if (is_special && register_effect(text) != EffectKind::PositionRegister) return false;
    }
  }
  return instruction_effects(module_, s).empty();
}

}  // namespace klap::analysis
