// Settings that a command line gives as key=value.
#pragma once

#include <string>
#include <vector>

namespace klap::tool {

// Returns what is wrong with a setting; empty if it is right. A key is that of the config file, a variable
// with or without KLAP_, or an optimisation.
std::string setting_problem(const std::string& key_and_value);

// Returns the name that a right one has among the values that come from the environment.
std::string name_in_environment(const std::string& key_and_value);

// Puts a right one into this process's environment, where the library in the program will read it.
void apply_setting(const std::string& key_and_value);

}  // namespace klap::tool
