// This file says which of its operands an instruction writes.
//
// PTX instructions write their first operand or nothing, as the table of opcodes says (ptx/opcodes.def); the
// few exceptions stand in the source file. An opcode that is not in the table is newer than this library: it
// may then write any register it names.
#pragma once

#include <cstdint>

#include "ptx/tree.h"

namespace klap::analysis {

enum class OperandUse : uint8_t { Read, Written, ReadAndWritten, Unknown };

// How an instruction uses the registers that are named in the operand with this index. Registers inside an
// address are read, whatever the instruction.
OperandUse operand_use(const ptx::Module& module, const ptx::Statement& instruction, size_t index);

// Calls `visit(name_token, count)` for every register of a `.reg` directive; count is 0 for a plain name and
// 13 for the range `%r<13>`, whose registers are %r0 to %r12.
template <typename Visit>
void for_each_declared_register(const ptx::Module& module, const ptx::Statement& directive, Visit&& visit) {
  if (directive.kind != ptx::StatementKind::Directive || !module.is(directive.head, ".reg")) return;
  for (uint32_t t = directive.head + 1; t < directive.tokens.last; ++t) {
    if (module.tokens[t].kind != ptx::TokenKind::Identifier) continue;
    const bool range = module.is(t + 1, "<");
    visit(t, range ? static_cast<uint32_t>(ptx::integer_value(module.text(t + 2)).value_or(0)) : 0);
  }
}

}  // namespace klap::analysis
