#include "analysis/ranges/range_loop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/effects/effects.h"
#include "analysis/expressions/expression_arithmetic.h"
#include "analysis/graph/dataflow.h"
#include "analysis/optimise/accumulators.h"
#include "analysis/optimise/iteration_loop.h"
#include "analysis/optimise/unrolled_loop.h"
#include "analysis/values/guard.h"
#include "analysis/values/linear_index.h"
#include "analysis/values/substitution.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;
using Found = std::optional<std::string>;

constexpr uint32_t kRangeEndBytes = 4;

// The element of an iteration, in place of base and index.
Expr element() { return Expr::symbol("e", 32, uint64_t{1} << 31); }

class RangeFinder {
 public:
  explicit RangeFinder(const Values& child) : v_(child), m_(child.flow.module()), flow_(child.flow) {}

  RangeLoop run() {
    out_.why_not = find().value_or("");
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *flow_.instructions()[i].statement; }
  [[nodiscard]] std::string rejection(uint32_t i, const std::string& why) const {
    return fmt::format("{}: {} {}", m_.place(at(i).head), m_.full_opcode(at(i)), why);
  }

  Found find() {
    if (!v_.loops.known() || v_.loops.all().empty() || flow_.blocks().empty()) return "it has no loop";
    if (Found found = find_range()) return found;
    if (Found found = find_blocks()) return found;
    if (Found found = find_loops()) return found;
    if (Found found = check_sums()) return found;
    for (const uint32_t b : out_.blocks) {
      if (Found found = check_block(b)) return found;
    }
    return std::nullopt;
  }

  // ---- the range and the way into the loop ----

  Found find_range() {
    const BasicBlock& entry = flow_.blocks()[0];
    if (entry.first == entry.last || entry.end != BlockEnd::Branch || entry.successors.size() != 2)
      return "its threads pass no guard first";
    out_.branch = entry.last - 1;
    for (uint32_t i = entry.first; i < out_.branch; ++i) {
      if (!is_parameter_load(i) && !only_computes(i)) return rejection(i, "stands before the loop");
    }
    const LinearIndex plain(1, true);
    const auto guard = guard_by(plain);
    if (!guard) return "its threads pass no guard first";
    const auto base = base_of(guard->index);
    const bool is_counted = guard->index == LinearIndex::index(8 * kRangeEndBytes);
    const ExprNode& bound = *guard->bound;
    const bool is_range = (base || is_counted) && bound.kind == ExprKind::Parameter &&
                          bound.bits == 8 * kRangeEndBytes && !guard->inclusive;
    if (!is_range) return fmt::format("its guard is not an element of a range: if {}", to_string(*guard));
    out_.begin_offset = base;
    out_.end_offset = static_cast<uint32_t>(bound.value);
    form_.emplace(base ? LinearIndex::over_range(*base) : plain);
    guard_ = guard_by(*form_);
    return guard_ ? Found() : Found("its threads pass no guard first");
  }

  [[nodiscard]] bool is_parameter_load(uint32_t i) const {
    return m_.is(at(i).head, "ld") && v_.symbolic.parameter_offset(i).has_value();
  }

  // The comparison by which threads go into the loop. `when_` becomes its result for them.
  std::optional<Guard> guard_by(const LinearIndex& form) {
    for (const bool when : {true, false}) {
      auto guard = branch_guard(flow_, v_.registers, v_.reaching, out_.branch, when,
                                [&](uint32_t i, std::string_view operand, uint32_t bits) {
                                  return form.apply(v_.symbolic.read(i, operand, bits));
                                });
      if (!guard || !any_leaf(guard->index, is_index)) continue;
      when_ = when;
      return guard;
    }
    return std::nullopt;
  }

