#include "analysis/suspension/suspension.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analysis/graph/liveness.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/copy_calls.h"
#include "analysis/launches/idioms.h"
#include "analysis/legality/warp_block.h"
#include "analysis/suspension/looked_at.h"
#include "analysis/suspension/meetings.h"
#include "analysis/suspension/same_values.h"
#include "analysis/suspension/used_variables.h"
#include "ptx/opcodes.h"

namespace klap::analysis {

namespace {

using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

// Functions of CUDA's that neither launch nor wait nor meet other threads.
bool is_harmless(std::string_view callee) {
  static const std::set<std::string_view> names = {"vprintf", "malloc", "free", "__assertfail"};
  if (names.contains(callee)) return true;
  const IdiomTable& table = idioms();
  static constexpr std::string_view kKinds[] = {"last-error", "peek-last-error", "query", "error-text",
                                                "allocation"};
  return std::ranges::any_of(kKinds, [&](std::string_view kind) { return table.is_kind(callee, kind); });
}

// Calls about streams and events. The executor's handles stay valid until they are destroyed, in whatever
// grid.
bool is_about_streams(std::string_view callee) {
  static constexpr std::string_view kKinds[] = {"stream-create", "stream-destroy", "stream-wait", "event"};
  return std::ranges::any_of(kKinds, [&](std::string_view kind) { return idioms().is_kind(callee, kind); });
}

bool is_barrier(std::string_view opcode) { return opcode == "bar" || opcode == "barrier"; }

// Instructions of one thread: computations, accesses of memory, jumps and fences.
bool is_of_one_thread(const Module& m, const Statement& s) {
  static const std::set<std::string_view> others = {"bra",      "call",   "exit",      "fence",
                                                    "isspacep", "membar", "nanosleep", "prefetch",
                                                    "red",      "ret",    "st",        "trap"};
  const ptx::Opcode& opcode = ptx::opcode_of(m, s);
  if (opcode.lanes != ptx::Lanes::None) return false;
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    const std::string_view modifier = m.text(t);
    if (modifier == ".async" || modifier == ".bulk" || modifier.starts_with(".mbarrier") ||
        modifier.find("::cluster") != std::string_view::npos)
      return false;
  }
  return opcode.is_computation() || opcode.result == ptx::OpcodeResult::Memory ||
         others.contains(m.text(s.head));
}

// Operations for which the lanes that they name meet.
bool is_of_warp(const Module& m, const Statement& s) {
  const std::string_view opcode = m.text(s.head);
  if (is_barrier(opcode)) return m.has_modifier(s, ".warp");
  return m.has_modifier(s, ".sync") &&
         (opcode == "shfl" || opcode == "vote" || opcode == "match" || opcode == "redux");
}

class Finder {
 public:
  Finder(const FlowFacts& kernel, const std::vector<const Statement*>& waits)
      : k_(kernel), m_(kernel.module), waits_(waits.begin(), waits.end()), registers_(kernel.flow) {}

  Suspension find() {
    find_outermost(k_.function.body, nullptr);
    if (k_.flow.has_unknown_branch()) refuse("a branch whose targets are not known", k_.function.name_token);
    find_variables();
    for (const FlatInstruction& each : k_.flow.instructions()) look_at(*each.statement);
    if (out_.problem.empty()) find_meetings();
    check_tail_launches();
    if (out_.problem.empty()) find_certain_waits();
    if (out_.problem.empty()) find_frees_behind_waits();
    if (out_.problem.empty()) find_registers();
    return std::move(out_);
  }

 private:
  void refuse(const std::string& why, uint32_t token) {
    if (out_.problem.empty()) out_.problem = fmt::format("{} ({})", why, m_.place(token));
  }

  // For each statement in a nested scope, the one in the body that holds it.
  void find_outermost(const Statement& scope, const Statement* in_body) {
    for (const Statement& each : scope.body) {
      const Statement* const outermost = in_body != nullptr ? in_body : &each;
      outermost_.emplace(&each, outermost);
      if (each.kind == StatementKind::Block) find_outermost(each, outermost);
    }
  }

