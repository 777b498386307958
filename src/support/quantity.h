// Amounts as people write them in settings and in a program's annotations.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace klap {

// Bytes: digits with an optional K, M, G or T for powers of 1024. Nothing for any other text, and for a
// number that does not fit 64 bits.
std::optional<uint64_t> parse_size(std::string_view text);

// A whole number from `least` to `most` in digits alone; nothing for anything else.
std::optional<uint32_t> parse_number(std::string_view text, uint32_t least, uint32_t most);

}  // namespace klap
