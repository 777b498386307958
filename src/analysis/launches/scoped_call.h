// A call of the device runtime in a scope of its own, with the operands that it passes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "analysis/launches/calls.h"

namespace klap::analysis {

struct ScopedCall {
  std::vector<std::string> operands;  // one for each value
  std::string result;                 // register of 32 bits; empty when the result is dropped
};

// A value that a call passes: a whole parameter, or a member of a structure that is one.
struct PassedValue {
  uint32_t parameter = 0;  // its number
  uint32_t bytes = 0;
  uint32_t offset = 0;  // in the parameter
};

// The values of a call with that many parameters. Nothing if the call has another form.
std::optional<ScopedCall> read_scoped_call(const ptx::Module& module, const ptx::Function& function,
                                           const FlatInstruction& instruction, const Call& call,
                                           std::span<const PassedValue> values, size_t parameters);

// For a call whose values are its parameters, of so many bytes.
std::optional<ScopedCall> read_scoped_call(const ptx::Module& module, const ptx::Function& function,
                                           const FlatInstruction& instruction, const Call& call,
                                           std::span<const uint32_t> bytes);

}  // namespace klap::analysis
