#include "analysis/optimise/thresholding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/effects/coherence.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/inline/inlinable_calls.h"
#include "analysis/legality/parent_checks.h"
#include "analysis/optimise/known_arguments.h"

namespace klap::analysis {
namespace {

using Found = std::optional<std::string>;

// Effects that a child may have besides computing, reading and writing.
constexpr std::array kAllowed{EffectKind::PositionRegister, EffectKind::Atomic, EffectKind::Reduction,
                              EffectKind::Exit};
// Effects that the parent must not have: such reads have no other form that sees the child's writes.
constexpr std::array kUncached{EffectKind::Texture, EffectKind::AsyncCopy};

// The largest child's body, in instructions. More would cost the parent registers, and so threads that run at
// a time.
constexpr size_t kMostInstructions = 96;

class Judge {
 public:
  Judge(const ptx::Module& child_module, const ptx::Function& child, const FunctionFacts& parent,
        const Site& site, bool any_order)
      : m_(child_module), child_(child), p_(parent), site_(site), any_order_(any_order) {}

  Found run() {
    if (&m_ != &p_.module) return "it is defined in another unit";
    for (const auto check : {&Judge::check_order, &Judge::check_effects, &Judge::check_code,
                             &Judge::check_parameters, &Judge::check_parent}) {
      if (Found rejection = (this->*check)()) return rejection;
    }
    return std::nullopt;
  }

 private:
  // Earlier launches of the thread must not come later. Neither must launches of other threads, unless the
  // launches of the block may run in any order.
  Found check_order() {
    const uint32_t launch = p_.flow.index_of(site_.launch_call);
    for (const Site& other : p_.sites) {
      const uint32_t before = p_.flow.index_of(other.launch_call);
      const bool is_known =
          before != ControlFlow::npos && launch != ControlFlow::npos && !p_.flow.has_unknown_branch();
      if (!is_known || p_.flow.can_follow(before, launch))
        return fmt::format("its thread may have launched at {} before", ptx::place(other.position));
    }
    const StreamKind stream = stream_kind(site_);
    if (stream == StreamKind::Other || stream == StreamKind::Tail ||
        (stream == StreamKind::Null && !any_order_))
      return "its stream's order is kept";
    return std::nullopt;
  }

  Found check_effects() {
    const CallGraph graph(m_, child_);
    if (graph.functions().size() > 1) return "it calls functions";
    for (const Effect& effect : graph.closure(child_).all()) {
      if (std::ranges::find(kAllowed, effect.kind) != kAllowed.end()) continue;
      return fmt::format("{} ({}) at line {}", to_string(effect.kind), effect.what, m_.line(effect.token));
    }
    return std::nullopt;
  }

  Found check_code() {
    const ControlFlow flow(m_, child_);
    const size_t instructions = flow.instructions().size();
    if (instructions > kMostInstructions)
      return fmt::format("child too big: {} instructions, more than {}", instructions, kMostInstructions);
    for (uint32_t i = 0; i < instructions; ++i) {
      if (flow.in_loop(i) || flow.has_unknown_branch()) return "its threads loop";
    }
    return std::nullopt;
  }

  // All bytes that the child reads of its parameters must be stored by the parent as one operand of that very
  // width.
  Found check_parameters() {
    const RegisterBits registers(m_, child_);
    Found rejection;
    ptx::for_each_statement(child_.body, [&](const ptx::Statement& s) {
      if (rejection || s.kind != ptx::StatementKind::Instruction) return;
      bool names = false;
      for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
        names = names || std::ranges::any_of(child_.parameters,
                                             [&](const ptx::Parameter& p) { return m_.is(t, p.name); });
      }
      const bool reads =
          m_.is(s.head, "ld") && (m_.has_modifier(s, ".param") || m_.has_modifier(s, ".param::entry"));
      if ((names || reads) && !is_passed(s, registers)) {
        rejection = fmt::format("what line {} reads of its parameters is not passed in one register",
                                m_.line(s.head));
      }
    });
    return rejection;
  }

  bool is_passed(const ptx::Statement& s, const RegisterBits& registers) const {
    const auto access = parameter_access(m_, s);
    if (!access || access->is_store) return false;
    const auto parameter = std::ranges::find(child_.parameters, access->name, &ptx::Parameter::name);
    const uint32_t bytes = access->bytes();
    if (parameter == child_.parameters.end() || (bytes != 4 && bytes != 8)) return false;
    uint32_t offset = parameter->offset + access->offset;
    for (const std::string& component : access->components) {
      if (registers.of(component) != 8 * bytes || !is_passed(offset, bytes)) return false;
      offset += bytes;
    }
    return true;
  }

  bool is_passed(uint32_t offset, uint32_t bytes) const {
    size_t touching = 0;
    bool fits = false;
    for (const Argument& argument : site_.arguments) {
      if (argument.offset >= offset + bytes || offset >= argument.offset + argument.bytes) continue;
      ++touching;
      fits = argument.offset == offset && argument.bytes == bytes && is_operand(argument);
    }
    return touching == 1 && fits;
  }

  // True for a literal, or a register that is no wider than the bytes that are stored of it.
  bool is_operand(const Argument& argument) const {
    if (!argument.source.starts_with('%')) return ptx::integer_value(argument.source).has_value();
    return RegisterBits(p_.module, p_.function).of(argument.source) == 8 * argument.bytes;
  }

  Found check_parent() {
    const Effects& effects = p_.calls().closure(p_.function);
    for (const EffectKind kind : kUncached) {
      if (const Effect* effect = effects.find(kind))
        return fmt::format("the parent has {} ({})", to_string(kind), effect->what);
    }
    if (const auto load = noncoherent_load_below(p_.module, p_.function)) {
      return fmt::format("{}, which the parent calls, reads past the coherent caches at line {}",
                         load->function->name, p_.module.line(load->token));
    }
    if (!could_record_at_launch(p_, site_)) return "its arguments are not known at the launch call";
    return std::nullopt;
  }

  const ptx::Module& m_;
  const ptx::Function& child_;
  const FunctionFacts& p_;
  const Site& site_;
  bool any_order_;
};

}  // namespace

ThresholdingVerdict judge_thresholding(const ptx::Module& child_module, const ptx::Function& child,
                                       const Moldable& moldable, const FunctionFacts& parent,
                                       const Site& site, bool any_order, uint32_t threshold) {
  ThresholdingVerdict verdict;
  const FlatVerdict counted = judge_bound(moldable, parent, site, true);
  // If the record is not made at the launch, too little of the child is known earlier.
  const bool is_known = counted.flattening && could_record_at_launch(parent, site);
  if (is_known) verdict.thresholding = Thresholding{counted.flattening->bound, 0};
  if (threshold == 0) return verdict;
  if (const Found rejection = Judge(child_module, child, parent, site, any_order).run()) {
    verdict.why_not = *rejection;
    return verdict;
  }
  if (!verdict.thresholding) verdict.thresholding.emplace();
  verdict.thresholding->most_threads = threshold;
  return verdict;
}

}  // namespace klap::analysis
