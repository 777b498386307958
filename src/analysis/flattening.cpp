#include "analysis/flattening.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/values.h"

namespace klap::analysis {
namespace {

constexpr uint32_t kWarp = 32;

bool is_extension(const ExprNode& n) {
  return n.kind == ExprKind::ZeroExtend || n.kind == ExprKind::SignExtend;
}

// The linear index in 32 or 64 bits: less of it would begin again at 0.
bool is_index(const Expr& e) {
  const ExprNode& n = is_extension(*e) ? *e->operands[0] : *e;
  return n.kind == ExprKind::Opaque && n.name == "i" && n.bits >= 32;
}

// The bound if it is bytes of the parameter block, with the place of these bytes.
struct PlacedBound {
  FlatBound bound;
  uint32_t offset = 0;
};
std::optional<PlacedBound> plain_bound(const Guard& guard) {
  const bool extended = is_extension(*guard.bound);
  const ExprNode& n = extended ? *guard.bound->operands[0] : *guard.bound;
  if (n.kind != ExprKind::Parameter || n.bits < 32) return std::nullopt;
  const bool is_signed = guard.sign == Sign::Signed;
  PlacedBound out;
  out.offset = static_cast<uint32_t>(n.value);
  out.bound.bytes = n.bits / 8;
  out.bound.inclusive = guard.inclusive;
  out.bound.is_signed = extended ? guard.bound->kind == ExprKind::SignExtend : is_signed;
  // 32 bits that are compared as unsigned are compared alike in 64, zeros before them, as signed.
  const bool in_32_bits = guard.bound->bits == 32;
  out.bound.compares_signed = in_32_bits || is_signed;
  return out;
}

// Whether the register that the parent stores has the stored value already where the buffer is asked for.
bool is_known_before(const FunctionFacts& parent, const Site& site, const Argument& argument) {
  const Values& values = parent.values();
  const uint32_t store = values.flow.index_of(argument.store);
  const uint32_t ask = values.flow.index_of(site.get_call);
  if (store == ControlFlow::npos || ask == ControlFlow::npos) return false;
  const uint32_t reg = values.registers.find(store, argument.source);
  if (reg == VirtualRegisters::kNone) return false;
  const VirtualRegister& found = values.registers[reg];
  // Its name must mean the same there.
  if (std::ranges::count(values.registers.all(), found.name, &VirtualRegister::name) != 1) return false;
  const ptx::Statement* scope = values.flow.enclosing(site.get_scope);
  while (scope != nullptr && scope != found.scope) scope = values.flow.enclosing(scope);
  if (scope == nullptr) return false;
  for (uint32_t i = 0; i < values.flow.instructions().size(); ++i) {
    for (const Access& access : values.registers.accesses(i)) {
      if (access.reg == reg && access.written && values.flow.can_follow(ask, i)) return false;
    }
  }
  return true;
}

bool writes(const FunctionFacts& parent, const ptx::Statement& s, const std::string& name) {
  const Registers registers = registers_of(parent.module, s, parent.data.names());
  return std::ranges::find(registers.written, name) != registers.written.end();
}

// For the described form. Between the two calls there is one way.
bool could_wait(const FunctionFacts& parent, const Site& site) {
  const ControlFlow& flow = parent.flow;
  const ptx::Statement* const scope = flow.enclosing(site.launch_scope);
  const uint32_t ask = flow.index_of(site.get_call), launch = flow.index_of(site.launch_call);
  if (flow.enclosing(site.get_scope) != scope || flow.has_unknown_branch() || flow.in_loop(ask)) return false;
  for (const Argument& argument : site.arguments) {
    const uint32_t store = flow.index_of(argument.store);
    if (store == ControlFlow::npos || flow.instructions()[store].scope != scope) return false;
  }
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    if (!flow.can_follow(ask, i) || !flow.can_follow(i, launch)) continue;
    const ptx::Statement& s = *flow.instructions()[i].statement;
    for (const std::string& extent : site.grid) {
      if (writes(parent, s, extent)) return false;
    }
    for (const Argument& argument : site.arguments) {
      if (flow.can_follow(flow.index_of(argument.store), i) && writes(parent, s, argument.source))
        return false;
    }
  }
  return true;
}

// What the parent passes in these bytes, if it is one operand.
const Argument* passed(const Site& site, uint32_t offset, uint32_t bytes) {
  const Argument* found = nullptr;
  for (const Argument& argument : site.arguments) {
    if (argument.offset >= offset + bytes || offset >= argument.offset + argument.bytes) continue;
    if (found != nullptr || argument.offset != offset || argument.bytes != bytes) return nullptr;
    found = &argument;
  }
  return found;
}

// Whether it has its value where the record is made, there being two places for that in the described form.
bool is_known(const FunctionFacts& parent, const Site& site, const Argument& argument, bool may_wait,
              FlatBound& bound) {
  bound.operand = argument.source;
  if (ptx::integer_value(argument.source)) return true;
  // A store takes a register that is wider than what it stores, a move does not.
  const Values& values = parent.values();
  const uint32_t store = values.flow.index_of(argument.store);
  if (store == ControlFlow::npos) return false;
  const uint32_t reg = values.registers.find(store, argument.source);
  if (reg == VirtualRegisters::kNone || values.registers[reg].lanes != 1 ||
      ptx::type_bytes(values.registers[reg].type) != argument.bytes)
    return false;
  if (site.idiom->form != LaunchForm::Described || is_known_before(parent, site, argument)) return true;
  bound.at_launch = true;
  return may_wait && could_wait(parent, site);
}

FlatVerdict with_bound(const Moldable& child, const FunctionFacts& parent, const Site& site, bool may_wait) {
  if (!child.guard) return {std::nullopt, "its threads pass no guard first"};
  const Guard& guard = *child.guard;
  const auto bound = is_index(guard.index) ? plain_bound(guard) : std::nullopt;
  if (!bound) {
    return {std::nullopt,
            fmt::format("its guard is not an index below an argument: if {}", to_string(guard))};
  }
  Flattening out{bound->bound, fmt::format("threads with {}", to_string(guard))};
  const Argument* const argument = passed(site, bound->offset, bound->bound.bytes);
  if (argument == nullptr || !is_known(parent, site, *argument, may_wait, *out.bound)) {
    return {std::nullopt, fmt::format("{} is not known where the launch begins: if {}",
                                      to_string(guard.bound), to_string(guard))};
  }
  return {out, ""};
}

}  // namespace

bool could_record_at_launch(const FunctionFacts& parent, const Site& site) {
  return site.idiom->form == LaunchForm::Documented || could_wait(parent, site);
}

FlatVerdict judge_bound(const Moldable& child, const FunctionFacts& parent, const Site& site, bool may_wait) {
  if (!child.yes()) return {std::nullopt, child.reason};
  return with_bound(child, parent, site, may_wait);
}

FlatVerdict judge_flattening(const Moldable& child, const FunctionFacts& parent, const Site& site,
                             std::optional<uint32_t> block_threads, bool may_wait) {
  FlatVerdict verdict;
  if (child.yes() && child.loops) {
    // Measured: a third slower. Threads of one child often loop alike, and those of two in one warp do not.
    verdict.why_not = "its threads loop";
  } else if (child.yes()) {
    verdict = with_bound(child, parent, site, may_wait);
  } else {
    verdict.why_not = child.reason;
  }
  if (!verdict.flattening && block_threads && *block_threads % kWarp != 0)
    return {Flattening{std::nullopt, "all threads"}, ""};
  return verdict;
}

}  // namespace klap::analysis
