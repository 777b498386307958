// This file gives a unit other functions for its device memory.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace klap::transform {

// Names of functions, and of the functions that replace them.
using FunctionNames = std::map<std::string, std::string, std::less<>>;

// The PTX with every mention of these functions, calls, addresses and declarations alike, changed to the
// others. All other text stays as it is, on its lines. `name` is for messages.
std::string with_functions(const std::string& ptx, const FunctionNames& names, const std::string& name);

}  // namespace klap::transform
