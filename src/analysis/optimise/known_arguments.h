// Which arguments of a launch the launching thread knows where it makes its record.
//
// A thread that records a launch may decide by its arguments how it is recorded. In the described form
// (ptx-patterns/idioms) the record is made where the program asks for a buffer, and the arguments are stored
// behind that. An argument may have its value already, or the record can be made later, at the launch.
#pragma once

#include <cstdint>

#include "analysis/facts/facts.h"

namespace klap::analysis {

// The argument that the parent passes in these bytes of the child's parameter block, if it is one operand.
const Argument* passed_argument(const Site& site, uint32_t offset, uint32_t bytes);

// True if the argument has its value where the record is made. The described form has two places for that:
// `at_launch` becomes true if it must be the later one, and `may_wait` says whether it may be.
bool is_known_argument(const FunctionFacts& parent, const Site& site, const Argument& argument, bool may_wait,
                       bool& at_launch);

// True if the record could be made, and the arguments stored, at the launch. The values that both need must
// still be there, under their names.
bool could_record_at_launch(const FunctionFacts& parent, const Site& site);

}  // namespace klap::analysis