  void add_variable(ptx::TokenRange declaration, bool is_shared) {
    const auto variable = read_shared_variable(m_, declaration);
    if (!variable) return refuse("a variable is declared in another form", declaration.first);
    const std::string_view name = name_in(declaration, variable->name);
    out_.variables.push_back({{name, is_shared}, variable->own_bytes, variable->align});
    out_.named.push_back({name, is_shared});
  }
  // The name as a part of the module's text, which lives as long as that.
  std::string_view name_in(ptx::TokenRange declaration, std::string_view name) const {
    for (uint32_t t = declaration.first; t < declaration.last; ++t)
      if (m_.text(t) == name) return m_.text(t);
    return {};
  }

  void find_variables() {
    ptx::for_each_statement(k_.function.body, [this](const Statement& s) {
      if (s.kind != StatementKind::Directive) return;
      const bool is_shared = m_.is(s.head, ".shared");
      if (!is_shared && !m_.is(s.head, ".local")) return;
      if (outermost_.at(&s) != &s) return refuse("a variable is declared in a nested scope", s.head);
      add_variable(s.tokens, is_shared);
    });
    std::set<std::string_view> words;
    for (uint32_t t = k_.function.body.tokens.first; t < k_.function.body.tokens.last; ++t)
      words.insert(m_.text(t));
    for (const ptx::Variable& variable : m_.variables) {
      if (variable.space != ".shared" || !words.contains(variable.name)) continue;
      if (variable.declaration.empty())
        return refuse("a variable is declared in another form", variable.tokens.first);
      if (variable.linkage == ptx::Linkage::Extern) {
        out_.variables.push_back({{variable.name, true}, 0, 1});
        out_.named.push_back({variable.name, true});
      } else {
        add_variable(variable.declaration, true);
      }
    }
  }

  void look_at(const Statement& s) {
    const std::string_view opcode = m_.text(s.head);
    if (is_of_warp(m_, s)) return of_warps_.push_back(&s);
    if (is_barrier(opcode)) return look_at_barrier(s);
    if (!is_of_one_thread(m_, s))
      return refuse(fmt::format("'{}' of several threads", m_.full_opcode(s)), s.head);
    if (const auto call = parse_call(m_, s, k_.data.names())) look_at_call(s, *call);
  }

  void add_point(SuspendsAt at, const Statement& s) {
    if (s.predicated) return refuse("a place to stop is predicated", s.head);
    if (at == SuspendsAt::Wait && !is_call_alone(*outermost_.at(&s), s))
      return refuse("a wait in a nested scope", s.head);
    out_.points.push_back({at, &s, outermost_.at(&s), false, false, false, {}});
  }

  void look_at_barrier(const Statement& s) {
    if (m_.has_modifier(s, ".cluster") || m_.has_modifier(s, ".arrive"))
      return refuse(fmt::format("'{}' of several threads", m_.full_opcode(s)), s.head);
    const bool has_result = m_.has_modifier(s, ".red");
    const size_t number = has_result ? 1 : 0, without_count = has_result ? 3 : 1;
    if (s.operands.size() != without_count || m_.text(s.operands[number]) != "0")
      return refuse("a barrier of some threads", s.head);
    if (!may_begin_again(*outermost_.at(&s), s))
      return refuse("code in front of a barrier in its scope", s.head);
    add_point(has_result ? SuspendsAt::BarrierWithResult : SuspendsAt::Barrier, s);
  }

  bool is_call_alone(const Statement& scope, const Statement& call) const {
    return &scope == &call ||
           (scope.kind == StatementKind::Block && read_call_scope(m_, scope, call).problem.empty());
  }

  // True if all that the scope does in front of the barrier can be done again.
  bool may_begin_again(const Statement& scope, const Statement& barrier) const {
    bool is_behind = false, may = true;
    const auto look = [&](const Statement& each) {
      is_behind = is_behind || &each == &barrier;
      if (each.kind == StatementKind::Label) may = false;
      if (each.kind != StatementKind::Instruction || &each == &barrier) return;
      may = may && !is_barrier(m_.text(each.head)) && m_.text(each.head) != "call" &&
            (is_behind || ptx::opcode_of(m_, each).is_computation());
    };
    if (scope.kind == StatementKind::Block) ptx::for_each_statement(scope, look);
    return may;
  }

