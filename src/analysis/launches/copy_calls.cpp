#include "analysis/launches/copy_calls.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "analysis/graph/register_bits.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {
namespace {

// The parameters of the functions, in their order.
using Operand = std::string CopyCall::*;
constexpr Operand kCopy[] = {&CopyCall::to, &CopyCall::from, &CopyCall::width, &CopyCall::kind,
                             &CopyCall::stream};
constexpr Operand kCopy2D[] = {&CopyCall::to,    &CopyCall::to_pitch, &CopyCall::from, &CopyCall::from_pitch,
                               &CopyCall::width, &CopyCall::height,   &CopyCall::kind, &CopyCall::stream};
constexpr Operand kFill[] = {&CopyCall::to, &CopyCall::value, &CopyCall::width, &CopyCall::stream};
constexpr Operand kFill2D[] = {&CopyCall::to,    &CopyCall::to_pitch, &CopyCall::value,
                               &CopyCall::width, &CopyCall::height,   &CopyCall::stream};

std::span<const Operand> operands_of(std::string_view function, bool fills) {
  if (function.find("3DAsync") != std::string_view::npos) return {};
  const bool is_2d = function.find("2DAsync") != std::string_view::npos;
  if (fills) return is_2d ? std::span<const Operand>(kFill2D) : std::span<const Operand>(kFill);
  return is_2d ? std::span<const Operand>(kCopy2D) : std::span<const Operand>(kCopy);
}

uint32_t bytes_of(Operand operand) {
  return operand == &CopyCall::value || operand == &CopyCall::kind ? 4 : 8;
}

class Reader {
 public:
  Reader(const ptx::Module& module, const ptx::Function& function, const DataFlow& data)
      : module_(module), function_(function), data_(data) {}

  std::optional<CopyCall> read(const FlatInstruction& instruction) const {
    const auto call = parse_call(module_, *instruction.statement, data_.names());
    if (!call || !call->direct) return std::nullopt;
    const std::string_view called = runtime_function(module_, call->callee);
    CopyCall out;
    out.fills = idioms().is_kind(called, "fill");
    if (!out.fills && !idioms().is_kind(called, "copy")) return std::nullopt;
    out.call = instruction.statement;
    out.scope = instruction.scope;
    out.stream_zero_is_per_thread = called.ends_with("_ptsz");
    if (out.scope == &function_.body || out.call->predicated) return std::nullopt;
    const bool is_known = take_apart(out, *call, operands_of(called, out.fills));
    return is_known ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  bool take_apart(CopyCall& out, const Call& call, std::span<const Operand> operands) const {
    const CallScope scope = read_call_scope(module_, *out.scope, *out.call);
    if (!scope.problem.empty() || operands.empty() || call.parameters.size() != operands.size()) return false;
    for (size_t i = 0; i < operands.size(); ++i) {
      const std::string* actual = scope.actual(call.parameters[i], 0, bytes_of(operands[i]));
      if (actual == nullptr) return false;
      out.*operands[i] = *actual;
    }
    out.result = scope.result;
    return out.result.empty() ||
           (scope.result_bytes == 4 && RegisterBits(module_, function_).of(out.result) == 32);
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  const DataFlow& data_;
};

bool copies_or_fills(std::string_view function) {
  return idioms().is_kind(function, "copy") || idioms().is_kind(function, "fill");
}

}  // namespace

std::set<std::string, std::less<>> copy_names(const ptx::Module& module) {
  std::set<std::string, std::less<>> names;
  for (const ptx::Function& function : module.functions) {
    if (copies_or_fills(runtime_function(module, function))) names.insert(function.name);
  }
  return names;
}

std::vector<CopyCall> find_copy_calls(const ptx::Module& module, const ptx::Function& function,
                                      const ControlFlow& flow, const DataFlow& data) {
  std::vector<CopyCall> calls;
  const Reader reader(module, function, data);
  for (const FlatInstruction& instruction : flow.instructions()) {
    if (auto call = reader.read(instruction)) calls.push_back(std::move(*call));
  }
  return calls;
}

}  // namespace klap::analysis
