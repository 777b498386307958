#include "analysis/optimise/stride_loop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/optimise/iteration_loop.h"
#include "analysis/optimise/unrolled_loop.h"
#include "analysis/values/linear_index.h"
#include "ptx/opcodes.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Statement;
using Use = IterationSpan::Use;
using Found = std::optional<std::string>;

constexpr size_t kMostPointers = 4;  // the most pointers that a recorder compares

class StrideFinder {
 public:
  StrideFinder(const Values& child, const Moldable& moldable)
      : v_(child),
        flow_(child.flow),
        m_(child.flow.module()),
        moldable_(moldable),
        form_(1, moldable.one_row) {}

  StrideLoop run() {
    StrideLoop out;
    out.only_strides = moldable_.yes() && moldable_.dimensions == 1 && moldable_.guard && v_.loops.known() &&
                       !v_.loops.all().empty() &&
                       std::ranges::all_of(v_.loops.all(), [&](const Loop& loop) { return strides(loop); });
    if (!out.only_strides) return out;
    if (moldable_.one_row && !flow_.function().attributes.empty()) {
      out.why_not = "its blocks have a bound";  // which the compiler may have counted on
      return out;
    }
    for (const auto check : {&StrideFinder::check_loop, &StrideFinder::check_values,
                             &StrideFinder::check_code, &StrideFinder::check_memory}) {
      if (const Found rejection = (this->*check)()) {
        out.why_not = *rejection;
        return out;
      }
    }
    out.spans = std::move(spans_);
    return out;
  }

 private:
  [[nodiscard]] const Statement& at(uint32_t i) const { return *flow_.instructions()[i].statement; }
  [[nodiscard]] uint32_t line(uint32_t i) const { return static_cast<uint32_t>(m_.line(at(i).head)); }
  [[nodiscard]] bool in_loop(uint32_t i) const { return loop_->contains(i); }
  [[nodiscard]] std::string rejection(uint32_t i, const std::string& why) const {
    return fmt::format("{}: {} {}", m_.place(at(i).head), m_.full_opcode(at(i)), why);
  }

  // ---- the loop ----

