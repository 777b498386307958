// The special registers, by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "emulator/decode/code.h"

namespace klap::emulator {

// `name` as in the text, "%tid"; `component` ".x" or empty. Nothing for one that the emulator does not have.
std::optional<Special> find_special(std::string_view name, std::string_view component);
std::string special_name(Special special);  // "%tid.x"

}  // namespace klap::emulator
