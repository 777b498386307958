#include "analysis/synchronisation/synchronisation.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/synchronisation/barriers.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

// The ways in which an instruction can tell other threads of the block something, or learn from them.
struct Communication {
  bool tells_memory = false, learns_memory = false;
  bool meets_warp = false;

  void add(const Communication& other) {
    tells_memory = tells_memory || other.tells_memory;
    learns_memory = learns_memory || other.learns_memory;
    meets_warp = meets_warp || other.meets_warp;
  }
};

// Block barriers are not among these: barriers.h counts them.
Communication communication_of(EffectKind effect) {
  using enum EffectKind;
  switch (effect) {
    case WarpSync:
      return {false, false, true};
    case Atomic:
    case Fence:
    case BarrierObject:
    case ClusterBarrier:
    case ClusterAccess:
    case AsyncCopy:
    case GridDependency:
    case UnlistedInstruction:
    case UnknownCall:
    case IndirectCall:
      return {true, true, true};
    case Reduction:
    case StrongStore:
      return {true, false, false};
    case StrongLoad:
      return {false, true, false};
    default:
      return {};
  }
}

// A store that no other thread sees: to local memory, or a parameter of a call.
bool is_private_store(const Module& m, const Statement& s) {
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    if (m.is(t, ".local") || m.text(t).starts_with(".param")) return true;
  }
  return false;
}

// Loads that go past the first-level cache are how old code polls.
bool looks_past_cache(const Module& m, const Statement& s) {
  return m.is(s.head, "ld") && (m.has_modifier(s, ".cv") || m.has_modifier(s, ".cg"));
}

Communication of_instruction(const Module& m, const Statement& s) {
  Communication out;
  for (const EffectKind effect : instruction_effects(m, s)) out.add(communication_of(effect));
  if (m.is(s.head, "st") && !is_private_store(m, s)) out.tells_memory = true;
  if (looks_past_cache(m, s)) out.learns_memory = true;
  return out;
}

class Search {
 public:
  Search(const FunctionFacts& kernel, uint32_t a, uint32_t b) : k_(kernel), a_(a), b_(b) {}

  [[nodiscard]] Finding run() const {
    if (k_.flow.has_unknown_branch()) return {Answer::Unknown, "where a branch leads cannot be told"};
    Finding barrier = barrier_between(k_, a_, b_);
    if (barrier.answer != Answer::No) return barrier;
    std::string told_by, met_behind, learned_by, met_before, met_anywhere_before;
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      const Communication is = communication(i);
      if (k_.flow.can_follow(a_, i)) {
        if (is.tells_memory && told_by.empty()) told_by = place(i);
        if (is.meets_warp && met_behind.empty()) met_behind = place(i);
      }
      if (k_.flow.can_follow(i, b_)) {
        if (is.learns_memory && learned_by.empty()) learned_by = place(i);
        if (is.meets_warp && met_before.empty() && !is_passed_before(i)) met_before = place(i);
        if (is.meets_warp && met_anywhere_before.empty()) met_anywhere_before = place(i);
      }
    }
    if (!told_by.empty() && !learned_by.empty())
      return {Answer::Unknown, fmt::format("{} may tell {} of the launch", told_by, learned_by)};
    if (!met_before.empty())
      return {Answer::Unknown, fmt::format("lanes may meet at {} between the launches", met_before)};
    if (!met_behind.empty() && !met_anywhere_before.empty())
      return {Answer::Unknown, fmt::format("lanes may meet at {} and {} between the launches", met_behind,
                                           met_anywhere_before)};
    return {Answer::No, ""};
  }

 private:
  // True if every thread that launches at `a` has passed the instruction once before, and does not come there
  // again.
  [[nodiscard]] bool is_passed_before(uint32_t instruction) const {
    if (k_.flow.in_loop(instruction) || k_.flow.can_follow(a_, instruction)) return false;
    if (k_.flow.instructions()[instruction].statement->predicated) return false;
    const uint32_t block = k_.flow.instructions()[instruction].block;
    const uint32_t of_launch = k_.flow.instructions()[a_].block;
    if (block == of_launch) return instruction < a_;
    const Dominance& dominance = k_.values().dominance;
    return dominance.known() && dominance.dominates(block, of_launch);
  }

  [[nodiscard]] std::string place(uint32_t i) const {
    const Statement& s = *k_.flow.instructions()[i].statement;
    return fmt::format("{} ({})", k_.module.full_opcode(s), k_.module.place(s.head));
  }

  [[nodiscard]] Communication communication(uint32_t i) const {
    const Statement& s = *k_.flow.instructions()[i].statement;
    if (is_argument_store(s)) return {};
    if (!k_.module.is(s.head, "call")) return of_instruction(k_.module, s);
    const auto call = parse_call(k_.module, s, k_.data.names());
    if (!call || !call->direct) return {true, true, true};
    if (idioms().is_device_runtime(call->callee) || is_known_external(call->callee)) return {};
    const Function* const callee = k_.module.find_function(call->callee);
    if (callee == nullptr || !k_.calls().contains(*callee)) return {true, true, true};
    return of_callee(*callee);
  }

  // Block barriers in the callee are counted by barriers.h. Each store of it may be seen by others.
  [[nodiscard]] Communication of_callee(const Function& callee) const {
    Communication out;
    for (const Effect& effect : k_.calls().closure(callee).all()) out.add(communication_of(effect.kind));
    std::vector<const Function*> work = {&callee};
    for (size_t next = 0; next < work.size() && !out.tells_memory; ++next) {
      ptx::for_each_statement(work[next]->body, [&](const Statement& s) {
        if (s.kind == ptx::StatementKind::Instruction) out.add(of_instruction(k_.module, s));
      });
      for (const Function* f : k_.calls().callees(*work[next])) {
        if (std::ranges::find(work, f) == work.end()) work.push_back(f);
      }
    }
    return out;
  }

  // The argument buffer of a launch is for the device runtime alone.
  [[nodiscard]] bool is_argument_store(const Statement& s) const {
    return std::ranges::any_of(k_.sites, [&](const Site& site) {
      return std::ranges::any_of(site.arguments, [&](const Argument& a) { return a.store == &s; });
    });
  }

  const FunctionFacts& k_;
  const uint32_t a_, b_;
};

}  // namespace

Finding may_be_synchronised(const FunctionFacts& kernel, uint32_t a, uint32_t b) {
  return Search(kernel, a, b).run();
}

bool is_order_free(const FunctionFacts& kernel, uint32_t a, uint32_t b) {
  return may_be_synchronised(kernel, a, b).answer == Answer::No &&
         (a == b || may_be_synchronised(kernel, b, a).answer == Answer::No);
}

}  // namespace klap::analysis
