// Generates the kernels of planned sites: recording parents, consumers and promoted chains, in the units that
// they go into, with what the runtime must know about each variant.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "jit/data/stage.h"
#include "jit/data/timings.h"
#include "jit/data/variant.h"
#include "jit/planned/planned.h"
#include "transform/aggregate/unit.h"

namespace klap::jit {

// The generated kernels of each unit, and the variants they make up.
struct GeneratedUnits {
  std::vector<std::optional<transform::UnitCode>> code;  // by unit; nothing where none was generated
  std::vector<Variant> variants;
};

// Sites whose code cannot be generated are left, in the plan's remarks, and the rest goes on. Throws
// Error(Toolchain) if NVRTC is missing.
GeneratedUnits generate(Plan& plan, std::span<const PlannedSite> sites, const Dump& dump, Timings& timings);

}  // namespace klap::jit
