// The config file that gives kernels the settings that were chosen for them.
#pragma once

#include <string>
#include <vector>

#include "klap_ptx/tune/candidates.h"
#include "klap_ptx/tune/choice.h"

namespace klap::tool {

// `before`: the text of the config file that was in force; its tables stay, behind those of the choices.
std::string config_text(const std::vector<Choice>& choices, const std::vector<Candidate>& tried,
                        const std::string& program, const std::string& before);

}  // namespace klap::tool
