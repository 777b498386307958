#include "analysis/synchronisation/early_exit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/effects/divergence.h"
#include "analysis/graph/path_counts.h"
#include "analysis/suspension/suspension.h"
#include "analysis/synchronisation/barriers.h"
#include "analysis/values/values.h"
#include "analysis/values/warp_invariant_load.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

constexpr const char* kWarp = "the warp";

class EarlyExit {
 public:
  EarlyExit(const FunctionFacts& kernel, bool full_rows, MayExit may_exit)
      : k_(kernel),
        m_(kernel.module),
        graph_(kernel.module, kernel.function),
        full_rows_(full_rows),
        may_exit_(may_exit) {}

  Finding run() {
    // Threads that have ended take part in the barriers of the others (transform/suspension/split_kernel.h).
    if (k_.data.names().is_register(kEndsTogether)) return {Answer::No, "its threads end together"};
    find_waits();
    if (!std::all_of(waits_.begin(), waits_.end(), [this](const auto& w) { return is_plain(w); }))
      may_exit_ = MayExit::Nobody;
    if (waits_.empty()) return {Answer::No, "no thread waits for another"};
    if (k_.flow.has_unknown_branch()) return {Answer::Unknown, "a branch whose targets are not known"};
    std::map<std::string, std::vector<uint32_t>> by_number;
    for (const auto& wait : waits_) {
      if (wait.number) by_number[*wait.number].push_back(wait.instruction);
    }
    Finding out{Answer::No, "every thread that exits has run all of them"};
    std::vector<uint32_t> meetings;  // of the whole block, which every thread runs before any exits
    const auto is_before = [&](uint32_t i) { return is_before_last_meeting(meetings, i); };
    for (auto& [number, instructions] : by_number) {  // those of warps come last
      if (number == kWarp && !meetings.empty()) leave_out_before_meetings(meetings, instructions);
      if (instructions.empty()) continue;
      Finding finding = judge(number, instructions);
      if (finding.answer == Answer::Yes) return finding;
      if (finding.answer == Answer::No && number != kWarp && may_exit_ == MayExit::Nobody)
        meetings.insert(meetings.end(), instructions.begin(), instructions.end());
      if (finding.answer == Answer::Unknown) out = std::move(finding);
    }
    for (const auto& wait : waits_) {
      if (wait.number || (wait.kind == EffectKind::WarpSync && is_before(wait.instruction))) continue;
      return {Answer::Unknown, "which threads take part cannot be told: " + wait.text};
    }
    if (out.answer == Answer::No && callee_exits()) return {Answer::Unknown, "a called function may exit"};
    return out;
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *k_.flow.instructions()[i].statement; }

  void find_waits() {
    waits_ = find_barriers(k_, graph_);
    for (uint32_t i = 0; i < k_.flow.instructions().size(); ++i) {
      const Statement& s = at(i);
      if (waits_for_lanes(s)) waits_.push_back(warp_wait(i, s));
      if (const auto call = parse_call(m_, s, k_.data.names()); call && callee_waits(*call)) {
        BarrierUse use;
        use.instruction = i;
        use.text = fmt::format("a call of {} ({})", call->callee, m_.place(s.head));
        waits_.push_back(std::move(use));
      }
    }
  }

  [[nodiscard]] bool waits_for_lanes(const Statement& s) const {
    const bool barrier = m_.is(s.head, "bar") || m_.is(s.head, "barrier");
    return barrier ? m_.has_modifier(s, ".warp") : m_.has_modifier(s, ".sync");
  }

  BarrierUse warp_wait(uint32_t i, const Statement& s) const {
    BarrierUse use;
    use.instruction = i;
    use.kind = EffectKind::WarpSync;
    use.text = fmt::format("{} ({})", m_.full_opcode(s), m_.place(s.head));
    if (names_all_lanes(i, s)) use.number = kWarp;
    return use;
  }

  // A barrier that can be made to let the others go on, or none at all.
  [[nodiscard]] bool is_plain(const BarrierUse& wait) const {
    if (wait.kind == EffectKind::WarpSync) return true;
    const Statement& s = at(wait.instruction);
    return wait.kind == EffectKind::BlockBarrier && m_.has_modifier(s, ".sync") && s.operands.size() == 1 &&
           k_.data.constant(m_.text(s.operands[0])) == 0;
  }

  // Some operations need the whole warp by definition (mma, ldmatrix, ...), and some have a mask as their
  // last operand. Others may be for more threads than a warp (wgmma).
  [[nodiscard]] bool names_all_lanes(uint32_t i, const Statement& s) const {
    const ptx::Opcode& opcode = ptx::opcode_of(m_, s);
    const bool masked = opcode.effect == ptx::OpcodeEffect::Barrier || opcode.lanes == ptx::Lanes::Masked;
    if (!masked) return opcode.lanes == ptx::Lanes::All;
    if (s.operands.empty()) return false;
    const Value mask = k_.values().symbolic.value(i, m_.compact(s.operands.back()), 32);
    return mask.known() && std::all_of(mask.choices.begin(), mask.choices.end(), [](const Expr& choice) {
             return choice.as_constant() == 0xffffffffU;
           });
  }