  // The offset of the argument of which the index is `i` plus its value.
  static std::optional<uint32_t> base_of(const Expr& index) {
    if (!index.known() || index->bits != 8 * kRangeEndBytes) return std::nullopt;
    const std::vector<Term> terms = terms_of(index);
    if (terms.size() != 2) return std::nullopt;
    std::optional<uint32_t> base;
    for (const Term& term : terms) {
      if (term.coefficient != 1 || term.factors.size() != 1) return std::nullopt;
      const ExprNode& n = *term.factors[0];
      if (n.kind == ExprKind::Parameter) {
        base = static_cast<uint32_t>(n.value);
      } else if (!is_index(n)) {
        return std::nullopt;
      }
    }
    return base;
  }

  // ---- blocks ----

  Found find_blocks() {
    const BasicBlock& entry = flow_.blocks()[0];
    out_.behind = v_.dominance.immediate_post_dominator(0);
    if (out_.behind >= flow_.blocks().size() || v_.loops.depth(out_.behind) != 0)
      return "its threads may end in the loop";
    const bool jumps_in = when_ != at(out_.branch).predicate_negated;
    first_ = entry.successors[jumps_in ? 0 : 1];
    std::vector<uint32_t> open = entry.successors;
    while (!open.empty()) {
      const uint32_t b = open.back();
      open.pop_back();
      if (b == out_.behind || !out_.blocks.insert(b).second) continue;
      const BasicBlock& block = flow_.blocks()[b];
      if (b == 0 || block.exits_function || block.successors.empty())
        return "its threads may end in the loop";
      open.insert(open.end(), block.successors.begin(), block.successors.end());
    }
    for (const uint32_t b : out_.blocks) {
      for (const uint32_t from : flow_.blocks()[b].predecessors) {
        if (from != 0 && !out_.blocks.contains(from)) return "its loop is entered at several places";
      }
    }
    const uint32_t around = entry.successors[jumps_in ? 1 : 0];
    return comes_to(around, out_.behind) ? Found() : Found("its threads all enter the loop");
  }

  // ---- loops ----

  Found find_loops() {
    std::vector<const Loop*> own;
    for (const Loop& loop : v_.loops.all()) {
      if (std::ranges::any_of(loop.blocks, [&](uint32_t b) { return out_.blocks.contains(b); }))
        own.push_back(&loop);
    }
    if (own.size() == 1) return find_single(*own[0]);
    if (own.size() != 2) return "it has several loops";
    expanded_ = find_unrolled_loop(v_, *form_, *guard_, first_, {out_.behind});
    if (!expanded_) return "it has several loops";
    loop_ = expanded_->single.get();
    add_sums(expanded_->of_single);
    add_sums(expanded_->of_main);
    return std::nullopt;
  }

  Found find_single(const Loop& loop) {
    const bool is_simple = loop.is_natural() && loop.blocks.size() == 1 && loop.latches.size() == 1 &&
                           loop.exits.size() == 1 && comes_to(loop.exits[0].to, out_.behind);
    if (!is_simple) return "an iteration may end early";
    if (!comes_to(first_, loop.header())) return "not every thread that passes the guard enters the loop";
    single_.emplace(v_, *form_, loop);
    loop_ = &*single_;
    if (!loop_->ends_by(*guard_)) return "its iterations do not end by its guard";
    std::vector<Accumulator> sums;
    for (const IterationLoop::HandedOn& handed_on : loop_->handed_on()) {
      auto sum = find_accumulator(v_, loop, handed_on.reg);
      if (!sum)
        return rejection(handed_on.writer,
                         fmt::format("carries {} to the next iteration", v_.registers[handed_on.reg].name));
      sums.push_back(*std::move(sum));
    }
    add_sums(sums);
    return std::nullopt;
  }

  // True if the only way from the block leads to the other one.
  [[nodiscard]] bool comes_to(uint32_t block, uint32_t to) const {
    for (size_t steps = 0; steps < flow_.blocks().size() && block != to; ++steps) {
      if (!out_.blocks.contains(block) || flow_.blocks()[block].successors.size() != 1) return false;
      block = flow_.blocks()[block].successors[0];
    }
    return block == to;
  }

