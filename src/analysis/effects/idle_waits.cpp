#include "analysis/effects/idle_waits.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "analysis/facts/flow_facts.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"

namespace klap::analysis {

namespace {

using ptx::Function;
using ptx::Module;

// Instructions that change registers and the thread's place alone, and read nothing that others could change.
bool stays_in_thread(const Module& m, const ptx::Statement& instruction) {
  static const std::set<std::string_view> opcodes = {
      "abs",   "add",  "addc", "and",  "bfe",  "bfi",  "bra",  "cnot", "copysign", "cvt",  "cvta",
      "div",   "exit", "fma",  "lop3", "mad",  "madc", "max",  "min",  "mov",      "mul",  "mul24",
      "mad24", "neg",  "not",  "or",   "popc", "prmt", "rem",  "ret",  "sad",      "selp", "set",
      "setp",  "shf",  "shl",  "shr",  "slct", "sub",  "subc", "xor"};
  const std::string_view opcode = m.text(instruction.head);
  return opcodes.contains(opcode) || (opcode == "ld" && m.has_modifier(instruction, ".param"));
}

std::vector<Call> calls_of(const FlowFacts& kernel) {
  std::vector<Call> calls;
  for (const FlatInstruction& each : kernel.flow.instructions()) {
    if (const auto call = parse_call(kernel.module, *each.statement, kernel.data.names()))
      calls.push_back(*call);
  }
  return calls;
}

bool is_wait(const Call& call) { return call.direct && idioms().is_kind(call.callee, "wait"); }

// True if none of a kernel's calls can launch anything.
bool launches_nothing(const std::vector<Call>& calls) {
  return std::ranges::all_of(calls, [](const Call& call) {
    const IdiomTable& table = idioms();
    return is_wait(call) ||
           (call.direct && (table.is_last_error(call.callee) || table.is_peek_last_error(call.callee)));
  });
}

bool does_nothing_behind(const FlowFacts& kernel, const Call& wait) {
  const ControlFlow& flow = kernel.flow;
  if (flow.has_unknown_branch()) return false;
  const uint32_t at = flow.index_of(wait.statement);
  for (uint32_t i = 0; i < flow.instructions().size(); ++i) {
    if (flow.can_follow(at, i) && !stays_in_thread(kernel.module, *flow.instructions()[i].statement))
      return false;
  }
  return true;
}

}  // namespace

std::vector<const ptx::Statement*> waits_that_matter(const FlowFacts& function) {
  std::vector<const ptx::Statement*> waits;
  const std::vector<Call> calls = calls_of(function);
  const bool is_kernel = function.function.kind == ptx::FunctionKind::Entry;
  if (is_kernel && launches_nothing(calls)) return waits;
  for (const Call& call : calls) {
    if (is_wait(call) && !(is_kernel && does_nothing_behind(function, call))) waits.push_back(call.statement);
  }
  return waits;
}

std::optional<std::string> wait_that_matters(const Module& unit) {
  for (const Function& function : unit.functions) {
    if (!function.is_definition) continue;
    const auto waits = waits_that_matter(FlowFacts(unit, function));
    if (!waits.empty()) return unit.place(waits.front()->head);
  }
  return std::nullopt;
}

}  // namespace klap::analysis
