#include "analysis/launches/scoped_call.h"

#include "analysis/graph/register_bits.h"

namespace klap::analysis {

std::optional<ScopedCall> read_scoped_call(const ptx::Module& module, const ptx::Function& function,
                                           const FlatInstruction& instruction, const Call& call,
                                           std::span<const uint32_t> bytes) {
  if (instruction.scope == &function.body || instruction.statement->predicated) return std::nullopt;
  const CallScope scope = read_call_scope(module, *instruction.scope, *instruction.statement);
  if (!scope.problem.empty() || bytes.empty() || call.parameters.size() != bytes.size()) return std::nullopt;
  ScopedCall out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::string* operand = scope.actual(call.parameters[i], 0, bytes[i]);
    if (operand == nullptr) return std::nullopt;
    out.operands.push_back(*operand);
  }
  out.result = scope.result;
  const bool is_code =
      out.result.empty() || (scope.result_bytes == 4 && RegisterBits(module, function).of(out.result) == 32);
  return is_code ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace klap::analysis
