#include "analysis/launches/copy_calls.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/launches/idioms.h"
#include "analysis/launches/scoped_call.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {
namespace {

using Operand = std::string CopyCall::*;

// The values that a function takes.
struct Form {
  std::vector<Operand> operands;
  std::vector<PassedValue> values;
  size_t parameters = 0;
};

uint32_t bytes_of(Operand operand) {
  return operand == &CopyCall::value || operand == &CopyCall::kind ? 4 : 8;
}

// A function whose parameters are these, in their order.
Form plain(std::vector<Operand> operands) {
  Form form{std::move(operands), {}, 0};
  for (const Operand operand : form.operands)
    form.values.push_back({static_cast<uint32_t>(form.parameters++), bytes_of(operand)});
  return form;
}

// cudaMemset3DAsync takes a cudaPitchedPtr and a cudaExtent (driver_types.h).
Form fill_of_slices() {
  return {.operands = {&CopyCall::to, &CopyCall::to_pitch, &CopyCall::slice_rows, &CopyCall::value,
                       &CopyCall::width, &CopyCall::height, &CopyCall::depth, &CopyCall::stream},
          .values = {{0, 8, 0}, {0, 8, 8}, {0, 8, 24}, {1, 4}, {2, 8, 0}, {2, 8, 8}, {2, 8, 16}, {3, 8}},
          .parameters = 4};
}

const Form& form_of(bool fills, uint32_t dimensions) {
  using C = CopyCall;
  static const std::array<Form, 3> copies = {
      plain({&C::to, &C::from, &C::width, &C::kind, &C::stream}),
      plain({&C::to, &C::to_pitch, &C::from, &C::from_pitch, &C::width, &C::height, &C::kind, &C::stream}),
      plain({&C::parameters, &C::stream})};
  static const std::array<Form, 3> all_fills = {
      plain({&C::to, &C::value, &C::width, &C::stream}),
      plain({&C::to, &C::to_pitch, &C::value, &C::width, &C::height, &C::stream}), fill_of_slices()};
  return (fills ? all_fills : copies).at(dimensions - 1);
}

uint32_t dimensions_of(std::string_view function) {
  if (function.find("3DAsync") != std::string_view::npos) return 3;
  return function.find("2DAsync") != std::string_view::npos ? 2 : 1;
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
    out.has_slices = dimensions_of(called) == 3;
    const Form& form = form_of(out.fills, dimensions_of(called));
    const auto scoped =
        read_scoped_call(module_, function_, instruction, *call, form.values, form.parameters);
    if (!scoped) return std::nullopt;
    for (size_t i = 0; i < form.operands.size(); ++i) out.*form.operands[i] = scoped->operands[i];
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
