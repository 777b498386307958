// This file finds the memory accesses of a loop's iterations, and tells whether these may run in any order.
//
// Loads of memory that the kernel does not write do not matter. Updates by one commuting operation may meet
// each other wherever they are. Every other access must be at an address that steps on with the iterations,
// so that each iteration has memory of its own. Accesses by one pointer must be apart by the steps alone.
// Code that has the pointers' values must tell whether two pointers lead to the same memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/expressions/expression.h"

namespace klap::analysis {

// Iteration i touches `bytes` bytes from pointer + least + i * step on.
struct IterationSpan {
  enum class Use : uint8_t { Read, Updated, Written };
  uint32_t parameter = 0;  // where the pointer stands in the parameter block
  int64_t least = 0;
  uint32_t step = 0, bytes = 0;
  Use use = Use::Read;
  // True if the spans must be apart, or (two that step alike, within a step) be the same memory.
  [[nodiscard]] bool conflicts(const IterationSpan& other) const;
};

// The access of one instruction.
struct IterationAccess {
  uint32_t line = 0;
  IterationSpan::Use use = IterationSpan::Use::Read;
  std::string operation;  // Updated: "add.u32"
  uint32_t bytes = 0;
  Expr address;  // in terms of the iteration (iteration_loop.h); may be unknown
};

struct IterationMemory {
  std::string why_not;               // why iterations may not run in any order; empty if they may
  std::vector<IterationSpan> spans;  // then: those that must be apart, by parameter
};
// `most_pointers`: the largest number of pointers that can be compared.
IterationMemory judge_memory(const std::vector<IterationAccess>& accesses, size_t most_pointers);

}  // namespace klap::analysis
