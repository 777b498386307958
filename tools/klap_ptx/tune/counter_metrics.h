// The performance counters that tuning reads unless others are asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace klap::tool {

// How much runs (instructions, lanes, warps, multiprocessors) and what it moves (DRAM, both caches, atomic
// operations). From Ampere to Blackwell, a GPU counts all of them at the same time, so each launch gives all
// values.
const std::vector<std::string>& default_metrics();

// "none", or names with commas between them; nothing for anything else.
std::optional<std::vector<std::string>> parse_counters(const std::string& text);

}  // namespace klap::tool
