#include "analysis/moldable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "analysis/legality.h"

namespace klap::analysis {

using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

namespace {

constexpr uint64_t kMostThreads = uint64_t{1} << 41;  // 2^31 - 1 blocks of 1,024 threads

Expr position(const char* name, uint32_t bits) { return convert(Expr::special(name), bits, Sign::Unsigned); }

bool is_position(const ExprNode& n) { return n.kind == ExprKind::Special && n.name != "laneid"; }

// The linear index of one to three dimensions, and what it makes of expressions.
class LinearForm {
 public:
  explicit LinearForm(uint32_t dimensions) : dimensions_(dimensions) {}

  [[nodiscard]] uint32_t dimensions() const { return dimensions_; }
  static Expr index(uint32_t bits) { return Expr::symbol("i", bits, kMostThreads); }
  static Expr count(uint32_t bits) { return Expr::symbol("n", bits, kMostThreads); }

  // The expression in terms of the index and the number of threads, as far as it can be.
  [[nodiscard]] Expr apply(const Expr& e) const { return fold_count(to_index(e)); }

 private:
  // ((z * size_y) + y) * size_x + x
  [[nodiscard]] Expr linear(const char* const (&at)[3], const char* const (&size)[3], uint32_t bits) const {
    Expr out = position(at[dimensions_ - 1], bits);
    for (uint32_t d = dimensions_ - 1; d-- > 0;) out = out * position(size[d], bits) + position(at[d], bits);
    return out;
  }

  [[nodiscard]] Expr whole(uint32_t bits) const {
    Expr block = linear({"ctaid.x", "ctaid.y", "ctaid.z"}, {"nctaid.x", "nctaid.y", "nctaid.z"}, bits);
    for (uint32_t d = 0; d < dimensions_; ++d) block = block * position(kBlockSize[d], bits);
    return block + linear({"tid.x", "tid.y", "tid.z"}, kBlockSize, bits);
  }

  [[nodiscard]] Expr to_index(const Expr& e) const {
    return substitute(e, [&](const Expr& part) -> std::optional<Expr> {
      if (!(part == position("tid.x", part->bits))) return std::nullopt;
      return index(part->bits) - (whole(part->bits) - part);
    });
  }

  // Products of all sizes are the number of threads.
  [[nodiscard]] Expr fold_count(const Expr& e) const {
    return substitute(e, [&](const Expr& part) -> std::optional<Expr> {
      if (part->kind != ExprKind::Sum) return std::nullopt;
      Expr out = Expr::constant(0, part->bits);
      for (const Term& term : part->terms) out = out + fold_term(term, part->bits);
      return out;
    });
  }

  [[nodiscard]] Expr fold_term(Term term, uint32_t bits) const {
    std::vector<Expr> rest = term.factors;
    bool all = true;
    for (uint32_t d = 0; d < dimensions_ && all; ++d) {
      all = take(rest, position(kBlockSize[d], bits)) && take(rest, position(kGridSize[d], bits));
    }
    Expr out = Expr::constant(term.coefficient, bits);
    if (all) out = out * count(bits);
    for (const Expr& factor : all ? rest : term.factors) out = out * fold_count(factor);
    return out;
  }

  static bool take(std::vector<Expr>& factors, const Expr& factor) {
    const auto found = std::find(factors.begin(), factors.end(), factor);
    if (found == factors.end()) return false;
    factors.erase(found);
    return true;
  }

  static constexpr const char* kBlockSize[3] = {"ntid.x", "ntid.y", "ntid.z"};
  static constexpr const char* kGridSize[3] = {"nctaid.x", "nctaid.y", "nctaid.z"};
  uint32_t dimensions_;
};

bool is_widening(const ExprNode& n) {
  return n.kind == ExprKind::ZeroExtend || n.kind == ExprKind::SignExtend;
}
bool is_index(const ExprNode& n) { return n.kind == ExprKind::Opaque && n.name == "i"; }
bool is_count(const ExprNode& n) { return n.kind == ExprKind::Opaque && n.name == "n"; }

// One kernel under one linear form.
class Test {
 public:
  Test(const ControlFlow& flow, const VirtualRegisters& registers, const ReachingDefinitions& reaching,
       const Symbolic& symbolic, uint32_t dimensions)
      : m_(flow.module()),
        flow_(flow),
        registers_(registers),
        reaching_(reaching),
        symbolic_(symbolic),
        form_(dimensions),
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

