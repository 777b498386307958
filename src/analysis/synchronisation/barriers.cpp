#include "analysis/synchronisation/barriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/effects/divergence.h"
#include "analysis/graph/path_counts.h"
#include "analysis/values/values.h"

namespace klap::analysis {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

namespace {

bool is_barrier(EffectKind kind) {
  using enum EffectKind;
  return kind == BlockBarrier || kind == PartialBarrier || kind == ClusterBarrier || kind == BarrierObject;
}

// The number of a `bar` or `barrier` that holds all threads, if it is constant.
std::optional<std::string> barrier_number(const FunctionFacts& kernel, const Statement& s) {
  const size_t operand = kernel.module.has_modifier(s, ".red") ? 1 : 0;
  if (operand >= s.operands.size()) return std::nullopt;
  const auto number = kernel.data.constant(kernel.module.text(s.operands[operand]));
  if (!number) return std::nullopt;
  return fmt::format("barrier {}", *number);
}

std::optional<BarrierUse> use_of(const FunctionFacts& kernel, const Statement& s) {
  const Module& m = kernel.module;
  for (EffectKind kind : instruction_effects(m, s)) {
    if (!is_barrier(kind)) continue;
    BarrierUse use;
    use.kind = kind;
    use.text = fmt::format("{} ({})", m.full_opcode(s), m.place(s.head));
    if (kind == EffectKind::BlockBarrier) use.number = barrier_number(kernel, s);
    if (kind == EffectKind::ClusterBarrier) use.number = "the cluster's barrier";
    use.arrives = !m.has_modifier(s, ".wait");
    use.waits = !m.has_modifier(s, ".arrive");
    return use;
  }
  return std::nullopt;
}

// A call by which a barrier may run.
std::optional<BarrierUse> use_by_call(const FunctionFacts& kernel, const CallGraph& graph,
                                      const Statement& s) {
  const Module& m = kernel.module;
  const auto call = parse_call(m, s, kernel.data.names());
  if (!call) return std::nullopt;
  const Function* callee = call->direct ? m.find_function(call->callee) : nullptr;
  bool may = !call->direct;
  if (callee != nullptr && graph.contains(*callee)) {
    const auto& effects = graph.closure(*callee).all();
    may = std::any_of(effects.begin(), effects.end(), [](const Effect& e) {
      return is_barrier(e.kind) || e.kind == EffectKind::IndirectCall || e.kind == EffectKind::UnknownCall;
    });
  } else if (call->direct) {
    may = !idioms().is_device_runtime(call->callee) && !is_known_external(call->callee);
  }
  if (!may) return std::nullopt;
  BarrierUse use;
  use.kind = EffectKind::IndirectCall;
  use.text = fmt::format("a call of {} ({})", call->callee, m.place(s.head));
  return use;
}

}  // namespace

std::vector<BarrierUse> find_barriers(const FunctionFacts& kernel, const CallGraph& graph) {
  std::vector<BarrierUse> out;
  for (uint32_t i = 0; i < kernel.flow.instructions().size(); ++i) {
    const Statement& s = *kernel.flow.instructions()[i].statement;
    auto use = use_of(kernel, s);
    if (!use) use = use_by_call(kernel, graph, s);
    if (!use) continue;
    use->instruction = i;
    out.push_back(std::move(*use));
  }
  return out;
}

namespace {

class Between {
 public:
  Between(const FunctionFacts& kernel, uint32_t a, uint32_t b)
      : kernel_(kernel), flow_(kernel.flow), a_(a), b_(b) {
    uses_ = find_barriers(kernel, kernel.calls());
    countable_ = !flow_.has_unknown_branch() &&
                 std::all_of(uses_.begin(), uses_.end(), [](const BarrierUse& u) { return u.number; });
  }

  Finding run() const {
    if (uses_.empty()) return {Answer::No, "there is no barrier"};
    if (!countable_) return without_counting();
    std::map<std::string, std::vector<const BarrierUse*>> by_number;
    for (const BarrierUse& use : uses_) by_number[*use.number].push_back(&use);
    Finding unknown{Answer::No, "every barrier runs before both launches or after both"};
    for (const auto& [number, uses] : by_number) {
      Finding finding = counted(uses);
      if (finding.answer == Answer::Yes) return finding;
      if (finding.answer == Answer::Unknown) unknown = std::move(finding);
    }
    return unknown;
  }

