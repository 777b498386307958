// Placing generated kernels in a translation unit.
//
// If the generated code uses nothing that is internal to its unit, it becomes a unit of its own ("detached")
// beside the program's machine code. The latter then stays bit for bit as the program's compiler made it.
// Otherwise it is appended to the unit's PTX ("in place"), and the whole unit is assembled anew.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptx/dialect.h"
#include "ptx/tree.h"
#include "transform/aggregate/aggregate.h"

namespace klap::transform {

// The code that was generated for one unit, and the PTX version and target that it needs. If the unit's own
// are lower, they are raised.
struct UnitCode {
  explicit UnitCode(const ptx::Module& unit) : module(unit), lines(unit), dialect(ptx::dialect_of(unit)) {}

  // Records that code of `source` stands in the kernels. Throws Error(Internal) if no target is good for
  // both.
  void includes(const ptx::Module& source);

  const ptx::Module& module;
  std::vector<Generated> kernels;
  LineTables lines;
  ptx::Dialect dialect;
};

// A unit that holds the generated kernels and private copies of the functions they call, and declares the
// variables they use as external. `suffix` makes the copies' names unique. Nothing if they refer to something
// internal that cannot be copied; `why_not` then says to what.
std::optional<std::string> detached_unit(UnitCode& code, const std::string& suffix, std::string* why_not);

// The unit's text, unchanged but for its version and target, with the generated kernels behind it. A
// `register_cap` other than 0 becomes `.maxnreg` of every original kernel that has no launch bounds of its
// own.
std::string in_place_unit(const UnitCode& code, uint32_t register_cap);

}  // namespace klap::transform