  void look_at_call(const Statement& s, const Call& call) {
    if (!call.direct) return refuse("a call through a register", s.head);
    if (waits_.contains(&s)) return add_point(SuspendsAt::Wait, s);
    const IdiomTable& table = idioms();
    if (table.is_last_error(call.callee) || table.is_peek_last_error(call.callee)) {
      out_.asks_for_errors = true;
      of_errors_.push_back(k_.flow.index_of(&s));
    }
    if (table.is_kind(call.callee, "wait") || table.by_launch(call.callee) != nullptr ||
        is_harmless(call.callee))
      return;
    // No launch without a buffer. Whether there is one, the note must not depend on.
    if (table.is_get_buffer(call.callee)) {
      out_.launching.push_back(outermost_.at(&s));
      return;
    }
    if (table.is_kind(call.callee, "copy") || table.is_kind(call.callee, "fill"))
      return look_at_copy(s, call.callee);
    if (!is_about_streams(call.callee) && !is_computation(call.callee))
      refuse(fmt::format("a call of {}", call.callee), s.head);
  }

  // It is a launch of a kernel of CUDA's own.
  void look_at_copy(const Statement& s, std::string_view callee) {
    if (!copies_) copies_ = find_copy_calls(m_, k_.function, k_.flow, k_.data);
    const auto found = std::ranges::find(*copies_, &s, &CopyCall::call);
    if (found == copies_->end()) return refuse(fmt::format("a call of {} in another form", callee), s.head);
    out_.launching.push_back(outermost_.at(&s));
  }