  // True if the loop stands in no other one, and has a register that steps by a multiple of the number of
  // threads.
  [[nodiscard]] bool strides(const Loop& loop) const {
    if (loop.depth != 1 || !loop.is_natural()) return false;
    return std::ranges::any_of(v_.liveness.live_in(loop.header()), [&](uint32_t reg) {
      for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
        const bool is_step = loop.contains(flow_.instructions()[i].block) && writes(i, reg) &&
                             v_.symbolic.is_evaluated(i, reg);
        if (is_step && any_leaf(form_.apply(v_.symbolic.written(i, reg)), is_count)) return true;
      }
      return false;
    });
  }

  [[nodiscard]] bool writes(uint32_t i, uint32_t reg) const {
    return std::ranges::any_of(v_.registers.accesses(i),
                               [&](const Access& a) { return a.reg == reg && a.written; });
  }

  // Checks the only loop. It must stand behind the guard, and every thread that passes the guard must enter
  // it. It is entered at one block, and left at the end of an iteration only, by the guard again, to end. Two
  // loops that are one also pass.
  Found check_loop() {
    const auto on = way_on_from_entry(flow_);
    if (!on) return "not every thread that passes the guard enters the loop";
    if (v_.loops.all().size() > 1) {
      expanded_ = find_unrolled_loop(v_, form_, *moldable_.guard, on->block);
      if (!expanded_) return "it has several loops";
      loop_ = expanded_->single.get();
      return std::nullopt;
    }
    const Loop& loop = v_.loops.all()[0];
    const bool ends_once =
        loop.latches.size() == 1 && loop.exits.size() == 1 && loop.exits[0].from == loop.latches[0];
    if (!ends_once) {
      const uint32_t first = flow_.blocks()[loop.header()].first;
      return fmt::format("an iteration may end early, from line {} on", line(first));
    }
    const uint32_t to = loop.exits[0].to;
    if (to >= flow_.blocks().size() || !ends_at_once(flow_, to)) return "more is done behind the loop";
    if (!leads_to(on->block, loop.header())) return "not every thread that passes the guard enters the loop";
    only_loop_.emplace(v_, form_, loop);
    loop_ = &*only_loop_;
    if (!loop_->ends_by(*moldable_.guard)) return "its iterations do not end by its guard";
    if (loop_->handed_on().empty()) return std::nullopt;
    const auto [reg, writer] = loop_->handed_on()[0];
    return rejection(writer, fmt::format("carries {} to the next iteration", v_.registers[reg].name));
  }

  // True if the only way from the block leads to the header.
  [[nodiscard]] bool leads_to(uint32_t block, uint32_t header) const {
    for (size_t steps = 0; steps < flow_.blocks().size() && block != header; ++steps) {
      const BasicBlock& b = flow_.blocks()[block];
      if (b.successors.size() != 1 || b.exits_function) return false;
      block = b.successors[0];
    }
    return block == header;
  }

  // ---- values ----

  Found check_values() {
    const auto compare = loop_->condition();
    if (!compare) return rejection(loop_->branch(), "goes by several conditions");
    for (const Access& access : v_.registers.accesses(*compare)) {
      if (access.written && v_.reaching.uses(*compare, access.reg) != std::vector{loop_->branch()})
        return rejection(*compare, "is used by more than the end of the iteration");
    }
    for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
      if (Found found = in_loop(i) ? std::nullopt : check_count(i)) return found;
      for (const Access& access : v_.registers.accesses(i)) {
        if (!in_loop(i) || !access.read) continue;
        if (Found found = check_origin(i, access.reg)) return found;
        if (i == *compare || i == loop_->branch() || v_.symbolic.is_evaluated(i)) continue;
        if (Found found = check_value(i, v_.symbolic.read(i, access.reg))) return found;
      }
    }
    return std::nullopt;
  }

  // Outside the loop only the loop's own control may see the number of threads.
  Found check_count(uint32_t i) {
    const bool is_control =
        expanded_ && (expanded_->main->contains(i) || std::ranges::count(expanded_->conditions, i) != 0);
    if (is_control || v_.symbolic.is_evaluated(i)) return std::nullopt;
    for (const Access& access : v_.registers.accesses(i)) {
      if (!access.read) continue;
      const Expr e = form_.apply(v_.symbolic.read(i, access.reg));
      if (v_.registers[access.reg].is_predicate()) continue;  // of a comparison, which is looked at itself
      if (!e.known() ||
          any_leaf(e, [](const ExprNode& n) { return is_count(n) || n.kind == ExprKind::Merged; }))
        return rejection(i, "may see the number of threads");
    }
    return std::nullopt;
  }

  // A value that was computed ahead of the loop must be the same for all threads.
  Found check_origin(uint32_t i, uint32_t reg) {
    const ReachingDefinitions::Origins origins = v_.reaching.origins(i, reg);
    const bool from_iteration =
        std::ranges::any_of(origins.definitions, [&](uint32_t d) { return in_loop(d); });
    if (from_iteration) return std::nullopt;  // of this iteration, or a counter
    const std::string name(v_.registers[reg].name);
    if (v_.uniformity.operand(i, name) == Uniform::Grid) return std::nullopt;
    return rejection(i, fmt::format("uses {}, which differs between threads, from ahead of the loop", name));
  }

  // An instruction that is not computed exactly must not see the number of threads, nor where its thread
  // began.
  Found check_value(uint32_t i, const Expr& raw) {
    const Expr e = loop_->value(raw);
    if (!e.known()) return rejection(i, "uses a value that cannot be followed");
    Found found;
    std::vector<uint32_t> merged;
    any_leaf(e, [&](const ExprNode& leaf) {
      if (is_count(leaf)) found = rejection(i, "uses the number of threads");
      if (is_own_index(leaf)) found = rejection(i, "uses the index of its thread's first iteration");
      if (leaf.kind == ExprKind::Merged)
        merged.push_back(v_.registers.find(static_cast<uint32_t>(leaf.value), leaf.name));
      return false;
    });
    for (const uint32_t reg : merged) {
      if (!found) found = check_definitions(reg);
    }
    return found;
  }

  Found check_definitions(uint32_t reg) {
    if (!checked_.insert(reg).second) return std::nullopt;
    Found found;
    for (uint32_t i = 0; i < flow_.instructions().size() && !found; ++i) {
      if (in_loop(i) && writes(i, reg) && v_.symbolic.is_evaluated(i, reg))
        found = check_value(i, v_.symbolic.written(i, reg));
    }
    return found;
  }

  // ---- memory ----

  Found check_code() {
    const Effects effects = own_effects(m_, flow_.function());
    for (const EffectKind kind : {EffectKind::LocalMemory, EffectKind::StackAllocation}) {
      if (const Effect* effect = effects.find(kind))
        return fmt::format("{} ({}) at line {}", to_string(kind), effect->what, m_.line(effect->token));
    }
    for (uint32_t i = 0; i < flow_.instructions().size(); ++i) {
      if (Found found = check_instruction(i)) return found;
    }
    return std::nullopt;
  }

  Found check_instruction(uint32_t i) {
    const Statement& s = at(i);
    if (m_.is(s.head, "call")) return rejection(i, "may do anything");
    if (ptx::opcode_of(m_, s).reads_carry()) return rejection(i, "uses a carry");
    for (const EffectKind kind : instruction_effects(m_, s)) {
      const bool is_harmless = kind == EffectKind::Exit || kind == EffectKind::Reduction ||
                               (kind == EffectKind::Atomic && is_reduction(i));
      if (!is_harmless) return rejection(i, fmt::format("is not for any order: {}", to_string(kind)));
    }
    const bool changes = m_.is(s.head, "st") || is_reduction(i);
    if (expanded_ && expanded_->main->contains(i)) return std::nullopt;  // shown to be the same
    if (!in_loop(i)) return changes ? Found(rejection(i, "stands outside the loop")) : std::nullopt;
    return add_access(i);
  }

  // `red`, or an `atom` whose result is not read.
  [[nodiscard]] bool is_reduction(uint32_t i) const {
    if (m_.is(at(i).head, "red")) return true;
    return m_.is(at(i).head, "atom") && std::ranges::all_of(v_.registers.accesses(i), [&](const Access& a) {
             return !a.written || (!a.read && v_.reaching.uses(i, a.reg).empty());
           });
  }

  Found add_access(uint32_t i) {
    const Statement& s = at(i);
    const bool loads = m_.is(s.head, "ld") || m_.is(s.head, "ldu");
    const bool reduces = is_reduction(i);
    if (!loads && !reduces && !m_.is(s.head, "st")) return std::nullopt;
    const size_t address = m_.is(s.head, "st") || m_.is(s.head, "red") ? 0 : 1;
    for (const std::string_view never : {".param", ".param::entry", ".const", ".nc"}) {
      if (loads && m_.has_modifier(s, never)) return std::nullopt;
    }
    const bool is_known = s.operands.size() == (m_.is(s.head, "atom") ? 3 : 2) &&
                          std::ranges::none_of(std::array{".local", ".param", ".param::func"},
                                               [&](const char* space) { return m_.has_modifier(s, space); });
    if (!is_known) return rejection(i, "is no access that is known");
    IterationAccess access;
    access.line = line(i);
    access.use = loads ? Use::Read : reduces ? Use::Updated : Use::Written;
    access.bytes = bytes_of(s);
    access.address = loop_->value(v_.symbolic.address(i, s.operands[address]));
    if (reduces) {
      const auto operation = commuting(s);
      if (!operation) return rejection(i, "depends on the order of iterations");
      access.operation = *operation;
    }
    accesses_.push_back(std::move(access));
    return std::nullopt;
  }

  [[nodiscard]] uint32_t bytes_of(const Statement& s) const {
    uint32_t lanes = 1;
    for (const uint32_t n : {2U, 4U, 8U}) {
      if (m_.has_modifier(s, fmt::format(".v{}", n))) lanes = n;
    }
    return lanes * ptx::type_bytes(m_.text(s.modifiers.last - 1));
  }

  // The operation of a reduction that gives the same in any order.
  [[nodiscard]] std::optional<std::string> commuting(const Statement& s) const {
    static const std::set<std::string_view> kOperations = {".add", ".min", ".max", ".and", ".or", ".xor"};
    static const std::set<std::string_view> kTypes = {".u32", ".s32", ".u64", ".s64", ".b32", ".b64"};
    static const std::set<std::string_view> kOthers = {".global", ".relaxed", ".gpu", ".sys"};
    std::string operation;
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      const std::string_view modifier = m_.text(t);
      const bool is_type = t + 1 == s.modifiers.last;
      if (is_type ? kTypes.contains(modifier) : kOperations.contains(modifier)) {
        operation += modifier;
      } else if (!kOthers.contains(modifier)) {
        return std::nullopt;
      }
    }
    return operation;
  }

  Found check_memory() {
    IterationMemory memory = judge_memory(accesses_, kMostPointers);
    spans_ = std::move(memory.spans);
    return memory.why_not.empty() ? std::nullopt : Found(memory.why_not);
  }

  const Values& v_;
  const ControlFlow& flow_;
  const Module& m_;
  const Moldable& moldable_;
  const LinearIndex form_;
  std::optional<IterationLoop> only_loop_;
  std::optional<WrittenOut> expanded_;
  const IterationLoop* loop_ = nullptr;  // of single iterations
  std::set<uint32_t> checked_;
  std::vector<IterationAccess> accesses_;
  std::vector<IterationSpan> spans_;
};

}  // namespace

StrideLoop find_stride_loop(const Values& child, const Moldable& moldable) {
  return StrideFinder(child, moldable).run();
}

std::string to_string(const StrideLoop& loop) {
  if (!loop.only_strides) return "no: no such loop";
  if (!loop.why_not.empty()) return "no: " + loop.why_not;
  constexpr std::array kUses = {"read", "updated", "written"};
  std::vector<std::string> texts;
  for (const IterationSpan& span : loop.spans) {
    texts.push_back(fmt::format("p[{}:8]{:+}+i*{}, {} bytes {}", span.parameter, span.least, span.step,
                                span.bytes, kUses.at(static_cast<size_t>(span.use))));
  }
  return texts.empty() ? "yes" : fmt::format("yes: {}", fmt::join(texts, "; "));
}

}  // namespace klap::analysis
