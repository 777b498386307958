// What a program is annotated with (include/klap/annotate.cuh), for showing; the planner reads it itself.
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

// Those that are followed, launches before kernels: the first that fits holds. Throws Error(Parse).
std::vector<ProgramHint> program_hints(const Program& program, uint32_t sm);

}  // namespace klap::jit
