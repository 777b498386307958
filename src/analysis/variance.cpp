#include "analysis/variance.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "analysis/shared_flow.h"
#include "analysis/values.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

// Memory that children have in common is neither a thread's nor a block's own.
bool is_private(const Module& m, const Statement& s) {
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    if (m.is(t, ".local") || m.text(t).starts_with(".shared")) return true;
  }
  return false;
}

bool is_plain_load(const Module& m, const Statement& s) {
  return m.is(s.head, "ld") && !is_private(m, s) && !m.has_modifier(s, ".param") &&
         !m.has_modifier(s, ".param::entry") && !m.has_modifier(s, ".nc") && !m.has_modifier(s, ".const");
}

bool is_plain_store(const Module& m, const Statement& s) {
  return m.is(s.head, "st") && !is_private(m, s) && !m.has_modifier(s, ".param") &&
         !m.has_modifier(s, ".param::func");
}

// One function's instructions with forward propagation of a property from sources over registers.
class Propagation {
 public:
  Propagation(const Module& module, const Function& function)
      : m(module), flow(module, function), data(module, function, flow), shared(module, flow) {}

  [[nodiscard]] RegisterSet dependents_of(const std::function<bool(const Statement&)>& is_source) const {
    return dependents(m, flow, data.names(), is_source);
  }

  // Where an address comes from, through moves, casts and constant offsets: "symbol+8", "parameter name+8";
  // "?" if that is not known.
  std::string origin(std::string_view base, int64_t offset, int depth = 0) const {
    if (!data.names().is_register(base)) return fmt::format("{}+{}", base, offset);
    const auto& writers = data.definitions(base);
    if (depth > 16 || writers.size() != 1 || data.is_ambiguous(base)) return "?";
    const Statement& s = *flow.instructions()[writers[0]].statement;
    if (s.predicated || s.operands.size() < 2) return "?";
    const std::string_view source = m.text(s.operands[1]);
    if (m.is(s.head, "ld") && s.operands.size() == 2) {
      const auto address = parse_address(m, s.operands[1]);
      const bool parameter =
          m.has_modifier(s, ".param") && address && !data.names().is_register(address->base);
      return parameter ? fmt::format("({}+{})+{}", address->base, address->offset, offset) : "?";
    }
    if ((m.is(s.head, "mov") || m.is(s.head, "cvta")) && s.operands.size() == 2)
      return origin(source, offset, depth + 1);
    if (m.is(s.head, "add") && s.operands.size() == 3) {
      const auto constant = data.constant(m.text(s.operands[2]));
      if (constant) return origin(source, offset + static_cast<int64_t>(*constant), depth + 1);
    }
    return "?";
  }

  // True if the two addresses are computed from different pointers in parameters or variables: arithmetic on
  // a pointer stays in the object that it points to.
  bool have_different_roots(std::string_view a, std::string_view b) const {
    const Roots of_a = roots(a), of_b = roots(b);
    const auto is_known = [](const Roots& roots) { return !roots.empty() && !roots.contains("?"); };
    return is_known(of_a) && is_known(of_b) &&
           std::ranges::none_of(of_a, [&](const std::string& root) { return of_b.contains(root); });
  }

  // True if the address lies in the thread's own local memory.
  bool is_local(const Address& address) const {
    const std::string from = origin(address.base, address.offset);
    const std::string name = from.substr(0, from.find('+'));
    return data.names().variables().contains(name);
  }

  const Module& m;
  ControlFlow flow;
  DataFlow data;
  SharedFlow shared;

 private:
  // What a register may have been computed from that can be a pointer: "(parameter+8)", a variable's name;
  // "?" for what is not known.
  using Roots = std::set<std::string>;
  Roots roots(std::string_view base) const {
    Roots out;
    std::set<std::string_view> seen;
    std::vector<std::string_view> work = {base};
    while (!work.empty()) {
      const std::string_view name = work.back();
      work.pop_back();
      if (!seen.insert(name).second) continue;
      if (!data.names().is_register(name)) {
        if (!name.starts_with('%')) out.emplace(name);  // a special register is no pointer
        continue;
      }
      const auto& writers = data.definitions(name);
      if (writers.empty() || data.is_ambiguous(name)) out.emplace("?");
      for (const uint32_t writer : writers) add_sources(*flow.instructions()[writer].statement, out, work);
    }
    return out;
  }