  [[nodiscard]] bool callee_waits(const Call& call) const {
    const Function* callee = call.direct ? m_.find_function(call.callee) : nullptr;
    return callee != nullptr && graph_.contains(*callee) && graph_.closure(*callee).has(EffectKind::WarpSync);
  }
  [[nodiscard]] bool callee_exits() const {
    const auto& functions = graph_.functions();
    return std::any_of(functions.begin(), functions.end(), [&](const Function* f) {
      return f != &k_.function && graph_.own(*f).has(EffectKind::Exit);
    });
  }

  // True if a thread that waits there always comes to a meeting before it exits. A thread that exits has run
  // its last meeting, so all others have come to theirs by then, and none of them is at this wait.
  [[nodiscard]] bool is_before_last_meeting(const std::vector<uint32_t>& meetings, uint32_t wait) const {
    const auto& blocks = k_.flow.blocks();
    const std::vector<bool> ends = exits();
    std::set<uint32_t> seen;
    std::vector<uint32_t> work = {wait + 1};  // instructions
    while (!work.empty()) {
      uint32_t i = work.back();
      work.pop_back();
      if (i >= k_.flow.instructions().size()) return false;
      if (!seen.insert(i).second) continue;
      const BasicBlock& block = blocks[k_.flow.instructions()[i].block];
      while (i < block.last && !is_met(meetings, i) && !ends[i]) ++i;
      if (i < block.last && ends[i]) return false;
      if (i < block.last) continue;
      if (block.exits_function) return false;
      for (const uint32_t next : block.successors) work.push_back(blocks[next].first);
    }
    return true;
  }

  // Leaves out the waits before the last meeting, if all others stand behind it. All threads come to the
  // others then after all of them have come to their last meeting, so these can be counted by themselves.
  void leave_out_before_meetings(const std::vector<uint32_t>& meetings, std::vector<uint32_t>& waits) const {
    std::vector<uint32_t> behind;
    for (const uint32_t wait : waits) {
      if (is_before_last_meeting(meetings, wait)) continue;
      if (std::ranges::any_of(meetings, [&](uint32_t m) { return k_.flow.can_follow(wait, m); })) return;
      behind.push_back(wait);
    }
    waits = std::move(behind);
  }

  // True for a meeting that every thread runs that comes there.
  [[nodiscard]] bool is_met(const std::vector<uint32_t>& meetings, uint32_t i) const {
    return !at(i).predicated && std::ranges::find(meetings, i) != meetings.end();
  }

  // Ways out: `ret`, `exit` and the closing brace. A trap ends the whole grid and is none.
  [[nodiscard]] std::vector<bool> exits() const {
    const size_t n = k_.flow.instructions().size();
    std::vector<bool> out(n + 1);
    for (uint32_t i = 0; i < n; ++i) out[i] = m_.is(at(i).head, "ret") || m_.is(at(i).head, "exit");
    const Statement& last = at(static_cast<uint32_t>(n - 1));
    const bool jumps = m_.is(last.head, "bra") || m_.is(last.head, "brx") || m_.is(last.head, "trap");
    out[n] = last.predicated || (!out[n - 1] && !jumps);
    return out;
  }

  Finding judge(const std::string& number, const std::vector<uint32_t>& instructions) {
    std::vector<bool> counted(k_.flow.instructions().size());
    for (uint32_t i : instructions) counted[i] = true;
    const std::vector<bool> ends = exits();
    const PathCounts counts(k_.flow, counted, ends);
    const BlockDivergence divergence(m_, k_.function, k_.flow, k_.data);
    const bool by_warp = number == kWarp || may_exit_ != MayExit::Nobody;
    Finding out{Answer::No, ""};
    uint32_t parting = 0;
    for (uint32_t decision : counts.decisions()) {
      const Divergence degree = divergence.of_decision(decision);
      if (degree == Divergence::None || out.answer == Answer::Yes || agree(decision, by_warp)) continue;
      if (changes_nothing(decision, counted, ends)) continue;
      const bool sure = degree == Divergence::ByThread && (!by_warp || !divides_at_warps(decision));
      out.answer = sure ? Answer::Yes : Answer::Unknown;
      out.detail = fmt::format("threads may exit by the decision at {} while others have still to reach {}",
                               m_.place(at(decision).head), first_text(instructions[0]));
      parting = decision;
    }
    if (by_warp && out.answer != Answer::No) out.detail += why_lanes_differ(parting);
    return out;
  }

