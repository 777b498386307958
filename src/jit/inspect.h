// Reading and printing a unit without running anything, for klap-ptx.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jit/data/remark.h"
#include "jit/data/request.h"
#include "jit/data/site_info.h"
#include "jit/data/unit.h"

namespace klap::jit {

struct UnitInfo {
  std::vector<std::string> kernels;  // mangled, in the order of the PTX
  std::vector<SiteInfo> sites;       // in the order of the PTX
};

// The kernels and launch sites in a unit's PTX. A unit without PTX gives an empty UnitInfo. Throws
// Error(Parse).
UnitInfo inspect_unit(const Unit& unit);

// The result of one analysis for each function of a unit that has a body, in the order of the PTX. `view`
// names one of analysis::views(). Throws Error(Parse).
struct AnalysisText {
  std::string function;  // mangled
  std::string text;
};
std::vector<AnalysisText> analyse_unit(const Unit& unit, std::string_view view);

// The unit's PTX with its variants added, not linked: only sites whose parent and child stand in this unit
// are rewritten. Gives the PTX unchanged when there are none. `remarks`, if not null, receives one entry per
// site.
std::string rewrite_ptx(const Unit& unit, const Request& request, std::vector<SiteRemark>* remarks);

}  // namespace klap::jit
