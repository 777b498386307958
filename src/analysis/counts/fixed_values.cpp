#include "analysis/counts/fixed_values.h"

#include <algorithm>
#include <array>

#include "analysis/effects/effects.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

// The bytes that a load reads; all that follow if its type does not say.
uint64_t bytes_of(const ptx::Module& module, const Statement& load) {
  const uint64_t element = ptx::type_bytes(module.text(load.modifiers.last - 1));
  constexpr uint64_t kRest = uint64_t{1} << 32;
  return element == 0 ? kRest : element * components(module, load.operands[0]).size();
}

// The parameter that a load reads by its name. Null: it reads something else.
const ptx::Parameter* parameter_of(const FunctionFacts& kernel, const Statement& load) {
  if (!kernel.module.has_modifier(load, ".param") || load.operands.size() != 2) return nullptr;
  const auto address = parse_address(kernel.module, load.operands[1]);
  if (!address) return nullptr;
  const auto& all = kernel.function.parameters;
  const auto found = std::ranges::find(all, address->base, &ptx::Parameter::name);
  return found == all.end() ? nullptr : &*found;
}

// A register, and not the parts of one.
bool is_single(const ptx::TokenRange& operand) { return operand.last - operand.first == 1; }

}  // namespace

bool OpenParameters::is_open(const ptx::Parameter& parameter, uint64_t first, uint64_t bytes) const {
  if (parameters.contains(parameter.offset)) return true;
  return std::ranges::any_of(
      words, [&](uint64_t word) { return word < first + bytes && first < word + kWordBytes; });
}

FixedValues::FixedValues(const FunctionFacts& kernel, const OpenParameters& open_parameters)
    : kernel_(kernel), open_parameters_(open_parameters), dominance_(kernel.flow) {
  while (true) {
    find_open_registers();
    if (calls_are_fixed_ && !has_repeatable_calls()) {
      calls_are_fixed_ = local_memory_is_fixed_ = false;
    } else if (local_memory_is_fixed_ && !has_fixed_local_memory()) {
      local_memory_is_fixed_ = false;
    } else {
      return;
    }
  }
}

// A register written under an open condition is open, and may make more conditions open.
void FixedValues::find_open_registers() {
  const auto depending = [&](const std::function<bool(const Statement&)>& is_origin) {
    return dependents(kernel_.module, kernel_.flow, kernel_.data.names(), is_origin,
                      [&](const Statement& s) { return is_comparison_with_null(s); });
  };
  size_t before = 0;
  do {
    before = open_.size() + unlike_.size();
    open_ = depending([&](const Statement& s) { return is_source(s) || is_written_openly(s); });
    unlike_ = depending([&](const Statement& s) {
      if (is_written_openly(s)) return true;
      return is_source(s) ? !is_address_load(s) : !reads_fixed(s) && !is_address_arithmetic(s);
    });
  } while (open_.size() + unlike_.size() != before);
}

bool FixedValues::is_run_as_fixed(const Statement& instruction) const {
  if (!dominance_.control_known()) return false;
  if (instruction.predicated && !is_fixed(kernel_.module.text(instruction.predicate))) return false;
  const uint32_t block = kernel_.flow.instructions()[kernel_.flow.index_of(&instruction)].block;
  return std::ranges::all_of(dominance_.deciding_branches(block),
                             [&](uint32_t branch) { return decides_as_fixed(branch); });
}

// The choice at the end of a block.
bool FixedValues::decides_as_fixed(uint32_t block) const {
  const uint32_t last = kernel_.flow.blocks()[block].last - 1;
  const Statement& s = *kernel_.flow.instructions()[last].statement;
  if (s.predicated && !is_fixed(kernel_.module.text(s.predicate))) return false;
  return !kernel_.module.is(s.head, "brx") || s.operands.empty() ||
         is_fixed(kernel_.module.text(s.operands[0].first));
}

