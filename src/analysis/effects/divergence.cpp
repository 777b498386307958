#include "analysis/effects/divergence.h"

#include <algorithm>

#include "analysis/effects/effects.h"

namespace klap::analysis {

using ptx::Statement;

BlockDivergence::BlockDivergence(const ptx::Module& module, const ptx::Function& function,
                                 const ControlFlow& flow, const DataFlow& data)
    : module_(module),
      function_(function),
      flow_(flow),
      data_(data),
      divided_(flow.blocks().size(), flow.has_unknown_branch()) {
  // Each iteration may find further decisions to differ. If that does not end soon, all decisions count as
  // different.
  constexpr int kRounds = 8;
  propagate();
  for (int round = 0; mark_divided(); ++round) {
    if (round == kRounds) divided_.assign(divided_.size(), true);
    propagate();
  }
}

Divergence BlockDivergence::of(std::string_view reg) const {
  const auto found = of_.find(reg);
  return found == of_.end() ? Divergence::None : found->second;
}

Divergence BlockDivergence::of_decision(uint32_t instruction) const {
  const Statement& s = *flow_.instructions()[instruction].statement;
  Divergence out = s.predicated ? of(module_.text(s.predicate)) : Divergence::None;
  if (module_.is(s.head, "brx") && !s.operands.empty())
    out = std::max(out, of(module_.text(s.operands[0].first)));
  return out;
}

namespace {

Divergence register_divergence(std::string_view name) {
  if (name == "%tid" || name == "%warpid") return Divergence::ByThread;
  if (name == "%ctaid" || name == "%ntid" || name == "%nctaid") return Divergence::None;
  return register_effect(name) == EffectKind::LaneRegister ? Divergence::ByThread : Divergence::Unknown;
}

// Instructions whose result depends on their operands alone.
bool computes(const ptx::Module& m, const Statement& s) {
  const auto effects = instruction_effects(m, s);
  return effects.empty() && !m.is(s.head, "ld") && !m.is(s.head, "call");
}

}  // namespace

// The divergence that an instruction's result has from sources other than registers.
Divergence BlockDivergence::source(const Statement& s) const {
  Divergence out = Divergence::None;
  for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
    const std::string_view text = module_.text(t);
    if (text[0] != '%' || module_.tokens[t].kind != ptx::TokenKind::Identifier) continue;
    if (!data_.names().contains(text)) out = std::max(out, register_divergence(text));
  }
  if (computes(module_, s)) return out;
  if (module_.is(s.head, "ld") && s.operands.size() == 2) {
    if (module_.has_modifier(s, ".const")) return out;
    // Only a kernel's own parameters are the same for all threads, not those of called functions.
    const auto address = parse_address(module_, s.operands[1]);
    for (const ptx::Parameter& p : function_.parameters) {
      if (function_.kind == ptx::FunctionKind::Entry && address && address->base == p.name) return out;
    }
  }
  return std::max(out, Divergence::Unknown);
}

// True if threads may see different definitions of the register.
bool BlockDivergence::is_joined(std::string_view reg) const {
  const auto& definitions = data_.definitions(reg);
  if (definitions.size() < 2) return false;
  return std::any_of(definitions.begin(), definitions.end(),
                     [&](uint32_t d) { return divided_[flow_.instructions()[d].block]; });
}

void BlockDivergence::raise(uint32_t instruction, std::vector<uint32_t>& work) {
  const Statement& s = *flow_.instructions()[instruction].statement;
  const Registers registers = registers_of(module_, s, data_.names());
  if (registers.written.empty()) return;
  Divergence level = source(s);
  for (std::string_view r : registers.read) level = std::max(level, of(r));
  for (std::string_view r : registers.written) {
    // Which of several definitions is seen somewhere is not followed, so none of them is proven to be seen.
    Divergence to = is_joined(r) ? std::max(level, Divergence::Unknown) : level;
    if (data_.definitions(r).size() > 1) to = std::min(to, Divergence::Unknown);
    if (to <= of(r)) continue;
    of_[r] = to;
    const auto& uses = data_.uses(r);
    work.insert(work.end(), uses.begin(), uses.end());
  }
}

// Every register rises twice at most.
void BlockDivergence::propagate() {
  std::vector<uint32_t> work(flow_.instructions().size());
  for (uint32_t i = 0; i < work.size(); ++i) work[i] = i;
  while (!work.empty()) {
    const uint32_t i = work.back();
    work.pop_back();
    raise(i, work);
  }
}

// Marks what can follow a decision that is not the same for all; true if that was more than before.
bool BlockDivergence::mark_divided() {
  std::vector<uint32_t> work;
  bool grew = false;
  const auto mark = [&](uint32_t from) {
    for (uint32_t to : flow_.blocks()[from].successors) {
      if (divided_[to]) continue;
      divided_[to] = grew = true;
      work.push_back(to);
    }
  };
  for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
    const uint32_t block = flow_.instructions()[i].block;
    const bool last = i + 1 == flow_.blocks()[block].last;
    if (last && flow_.blocks()[block].successors.size() > 1 && of_decision(i) != Divergence::None)
      mark(block);
  }
  while (!work.empty()) {
    const uint32_t block = work.back();
    work.pop_back();
    mark(block);
  }
  return grew;
}

}  // namespace klap::analysis
