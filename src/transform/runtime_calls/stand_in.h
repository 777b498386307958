// Units without their code, for linkers that refuse it.
#pragma once

#include <string>

#include "ptx/tree.h"

namespace klap::transform {

// The unit's text, in which each function that it defines traps as soon as it is entered. Functions,
// parameters and variables keep their names and types. A variable of the name `mark` is added, which each
// function reads. So linked code shows that it was made from this.
std::string without_code(const ptx::Module& unit, const std::string& mark);

}  // namespace klap::transform