// True if the instruction's result depends on more than its operands.
bool FixedValues::is_source(const Statement& s) const {
  const ptx::Module& m = kernel_.module;
  for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
    const std::string_view text = m.text(t);
    if (m.tokens[t].kind == ptx::TokenKind::Identifier && text[0] == '%' &&
        !kernel_.data.names().contains(text) && !is_virtual_special_register(text))
      return true;
  }
  if (m.is(s.head, "ld")) return !is_fixed_load(s);
  if (m.is(s.head, "call")) return !calls_are_fixed_;
  return !instruction_effects(m, s).empty();
}

bool FixedValues::is_fixed_load(const Statement& load) const {
  if (is_fixed_parameter(load)) return true;
  const ptx::Module& m = kernel_.module;
  if (!m.has_modifier(load, ".param")) return local_memory_is_fixed_ && is_local_memory(load);
  const auto address = load.operands.size() == 2 ? parse_address(m, load.operands[1]) : std::nullopt;
  // All but the kernel's own parameters are results of calls, in the scopes of these.
  return calls_are_fixed_ && address && !kernel_.data.names().is_register(address->base) &&
         parameter_of(kernel_, load) == nullptr;
}

// The byte of the kernel's parameters that the load begins at; nothing if it lies before the parameter that
// the load names, or if the load names none.
std::optional<uint32_t> FixedValues::first_byte(const Statement& load) const {
  const ptx::Parameter* const parameter = parameter_of(kernel_, load);
  if (parameter == nullptr) return std::nullopt;
  const int64_t offset = parse_address(kernel_.module, load.operands[1])->offset;
  return offset < 0 ? std::nullopt : std::optional(parameter->offset + static_cast<uint32_t>(offset));
}

// A word of the parameters that is open, as a whole.
bool FixedValues::is_address_load(const Statement& load) const {
  if (!kernel_.module.is(load.head, "ld")) return false;
  const auto first = first_byte(load);
  return first && is_single(load.operands[0]) &&
         bytes_of(kernel_.module, load) == OpenParameters::kWordBytes &&
         !open_parameters_.parameters.contains(parameter_of(kernel_, load)->offset) &&
         open_parameters_.words.contains(*first);
}

// True if the result is an address where an operand that is not fixed is one.
bool FixedValues::is_address_arithmetic(const Statement& s) const {
  const ptx::Module& m = kernel_.module;
  const auto operand = [&](size_t i) { return m.text(s.operands[i].first); };
  if (s.predicated || s.operands.size() < 2) return false;
  if (!is_single(s.operands[0]) || !is_single(s.operands[1])) return false;
  if (m.is(s.head, "mov") || m.is(s.head, "cvta")) return s.operands.size() == 2;
  if (s.operands.size() < 3) return false;
  if (m.is(s.head, "add")) return is_fixed(operand(1)) || is_fixed(operand(2));
  if (m.is(s.head, "sub")) return is_fixed(operand(2));
  constexpr std::array kAlignments = {"-16", "-32", "-64", "-128", "-256", "-512"};
  return m.is(s.head, "and") && std::ranges::find(kAlignments, m.text(s.operands[2])) != kAlignments.end();
}

bool FixedValues::is_comparison_with_null(const Statement& s) const {
  const ptx::Module& m = kernel_.module;
  const bool is_equality = m.has_modifier(s, ".eq") || m.has_modifier(s, ".ne");
  if (!m.is(s.head, "setp") || s.predicated || !is_equality || s.operands.size() != 3) return false;
  const std::string_view a = m.text(s.operands[1]), b = m.text(s.operands[2]);
  return (b == "0" && is_alike(a)) || (a == "0" && is_alike(b));
}

bool FixedValues::is_fixed_parameter(const Statement& load) const {
  const auto first = first_byte(load);
  return first &&
         !open_parameters_.is_open(*parameter_of(kernel_, load), *first, bytes_of(kernel_.module, load));
}

bool FixedValues::is_written_openly(const Statement& s) const {
  const uint32_t index = kernel_.flow.index_of(&s);
  if (open_.empty() || index >= kernel_.flow.instructions().size()) return false;
  const Registers registers = registers_of(kernel_.module, s, kernel_.data.names());
  const bool is_joined = std::ranges::any_of(
      registers.written, [&](std::string_view reg) { return kernel_.data.definitions(reg).size() > 1; });
  return is_joined && !is_run_as_fixed(s);
}

