// The forms that settings' values have as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/quantity.h"

namespace klap::settings {

// The most threads of a block.
inline constexpr uint32_t kMostThreads = 1024;

// A Boolean's value: 1, true, yes, on and 0, false, no, off, whatever their case; nothing for anything else.
std::optional<bool> parse_boolean(std::string_view text);

// A Size, in bytes.
using klap::parse_size;

// A Count: how many there are in a group, which has at least two and no more than anything can hold; nothing
// for anything else.
std::optional<uint32_t> parse_count(std::string_view text);

// A Share: one part of so many, from 1 on.
std::optional<uint32_t> parse_share(std::string_view text);

// Threads of a block; 0 for "auto".
std::optional<uint32_t> parse_threads(std::string_view text);

// Off, auto, or threads from 0 on: whether it is one of these.
bool is_threshold(std::string_view text);

// Blocks of a grid, from 1 on; 0 for "auto".
std::optional<uint32_t> parse_blocks(std::string_view text);

// Names of metrics, separated by commas; none for anything else.
std::vector<std::string> parse_metrics(std::string_view text);

}  // namespace klap::settings
