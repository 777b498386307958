#include "analysis/values/moldable.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "analysis/effects/effects.h"
#include "analysis/values/linear_index.h"
#include "ptx/opcodes.h"

namespace klap::analysis {

using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

namespace {

// One kernel under one linear form.
class Test {
 public:
  Test(const ControlFlow& flow, const VirtualRegisters& registers, const ReachingDefinitions& reaching,
       const Symbolic& symbolic, uint32_t dimensions, bool one_row = false)
      : m_(flow.module()),
        flow_(flow),
        registers_(registers),
        reaching_(reaching),
        symbolic_(symbolic),
        form_(dimensions, one_row),
        writers_(registers.all().size()),
        checked_(registers.all().size()) {
    for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
      for (const Access& access : registers.accesses(i)) {
        if (access.written) writers_[access.reg].push_back(i);
      }
    }
  }

  Moldable run() {
    for (uint32_t i = 0; i < flow_.instructions().size(); ++i) check(i);
    if (result_.yes()) {
      for (uint32_t i = 0; i < flow_.instructions().size(); ++i)
        result_.loops = result_.loops || flow_.in_loop(i);
      result_.dimensions = uses_index_ ? form_.dimensions() : 0;
      result_.guard = find_guard();
    }
    return result_;
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *flow_.instructions()[i].statement; }

  void refuse(uint32_t i, const std::string& why) {
    if (!result_.yes()) return;
    result_.reason = fmt::format("{}: {} {}", m_.place(at(i).head), m_.full_opcode(at(i)), why);
  }

  // An instruction that is evaluated exactly is checked where its result is used. Every other instruction
  // must see no more of the position than the index.
  void check(uint32_t i) {
    if (symbolic_.is_evaluated(i)) return;
    for (const Access& access : registers_.accesses(i)) {
      if (access.read) check_value(i, symbolic_.read(i, access.reg));
    }
    for (uint32_t t = at(i).tokens.first; t < at(i).tokens.last; ++t) {
      if (is_virtual_special_register(m_.text(t))) refuse(i, fmt::format("depends on {}", m_.text(t)));
    }
  }

  void check_value(uint32_t i, const Expr& raw) {
    const Expr e = form_.apply(raw);
    if (!e.known()) return refuse(i, "uses a value that cannot be followed");
    any_leaf(e, [&](const ExprNode& leaf) {
      if (is_position(leaf)) refuse(i, fmt::format("depends on {}", to_string(raw)));
      uses_index_ = uses_index_ || is_index(leaf);
      result_.uses_count = result_.uses_count || is_count(leaf);
      if (leaf.kind == ExprKind::Merged) {
        check_definitions(registers_.find(static_cast<uint32_t>(leaf.value), leaf.name), leaf.name);
      }
      return false;
    });
  }

  // Checks all definitions of a register that several definitions reach.
  void check_definitions(uint32_t reg, const std::string& name) {
    if (checked_[reg]) return;
    checked_[reg] = true;
    for (const uint32_t writer : writers_[reg]) {
      if (!symbolic_.is_evaluated(writer, reg)) continue;
      const Expr value = symbolic_.written(writer, reg);
      check_value(writer, value);
      result_.grid_stride = result_.grid_stride || is_stride(form_.apply(value), name);
    }
  }

  // True for the register's own former value plus a multiple of the number of threads.
  static bool is_stride(const Expr& e, const std::string& reg) {
    const std::vector<Term> terms = terms_of(e);
    const auto any_term = [&](const std::function<bool(const ExprNode&)>& wanted) {
      return std::any_of(terms.begin(), terms.end(), [&](const Term& term) {
        return term.factors.size() == 1 && wanted(*term.factors[0]);
      });
    };
    const bool from_itself =
        any_term([&](const ExprNode& n) { return n.kind == ExprKind::Merged && n.name == reg; });
    return terms.size() == 2 && from_itself && any_term([](const ExprNode& n) {
             return is_count(n) || (is_widening(n) && is_count(*n.operands[0]));
           });
  }

  // The condition at the end of the entry block under which control goes on. A thread that fails it must end
  // at once, and nothing may have happened before.
  [[nodiscard]] std::optional<Guard> find_guard() const {
    if (flow_.blocks().empty()) return std::nullopt;
    const BasicBlock& entry = flow_.blocks()[0];
    for (uint32_t i = entry.first; i + 1 < entry.last; ++i) {
      if (!is_harmless(i)) return std::nullopt;
    }
    const auto on = way_on_from_entry(flow_);
    if (!on) return std::nullopt;
    return branch_guard(flow_, registers_, reaching_, entry.last - 1, on->when,
                        [&](uint32_t i, std::string_view operand, uint32_t bits) {
                          return form_.apply(symbolic_.read(i, operand, bits));
                        });
  }

  [[nodiscard]] bool is_harmless(uint32_t i) const {
    const Statement& s = at(i);
    if (m_.is(s.head, "setp") || m_.is(s.head, "ld")) return true;
    return symbolic_.is_evaluated(i);
  }