  // A value narrower than an address is no pointer.
  void add_sources(const Statement& s, Roots& out, std::vector<std::string_view>& work) const {
    const bool loads = m.is(s.head, "ld");
    if (loads && ptx::type_bytes(m.text(s.modifiers.last - 1)) < 8) return;
    const auto address = loads && s.operands.size() == 2 ? parse_address(m, s.operands[1]) : std::nullopt;
    if (address && m.has_modifier(s, ".param") && !data.names().is_register(address->base)) {
      out.insert(fmt::format("({}+{})", address->base, address->offset));
    } else if (loads || !instruction_effects(m, s).empty() || m.is(s.head, "call")) {
      out.emplace("?");
    } else {
      for (size_t n = 1; n < s.operands.size(); ++n) {
        for (uint32_t t = s.operands[n].first; t < s.operands[n].last; ++t) {
          const bool is_name = m.tokens[t].kind == ptx::TokenKind::Identifier;
          if (is_name && !m.text(t).starts_with(".")) work.push_back(m.text(t));
        }
      }
    }
  }
};

int64_t loaded_bytes(const Module& m, const Statement& s) {
  const int64_t lanes = m.has_modifier(s, ".v4") ? 4 : m.has_modifier(s, ".v2") ? 2 : 1;
  return lanes * ptx::type_bytes(m.text(s.modifiers.last - 1));
}

std::optional<Address> memory_operand(const Module& m, const Statement& s) {
  const size_t index = m.is(s.head, "st") ? 0 : 1;
  return index < s.operands.size() ? parse_address(m, s.operands[index]) : std::nullopt;
}

// Loads and stores of one function that may touch memory which all children share.
class SharedUpdates {
 public:
  SharedUpdates(const Module& module, const Function& function, const ParameterRanges& varying)
      : p_(module, function), function_(function), varying_(varying) {
    varying_registers_ = p_.dependents_of([&](const Statement& s) { return is_varying_source(s); });
    if (!may_launch(module, function, launch_names(module))) return;
    for (const Site& site : find_sites(module, function, p_.flow, p_.data)) {
      for (const Argument& argument : site.arguments) argument_stores_.insert(argument.store);
    }
  }

  std::optional<std::string> find() const {
    const auto& instructions = p_.flow.instructions();
    for (uint32_t store = 0; store < instructions.size(); ++store) {
      if (!is_plain_store(p_.m, *instructions[store].statement) || !is_common(*instructions[store].statement))
        continue;
      for (uint32_t load = 0; load < instructions.size(); ++load) {
        if (!is_plain_load(p_.m, *instructions[load].statement) || !is_common(*instructions[load].statement))
          continue;
        if (!updates(load, store)) continue;
        return fmt::format("{} stores what {} loaded, at an address that no argument sets apart",
                           p_.m.place(instructions[store].statement->head),
                           p_.m.place(instructions[load].statement->head));
      }
    }
    return std::nullopt;
  }

 private:
  bool is_varying_source(const Statement& s) const {
    // Slots taken by atomics are distinct, but those of shared memory only within one child's block.
    if (p_.m.is(s.head, "atom")) return !p_.shared.may_touch(s);
    if (!p_.m.is(s.head, "ld") || s.operands.size() != 2) return false;
    const auto address = parse_address(p_.m, s.operands[1]);
    if (!address) return false;
    const int64_t bytes = loaded_bytes(p_.m, s);
    for (const ptx::Parameter& parameter : function_.parameters) {
      if (parameter.name != address->base) continue;
      const int64_t at = parameter.offset + address->offset;
      for (const auto& [offset, size] : varying_) {
        if (at < int64_t{offset} + size && int64_t{offset} < at + bytes) return true;
      }
    }
    return false;
  }

  // True if nothing shows that different children use different addresses here.
  bool is_common(const Statement& s) const {
    if (argument_stores_.contains(&s)) return false;  // every launch has a buffer of its own
    const auto address = memory_operand(p_.m, s);
    if (!address || p_.is_local(*address)) return false;
    // That one of the registers of this name varies says nothing about the one meant here.
    return !varying_registers_.contains(address->base) || p_.data.is_ambiguous(address->base);
  }

