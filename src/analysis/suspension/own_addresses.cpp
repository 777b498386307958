#include "analysis/suspension/own_addresses.h"

#include <algorithm>
#include <set>

#include "analysis/graph/operands.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"

namespace klap::analysis {

namespace {

using ptx::Statement;
using ptx::TokenRange;

// Instructions whose result is one of their operands, or a sum with one of them. A disjunction is a sum where
// compilers use it for addresses: the variable's alignment keeps its bits apart from the other operand's.
bool passes_addresses(std::string_view opcode) {
  static const std::set<std::string_view> opcodes = {"add", "cvt", "cvta", "mad", "mov", "or", "selp", "sub"};
  return opcodes.contains(opcode);
}

bool is_memory_access(std::string_view opcode) {
  return opcode == "ld" || opcode == "st" || opcode == "atom" || opcode == "red";
}

// Functions that keep no address that they are given beyond the call.
bool forgets_arguments(std::string_view callee) {
  return callee == "vprintf" || callee == "free" || callee == "__assertfail" ||
         (idioms().is_device_runtime(callee) && !idioms().is_kind(callee, "launch") &&
          !idioms().is_kind(callee, "copy") && !idioms().is_kind(callee, "fill"));
}

// True for the store of an actual parameter of a call, which `check` looks at where the call is.
bool is_parameter_store(const ptx::Module& m, const Statement& s) {
  return m.has_modifier(s, ".param") && m.text(s.head) == "st";
}

}  // namespace

OwnAddresses::OwnAddresses(const FlowFacts& kernel, const VirtualRegisters& registers,
                           const std::vector<OwnVariable>& variables)
    : kernel_(kernel),
      registers_(registers),
      variables_(variables),
      values_(registers.all().size()),
      is_set_(registers.all().size()) {
  const auto count = static_cast<uint32_t>(kernel.flow.instructions().size());
  // A register changes at most twice, to an address and to a mixture, so this ends.
  for (bool changes = true; changes;) {
    changes = false;
    for (uint32_t i = 0; i < count; ++i) changes = spread(i) || changes;
  }
  for (uint32_t i = 0; i < count && problem_.empty(); ++i) check(i);
}

std::optional<OwnAddress> OwnAddresses::of(uint32_t reg) const {
  const Value& value = values_[reg];
  return value.is_address ? std::optional(value.address) : std::nullopt;
}

std::optional<uint32_t> OwnAddresses::variable(std::string_view name) const {
  const auto found = std::ranges::find(variables_, name, &OwnVariable::name);
  if (found == variables_.end()) return std::nullopt;
  return static_cast<uint32_t>(found - variables_.begin());
}

OwnAddresses::Value OwnAddresses::joined(const Value& a, const Value& b) {
  if (a == b) return a;
  return {true, true, a.is_address ? a.address : b.address};
}

// An operand is a register's value, a variable's address, or the sum of one and a number.
OwnAddresses::Value OwnAddresses::value_of(uint32_t instruction, TokenRange operand) const {
  const ptx::Module& m = kernel_.module;
  Value value;
  for (uint32_t t = operand.first; t < operand.last; ++t) {
    Value here;
    if (const auto found = variable(m.text(t))) {
      here = {true, false, {*found, false}};
    } else if (const uint32_t reg = registers_.find(instruction, m.text(t)); reg != VirtualRegisters::kNone) {
      here = values_[reg];
    }
    if (!here.is_address) continue;
    value = value.is_address ? joined(value, here) : here;
  }
  return value;
}

// The value that an instruction gives its result, if it gives it one.
OwnAddresses::Value OwnAddresses::result_of(uint32_t instruction) const {
  const ptx::Module& m = kernel_.module;
  const Statement& s = *kernel_.flow.instructions()[instruction].statement;
  const std::string_view opcode = m.text(s.head);
  if (!passes_addresses(opcode)) return {};
  Value sum;
  size_t addresses = 0;
  for (size_t i = 1; i < s.operands.size(); ++i) {
    const Value value = value_of(instruction, s.operands[i]);
    if (!value.is_address) continue;
    sum = addresses++ == 0 ? value : joined(sum, value);
  }
  if (addresses == 0) return {};
  const bool is_difference = opcode == "sub" && addresses == 2 && !sum.is_mixed;
  if (is_difference) return {};
  const bool is_choice = opcode == "selp";
  // One address can be added to something else, but not subtracted from it or multiplied.
  const bool is_first = opcode != "sub" || value_of(instruction, s.operands[1]).is_address;
  const bool is_addend = opcode != "mad" || (value_of(instruction, s.operands[3]).is_address);
  if ((addresses > 1 || is_choice) && !(is_choice && addresses == 2)) sum.is_mixed = true;
  if (!is_first || !is_addend) sum.is_mixed = true;
  const auto is_vector = [&m](TokenRange operand) { return m.is(operand.first, "{"); };
  if (std::ranges::any_of(s.operands, is_vector)) sum.is_mixed = true;  // parts of an address
  if (opcode == "cvta" && !sum.is_mixed) {
    const bool to_space = m.has_modifier(s, ".to");
    if (sum.address.is_generic != to_space) sum.is_mixed = true;
    sum.address.is_generic = !to_space;
  }
  return sum;
}

// True if it changes what is known of a register. Nothing is known of a result whose operands are not known
// yet: they may turn out to be addresses.
bool OwnAddresses::spread(uint32_t instruction) {
  const auto is_unknown = [this](const Access& access) { return access.read && !is_set_[access.reg]; };
  const std::string_view opcode =
      kernel_.module.text(kernel_.flow.instructions()[instruction].statement->head);
  if (passes_addresses(opcode) && std::ranges::any_of(registers_.accesses(instruction), is_unknown))
    return false;
  const Value result = result_of(instruction);
  bool changes = false;
  for (const Access& access : registers_.accesses(instruction)) {
    if (!access.written) continue;
    Value& value = values_[access.reg];
    const Value now = is_set_[access.reg] ? joined(value, result) : result;
    changes = changes || !is_set_[access.reg] || !(now == value);
    value = now;
    is_set_[access.reg] = true;
  }
  return changes;
}

void OwnAddresses::refuse(uint32_t instruction, const char* why) {
  const Statement& s = *kernel_.flow.instructions()[instruction].statement;
  problem_ = std::string(why) + " (" + kernel_.module.place(s.head) + ")";
}

void OwnAddresses::check(uint32_t instruction) {
  const ptx::Module& m = kernel_.module;
  const FlatInstruction& flat = kernel_.flow.instructions()[instruction];
  const Statement& s = *flat.statement;
  const std::string_view opcode = m.text(s.head);
  const auto is_address = [&](size_t operand) {
    return value_of(instruction, s.operands[operand]).is_address;
  };
  if (is_parameter_store(m, s)) {
    if (!is_address(1)) return;
    for (const Statement& other : flat.scope->body) {
      const auto call = parse_call(m, other, kernel_.data.names());
      if (call && call->direct && forgets_arguments(call->callee)) return;
    }
    return refuse(instruction, "an address of a local or shared variable is passed to a function");
  }
  if (is_memory_access(opcode)) {
    const size_t address = opcode == "st" || opcode == "red" ? 0 : 1;
    for (size_t i = 0; i < s.operands.size(); ++i) {
      if (i != address && is_address(i) && !(i == 0 && opcode != "st" && opcode != "red"))
        return refuse(instruction, "an address of a local or shared variable is stored in memory");
    }
    return;
  }
  if (passes_addresses(opcode) || opcode == "setp" || opcode == "isspacep" || opcode == "bra") return;
  for (size_t i = 0; i < s.operands.size(); ++i) {
    if (is_address(i))
      return refuse(instruction, "an address of a local or shared variable is computed with");
  }
}

}  // namespace klap::analysis
