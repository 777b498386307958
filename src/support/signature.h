// The parts of a kernel's C++ signature, for texts that name kernels and their arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace klap {

// "void expand<3>(int*)" -> "expand": what people type of a demangled name.
std::string base_name(std::string_view demangled);

// "f(int*, Pair<int, long>)" -> {"int*", "Pair<int, long>"}. Empty for a name without a parameter list.
std::vector<std::string> parameter_types(std::string_view demangled);

// A type or a name with template arguments, of which long ones become "<...>".
std::string shortened(std::string_view demangled);

// The name of a kernel as a message shows it, from its mangled name: without the return type and the unit,
// and without template arguments and parameters that take much room.
std::string signature_of(const std::string& mangled);

// The text with the mangled names in it as signature_of() writes them.
std::string with_signatures(std::string_view text);

}  // namespace klap
