#include "analysis/inline/early_requests.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "analysis/effects/effects.h"
#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "analysis/graph/liveness.h"
#include "analysis/graph/registers.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"
#include "analysis/launches/wrappers.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;

class RequestSearch {
 public:
  RequestSearch(const Module& module, const ptx::Function& function)
      : m_(module), body_(function.body), flow_(module, function), data_(module, function, flow_) {}

  std::vector<EarlyRequest> run() {
    std::vector<EarlyRequest> out;
    if (flow_.has_unknown_branch()) return out;
    for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
      const auto call = parse_call(m_, at(i), data_.names());
      if (!call || !call->direct || !idioms().is_get_buffer(runtime_function(m_, call->callee))) continue;
      if (const auto found = request(i, *call)) out.push_back(*found);
    }
    return out;
  }

 private:
  using Blocks = std::set<uint32_t>;
  using RegisterNumbers = std::set<uint32_t>;

  [[nodiscard]] const Statement& at(uint32_t i) const { return *flow_.instructions()[i].statement; }
  [[nodiscard]] const Statement* scope_of(uint32_t i) const { return flow_.instructions()[i].scope; }
  [[nodiscard]] uint32_t block_of(uint32_t i) const { return flow_.instructions()[i].block; }
  [[nodiscard]] const BasicBlock& block(uint32_t number) const { return flow_.blocks()[number]; }

  [[nodiscard]] std::optional<EarlyRequest> request(uint32_t call_at, const Call& call) {
    EarlyRequest out;
    out.scope = scope_of(call_at);
    if (out.scope == &body_ || flow_.enclosing(out.scope) != &body_ || call.statement->predicated) return {};
    const CallScope scope = read_call_scope(m_, *out.scope, *call.statement);
    if (!scope.problem.empty() || data_.definitions(scope.result).size() != 1 ||
        data_.is_ambiguous(scope.result))
      return {};
    const uint32_t from = block_of(call_at);
    const std::optional<uint32_t> test = find_test(call_at, scope.result);
    const uint32_t branch = block(from).last - 1;
    if (!test || !is_branch_by(branch, *test)) return {};
    out.test = &at(*test);
    out.branch = &at(branch);

    const bool leaves = leaves_without_buffer(*test, branch);
    const std::optional<uint32_t> filling = filling_block(scope.result, *test);
    const std::optional<uint32_t> with_buffer = successor(from, !leaves), without = successor(from, leaves);
    if (!filling || !with_buffer || !without) return {};
    if (!leaves) {
      if (scope_of(block(*without).first) != &body_) return {};
      out.without_buffer = &at(block(*without).first);
    }
    const std::optional<Blocks> between = blocks_between(from, *with_buffer, *filling);
    if (!between || between->contains(*without)) return {};
    const Move move{call_at, *test, branch, *without, *between, data_.uses(scope.result)};
    const uint32_t use = first_use(move, *filling);
    for (const uint32_t to : {behind_calls(move, use), use, block(*filling).first}) {
      if (is_needless(move, to) || !may_move(move, to)) continue;
      out.to = outermost(to);
      for (uint32_t i = use; i < to; ++i) {
        if (move.uses_buffer(i)) out.stores.push_back(&at(i));
      }
      return out;
    }
    return {};
  }

  // The comparison of the buffer with null, behind the call in its block. There must be no second one.
  [[nodiscard]] std::optional<uint32_t> find_test(uint32_t call_at, std::string_view buffer) const {
    std::optional<uint32_t> test;
    for (uint32_t use : data_.uses(buffer)) {
      const Statement& s = at(use);
      if (!m_.is(s.head, "setp")) continue;
      const bool compares = s.operands.size() == 3 && !s.predicated && !s.modifiers.empty() &&
                            (m_.is(s.modifiers.first, ".eq") || m_.is(s.modifiers.first, ".ne")) &&
                            m_.text(s.operands[1]) == buffer && data_.constant(m_.text(s.operands[2])) == 0;
      if (test || !compares || use < call_at || block_of(use) != block_of(call_at) || scope_of(use) != &body_)
        return {};
      test = use;
    }
    return test;
  }

  [[nodiscard]] bool is_branch_by(uint32_t branch, uint32_t test) const {
    const Statement& s = at(branch);
    const std::string_view predicate = m_.text(at(test).operands[0]);
    return branch > test && m_.is(s.head, "bra") && s.predicated && m_.text(s.predicate) == predicate &&
           scope_of(branch) == &body_ && !data_.is_ambiguous(predicate);
  }

  // True if the branch is taken where the buffer is null.
  [[nodiscard]] bool leaves_without_buffer(uint32_t test, uint32_t branch) const {
    return m_.is(at(test).modifiers.first, ".eq") != at(branch).predicate_negated;
  }

  // The block that control gets to if the branch at the end of this one is taken, or is not.
  [[nodiscard]] std::optional<uint32_t> successor(uint32_t number, bool taken) const {
    const std::vector<uint32_t>& successors = block(number).successors;
    if (successors.size() != 2) return {};
    return taken ? successors.front() : successors.back();
  }

  // The block that holds everything that uses the buffer except for the test.
  [[nodiscard]] std::optional<uint32_t> filling_block(std::string_view buffer, uint32_t test) const {
    std::optional<uint32_t> filling;
    for (uint32_t use : data_.uses(buffer)) {
      if (use == test) continue;
      if (filling && *filling != block_of(use)) return {};
      filling = block_of(use);
    }
    return filling;
  }

  // A request that is moved, and what it is moved over.
  struct Move {
    uint32_t call = 0, test = 0, branch = 0;
    uint32_t without = 0;  // the block in which a thread without a buffer goes on
    Blocks between;
    std::vector<uint32_t> uses;  // of the buffer
    [[nodiscard]] bool uses_buffer(uint32_t i) const { return std::ranges::find(uses, i) != uses.end(); }
  };

  // The block's first instruction that uses the buffer.
  [[nodiscard]] uint32_t first_use(const Move& move, uint32_t number) const {
    uint32_t first = block(number).last;
    for (uint32_t use : move.uses) {
      if (block_of(use) == number) first = std::min(first, use);
    }
    return first;
  }

  // The place behind the last call that stands between the first store into the buffer and the launch; `use`
  // if none does.
  [[nodiscard]] uint32_t behind_calls(const Move& move, uint32_t use) const {
    uint32_t behind = use;
    const uint32_t last = block(block_of(use)).last;
    for (uint32_t i = use; i < last;) {
      const Statement* const scope = scope_of(i);
      bool passes_buffer = false;
      for (; i < last && scope_of(i) == scope; ++i) passes_buffer = passes_buffer || move.uses_buffer(i);
      if (scope == &body_) continue;
      if (passes_buffer) break;  // the launch
      behind = i;
    }
    return behind == last ? use : behind;  // nothing is behind the last one in this block
  }

  // The statement of the function's body that an instruction is, or is the first one of a scope with.
  [[nodiscard]] const Statement* outermost(uint32_t i) const {
    const Statement* scope = scope_of(i);
    if (scope == &body_) return &at(i);
    return flow_.enclosing(scope) == &body_ ? scope : nullptr;
  }

  // The blocks through which control gets from the branch in `from` to `filling`, if all lead only there and
  // nothing else leads to them or to it. There are none if the branch leads to it.
  [[nodiscard]] std::optional<Blocks> blocks_between(uint32_t from, uint32_t begin, uint32_t filling) const {
    Blocks between;
    std::vector<uint32_t> work = {begin};
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      if (b == filling || !between.insert(b).second) continue;
      if (b == from || block(b).exits_function) return {};
      work.insert(work.end(), block(b).successors.begin(), block(b).successors.end());
    }
    const auto is_entered_from_there = [&](uint32_t b) {
      return b != 0 && std::ranges::all_of(block(b).predecessors, [&](uint32_t before) {
               return between.contains(before) || (before == from && b == begin);
             });
    };
    const bool entered =
        std::ranges::all_of(between, is_entered_from_there) && is_entered_from_there(filling);
    return entered ? std::optional(std::move(between)) : std::nullopt;
  }

  // True for an instruction that does nothing but fill its registers, from operands or weak loads, or that
  // passes control on.
  [[nodiscard]] bool is_quiet(const Statement& s) const {
    if (m_.is(s.head, "bra")) return true;
    // Values are passed to a function and back through parameters that the calling scope declares.
    if (m_.is(s.head, "st")) return m_.has_modifier(s, ".param");
    if (const auto call = parse_call(m_, s, data_.names()))
      return call->direct && is_quiet_function(call->callee);
    const ptx::Opcode& opcode = ptx::opcode_of(m_, s);
    if (opcode.effect != ptx::OpcodeEffect::None || m_.has_modifier(s, ".cc")) return false;
    if (opcode.result == ptx::OpcodeResult::Pure) return true;
    return m_.is(s.head, "ld") && !is_strong_load(m_, s);
  }

  // True for a function whose every instruction is quiet. Functions that it calls must be such as well. One
  // that calls itself counts as not quiet, since it is looked up while it is looked at.
  [[nodiscard]] bool is_quiet_function(std::string_view name) const {
    const auto [known, is_new] = quiet_functions_.try_emplace(name, false);
    const ptx::Function* function = m_.find_function(name);
    if (!is_new || function == nullptr || !function->is_definition) return known->second;
    const ControlFlow flow(m_, *function);
    const bool is_quiet_there =
        !flow.has_unknown_branch() && std::ranges::all_of(flow.instructions(), [&](const FlatInstruction& i) {
          return m_.is(i.statement->head, "ret") || is_quiet(*i.statement);
        });
    return quiet_functions_[name] = is_quiet_there;
  }

  // Straight-line code without another call is understood as it is.
  [[nodiscard]] bool is_needless(const Move& move, uint32_t to) const {
    if (!move.between.empty()) return false;
    const uint32_t first = block(block_of(to)).first;
    const auto is_call = [&](uint32_t i) { return m_.is(at(i).head, "call"); };
    for (uint32_t i = first; i < to; ++i) {
      if (is_call(i)) return false;
    }
    return true;
  }

  [[nodiscard]] bool may_move(const Move& move, uint32_t to) {
    const Statement* const end = outermost(to);
    if (end == nullptr) return false;
    if (!registers_) registers_.emplace(flow_);
    RegisterNumbers read, written;     // by what is moved, so far
    RegisterNumbers ignored, changed;  // only on the way with a buffer
    const auto visit = [&](uint32_t i, bool is_moved) {
      if (is_moved) add_registers(i, read, written);
      return is_moved || is_apart(i, read, written);
    };
    uint32_t begin = move.call;  // of the call's scope
    while (begin > 0 && scope_of(begin - 1) == scope_of(move.call)) --begin;
    for (uint32_t i = begin; i <= move.branch; ++i) {
      const bool is_moved = scope_of(i) == scope_of(move.call) || i == move.test || i == move.branch;
      if (!visit(i, is_moved)) return false;
    }
    for (uint32_t b : move.between) {
      for (uint32_t i = block(b).first; i < block(b).last; ++i) {
        if (!visit(i, false)) return false;
        add_registers(i, ignored, changed);
      }
    }
    // Up to the statement that it is put in front of, which may be a scope.
    for (uint32_t i = block(block_of(to)).first; i < to && scope_of(i) != end; ++i) {
      const bool is_store = move.uses_buffer(i);
      if (is_store && (scope_of(i) != &body_ || !m_.is(at(i).head, "st") || at(i).predicated)) return false;
      if (!visit(i, is_store)) return false;
      if (!is_store) add_registers(i, ignored, changed);
    }
    return is_dead(changed, move.without);
  }

  void add_registers(uint32_t i, RegisterNumbers& read, RegisterNumbers& written) const {
    for (const Access& access : registers_->accesses(i)) {
      if (access.read) read.insert(access.reg);
      if (access.written) written.insert(access.reg);
    }
  }

  // True if the instruction can run before the others that read and write these registers.
  [[nodiscard]] bool is_apart(uint32_t i, const RegisterNumbers& read, const RegisterNumbers& written) const {
    // A store to a parameter outside of a call's scope is the function's own result.
    if (m_.is(at(i).head, "st") && scope_of(i) == &body_) return false;
    return is_quiet(at(i)) && std::ranges::none_of(registers_->accesses(i), [&](const Access& access) {
             return written.contains(access.reg) || (access.written && read.contains(access.reg));
           });
  }

  [[nodiscard]] bool is_dead(const RegisterNumbers& changed, uint32_t number) {
    if (!liveness_) liveness_.emplace(flow_, *registers_);
    return std::ranges::none_of(
        changed, [&](uint32_t reg) { return liveness_->is_live_before(reg, block(number).first); });
  }

  const Module& m_;
  const Statement& body_;
  ControlFlow flow_;
  DataFlow data_;
  std::optional<VirtualRegisters> registers_;  // made when a request is nearly found
  std::optional<Liveness> liveness_;
  mutable std::map<std::string_view, bool> quiet_functions_;
};

}  // namespace

std::vector<EarlyRequest> find_early_requests(const Module& module, const ptx::Function& function) {
  return RequestSearch(module, function).run();
}

}  // namespace klap::analysis
