// Names of generated kernels, from which people and profilers see what they were made from.
//
// In a C++ name what was made is an ABI tag of the Itanium scheme. Every demangler shows it: "parent(int*)"
// becomes "parent[abi:klap_grid_7b8fcd49](int*)". Other names get it at their end, behind a "$", which no
// name in CUDA C++ contains.
#pragma once

#include <string>
#include <string_view>

namespace klap {

// `what` says what was made from the kernel, in letters, digits and underscores.
std::string generated_name(const std::string& kernel, std::string_view what);

// The name that it was made from; empty if it is no such name.
std::string name_made_from(const std::string& generated);

}  // namespace klap