  void add_sums(const std::vector<Accumulator>& sums) {
    for (const Accumulator& sum : sums) {
      if (std::ranges::find(out_.sums, sum.reg, &RangeLoop::Sum::reg) == out_.sums.end())
        out_.sums.push_back({sum.reg, sum.operation});
      for (const Accumulator::Step& step : sum.steps) steps_.emplace(step.instruction, step.operand);
    }
  }

  // ---- sums ----

  Found check_sums() {
    if (out_.sums.empty()) return "its loop sums up nothing";
    for (const RangeLoop::Sum& sum : out_.sums) {
      std::optional<std::string> first;
      for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
        if (!is_before_or_in_loop(i) || !writes(i, sum.reg) || steps_.contains(i)) continue;
        const auto begin = literal_begin(i, sum.operation);
        if (!begin || first.value_or(*begin) != *begin) return rejection(i, "does not begin a sum");
        first = begin;
        const bool is_late =
            std::ranges::any_of(steps_, [&](const auto& step) { return flow_.can_follow(step.first, i); });
        if (is_late) return rejection(i, "begins a sum again");
      }
      if (!first) return fmt::format("{} has no value before the loop", v_.registers[sum.reg].name);
    }
    return check_other_registers();
  }

  [[nodiscard]] bool is_before_or_in_loop(uint32_t i) const {
    const uint32_t b = flow_.instructions()[i].block;
    return b == 0 || out_.blocks.contains(b);
  }
  [[nodiscard]] bool writes(uint32_t i, uint32_t reg) const {
    return std::ranges::any_of(v_.registers.accesses(i),
                               [&](const Access& a) { return a.reg == reg && a.written; });
  }

  // The literal that an unpredicated `mov` gives a sum to begin with: zero, or any where it may take part
  // several times.
  [[nodiscard]] std::optional<std::string> literal_begin(uint32_t i, const std::string& operation) const {
    const Statement& s = at(i);
    if (!m_.is(s.head, "mov") || s.predicated || s.operands.size() != 2) return std::nullopt;
    const std::string text = m_.compact(s.operands[1]);
    if (const uint32_t reg = v_.registers.find(i, text); reg != VirtualRegisters::kNone) {
      const auto writer = v_.reaching.only_definition(i, reg);
      return writer && is_before_or_in_loop(*writer) && !steps_.contains(*writer)
                 ? literal_begin(*writer, operation)
                 : std::nullopt;
    }
    if (text.empty() || text[0] == '%') return std::nullopt;
    static const std::set<std::string_view> kZeros = {"0", "0f00000000", "0d0000000000000000"};
    const std::string_view digits = text[0] == '-' ? std::string_view(text).substr(1) : text;
    const bool is_real = text.starts_with("0f") || text.starts_with("0d");
    if (is_idempotent(operation))
      return is_real || ptx::integer_value(digits) ? std::optional(text) : std::nullopt;
    return kZeros.contains(text) ? std::optional(text) : std::nullopt;
  }

  // Nothing else that the loop writes may be read behind it.
  Found check_other_registers() {
    for (const uint32_t reg : v_.liveness.live_in(out_.behind)) {
      if (std::ranges::find(out_.sums, reg, &RangeLoop::Sum::reg) != out_.sums.end()) continue;
      for (const uint32_t b : out_.blocks) {
        for (uint32_t i = flow_.blocks()[b].first; i < flow_.blocks()[b].last; ++i) {
          if (writes(i, reg))
            return rejection(i, fmt::format("leaves {} behind the loop", v_.registers[reg].name));
        }
      }
    }
    return std::nullopt;
  }

  // ---- what iterations compute ----

  // Blocks around the loops only decide which threads go where. The second of two loops has been shown to run
  // the iterations of the first.
  Found check_block(uint32_t b) {
    const bool is_iteration =
        v_.flow.blocks()[b].first != v_.flow.blocks()[b].last && loop_->contains(flow_.blocks()[b].first);
    const bool is_copy = expanded_ && expanded_->main->contains(flow_.blocks()[b].first);
    for (uint32_t i = flow_.blocks()[b].first; i < flow_.blocks()[b].last; ++i) {
      if (Found found = check_effect(i, is_iteration || is_copy)) return found;
      if (Found found = is_iteration ? check_operands(i) : std::nullopt) return found;
    }
    return std::nullopt;
  }

  Found check_effect(uint32_t i, bool in_loop) {
    const Statement& s = at(i);
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "bra" || is_parameter_load(i)) return std::nullopt;
    if (opcode == "ld" && in_loop) {
      if (!is_plain_load(m_, s)) return rejection(i, "is no plain load of global memory");
      out_.loads.insert(i);
      if (loads_in_a_row(i)) out_.loads_in_a_row.insert(i);
      return std::nullopt;
    }
    return only_computes(i) ? Found() : Found(rejection(i, "does more than compute"));
  }

  // True if the address steps with the element by as many bytes as the instruction loads.
  [[nodiscard]] bool loads_in_a_row(uint32_t i) const {
    const Statement& s = at(i);
    const auto address = parse_address(m_, s.operands[1]);
    const uint32_t reg = address ? v_.registers.find(i, address->base) : VirtualRegisters::kNone;
    if (reg == VirtualRegisters::kNone) return false;
    const bool is_copy = expanded_ && expanded_->main->contains(i);
    const Expr e = (is_copy ? *expanded_->main : *loop_).value(v_.symbolic.read(i, reg));
    if (!e.known()) return false;
    const uint32_t lanes = m_.has_modifier(s, ".v4") ? 4 : m_.has_modifier(s, ".v2") ? 2 : 1;
    const uint32_t bytes = lanes * ptx::type_bytes(m_.text(s.modifiers.last - 1));
    bool steps = false;
    for (const Term& term : terms_of(e)) {
      const bool is_step = is_multiple_of(term, is_iteration) && term.coefficient == bytes;
      const bool has_element = std::ranges::any_of(
          term.factors, [](const Expr& factor) { return any_leaf(factor, is_iteration); });
      if (has_element && !is_step) return false;
      steps = steps || is_step;
    }
    return steps;
  }

  [[nodiscard]] bool only_computes(uint32_t i) const {
    return ptx::opcode_of(m_, at(i)).result == ptx::OpcodeResult::Pure &&
           instruction_effects(m_, at(i)).empty() && !reads_other_register(i);
  }

  // The values of special registers are followed only where they say the thread's place in its grid.
  [[nodiscard]] bool reads_other_register(uint32_t i) const {
    for (uint32_t t = at(i).tokens.first; t < at(i).tokens.last; ++t) {
      const std::string_view name = m_.text(t);
      if (name.starts_with('%') && v_.registers.find(i, name) == VirtualRegisters::kNone &&
          !is_virtual_special_register(name))
        return true;
    }
    return false;
  }

  // An instruction of an iteration may read the sum that it adds to. All else that it reads must depend on
  // the element alone, but for the loop's own control.
  Found check_operands(uint32_t i) {
    if (i == loop_->branch() || i == loop_->condition()) return std::nullopt;
    if (v_.symbolic.is_evaluated(i) && !steps_.contains(i)) return std::nullopt;
    for (const Access& access : v_.registers.accesses(i)) {
      const bool is_sum = reads_as_sum(i, access.reg);
      if (!access.read || is_sum) continue;
      if (Found found = check_value(i, access.reg)) return found;
    }
    return std::nullopt;
  }

  // True if the instruction adds to a sum that it finds in the register, and finds nothing else there.
  [[nodiscard]] bool reads_as_sum(uint32_t i, uint32_t reg) const {
    const auto step = steps_.find(i);
    if (step == steps_.end()) return false;
    const std::string sum = components(m_, at(i).operands[step->second])[0];
    return v_.registers.find(i, sum) == reg && accumulation_to(v_, i, reg).has_value();
  }

  Found check_value(uint32_t i, uint32_t reg) {
    if (v_.registers[reg].is_predicate()) return check_writers(i, reg);
    const Expr e = of_element(loop_->value(v_.symbolic.read(i, reg)));
    if (!e.known()) return rejection(i, "uses a value that cannot be followed");
    Found found;
    any_leaf(e, [&](const ExprNode& leaf) {
      if (!found) found = check_leaf(i, leaf);
      return false;
    });
    return found;
  }

  Found check_leaf(uint32_t i, const ExprNode& leaf) {
    if (is_count(leaf) || is_own_index(leaf) || is_iteration(leaf) || is_base(leaf))
      return rejection(i, "uses more than its element");
    if (leaf.kind == ExprKind::Parameter && is_end_of_range(static_cast<uint32_t>(leaf.value), leaf.bits / 8))
      return rejection(i, "uses an end of the range");
    if (leaf.kind == ExprKind::Special) return rejection(i, fmt::format("uses {}", leaf.name));
    if (leaf.kind == ExprKind::Merged) {
      const auto reader = static_cast<uint32_t>(leaf.value);
      return check_writers(reader, v_.registers.find(reader, leaf.name));
    }
    if (leaf.kind == ExprKind::Opaque && leaf.name != "e")
      return check_writer(static_cast<uint32_t>(leaf.value));
    return std::nullopt;
  }

  // True if some of the bytes of the parameter block are those of an end of the range.
  [[nodiscard]] bool is_end_of_range(uint32_t offset, uint32_t bytes) const {
    const auto overlaps = [&](uint32_t end) { return offset < end + kRangeEndBytes && end < offset + bytes; };
    return overlaps(out_.end_offset) || (out_.begin_offset && overlaps(*out_.begin_offset));
  }

  Found check_writers(uint32_t reader, uint32_t reg) {
    if (reg == VirtualRegisters::kNone) return rejection(reader, "uses a value that cannot be followed");
    const ReachingDefinitions::Origins origins = v_.reaching.origins(reader, reg);
    if (origins.entry) return rejection(reader, "uses a value that cannot be followed");
    for (const uint32_t writer : origins.definitions) {
      if (Found found = check_writer(writer)) return found;
    }
    return std::nullopt;
  }

  // An instruction whose result takes part in an iteration. Those of the iteration are looked at anyway, but
  // for what is evaluated there.
  Found check_writer(uint32_t i) {
    if (!checked_.insert(i).second) return std::nullopt;
    if (steps_.contains(i)) return rejection(i, "is used by more than its sum");
    const bool is_inside = loop_->contains(i);
    if (!is_inside && is_parameter_load(i)) {
      const auto offset = v_.symbolic.parameter_offset(i);
      const uint32_t bytes = ptx::type_bytes(m_.text(at(i).modifiers.last - 1)) * 4;
      if (is_end_of_range(*offset, bytes)) return rejection(i, "uses an end of the range");
      return std::nullopt;
    }
    if (!is_inside && !only_computes(i)) return rejection(i, "is computed ahead of the loop");
    for (const Access& access : v_.registers.accesses(i)) {
      if (!access.read) continue;
      if (Found found = check_value(i, access.reg)) return found;
    }
    return std::nullopt;
  }

  // The expression with the element in place of base and index.
  [[nodiscard]] Expr of_element(const Expr& e) const {
    const Expr base = out_.begin_offset ? LinearIndex::base() : Expr::constant(0, 32);
    return substitute(e, [&](const Expr& part) -> std::optional<Expr> {
      const bool widens = is_widening(*part) && is_iteration(narrowed(part));
      if (!widens && !is_iteration(*part)) return std::nullopt;
      if (part->bits == 32 && !widens) return element() - base;
      const Sign sign = part->kind == ExprKind::SignExtend ? Sign::Signed : Sign::Unsigned;
      return convert(element(), part->bits, sign) - convert(base, part->bits, sign);
    });
  }

  const Values& v_;
  const Module& m_;
  const ControlFlow& flow_;
  RangeLoop out_;
  std::optional<LinearIndex> form_;
  std::optional<Guard> guard_;
  bool when_ = false;
  uint32_t first_ = 0;  // the block in which threads go on that pass the guard
  std::optional<IterationLoop> single_;
  std::optional<WrittenOut> expanded_;
  const IterationLoop* loop_ = nullptr;  // of single iterations
  std::map<uint32_t, size_t>
      steps_;  // instructions that add to a sum, and their operands that have it so far
  std::set<uint32_t> checked_;
};

}  // namespace

