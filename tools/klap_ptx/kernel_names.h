// Kernels by the names that people type.
#pragma once

#include <set>
#include <string>

namespace klap::tool {

// Whether the mangled or the demangled name contains the text.
bool name_contains(const std::string& mangled, const std::string& text);

// Returns "did you mean 'expand'?" if a name is near to the text, and otherwise lists the first names. The
// names are mangled; the answer has them as people write them.
std::string names_near(const std::string& text, const std::set<std::string>& mangled);

}  // namespace klap::tool
