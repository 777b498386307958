// The config file that gives kernels the settings that were chosen for them.
#pragma once

#include <string>
#include <vector>

#include "klap_ptx/tune/candidates.h"
#include "klap_ptx/tune/choice.h"

namespace klap::tool {

std::string config_text(const std::vector<Choice>& choices, const std::vector<Candidate>& tried,
                        const std::string& program);

}  // namespace klap::tool
