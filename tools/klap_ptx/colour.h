// Colours, where somebody looks: on a terminal, and never with NO_COLOR (https://no-color.org).
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace klap::tool {

enum class Colour { Bold, Red, Green, Yellow, Blue };

// Whether the stream goes to a terminal that knows control sequences.
bool is_terminal(std::FILE* stream);

// Whether text for this stream may have colours.
bool has_colours(std::FILE* stream);

// The text in a colour, or as it is where the stream has none.
std::string coloured(std::FILE* stream, Colour colour, std::string_view text);

// Remarks and notes as jit::describe() writes them, with their keywords in colours.
std::string coloured_remarks(std::FILE* stream, std::string_view remarks);

}  // namespace klap::tool
