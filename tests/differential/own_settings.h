// The settings that cases are made for, for a process that runs them.
//
// The preloaded library reads its environment when it is loaded, which is before main: a case's settings can
// only take effect in a process that begins with them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "case.h"

namespace klap::differential {

// The settings that the environment lacks for a run of the cases.
struct OwnSettings {
  std::map<std::string, std::string> missing;  // variables that are not set
  std::vector<std::string> notes;              // of those that are set to something else, which stays
};

using VariableOf = std::function<const char*(const char* name)>;

// Throws Error(Config) where the cases want different values of one variable that is not set, or some of them
// none.
OwnSettings find_own_settings(std::span<const Case> cases, const VariableOf& variable);

// In a preloaded process whose cases are made for settings that it does not have: starts this program anew
// with them and the same arguments, and does not return. To be called before CUDA is used.
void begin_with_settings_of(std::span<const Case> cases, char** argv);

}  // namespace klap::differential
