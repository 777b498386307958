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
  std::vector<std::string> operands;  // one for each parameter
  std::string result;                 // register of 32 bits; empty when the result is dropped
};

// Nothing if the call has another form, or parameters of other sizes than `bytes`.
std::optional<ScopedCall> read_scoped_call(const ptx::Module& module, const ptx::Function& function,
                                           const FlatInstruction& instruction, const Call& call,
                                           std::span<const uint32_t> bytes);

}  // namespace klap::analysis