  // True for a function of the unit that only computes, and calls none but such.
  bool is_computation(std::string_view name, unsigned depth = 0) const {
    constexpr unsigned kDeepest = 16;
    const ptx::Function* const function = m_.find_function(name);
    if (function == nullptr || !function->is_definition || depth > kDeepest) return false;
    const LocalNames names(m_, function->body);
    bool computes = !names.declares_shared();
    ptx::for_each_statement(function->body, [&](const Statement& s) {
      if (s.kind != StatementKind::Instruction || !computes) return;
      computes =
          is_of_one_thread(m_, s) && !m_.is(s.head, "exit") && !names_shared(s) && !names_place_in_grid(s);
      const auto call = parse_call(m_, s, names);
      if (call)
        computes = call->direct && (is_harmless(call->callee) || is_computation(call->callee, depth + 1));
    });
    return computes;
  }
  // A grid that goes on has one block, and only the kernel itself knows of which it was.
  bool names_place_in_grid(const Statement& s) const {
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t)
      if (m_.text(t) == "%ctaid" || m_.text(t) == "%nctaid") return true;
    return false;
  }
  bool names_shared(const Statement& s) const {
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      const ptx::Variable* const variable = m_.find_variable(m_.text(t));
      if (variable != nullptr && variable->space == ".shared") return true;
    }
    return false;
  }

  // Lanes that meet one that waits would wait for it, while it waits for the block to stop. All others meet
  // as natively: the grid that goes on has the same lanes.
  void find_meetings() {
    std::vector<uint32_t> barriers;
    for (const SuspensionPoint& point : out_.points)
      if (point.at != SuspendsAt::Wait) barriers.push_back(k_.flow.index_of(point.instruction));
    const Meetings meetings(k_.flow, barriers);
    const auto can_meet_waiting = [&](const Statement& s) {
      return std::ranges::any_of(out_.points, [&](const SuspensionPoint& wait) {
        return wait.at == SuspendsAt::Wait &&
               meetings.can_meet(k_.flow.index_of(&s), k_.flow.index_of(wait.instruction));
      });
    };
    for (SuspensionPoint& barrier : out_.points)
      barrier.never_stops = barrier.at != SuspendsAt::Wait && !can_meet_waiting(*barrier.instruction);
    for (const Statement* const s : of_warps_)
      if (can_meet_waiting(*s)) refuse(fmt::format("'{}' of several threads", m_.full_opcode(*s)), s->head);
  }

  // One would come before the second halves of blocks, which are tail launches, too. Version 1 has none.
  [[nodiscard]] bool may_be_tail_launch(const Site& site) const {
    constexpr uint64_t kTailLaunch = 3;  // cudaStreamTailLaunch
    const auto stream = k_.data.constant(site.stream);
    if (stream) return *stream == kTailLaunch;
    return site.idiom != nullptr && !site.idiom->is_version_1() && stream_kind(site) == StreamKind::Other;
  }

  void check_tail_launches() {
    for (const Site& site : k_.sites)
      if (site.launch_call != nullptr && may_be_tail_launch(site))
        return refuse("a launch may be a tail launch", site.launch_call->head);
  }

  // A thread comes to a wait from the kernel's begin, or from where it went on. What these ways reach without
  // a launch is not certain to have anything to wait for.
  void find_certain_waits() {
    std::set<const Statement*> launching(out_.launching.begin(), out_.launching.end());
    const auto launches = [&](uint32_t i) {
      return launching.contains(outermost_.at(k_.flow.instructions()[i].statement));
    };
    std::vector<bool> reached(k_.flow.instructions().size());
    std::vector<uint32_t> from;
    if (!reached.empty() && !launches(0)) {
      reached[0] = true;
      from.push_back(0);
    }
    for (const SuspensionPoint& point : out_.points)
      if (!point.never_stops) from.push_back(k_.flow.index_of(point.instruction));
    mark_ways(std::move(from), launches, reached);
    for (SuspensionPoint& point : out_.points)
      point.is_certain = point.at == SuspendsAt::Wait &&
                         (!reached[k_.flow.index_of(point.instruction)] || is_at_poll(*point.instruction));
  }

  // A wait at a poll may end before the thread's children do. One that fails for want of memory is natively
  // as it is here: what the program frees then is its own affair.
  void find_frees_behind_waits() {
    std::set<uint32_t> waits;
    for (const SuspensionPoint& point : out_.points)
      if (point.at == SuspendsAt::Wait && !is_at_poll(*point.instruction))
        waits.insert(k_.flow.index_of(point.instruction));
    std::vector<uint32_t> launching;
    for (const FlatInstruction& each : k_.flow.instructions())
      if (may_launch_at(*each.statement)) launching.push_back(k_.flow.index_of(each.statement));
    std::vector<bool> reached(k_.flow.instructions().size());
    mark_ways(
        std::move(launching), [&](uint32_t i) { return waits.contains(i); }, reached);
    for (const FlatInstruction& each : k_.flow.instructions()) {
      if (frees(*each.statement) && !reached[k_.flow.index_of(each.statement)])
        out_.complete.push_back(outermost_.at(each.statement));
    }
  }

  bool frees(const Statement& s) const {
    const auto call = parse_call(m_, s, k_.data.names());
    return call && call->direct && (call->callee == "free" || idioms().is_kind(call->callee, "allocation"));
  }

  bool may_launch_at(const Statement& s) const {
    return std::ranges::find(out_.launching, outermost_.at(&s)) != out_.launching.end() &&
           parse_call(m_, s, k_.data.names()).has_value();
  }

  // Marks what a thread can come to behind these instructions without one at which `stops` is true.
  template <class Stops>
  void mark_ways(std::vector<uint32_t> from, const Stops& stops, std::vector<bool>& reached) const {
    while (!from.empty()) {
      const uint32_t i = from.back();
      from.pop_back();
      const BasicBlock& block = k_.flow.blocks()[k_.flow.instructions()[i].block];
      const auto reach = [&](uint32_t next) {
        if (reached[next] || stops(next)) return;
        reached[next] = true;
        from.push_back(next);
      };
      if (i + 1 < block.last) {
        reach(i + 1);
      } else {
        for (const uint32_t next : block.successors) reach(k_.flow.blocks()[next].first);
      }
    }
  }

  bool is_at_poll(const Statement& wait) const {
    const auto call = parse_call(m_, wait, k_.data.names());
    return call && call->callee == kWaitAtPoll;
  }

  // The first instruction in a statement of the body.
  uint32_t first_instruction(const Statement& s) const {
    if (s.kind == StatementKind::Instruction) return k_.flow.index_of(&s);
    uint32_t first = ControlFlow::npos;
    ptx::for_each_statement(s, [&](const Statement& each) {
      if (each.kind == StatementKind::Instruction) first = std::min(first, k_.flow.index_of(&each));
    });
    return first;
  }

  void find_registers() {
    const Liveness liveness(k_.flow, registers_);
    if (!liveness.known()) return refuse("what is live is not known", k_.function.name_token);
    const OwnAddresses addresses(k_, registers_, out_.named);
    if (!addresses.problem().empty()) {
      out_.problem = addresses.problem();
      return;
    }
    SameValues same(k_, registers_);
    std::vector<uint32_t> computed;
    for (SuspensionPoint& point : out_.points) {
      if (point.never_stops) continue;
      for (const uint32_t reg : liveness.live_before(first_instruction(*point.statement))) {
        if (same.is_same(reg)) {
          computed.push_back(reg);
        } else {
          save(point, reg, addresses);
        }
      }
    }
    out_.computed = same.computing(computed);
    drop_variables(used_behind(k_, registers_, addresses, out_.named, out_.points));
    find_told_results(liveness);
  }

  void find_told_results(const Liveness& liveness) {
    const LookedAt looked_at(k_, registers_, liveness);
    for (SuspensionPoint& point : out_.points) {
      if (point.at != SuspendsAt::Wait || point.statement == point.instruction) continue;
      const uint32_t wait = k_.flow.index_of(point.instruction);
      const bool asks_behind =
          std::ranges::any_of(of_errors_, [&](uint32_t asking) { return k_.flow.can_follow(wait, asking); });
      point.tells_result = !asks_behind && is_result_used(*point.statement, looked_at);
    }
  }

  // All that a scope of a call writes is the call's result.
  bool is_result_used(const Statement& scope, const LookedAt& looked_at) const {
    bool is_used = false;
    ptx::for_each_statement(scope, [&](const Statement& s) {
      if (s.kind != StatementKind::Instruction) return;
      const uint32_t i = k_.flow.index_of(&s);
      is_used = is_used || std::ranges::any_of(registers_.accesses(i), [&](const Access& access) {
                  return access.written && looked_at.is_result_used(i, access.reg);
                });
    });
    return is_used;
  }

  void drop_variables(const std::vector<bool>& is_used) {
    std::erase_if(out_.variables, [&](const SavedVariable& variable) {
      const auto named = std::ranges::find(out_.named, variable.variable.name, &OwnVariable::name);
      return named != out_.named.end() && !is_used[static_cast<size_t>(named - out_.named.begin())];
    });
  }

  void save(SuspensionPoint& point, uint32_t reg, const OwnAddresses& addresses) {
    const VirtualRegister& what = registers_[reg];
    const uint32_t at = point.statement->tokens.first;
    if (what.scope != &k_.function.body || what.lanes != 1 || (what.words() > 2 && !what.is_predicate()))
      return refuse(fmt::format("{} of another form is needed later", what.name), at);
    SavedRegister saved{what.name, what.type, nullptr, false};
    if (addresses.is_mixed(reg))
      return refuse(fmt::format("{} may be an address of several variables", what.name), at);
    if (const auto address = addresses.of(reg)) {
      saved.variable = &out_.named[address->variable];
      saved.is_generic = address->is_generic;
    }
    point.registers.push_back(saved);
  }

  const FlowFacts& k_;
  const Module& m_;
  const std::set<const Statement*> waits_;
  const VirtualRegisters registers_;
  std::map<const Statement*, const Statement*> outermost_;
  std::vector<const Statement*> of_warps_;
  std::vector<uint32_t> of_errors_;  // calls that ask for the last error
  std::optional<std::vector<CopyCall>> copies_;
  Suspension out_;
};

}  // namespace

Suspension find_suspension(const FlowFacts& kernel, const std::vector<const ptx::Statement*>& waits) {
  return Finder(kernel, waits).find();
}

}  // namespace klap::analysis