 private:
  // A thread that has ended no longer holds up a barrier of all threads, so such a barrier need only stand
  // before `b`. One with a count needs arrivals, so it must also be able to follow `a`.
  [[nodiscard]] Finding without_counting() const {
    const BarrierUse* before = nullptr;
    bool after = false, all_threads = false;
    for (const BarrierUse& use : uses_) {
      const bool needs_arrival =
          use.kind == EffectKind::PartialBarrier || use.kind == EffectKind::BarrierObject;
      if (flow_.can_follow(use.instruction, b_)) {
        if (before == nullptr) before = &use;
        all_threads = all_threads || !needs_arrival;
      }
      after = after || flow_.can_follow(a_, use.instruction);
    }
    if (before == nullptr) return {Answer::No, "no barrier can run before the later launch"};
    if (!after && !all_threads) return {Answer::No, "no thread can arrive after the earlier launch"};
    return {Answer::Unknown, fmt::format("which threads {} holds cannot be told", before->text)};
  }

  [[nodiscard]] std::vector<bool> marked(const std::vector<const BarrierUse*>& uses,
                                         bool BarrierUse::*part) const {
    std::vector<bool> out(flow_.instructions().size());
    for (const BarrierUse* use : uses) out[use->instruction] = use->*part;
    return out;
  }
  [[nodiscard]] std::vector<bool> target(uint32_t instruction) const {
    return target(instruction, instruction);
  }
  [[nodiscard]] std::vector<bool> target(uint32_t one, uint32_t other) const {
    std::vector<bool> out(flow_.instructions().size());
    out[one] = out[other] = true;
    return out;
  }

  [[nodiscard]] Finding counted(const std::vector<const BarrierUse*>& uses) const {
    const PathCounts arrivals(flow_, marked(uses, &BarrierUse::arrives), target(a_));
    const PathCounts returns(flow_, marked(uses, &BarrierUse::waits), target(b_));
    if (!arrivals.from_entry() || !returns.from_entry()) return {Answer::No, "a launch is never reached"};
    if (returns.from_entry()->most <= arrivals.from_entry()->least) return {Answer::No, ""};
    const bool whole =
        std::all_of(uses.begin(), uses.end(), [](const BarrierUse* u) { return u->arrives && u->waits; });
    // No thread gets to both, or to one of them twice: which it is depends on decisions alone.
    if (whole && !flow_.can_follow(a_, b_) && !flow_.can_follow(b_, a_)) {
      const std::vector<uint32_t> decisions =
          a_ == b_ ? returns.decisions()
                   : PathCounts(flow_, marked(uses, &BarrierUse::waits), target(a_, b_)).decisions();
      const Finding found = by_decisions(*uses[0], decisions);
      if (a_ == b_ || found.answer == Answer::No) return found;
    }
    return {Answer::Yes, fmt::format("{} can run between them", uses[0]->text)};
  }

  // True if all threads of a block that make the decision in the same iteration of the loops around it decide
  // alike. That is the same time for all of them if they have agreed at all other decisions.
  [[nodiscard]] bool is_uniform(uint32_t decision) const {
    const FlatInstruction& i = flow_.instructions()[decision];
    const Uniformity& uniformity = kernel_.values().uniformity;
    if (flow_.blocks()[i.block].last == decision + 1) return uniformity.decision(i.block) <= Uniform::Block;
    return uniformity.operand(decision, kernel_.module.text(i.statement->predicate)) <= Uniform::Block;
  }

  [[nodiscard]] Finding by_decisions(const BarrierUse& use, const std::vector<uint32_t>& decisions) const {
    const BlockDivergence divergence(kernel_.module, kernel_.function, flow_, kernel_.data);
    Finding out{Answer::No, ""};
    for (uint32_t decision : decisions) {
      const Divergence degree = divergence.of_decision(decision);
      if (degree == Divergence::None || is_uniform(decision) || out.answer == Answer::Yes) continue;
      out.answer = degree == Divergence::ByThread ? Answer::Yes : Answer::Unknown;
      out.detail = fmt::format("how often {} runs before the launch depends on the decision at {}", use.text,
                               kernel_.module.place(flow_.instructions()[decision].statement->head));
    }
    return out;
  }

  const FunctionFacts& kernel_;
  const ControlFlow& flow_;
  uint32_t a_, b_;
  std::vector<BarrierUse> uses_;
  bool countable_ = false;
};

}  // namespace

Finding barrier_between(const FunctionFacts& kernel, uint32_t a, uint32_t b) {
  return Between(kernel, a, b).run();
}

std::string print_barriers(const FunctionFacts& kernel) {
  std::string out;
  for (const Site& a : kernel.sites) {
    for (const Site& b : kernel.sites) {
      if (a.get_call == nullptr || b.get_call == nullptr) continue;
      const Finding finding =
          barrier_between(kernel, kernel.flow.index_of(a.get_call), kernel.flow.index_of(b.get_call));
      out += fmt::format("barrier between the launches at {} and {}: {}\n", ptx::place(a.position),
                         ptx::place(b.position), to_text(finding));
    }
  }
  return out;
}

}  // namespace klap::analysis
