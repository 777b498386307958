#include "analysis/optimise/iteration_loop.h"

#include <algorithm>

#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/values/substitution.h"

namespace klap::analysis {
namespace {

constexpr uint64_t kMostIterations = uint64_t{1} << 26;

// The expression in terms of the thread's index, if it does not mix both indices.
Expr as_index(const Expr& e) {
  if (!e.known() || any_leaf(e, is_own_index)) return {};
  return substitute(e, [](const Expr& part) -> std::optional<Expr> {
    if (!is_iteration(*part)) return std::nullopt;
    return LinearIndex::index(part->bits);
  });
}

// The expression with the number of threads that applies when more threads share the iterations.
Expr with_few_threads(const Expr& e) {
  return substitute(e, [](const Expr& part) -> std::optional<Expr> {
    if (!is_count(*part)) return std::nullopt;
    return count_in_iteration(part->bits);
  });
}

// True for coefficient times the iteration, plus terms that are the same for all threads.
bool steps_like_iteration(const Expr& first, uint64_t step) {
  if (!first.known()) return false;
  bool found = false;
  for (const Term& term : terms_of(first)) {
    if (is_multiple_of(term, is_iteration)) {
      if (found || term.coefficient != step) return false;
      found = true;
      continue;
    }
    const bool differs = std::ranges::any_of(term.factors, [](const Expr& factor) {
      return any_leaf(factor, [](const ExprNode& n) {
        return (n.kind == ExprKind::Opaque && !is_base(n)) || n.kind == ExprKind::Merged ||
               n.kind == ExprKind::Special;
      });
    });
    if (differs) return false;
  }
  return found;
}

}  // namespace

Expr iteration_of(uint32_t bits) { return Expr::symbol("j", bits, kMostIterations); }
Expr count_in_iteration(uint32_t bits) { return Expr::symbol("n", bits, kMostIterations); }
bool is_iteration(const ExprNode& n) { return n.kind == ExprKind::Opaque && n.name == "j"; }

Expr in_iteration(const Expr& e) {
  return substitute(e, [](const Expr& part) -> std::optional<Expr> {
    if (!is_index(*part)) return std::nullopt;
    return iteration_of(part->bits);
  });
}

bool is_multiple_of(const Term& term, bool (*wanted)(const ExprNode&)) {
  return term.factors.size() == 1 && wanted(narrowed(term.factors[0])) &&
         narrowed(term.factors[0]).bits >= 32;
}

IterationLoop::IterationLoop(const Values& child, const LinearIndex& form, const Loop& loop,
                             uint32_t iterations, const IterationLoop* before)
    : v_(&child), loop_(&loop), iterations_(iterations), before_(before), form_(form) {
  find_counters();
}

uint32_t IterationLoop::branch() const { return v_->flow.blocks()[loop_->latches[0]].last - 1; }

std::optional<uint32_t> IterationLoop::condition() const {
  const ptx::Module& m = v_->flow.module();
  const ptx::Statement& s = *v_->flow.instructions()[branch()].statement;
  if (!s.predicated) return std::nullopt;
  const uint32_t predicate = v_->registers.find(branch(), m.text(s.predicate));
  return predicate == VirtualRegisters::kNone ? std::nullopt
                                              : v_->reaching.only_definition(branch(), predicate);
}

std::optional<bool> IterationLoop::stays_when() const {
  const BasicBlock& latch = v_->flow.blocks()[loop_->latches[0]];
  const ptx::Statement& s = *v_->flow.instructions()[branch()].statement;
  if (latch.end != BlockEnd::Branch || latch.successors.size() != 2 || !s.predicated) return std::nullopt;
  return (latch.successors[0] == loop_->header()) != s.predicate_negated;
}

void IterationLoop::find_counters() {
  for (const uint32_t reg : v_->liveness.live_in(loop_->header())) {
    std::vector<uint32_t> writers;
    for (uint32_t i = 0; i < v_->flow.instructions().size(); ++i) {
      if (contains(i) && writes(i, reg)) writers.push_back(i);
    }
    if (writers.empty()) continue;
    const auto value = writers.size() == 1 ? counted(writers[0], reg) : std::nullopt;
    if (value) {
      counters_.emplace(reg, *value);
    } else {
      handed_on_.push_back({reg, writers[0]});
    }
  }
}

bool IterationLoop::writes(uint32_t i, uint32_t reg) const {
  return std::ranges::any_of(v_->registers.accesses(i),
                             [&](const Access& a) { return a.reg == reg && a.written; });
}

// True if the instruction always writes the register, with known arithmetic.
bool IterationLoop::gives(uint32_t i, uint32_t reg) const {
  return v_->symbolic.is_evaluated(i, reg) &&
         std::ranges::any_of(v_->registers.accesses(i),
                             [&](const Access& a) { return a.reg == reg && a.kills; });
}

std::optional<IterationLoop::Counter> IterationLoop::counted(uint32_t writer, uint32_t reg) const {
  const bool in_every_turn =
      v_->dominance.dominates(v_->flow.instructions()[writer].block, loop_->latches[0]);
  if (!in_every_turn || !gives(writer, reg)) return std::nullopt;
  const Expr next = with_few_threads(form_.apply(v_->symbolic.written(writer, reg)));
  if (!next.known()) return std::nullopt;
  const std::vector<Term> terms = terms_of(next);
  if (terms.size() != 2) return std::nullopt;
  const size_t step = is_multiple_of(terms[0], is_count) ? 0 : 1;
  const Term& from = terms[1 - step];
  if (!is_multiple_of(terms[step], is_count) || terms[step].coefficient % iterations_ != 0)
    return std::nullopt;
  if (from.coefficient != 1 || from.factors.size() != 1) return std::nullopt;
  return begun(*from.factors[0], writer, reg, terms[step].coefficient / iterations_);
}

// Finds a counter if `leaf` is the register's value at the begin of a turn.
std::optional<IterationLoop::Counter> IterationLoop::begun(const ExprNode& leaf, uint32_t writer,
                                                           uint32_t reg, uint64_t step) const {
  if (leaf.kind != ExprKind::Merged) return std::nullopt;
  const auto reader = static_cast<uint32_t>(leaf.value);
  if (v_->registers.find(reader, leaf.name) != reg || !contains(reader)) return std::nullopt;
  ReachingDefinitions::Origins origins = v_->reaching.origins(reader, reg);
  if (origins.entry || std::erase(origins.definitions, writer) == 0) return std::nullopt;
  if (before_ != nullptr) {
    auto counter = gone_on(reg, writer, origins.definitions);
    if (!counter) counter = computed_behind(reg, writer, origins.definitions);
    return counter && steps_like_iteration(counter->value, step) ? counter : std::nullopt;
  }
  const auto first = first_value(reg, origins.definitions);
  if (!first || !steps_like_iteration(*first, step)) return std::nullopt;
  return Counter{*first, writer, origins.definitions};
}

// The value in the first iteration, if all of these instructions give the register the same one.
std::optional<Expr> IterationLoop::first_value(uint32_t reg, const std::vector<uint32_t>& definitions) const {
  std::optional<Expr> value;
  for (const uint32_t beginning : definitions) {
    if (contains(beginning) || !gives(beginning, reg)) return std::nullopt;
    const Expr first = in_iteration(form_.apply(v_->symbolic.written(beginning, reg)));
    if (!first.known() || (value && !(*value == first))) return std::nullopt;
    value = first;
  }
  return value;
}

// The counter goes on from the loop before: with the value that it left, or with its first value where that
// loop was not entered.
std::optional<IterationLoop::Counter> IterationLoop::gone_on(uint32_t reg, uint32_t writer,
                                                             const std::vector<uint32_t>& definitions) const {
  const auto before = before_->counters().find(reg);
  if (before == before_->counters().end()) return std::nullopt;
  std::vector<uint32_t> beginning = definitions;
  if (std::erase(beginning, before->second.writer) == 0) return std::nullopt;
  // Behind that loop it would begin again.
  const bool is_late = std::ranges::any_of(
      beginning, [&](uint32_t i) { return v_->flow.can_follow(before->second.writer, i); });
  if (is_late) return std::nullopt;
  const auto first = first_value(reg, beginning);
  return first && *first == before->second.value ? std::optional(Counter{*first, writer, definitions})
                                                 : std::nullopt;
}

// The counter begins with a value that is computed from counters of the loop before, behind it.
std::optional<IterationLoop::Counter> IterationLoop::computed_behind(
    uint32_t reg, uint32_t writer, const std::vector<uint32_t>& definitions) const {
  if (definitions.size() != 1) return std::nullopt;
  const uint32_t beginning = definitions[0];
  if (contains(beginning) || before_->contains(beginning) || !gives(beginning, reg)) return std::nullopt;
  // It must know its iteration from such counters only.
  const Expr raw = form_.apply(v_->symbolic.written(beginning, reg));
  if (!raw.known() || any_leaf(raw, is_own_index)) return std::nullopt;
  bool known = true;
  const Expr first = substitute(raw, [&](const Expr& part) -> std::optional<Expr> {
    if (part->kind != ExprKind::Merged) return std::nullopt;
    const auto reader = static_cast<uint32_t>(part->value);
    const uint32_t counter = v_->registers.find(reader, part->name);
    const ReachingDefinitions::Origins origins = v_->reaching.origins(reader, counter);
    const bool is_behind = !contains(reader) && !before_->contains(reader) && !origins.entry;
    const auto value = is_behind ? gone_on(counter, writer, origins.definitions) : std::nullopt;
    known = known && value && value->value->bits == part->bits;
    return known ? value->value : part;
  });
  return known ? std::optional(Counter{first, writer, definitions}) : std::nullopt;
}

Expr IterationLoop::value(const Expr& raw) const {
  return substitute(with_few_threads(form_.apply(raw)), [&](const Expr& part) -> std::optional<Expr> {
    if (part->kind != ExprKind::Merged) return std::nullopt;
    const auto counter = counters_.find(v_->registers.find(static_cast<uint32_t>(part->value), part->name));
    if (counter == counters_.end() || counter->second.value->bits != part->bits) return std::nullopt;
    return counter->second.value;
  });
}

bool IterationLoop::ends_by(const Guard& guard) const {
  const auto when = stays_when();
  if (!when) return false;
  const auto next =
      branch_guard(v_->flow, v_->registers, v_->reaching, branch(), *when,
                   [&](uint32_t i, std::string_view operand, uint32_t bits) {
                     return contains(i) ? as_index(value(v_->symbolic.read(i, operand, bits))) : Expr();
                   });
  if (!next || next->inclusive != guard.inclusive || next->sign != guard.sign) return false;
  if (!(next->bound == guard.bound) || next->index->bits != guard.index->bits) return false;
  const std::vector<Term> difference = terms_of(next->index - as_index(in_iteration(guard.index)));
  return difference.size() == 1 && difference[0].coefficient == iterations_ &&
         is_multiple_of(difference[0], is_count);
}

}  // namespace klap::analysis