bool FixedValues::reads_fixed(const Statement& s) const {
  const Registers registers = registers_of(kernel_.module, s, kernel_.data.names());
  return std::ranges::all_of(registers.read, [&](std::string_view reg) { return is_fixed(reg); });
}

// ---- calls ----

// True for a call whose result and whose writes to local memory are the same for the same operands and
// errors.
bool FixedValues::is_repeatable(const Statement& statement) const {
  const auto is_statement = [&](const auto& call) { return call.call == &statement; };
  if (std::ranges::any_of(kernel_.copies, is_statement)) return true;
  if (std::ranges::any_of(kernel_.error_queries, [&](const ErrorQuery& query) {
        return is_statement(query) && query.problem.empty();
      }))
    return true;
  // The buffer's address is only compared with null (sites.h), which it is if the launch is refused.
  if (std::ranges::any_of(kernel_.sites, [&](const Site& site) {
        return site.understood() && (site.get_call == &statement || site.launch_call == &statement);
      }))
    return true;
  const auto call = parse_call(kernel_.module, statement, kernel_.data.names());
  if (!call || !call->direct) return false;
  const std::string_view function = runtime_function(kernel_.module, call->callee);
  constexpr std::array kQueries = {"query", "function-query", "occupancy"};
  return std::ranges::any_of(kQueries, [&](const char* kind) { return idioms().is_kind(function, kind); });
}

// The place of memory does not decide whether it can be copied or filled.
bool FixedValues::passes_alike(const Statement& store) const {
  const std::string_view type = kernel_.module.text(store.modifiers.last - 1);
  const bool may_be_address = ptx::type_bytes(type) == OpenParameters::kWordBytes && !store.predicated;
  return reads_fixed(store) ||
         (may_be_address && store.operands.size() == 2 && is_alike(kernel_.module.text(store.operands[1])));
}

bool FixedValues::has_repeatable_calls() const {
  const ptx::Module& m = kernel_.module;
  return std::ranges::all_of(kernel_.flow.instructions(), [&](const FlatInstruction& instruction) {
    const Statement& s = *instruction.statement;
    if (m.is(s.head, "st") && m.has_modifier(s, ".param")) return passes_alike(s) && is_run_as_fixed(s);
    return !m.is(s.head, "call") || (is_repeatable(s) && is_run_as_fixed(s));
  });
}

// ---- local memory ----

const MemoryEffects& FixedValues::memory() const {
  if (!memory_) memory_ = std::make_unique<const MemoryEffects>(kernel_);
  return *memory_;
}

// Kernels without local variables have none, and most do not.
bool FixedValues::is_local_memory(const Statement& load) const {
  const LocalNames& names = kernel_.data.names();
  const auto is_local = [&](const std::string& variable) { return !names.is_shared(variable); };
  if (load.operands.size() != 2 || std::ranges::none_of(names.variables(), is_local)) return false;
  const auto& uses = memory().uses_of(load);
  return !uses.empty() &&
         std::ranges::all_of(uses, [](const auto& use) { return use.first.kind == MemoryRoot::Kind::Local; });
}

bool FixedValues::has_fixed_local_memory() const {
  const ptx::Module& m = kernel_.module;
  const auto instructions = kernel_.flow.instructions();
  if (std::ranges::none_of(instructions, [&](const FlatInstruction& instruction) {
        const Statement& s = *instruction.statement;
        return m.is(s.head, "ld") && !m.has_modifier(s, ".param") && is_local_memory(s);
      }))
    return true;
  const MemoryRoot local{.kind = MemoryRoot::Kind::Local, .name = "", .space = "local"};
  return std::ranges::all_of(instructions, [&](const FlatInstruction& instruction) {
    const Statement& s = *instruction.statement;
    const bool writes = std::ranges::any_of(memory().uses_of(s), [&](const auto& use) {
      return use.second.changes() && may_overlap(use.first, local);
    });
    if (!writes || m.is(s.head, "call")) return true;
    return m.is(s.head, "st") && reads_fixed(s) && is_run_as_fixed(s);
  });
}

}  // namespace klap::analysis