bool is_plain_load(const Module& m, const Statement& s) {
  static const std::set<std::string_view> kModifiers = {".global", ".const", ".nc", ".weak", ".v2", ".v4"};
  bool has_space = false;
  for (uint32_t t = s.modifiers.first; t + 1 < s.modifiers.last; ++t) {
    if (!kModifiers.contains(m.text(t))) return false;
    has_space = has_space || m.is(t, ".global") || m.is(t, ".const");
  }
  return m.is(s.head, "ld") && has_space;
}

RangeLoop find_range_loop(const Values& child) { return RangeFinder(child).run(); }

namespace {

// True if the instructions, run once more in this order, find what they found before. `changed` are registers
// that have had another value since.
bool give_the_same_again(const Values& v, const std::vector<uint32_t>& again, std::set<uint32_t> changed) {
  for (const uint32_t i : again) {
    for (const Access& access : v.registers.accesses(i)) {
      if (access.read && changed.contains(access.reg)) return false;
    }
    for (const Access& access : v.registers.accesses(i)) {
      if (access.kills) changed.erase(access.reg);
    }
  }
  return true;
}

}  // namespace

std::optional<HigherThreads> higher_threads(const Values& v, const RangeLoop& loop) {
  HigherThreads out;
  const auto& instructions = v.flow.instructions();
  std::vector<uint32_t> again;
  std::set<uint32_t> changed;
  for (const RangeLoop::Sum& sum : loop.sums) changed.insert(sum.reg);
  const auto writes_sum = [&](uint32_t i) {
    return std::ranges::any_of(v.registers.accesses(i), [&](const Access& a) {
      return a.written && std::ranges::find(loop.sums, a.reg, &RangeLoop::Sum::reg) != loop.sums.end();
    });
  };
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const bool is_before = instructions[i].block == 0;
    if (!is_before && !loop.blocks.contains(instructions[i].block)) continue;
    out.statements.insert(instructions[i].statement);
    if (is_before && i != loop.branch && !writes_sum(i)) again.push_back(i);
    for (const Access& access : v.registers.accesses(i)) {
      if (!is_before && access.written) changed.insert(access.reg);
    }
  }
  // Names must mean the same in front of the loop and behind it.
  const ptx::Statement* const body = &v.flow.function().body;
  const uint32_t behind = v.flow.blocks()[loop.behind].first;
  const bool are_in_body = instructions[behind].scope == body && std::ranges::all_of(again, [&](uint32_t i) {
                             return instructions[i].scope == body;
                           });
  if (!are_in_body || !give_the_same_again(v, again, changed)) return std::nullopt;
  for (const uint32_t i : again) out.again.push_back(instructions[i].statement);
  out.behind = instructions[behind].statement;
  return out;
}

std::string to_string(const RangeLoop& loop) {
  if (!loop.yes()) return "no: " + loop.why_not;
  std::vector<std::string> operations;
  for (const RangeLoop::Sum& sum : loop.sums) operations.push_back(sum.operation);
  return fmt::format("yes: {} over {} to p[{}]", fmt::join(operations, ", "),
                     loop.begin_offset ? fmt::format("p[{}]", *loop.begin_offset) : "0", loop.end_offset);
}

}  // namespace klap::analysis