  // True if what `store` writes, or whether it writes to the same place, depends on `load`.
  bool updates(uint32_t load, uint32_t store) const {
    const auto& instructions = p_.flow.instructions();
    const Statement& from = *instructions[load].statement;
    const Statement& to = *instructions[store].statement;
    const auto [known, is_new] = dependents_.try_emplace(load);
    if (is_new) known->second = registers_after(load);
    const RegisterSet& dependent = known->second;
    for (std::string& component : components(p_.m, to.operands[1])) {
      if (dependent.contains(component)) return true;
    }
    const auto a = memory_operand(p_.m, from), b = memory_operand(p_.m, to);
    const std::string origin_a = p_.origin(a->base, a->offset), origin_b = p_.origin(b->base, b->offset);
    if (origin_a != origin_b && origin_a != "?" && origin_b != "?") return false;
    if (p_.have_different_roots(a->base, b->base)) return false;
    for (uint32_t i = 0; i < instructions.size(); ++i) {
      const Statement& s = *instructions[i].statement;
      const bool decides = s.predicated && dependent.contains(p_.m.text(s.predicate));
      if (decides && (i == store || p_.flow.can_follow(i, store))) return true;
    }
    return false;
  }

  // Those that depend on what the instruction loads, also by way of another thread of the block.
  RegisterSet registers_after(uint32_t load) const {
    std::set<const Statement*> sources = {p_.flow.instructions()[load].statement};
    for (uint32_t i : p_.shared.loads_after({load})) sources.insert(p_.flow.instructions()[i].statement);
    return p_.dependents_of([&](const Statement& s) { return sources.contains(&s); });
  }

  Propagation p_;
  const Function& function_;
  const ParameterRanges& varying_;
  RegisterSet varying_registers_;
  std::set<const Statement*> argument_stores_;          // of launches that the function itself makes
  mutable std::map<uint32_t, RegisterSet> dependents_;  // of loads
};

}  // namespace

namespace {

constexpr uint64_t kThreadsTried = 64;

bool is_symbol(const ExprNode& n) { return n.kind == ExprKind::Opaque || n.kind == ExprKind::Merged; }

Expr for_thread(const Expr& e, uint64_t thread) {
  return substitute(e, [thread](const Expr& part) -> std::optional<Expr> {
    if (part->kind != ExprKind::Special || part->name != "tid.x") return std::nullopt;
    return Expr::constant(thread, part->bits);
  });
}

// True if two threads of one block have the same value for certain: it is uniform at least in a warp, one of
// a few values that are, or comes out alike for two of the first threads (`threadIdx.x / 2`). Values from
// memory, and what is not known, are not judged here.
bool repeats(const SiteOperand& operand) {
  if (operand.uniform != Uniform::Thread) return true;
  const auto& choices = operand.value.choices;
  const bool computed =
      std::none_of(choices.begin(), choices.end(), [](const Expr& e) { return any_leaf(e, is_symbol); });
  if (!operand.value.known() || !computed) return false;
  std::vector<Expr> seen;
  for (uint64_t thread = 0; thread < kThreadsTried; ++thread) {
    for (const Expr& choice : choices) {
      Expr value = for_thread(choice, thread);
      if (thread > 0 && std::find(seen.begin(), seen.end(), value) != seen.end()) return true;
      seen.push_back(std::move(value));
    }
  }
  return false;
}

}  // namespace

ParameterRanges varying_parameters(const FunctionFacts& parent, const Site& site, const Function& child) {
  const auto is_source = [&](const Statement& s) {
    if (parent.module.is(s.head, "atom")) return true;
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      const std::string_view text = parent.module.text(t);
      if (text == "%tid" || text == "%laneid") return true;
    }
    return false;
  };
  const RegisterSet varying = dependents(parent.module, parent.flow, parent.data.names(), is_source);
  ParameterRanges out;
  const SiteValues values = site_values(parent.values(), site);
  for (size_t i = 0; i < site.arguments.size(); ++i) {
    const Argument& argument = site.arguments[i];
    const bool varies = varying.contains(argument.source) && !parent.data.is_ambiguous(argument.source);
    const bool told_apart = i < values.arguments.size() && !repeats(values.arguments[i].operand);
    if (varies && told_apart && argument.offset < child.parameter_bytes) {
      out.emplace_back(argument.offset, argument.bytes);
    }
  }
  return out;
}

std::optional<std::string> shared_update(const Module& module, const Function& child,
                                         const CallClosure& closure, const ParameterRanges& varying) {
  if (auto found = SharedUpdates(module, child, varying).find()) return found;
  static const ParameterRanges kUnknown;  // what a called function receives is not followed
  for (const Function* callee : closure.functions) {
    if (auto found = SharedUpdates(module, *callee, kUnknown).find()) return callee->name + ": " + *found;
  }
  return std::nullopt;
}

}  // namespace klap::analysis
