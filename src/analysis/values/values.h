// The value analyses of one function together, and what they say about a launch site.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/graph/dominance.h"
#include "analysis/graph/flow.h"
#include "analysis/graph/liveness.h"
#include "analysis/graph/loops.h"
#include "analysis/graph/reaching.h"
#include "analysis/graph/registers.h"
#include "analysis/launches/sites.h"
#include "analysis/values/moldable.h"
#include "analysis/values/symbolic.h"
#include "analysis/values/uniformity.h"

namespace klap::analysis {

struct Values {
  explicit Values(const ControlFlow& control_flow)
      : flow(control_flow),
        dominance(flow),
        loops(flow),
        registers(flow),
        liveness(flow, registers),
        reaching(flow, registers, liveness),
        symbolic(flow, registers, reaching),
        uniformity(flow, dominance, loops, registers, reaching, symbolic) {}
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  const ControlFlow& flow;
  Dominance dominance;
  Loops loops;
  VirtualRegisters registers;
  Liveness liveness;
  ReachingDefinitions reaching;
  Symbolic symbolic;
  Uniformity uniformity;
};

// An operand of a launch: its value in terms of the parent's parameters, and the group of threads for which
// it is the same.
struct SiteOperand {
  Value value;
  Uniform uniform = Uniform::Thread;
};

struct SiteArgument {
  uint32_t offset = 0, bytes = 0;  // in the child's parameter block
  SiteOperand operand;
};

struct SiteValues {
  std::array<SiteOperand, 3> grid, block;
  SiteOperand shared;
  std::vector<SiteArgument> arguments;  // as in the site
  Uniform reached = Uniform::Thread;    // by which threads the launch is reached together
};

// Unknown values for a site that is not understood.
SiteValues site_values(const Values& values, const Site& site);

// "grid ((p[4] + 31) / 32 [thread], 1 [grid], 1 [grid])" and so on, a line each.
std::string to_string(const SiteValues& site);

}  // namespace klap::analysis
