// Building: from planned sites to a linked image that holds the program's kernels and their variants.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/data/request.h"
#include "jit/data/stage.h"
#include "jit/data/timings.h"
#include "jit/data/unit.h"
#include "jit/data/variant.h"
#include "jit/plan/plan.h"

namespace klap::jit {

struct BuiltModule {
  std::string cubin;
  std::vector<Variant> variants;
};

// Generates the variants of `sites`, places them in units, links everything and checks the result. Sites
// whose code cannot be generated are left (in the plan's remarks) and the rest goes on. Throws Error(Link) if
// the link fails, Error(Toolchain) if NVRTC or nvJitLink is missing.
BuiltModule build(const Program& program, const Request& request, Plan& plan,
                  std::span<const PlannedSite> sites, Timings& timings);

// The program's own units linked as they are, but `anew` from its PTX. Throws as build() does.
std::string link_originals(const Program& program, const Request& request, Plan& plan,
                           std::optional<size_t> anew);

}  // namespace klap::jit
