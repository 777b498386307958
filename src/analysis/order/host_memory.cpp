#include "analysis/order/host_memory.h"

#include <algorithm>
#include <utility>

#include "analysis/expressions/expression_ranges.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

bool is_parameter(const ExprNode& node) { return node.kind == ExprKind::Parameter; }

// Sums up what is added to a pointer, and refuses what may be subtracted from it.
class WayUp {
 public:
  WayUp(const FunctionFacts& child, const LaunchTerms& terms, uint32_t pointer)
      : child_(child), terms_(terms), pointer_(pointer) {}

  // True if the value is not negative where none of numbers() is.
  bool is_up(const Expr& value) {
    if (!value.known()) return false;
    if (value->range.never_negative()) return true;
    if (value->kind != ExprKind::Sum) return is_atom_up(value);
    return std::ranges::all_of(value->terms, [&](const Term& term) {
      return as_signed(term.coefficient, value->bits) >= 0 &&
             std::ranges::all_of(term.factors, [&](const Expr& factor) { return is_up(factor); });
    });
  }

  std::set<HostNumber>& numbers() { return numbers_; }

 private:
  bool is_atom_up(const Expr& atom) {
    switch (atom->kind) {
      case ExprKind::Constant:
        return false;
      case ExprKind::Parameter:
        return is_number_up(*atom);
      case ExprKind::Opaque:
      case ExprKind::Merged:
        return is_result_up(*atom);
      case ExprKind::ZeroExtend:
        return true;
      case ExprKind::Truncate:
        return !any_leaf(atom, is_parameter);
      case ExprKind::And:
        return std::ranges::any_of(atom->operands, [&](const Expr& operand) { return is_up(operand); });
      default:  // operations that give no negative number for numbers that are not negative
        return std::ranges::all_of(atom->operands, [&](const Expr& operand) { return is_up(operand); });
    }
  }

  bool is_number_up(const ExprNode& parameter) {
    const auto offset = static_cast<uint32_t>(parameter.value);
    if (offset != pointer_) numbers_.insert({offset, parameter.bits / 8});
    return true;
  }

  // A register of which one of several definitions gives the value: a loop counts with it.
  bool is_result_up(const ExprNode& leaf) {
    const auto merged = LaunchTerms::merged_of(leaf);
    if (!merged) return true;
    const Values& values = child_.values();
    const uint32_t reg = values.registers.find(merged->instruction, merged->name);
    if (reg == VirtualRegisters::kNone) return false;
    const auto origins = values.reaching.origins(merged->instruction, reg);
    return !origins.entry && std::ranges::all_of(origins.definitions, [&](uint32_t definition) {
      if (!followed_.insert({definition, reg}).second) return true;
      return is_up(terms_.of(values.symbolic.written(definition, reg)));
    });
  }

  const FunctionFacts& child_;
  const LaunchTerms& terms_;
  uint32_t pointer_;
  std::set<HostNumber> numbers_;
  std::set<std::pair<uint32_t, uint32_t>> followed_;  // definitions and registers
};

}  // namespace

std::optional<std::set<HostMemory>> memory_of_parent(const FunctionFacts& parent,
                                                     const std::set<MemoryRoot>& roots) {
  std::set<HostMemory> out;
  for (const MemoryRoot& root : roots) {
    if (root.kind == MemoryRoot::Kind::Symbol) {
      out.insert({0, root.name});
    } else if (root.kind == MemoryRoot::Kind::Parameter) {
      out.insert({parent.function.parameters[root.parameter].offset + root.offset, ""});
    } else {
      return std::nullopt;
    }
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

bool add_distances(std::set<HostMemory>& memory, const DistanceScope& in, const Expr& address) {
  std::set<HostMemory> out;
  for (HostMemory part : memory) {
    if (part.variable.empty()) {
      auto distances = host_distances(in, address, part.parameter_offset);
      if (!distances) return false;
      part.distances.merge(*distances);
    }
    out.insert(std::move(part));
  }
  memory = std::move(out);
  return true;
}

std::optional<std::set<HostMemory>> memory_of_parent(const FunctionFacts& parent,
                                                     const MemoryAccess& access) {
  auto out = memory_of_parent(parent, access.roots);
  if (!out || !access.address) return out;
  const ptx::Statement& s = *parent.flow.instructions()[access.instruction].statement;
  const Expr address = parent.values().symbolic.address(access.instruction, s.operands[*access.address]);
  return add_distances(*out, {&parent}, address) ? out : std::nullopt;
}

std::optional<std::set<HostMemory>> memory_of_argument(const FunctionFacts& parent,
                                                       const MemoryEffects& effects,
                                                       const Argument& argument) {
  auto out = memory_of_parent(parent, effects.roots_of(argument.source));
  if (!out || argument.store == nullptr) return out;
  const uint32_t store = parent.flow.index_of(argument.store);
  const Expr value = parent.values().symbolic.read(store, argument.source, 8 * argument.bytes);
  return add_distances(*out, {&parent}, value) ? out : std::nullopt;
}

std::optional<std::set<HostNumber>> numbers_that_lead_upwards(const FunctionFacts& child,
                                                              const LaunchTerms& terms, const Expr& address,
                                                              const HostMemory& memory) {
  if (!memory.variable.empty()) return std::set<HostNumber>();
  if (!address.known()) return std::nullopt;
  const bool has_pointer = std::ranges::any_of(terms_of(address), [&](const Term& term) {
    return term.coefficient == 1 && term.factors.size() == 1 && is_parameter(*term.factors[0]) &&
           term.factors[0]->value == memory.parameter_offset;
  });
  WayUp way(child, terms, memory.parameter_offset);
  if (!has_pointer || !way.is_up(address)) return std::nullopt;
  return std::move(way.numbers());
}

}  // namespace klap::analysis
