// Reading and printing a unit without running anything, for klap-ptx.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jit/data/remark.h"
#include "jit/data/request.h"
#include "jit/data/unit.h"

namespace klap::jit {

// One value that the parent stores into the child's parameter block.
struct ArgumentInfo {
  uint32_t offset = 0, bytes = 0;  // place in the child's parameter block
  std::string source;              // "register %rd3", "immediate 5", "kernel parameter 2", "not stored"
};

// One launch site as it stands in the PTX, before any verdict. Operands are printed as in the PTX ("%r5",
// "32").
struct SiteInfo {
  std::string parent, child;  // mangled; child empty when the callee is not a direct symbol
  std::string idiom;          // name of the launch idiom in ptx-patterns/ that recognised it, "cdp2" for one,
                              // and whether local wrappers stand for its functions
  int line = 0, column = 0;   // of the launch's first call in the unit's PTX
  std::string grid, block;    // three operands, "%r5, 1, 1"
  std::string shared_bytes;   // dynamic shared memory
  std::string stream;         // "NULL", "per-thread", "tail launch", "fire-and-forget" or what it can be
  bool in_loop = false;
  std::vector<ArgumentInfo> arguments;  // by offset
};

struct UnitInfo {
  std::vector<std::string> kernels;  // mangled, in the order of the PTX
  std::vector<SiteInfo> sites;       // in the order of the PTX
};

// What a unit's PTX holds. A unit without PTX gives an empty UnitInfo. Throws Error(Parse).
UnitInfo inspect_unit(const Unit& unit);

// What one analysis says about each function of a unit that has a body, in the order of the PTX. `view` is
// the name of one of analysis::views(). Throws Error(Parse).
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
