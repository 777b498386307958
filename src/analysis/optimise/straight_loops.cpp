#include "analysis/optimise/straight_loops.h"

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/graph/dataflow.h"
#include "analysis/inline/inlining.h"
#include "ptx/opcodes.h"

namespace klap::analysis {

namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

// More iterations in a row would not find room in the instruction cache.
constexpr size_t kLongestLoop = 64;

class Finder {
 public:
  Finder(const Module& module, const Function& function)
      : m_(module), names_(module, function.body), registers_(module, function) {}

  // The loop that begins with the label of that number among the statements of a scope.
  [[nodiscard]] std::optional<StraightLoop> at(const ptx::View<Statement>& scope, size_t label) const {
    StraightLoop loop;
    loop.label = &scope[label];
    for (size_t i = label + 1; i < scope.size() && loop.branch == nullptr; ++i) {
      const Statement& s = scope[i];
      if (s.kind == StatementKind::Instruction && m_.is(s.head, "bra")) {
        loop.branch = &s;
      } else if (may_be_repeated(s)) {
        loop.iteration.push_back(&s);
      } else {
        return std::nullopt;
      }
    }
    if (loop.branch == nullptr || !comes_back(loop)) return std::nullopt;
    loop.loads = static_cast<uint32_t>(
        std::ranges::count_if(loop.iteration, [&](const Statement* statement) { return loads(*statement); }));
    if (loop.loads == 0 || !is_short(loop) || !find_counters(loop)) return std::nullopt;
    return loop;
  }

 private:
  // True for instructions that load or compute, and for the lines that they are from.
  [[nodiscard]] bool may_be_repeated(const Statement& s) const {
    if (s.kind == StatementKind::Directive) return m_.is(s.head, ".loc");
    if (s.kind != StatementKind::Instruction) return false;
    for (const char* const opcode : {"st", "call", "ret", "brx", "prefetch", "prefetchu"})
      if (m_.is(s.head, opcode)) return false;
    return instruction_effects(m_, s).empty();
  }

  [[nodiscard]] bool comes_back(const StraightLoop& loop) const {
    const Statement& branch = *loop.branch;
    return branch.predicated && branch.operands.size() == 1 &&
           m_.is(branch.operands[0].first, m_.text(loop.label->head));
  }

  [[nodiscard]] static bool is_short(const StraightLoop& loop) {
    const auto instructions =
        std::ranges::count(loop.iteration, StatementKind::Instruction, &Statement::kind);
    return static_cast<size_t>(instructions) < kLongestLoop;
  }
  // True for a load from the device's memory, for which a thread waits.
  [[nodiscard]] bool loads(const Statement& s) const {
    if (!m_.is(s.head, "ld")) return false;
    for (const char* const space : {".shared", ".shared::cta", ".local", ".param", ".param::entry", ".const"})
      if (m_.has_modifier(s, space)) return false;
    return true;
  }

  // True for an unpredicated computation from registers and from the thread's place alone.
  [[nodiscard]] bool counts(const Statement& s) const {
    if (m_.is(s.head, "ld") || m_.is(s.head, "ldu") || ptx::opcode_of(m_, s).reads_carry()) return false;
    if (m_.has_modifier(s, ".cc") || s.predicated || s.operands.empty() || s.operands[0].size() != 1)
      return false;
    for (const ptx::TokenRange& operand : s.operands) {
      for (uint32_t t = operand.first; t < operand.last; ++t) {
        if (m_.tokens[t].kind != ptx::TokenKind::Identifier || names_.is_register(m_.text(t))) continue;
        if (!is_virtual_special_register(m_.text(t))) return false;
      }
    }
    return m_.is(s.head, "setp") || registers_.of(m_.text(s.operands[0].first)) != 0;
  }

  // Finds the counters. A value that is needed behind an iteration is also one that the next iteration reads.
  // Returns false if some of it takes more than counting.
  [[nodiscard]] bool find_counters(StraightLoop& loop) const {
    std::set<std::string_view> behind = {m_.text(loop.branch->predicate)};
    for (size_t known = 0; known != behind.size();) {
      known = behind.size();
      std::set<std::string_view> needed = behind;
      if (!find_counting(loop, needed)) return false;
      for (const std::string_view name : needed)
        if (is_written(loop, name)) behind.insert(name);
    }
    std::set<std::string_view> seen;
    for (const Statement* s : loop.counting) {
      const std::string_view name = m_.text(s->operands[0].first);
      if (!seen.insert(name).second) continue;
      loop.counters.push_back({name, m_.is(s->head, "setp") ? 0 : registers_.of(name)});
    }
    return seen.contains(m_.text(loop.branch->predicate));
  }

  // Finds the instructions that compute the needed registers. Afterwards `needed` holds the registers that
  // these read ahead of the iteration.
  [[nodiscard]] bool find_counting(StraightLoop& loop, std::set<std::string_view>& needed) const {
    loop.counting.clear();
    for (auto s = loop.iteration.rbegin(); s != loop.iteration.rend(); ++s) {
      if ((*s)->kind != StatementKind::Instruction) continue;
      const Registers registers = registers_of(m_, **s, names_);
      if (std::ranges::none_of(registers.written, [&](auto name) { return needed.contains(name); })) continue;
      if (registers.written.size() != 1 || !counts(**s)) return false;
      loop.counting.push_back(*s);
      needed.erase(registers.written[0]);
      needed.insert(registers.read.begin(), registers.read.end());
    }
    std::ranges::reverse(loop.counting);
    return true;
  }
  [[nodiscard]] bool is_written(const StraightLoop& loop, std::string_view name) const {
    return std::ranges::any_of(loop.iteration, [&](const Statement* s) {
      return s->kind == StatementKind::Instruction &&
             std::ranges::count(registers_of(m_, *s, names_).written, name) != 0;
    });
  }

  const Module& m_;
  const LocalNames names_;
  const RegisterBits registers_;
};

}  // namespace

std::vector<StraightLoop> find_straight_loops(const Module& module, const Function& function) {
  std::vector<StraightLoop> loops;
  const Finder finder(module, function);
  const ptx::View<Statement>& scope = function.body.body;
  for (size_t i = 0; i < scope.size(); ++i) {
    if (scope[i].kind != StatementKind::Label) continue;
    if (auto loop = finder.at(scope, i)) loops.push_back(std::move(*loop));
  }
  return loops;
}

}  // namespace klap::analysis
