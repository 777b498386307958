// A kernel with everything the value analyses are computed from.
#pragma once

#include <string>

#include "analysis/graph/flow.h"
#include "analysis/values/values.h"
#include "ptx/tree.h"

namespace klap::test {

struct Kernel {
  // The named function of a module, or its first definition.
  explicit Kernel(const std::string& ptx, const std::string& name = {});

  // The index of the first instruction whose text holds `part`.
  [[nodiscard]] uint32_t index_of(const std::string& part) const;
  // The register that an instruction calls by a name.
  [[nodiscard]] uint32_t register_of(uint32_t index, const std::string& name) const;

  ptx::Module module;
  const ptx::Function* function;
  analysis::ControlFlow flow;
  analysis::Values values;
  const analysis::Symbolic& symbolic;
};

// A module with one kernel `k` of the given body, which can use %p0-%p15, %h0-%h15 (16 bits), %r0-%r63,
// %rd0-%rd31 and %f0-%f15, and has the parameters
// a: .u64 at 0, b: .u32 at 8, c: .u32 at 12, s: 24 bytes at 16.
std::string module_with(const std::string& body, const std::string& directives = {});

}  // namespace klap::test
