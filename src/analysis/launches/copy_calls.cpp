#include "analysis/launches/copy_calls.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "analysis/launches/idioms.h"
#include "analysis/launches/scoped_call.h"
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
    const std::span<const Operand> operands = operands_of(called, out.fills);
    std::vector<uint32_t> bytes;
    for (const Operand operand : operands) bytes.push_back(bytes_of(operand));
    const auto scoped = read_scoped_call(module_, function_, instruction, *call, bytes);
    if (!scoped) return std::nullopt;
    for (size_t i = 0; i < operands.size(); ++i) out.*operands[i] = scoped->operands[i];
    out.result = scoped->result;
    return out;
  }

 private:
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