  // Names the operation that synchronises before a load by which the decision is taken, if that is why a warp
  // may differ.
  [[nodiscard]] std::string why_lanes_differ(uint32_t decision) const {
    const auto entered = entered_before_loads(k_.flow);
    if (std::none_of(entered.begin(), entered.end(), [](const auto& by) { return by; })) return "";
    for (const uint32_t i : sources(decision)) {
      const auto address = entered[i] ? parse_address(m_, at(i).operands.back()) : std::nullopt;
      if (!address || in_warps().operand(i, address->base) > Uniform::Warp) continue;
      return fmt::format("; after {} the lanes of a warp may differ in what they read by {}",
                         first_text(*entered[i]), first_text(i));
    }
    return "";
  }

  // The instructions that compute the values that an instruction reads.
  [[nodiscard]] std::set<uint32_t> sources(uint32_t instruction) const {
    const Values& v = k_.values();
    std::vector<uint32_t> work = {instruction};
    std::set<uint32_t> out;
    while (!work.empty()) {
      const uint32_t i = work.back();
      work.pop_back();
      for (const Access& access : v.registers.accesses(i)) {
        if (!access.read) continue;
        for (const uint32_t from : v.reaching.origins(i, access.reg).definitions) {
          if (out.insert(from).second) work.push_back(from);
        }
      }
    }
    return out;
  }

  // True if the ways that part here come together again before a meeting or an exit. In a loop that counts,
  // path_counts.h takes every branch for a decision.
  [[nodiscard]] bool changes_nothing(uint32_t decision, const std::vector<bool>& counted,
                                     const std::vector<bool>& ends) const {
    const auto& blocks = k_.flow.blocks();
    const uint32_t from = k_.flow.instructions()[decision].block;
    const uint32_t join = k_.values().dominance.immediate_post_dominator(from);
    if (join >= blocks.size() || decision + 1 != blocks[from].last) return false;
    std::vector<bool> seen(blocks.size());
    std::vector<uint32_t> work = {from};
    for (bool first = true; !work.empty(); first = false) {
      const uint32_t b = work.back();
      work.pop_back();
      for (uint32_t i = blocks[b].first; !first && i < blocks[b].last; ++i) {
        if (counted[i] || ends[i]) return false;
      }
      for (uint32_t next : blocks[b].successors) {
        if (next == join || seen[next]) continue;
        seen[next] = true;
        work.push_back(next);
      }
    }
    return true;
  }

  // True if all threads that meet there decide alike, each time that they come to the decision.
  [[nodiscard]] bool agree(uint32_t decision, bool by_warp) const {
    const Statement& s = at(decision);
    if (!s.predicated) return false;
    const Uniform uniform = k_.values().uniformity.operand(decision, m_.text(s.predicate));
    if (uniform == Uniform::Grid || uniform == Uniform::Block) return true;
    return by_warp &&
           (uniform == Uniform::Warp || in_warps().operand(decision, m_.text(s.predicate)) <= Uniform::Warp);
  }

  // The uniformity of warps, if more is known of warps than of blocks.
  [[nodiscard]] const Uniformity& in_warps() const {
    const Values& v = k_.values();
    if (!in_warps_) {
      in_warps_.emplace(v.flow, v.dominance, v.loops, v.registers, v.reaching, v.symbolic,
                        Given{full_rows_, true});
    }
    return *in_warps_;
  }

  [[nodiscard]] std::string first_text(uint32_t instruction) const {
    return fmt::format("{} ({})", m_.full_opcode(at(instruction)), m_.place(at(instruction).head));
  }

  // A comparison with a constant multiple of 32, which may divide a block exactly between warps.
  [[nodiscard]] bool divides_at_warps(uint32_t decision) const {
    if (!at(decision).predicated) return false;
    const auto& writers = k_.data.definitions(m_.text(at(decision).predicate));
    if (writers.size() != 1) return true;
    const Statement& s = at(writers[0]);
    if (!m_.is(s.head, "setp")) return true;
    return std::any_of(s.operands.begin(), s.operands.end(), [&](const ptx::TokenRange& operand) {
      const auto bound = k_.values().symbolic.read(writers[0], m_.compact(operand), 32).as_constant();
      return bound && (*bound % 32 == 0 || *bound % 32 == 31);
    });
  }

  const FunctionFacts& k_;
  const Module& m_;
  const CallGraph graph_;
  const bool full_rows_;
  MayExit may_exit_;
  std::vector<BarrierUse> waits_;
  mutable std::optional<Uniformity> in_warps_;
};

}  // namespace

Finding early_exit(const FunctionFacts& kernel, bool full_rows, MayExit may_exit) {
  if (kernel.flow.instructions().empty()) return {Answer::No, "no thread waits for another"};
  return EarlyExit(kernel, full_rows, may_exit).run();
}

std::string print_early_exit(const FunctionFacts& kernel) {
  return fmt::format("waits after others have exited: {}\n", to_text(early_exit(kernel)));
}

}  // namespace klap::analysis
