// A program's annotations (include/klap/annotate.cuh) as a list to show. The planner reads them by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jit/data/unit.h"

namespace klap::jit {

struct ProgramHint {
  std::string parent;
  std::string child;  // of the launch it is for; empty: for all launches of the parent
  std::string key, value;
  std::string place;  // "unit 0: line 12:2"
};

// The annotations that are followed. Launches come before kernels, and the first that fits a launch holds.
// Throws Error(Parse).
std::vector<ProgramHint> program_hints(const Program& program, uint32_t sm);

}  // namespace klap::jit
