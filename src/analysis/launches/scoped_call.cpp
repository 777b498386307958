#include "analysis/launches/scoped_call.h"

#include "analysis/graph/register_bits.h"

namespace klap::analysis {

std::optional<ScopedCall> read_scoped_call(const ptx::Module& module, const ptx::Function& function,
                                           const FlatInstruction& instruction, const Call& call,
                                           std::span<const PassedValue> values, size_t parameters) {
  if (instruction.scope == &function.body || instruction.statement->predicated) return std::nullopt;
  const CallScope scope = read_call_scope(module, *instruction.scope, *instruction.statement);
  if (!scope.problem.empty() || values.empty() || call.parameters.size() != parameters) return std::nullopt;
  ScopedCall out;
  for (const PassedValue& value : values) {
    const std::string* operand = scope.actual(call.parameters.at(value.parameter), value.offset, value.bytes);
    if (operand == nullptr) return std::nullopt;
    out.operands.push_back(*operand);
  }
  out.result = scope.result;
  const bool is_code =
      out.result.empty() || (scope.result_bytes == 4 && RegisterBits(module, function).of(out.result) == 32);
  return is_code ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<ScopedCall> read_scoped_call(const ptx::Module& module, const ptx::Function& function,
                                           const FlatInstruction& instruction, const Call& call,
                                           std::span<const uint32_t> bytes) {
  std::vector<PassedValue> values;
  for (const uint32_t size : bytes) values.push_back({static_cast<uint32_t>(values.size()), size});
  return read_scoped_call(module, function, instruction, call, values, values.size());
}

}  // namespace klap::analysis