  const Module& m_;
  const ControlFlow& flow_;
  const VirtualRegisters& registers_;
  const ReachingDefinitions& reaching_;
  const Symbolic& symbolic_;
  LinearIndex form_;
  Moldable result_;
  bool uses_index_ = false;
  std::vector<std::vector<uint32_t>> writers_;  // by register
  std::vector<bool> checked_;                   // by register
};

// ---- what else a moldable kernel must not do ----

bool is_warp_operation(const Module& m, const Statement& s) {
  return m.has_modifier(s, ".sync") || ptx::opcode_of(m, s).lanes != ptx::Lanes::None;
}

// The reason why an instruction may depend on which threads stand in a block or warp together; empty if it
// does not.
std::string meets_others(const Module& m, const Statement& s) {
  const std::string_view opcode = m.text(s.head);
  const bool warp = m.has_modifier(s, ".warp");
  if ((opcode == "bar" || opcode == "barrier") && !warp) return "is a barrier";
  if (warp || is_warp_operation(m, s)) return "is a warp operation";
  for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
    const std::string_view text = m.text(t);
    const ptx::Variable* variable = m.find_variable(text);
    const bool shared = text.starts_with(".shared") || (variable != nullptr && variable->space == ".shared");
    if (shared) return "uses shared memory";
  }
  const std::vector<EffectKind> effects = instruction_effects(m, s);
  const auto has = [&](EffectKind kind) { return std::ranges::find(effects, kind) != effects.end(); };
  if (has(EffectKind::BlockScope)) return "is for the threads of one block";
  if (has(EffectKind::UnlistedInstruction)) return "is not known to be independent of its place";
  return {};
}

std::string refusal(const Module& m, const Statement& s, const std::string& why) {
  return fmt::format("{}: {} {}", m.place(s.head), m.full_opcode(s), why);
}

// Registers that say nothing of a thread's place: clocks, the processor's number.
bool is_neutral_special_register(std::string_view name) {
  const EffectKind effect = register_effect(name);
  return effect == EffectKind::ClockRegister || effect == EffectKind::ProcessorRegister;
}

std::string meets_others(const Module& m, const ptx::Function& f, bool called) {
  std::string found;
  const LocalNames names(m, f.body);
  if (names.declares_shared()) return fmt::format("{} declares shared memory", f.name);
  ptx::for_each_statement(f.body, [&](const Statement& s) {
    if (!found.empty() || s.kind != StatementKind::Instruction) return;
    std::string why = meets_others(m, s);
    for (uint32_t t = s.tokens.first; t < s.tokens.last && why.empty(); ++t) {
      const std::string_view name = m.text(t);
      const bool special = name.starts_with('%') && !names.contains(name);
      if (special && (called || !is_virtual_special_register(name)) && !is_neutral_special_register(name)) {
        why = fmt::format("reads {}", name);
      }
    }
    if (!why.empty()) found = refusal(m, s, why);
  });
  return found;
}

// Finds this reason in the kernel and in all that it calls.
std::string meets_others(const Module& m, const ptx::Function& kernel) {
  if (kernel.kind != ptx::FunctionKind::Entry) return "it is called, not launched";
  if (std::string why = meets_others(m, kernel, false); !why.empty()) return why;
  const CallClosure closure = call_closure(m, kernel);
  if (closure.indirect) return "an indirect call";
  for (const std::string& name : closure.external) {
    if (!is_known_external(name)) return fmt::format("calls {}, which cannot be seen", name);
  }
  for (const ptx::Function* callee : closure.functions) {
    if (std::string why = meets_others(m, *callee, true); !why.empty()) return callee->name + ": " + why;
  }
  return {};
}

}  // namespace

Moldable moldable(const ControlFlow& flow, const VirtualRegisters& registers,
                  const ReachingDefinitions& reaching, const Symbolic& symbolic) {
  Moldable first;
  first.reason = meets_others(flow.module(), flow.function());
  if (!first.yes()) return first;
  first = Test(flow, registers, reaching, symbolic, 1).run();
  for (uint32_t dimensions = 2; dimensions <= 3 && !first.yes(); ++dimensions) {
    Moldable more = Test(flow, registers, reaching, symbolic, dimensions).run();
    if (more.yes()) return more;
  }
  return first;
}

Moldable moldable_in_one_row(const ControlFlow& flow, const VirtualRegisters& registers,
                             const ReachingDefinitions& reaching, const Symbolic& symbolic) {
  Moldable any = moldable(flow, registers, reaching, symbolic);
  if (any.yes() || !meets_others(flow.module(), flow.function()).empty()) return any;
  Moldable row = Test(flow, registers, reaching, symbolic, 1, true).run();
  row.one_row = true;
  return row.yes() ? row : any;
}

std::string to_string(const Moldable& m) {
  if (!m.yes()) return "no: " + m.reason;
  std::string out = m.dimensions == 0 ? "yes: no index" : fmt::format("yes: {}-D index", m.dimensions);
  if (m.uses_count) out += m.grid_stride ? ", grid-stride loop" : ", number of threads";
  if (m.guard) out += ", if " + to_string(*m.guard);
  return out;
}

}  // namespace klap::analysis