  // What an instruction computes exactly is looked at where it is used; all others must not see more of the
  // position than the index.
  void check(uint32_t i) {
    if (is_evaluated(i)) return;
    for (const Access& access : registers_.accesses(i)) {
      if (access.read) check_value(i, symbolic_.read(i, access.reg));
    }
    for (uint32_t t = at(i).tokens.first; t < at(i).tokens.last; ++t) {
      if (is_virtual_special_register(m_.text(t))) refuse(i, fmt::format("depends on {}", m_.text(t)));
    }
  }

  // True if the instruction writes registers, and all of them with known arithmetic.
  [[nodiscard]] bool is_evaluated(uint32_t i) const {
    bool writes = false;
    for (const Access& access : registers_.accesses(i)) {
      if (access.written && !symbolic_.is_evaluated(i, access.reg)) return false;
      writes = writes || access.written;
    }
    return writes;
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

  // A register that several definitions reach: what each of its definitions gives.
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

  // The register's own former value plus a multiple of the number of threads.
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

  // ---- the guard ----

  // The condition at the end of the entry block under which control goes on, if a thread that fails it ends
  // at once and nothing has happened before.
  [[nodiscard]] std::optional<Guard> find_guard() const {
    const BasicBlock& entry = flow_.blocks()[0];
    for (uint32_t i = entry.first; i + 1 < entry.last; ++i) {
      if (!is_harmless(i)) return std::nullopt;
    }
    const Statement& last = at(entry.last - 1);
    if (!last.predicated || entry.successors.empty()) return std::nullopt;
    bool taken_ends = true;
    if (entry.end == BlockEnd::Branch) {
      if (entry.successors.size() != 2) return std::nullopt;
      taken_ends = ends_at_once(entry.successors[0]);
      if (taken_ends == ends_at_once(entry.successors[1])) return std::nullopt;
    } else if (entry.end != BlockEnd::Return && entry.end != BlockEnd::Exit) {
      return std::nullopt;
    }
    // Threads go on where the predicate is false if the branch taken ends them.
    return comparison(entry.last - 1, taken_ends == last.predicate_negated);
  }

  [[nodiscard]] bool is_harmless(uint32_t i) const {
    const Statement& s = at(i);
    if (m_.is(s.head, "setp") || m_.is(s.head, "ld")) return true;
    return is_evaluated(i);
  }

  [[nodiscard]] bool ends_at_once(uint32_t block) const {
    for (size_t steps = 0; steps < flow_.blocks().size(); ++steps) {
      const BasicBlock& b = flow_.blocks()[block];
      if (b.last - b.first != 1 || b.conditional) return false;
      if (b.end == BlockEnd::Return || b.end == BlockEnd::Exit) return true;
      if (b.end != BlockEnd::Branch || b.successors.size() != 1) return false;
      block = b.successors[0];
    }
    return false;
  }

  // What the predicate of a branch compares.
  [[nodiscard]] std::optional<Guard> comparison(uint32_t branch, bool when) const {
    const uint32_t predicate = registers_.find(branch, m_.text(at(branch).predicate));
    if (predicate == VirtualRegisters::kNone) return std::nullopt;
    const auto writer = reaching_.only_definition(branch, predicate);
    if (!writer) return std::nullopt;
    const Statement& s = at(*writer);
    const bool plain = m_.is(s.head, "setp") && !s.predicated && s.operands.size() == 3 &&
                       s.operands[0].size() == 1 && s.modifiers.size() == 2;
    if (!plain) return std::nullopt;
    const std::string_view type = m_.text(s.modifiers.last - 1);
    const uint32_t bits = 8 * ptx::type_bytes(type);
    if (bits == 0 || (type[1] != 's' && type[1] != 'u')) return std::nullopt;
    Guard guard;
    guard.sign = type[1] == 's' ? Sign::Signed : Sign::Unsigned;
    guard.line = static_cast<uint32_t>(m_.line(s.head));
    guard.index = operand(*writer, s.operands[1], bits);
    guard.bound = operand(*writer, s.operands[2], bits);
    return oriented(std::move(guard), m_.text(s.modifiers.first), when);
  }

  [[nodiscard]] Expr operand(uint32_t i, ptx::TokenRange range, uint32_t bits) const {
    return form_.apply(symbolic_.read(i, components(m_, range)[0], bits));
  }

  // `index compare bound`, or its negation, as an upper bound of the index.
  static std::optional<Guard> oriented(Guard guard, std::string_view compare, bool when) {
    static constexpr std::array<std::array<std::string_view, 4>, 2> kOrder = {
        {{".lt", ".le", ".gt", ".ge"}, {".lo", ".ls", ".hi", ".hs"}}};
    size_t which = 4;
    for (const auto& names : kOrder) {
      const auto found = std::find(names.begin(), names.end(), compare);
      if (found != names.end()) which = static_cast<size_t>(found - names.begin());
    }
    if (which == 4 || !guard.index.known() || !guard.bound.known()) return std::nullopt;
    if (!when) which = 3 - which;  // not less is greater or equal
    const bool swapped = !any_leaf(guard.index, is_index);
    if (swapped) {
      std::swap(guard.index, guard.bound);
      which = (which + 2) % 4;
    }
    if (which > 1 || !is_offset_index(guard.index) || any_leaf(guard.bound, is_index)) return std::nullopt;
    guard.inclusive = which == 1;
    return guard;
  }

  // The index, widened or not, plus what does not contain it.
  static bool is_offset_index(const Expr& e) {
    size_t with_index = 0;
    bool plain = false;
    for (const Term& term : terms_of(e)) {
      const bool has = std::any_of(term.factors.begin(), term.factors.end(),
                                   [](const Expr& factor) { return any_leaf(factor, is_index); });
      if (!has) continue;
      ++with_index;
      const ExprNode& factor = *term.factors[0];
      const bool widened = is_widening(factor) && is_index(*factor.operands[0]);
      plain = term.coefficient == 1 && term.factors.size() == 1 && (is_index(factor) || widened);
    }
    return with_index == 1 && plain;
  }

  const Module& m_;
  const ControlFlow& flow_;
  const VirtualRegisters& registers_;
  const ReachingDefinitions& reaching_;
  const Symbolic& symbolic_;
  LinearForm form_;
  Moldable result_;
  bool uses_index_ = false;
  std::vector<std::vector<uint32_t>> writers_;  // by register
  std::vector<bool> checked_;                   // by register
};

// ---- what else a moldable kernel must not do ----

bool is_warp_operation(const Module& m, const Statement& s) {
  static constexpr std::array<std::string_view, 7> kOpcodes = {"shfl",  "vote",       "match",   "redux",
                                                               "elect", "activemask", "ldmatrix"};
  return m.has_modifier(s, ".sync") ||
         std::find(kOpcodes.begin(), kOpcodes.end(), m.text(s.head)) != kOpcodes.end();
}

// Why an instruction may depend on which threads stand in a block or warp together; empty if it does not.
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
  if (std::find(effects.begin(), effects.end(), EffectKind::UnlistedInstruction) != effects.end())
    return "is not known to be independent of its place";
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

// In the kernel and in all that it calls.
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

std::string to_string(const Guard& guard) {
  const bool alike = guard.index->range.never_negative() && guard.bound->range.never_negative();
  const char* sign = guard.sign == Sign::Unsigned && !alike ? "u" : "";
  return fmt::format("{} {}{} {}", to_string(guard.index), guard.inclusive ? "<=" : "<", sign,
                     to_string(guard.bound));
}

std::string to_string(const Moldable& m) {
  if (!m.yes()) return "no: " + m.reason;
  std::string out = m.dimensions == 0 ? "yes: no index" : fmt::format("yes: {}-D index", m.dimensions);
  if (m.uses_count) out += m.grid_stride ? ", grid-stride loop" : ", number of threads";
  if (m.guard) out += ", if " + to_string(*m.guard);
  return out;
}

}  // namespace klap::analysis
