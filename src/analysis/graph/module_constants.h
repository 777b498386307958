// Variables of a module that nvcc makes for constants of the code.
//
// What a template names as `dim3(64)` in a launch, nvcc keeps as an initialised variable and loads:
//     .weak .global .align 4 .b8 _Z1fIfEvPT_$6[12] = {64, 0, 0, 0, 1, 0, 0, 0, 1};
// Such a load gives what the initialiser says if nothing can write there. No program can name a variable so:
// what stands before `$` is a whole function's name, which the compiler made. So the host knows nothing of
// it, and in its unit all that mentions it must be loads. Units that share a template share the variable.
// nvcc counts these variables through the file, so that one name may mean two constants in two units, of
// which the linker takes one; that is looked for where all units are known (Module::disputed).
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

// What a load gives, as its n-th component, if it reads such a variable: an integer that is extended by
// zeros.
std::optional<uint64_t> loaded_constant(const ptx::Module& module, const ptx::Statement& load,
                                        size_t component = 0);

// The weak variables of this kind that the texts of a program's units do not all fill with the same; all of
// them where the program has units whose text is not known.
std::set<std::string, std::less<>> disputed_constants(const std::vector<std::string_view>& units,
                                                      bool all_known);

}  // namespace klap::analysis
