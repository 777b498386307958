// Variables of a module that nvcc makes for constants of the code.
//
// A template may write a constant such as `dim3(64)` in a launch. nvcc keeps it as an initialised variable
// and loads it:
//     .weak .global .align 4 .b8 _Z1fIfEvPT_$6[12] = {64, 0, 0, 0, 1, 0, 0, 0, 1};
// Such a load gives the initialiser's value if no code can write there. No program can use such a name: the
// part before `$` is a whole function's name, which the compiler made. So the host does not know the
// variable. Every mention of it in its unit must be a load. Units that share a template share the variable.
// nvcc numbers these variables through the file. One name may therefore mean two constants in two units, of
// which the linker takes one. Such names are found where all units are known (Module::disputed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/tree.h"

namespace klap::analysis {

// The integer that a load of such a variable gives as its n-th component, extended by zeros. Nothing for
// other loads.
std::optional<uint64_t> loaded_constant(const ptx::Module& module, const ptx::Statement& load,
                                        size_t component = 0);

// The weak variables of this kind whose initialisers differ between the texts of a program's units. If the
// text of a unit is not known, these are all weak variables of this kind.
std::set<std::string, std::less<>> disputed_constants(const std::vector<std::string_view>& units,
                                                      bool all_known);

}  // namespace klap::analysis
