#include "analysis/graph/operands.h"

#include "ptx/opcodes.h"

namespace klap::analysis {

using ptx::FirstOperand;
using ptx::Module;
using ptx::Statement;

namespace {

// How an instruction uses its first operand, if it is no address and the opcode alone does not tell.
OperandUse use_by_form(const Module& m, const Statement& s) {
  // A call without a result names the function first; with one, the results stand in brackets.
  if (m.is(s.head, "call")) return m.is(s.operands[0].first, "(") ? OperandUse::Written : OperandUse::Read;
  if (m.is(s.head, "bar") || m.is(s.head, "barrier"))
    return m.has_modifier(s, ".red") ? OperandUse::Written : OperandUse::Read;
  // The accumulator of an asynchronous product is its result too.
  if (m.is(s.head, "wgmma"))
    return m.has_modifier(s, ".mma_async") ? OperandUse::ReadAndWritten : OperandUse::Read;
  if (m.is(s.head, "tcgen05")) return m.has_modifier(s, ".dealloc") ? OperandUse::Read : OperandUse::Written;
  return OperandUse::Unknown;
}

}  // namespace

OperandUse operand_use(const Module& module, const Statement& instruction, size_t index) {
  if (module.is(instruction.operands[index].first, "[")) return OperandUse::Read;
  const FirstOperand first = ptx::opcode_of(module, instruction).first;
  if (first == FirstOperand::Unknown) return OperandUse::Unknown;
  if (index != 0 || first == FirstOperand::Read) return OperandUse::Read;
  return first == FirstOperand::Written ? OperandUse::Written : use_by_form(module, instruction);
}

}  // namespace klap::analysis
