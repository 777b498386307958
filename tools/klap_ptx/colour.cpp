#include "klap_ptx/colour.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace klap::tool {

namespace {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

int code(Colour colour) {
  switch (colour) {
    case Colour::Red:
      return 31;
    case Colour::Green:
      return 32;
    case Colour::Yellow:
      return 33;
    case Colour::Blue:
      return 34;
    case Colour::Bold:
      break;
  }
  return 1;
}

constexpr std::array<std::pair<std::string_view, Colour>, 4> kKeywords = {{{" remark: ", Colour::Bold},
                                                                           {" note: ", Colour::Blue},
                                                                           {" rewritten: ", Colour::Green},
                                                                           {" left: ", Colour::Yellow}}};

// Colours the first of each keyword in a line, which stand before all text of other origin but names.
std::string coloured_line(std::FILE* stream, std::string line) {
  for (const auto& [keyword, colour] : kKeywords) {
    const size_t at = line.find(keyword);
    if (at != std::string::npos)
      line.replace(at + 1, keyword.size() - 2,
                   coloured(stream, colour, keyword.substr(1, keyword.size() - 2)));
  }
  return line;
}

}  // namespace

bool is_terminal(std::FILE* stream) {
  const char* const terminal = std::getenv("TERM");
  const bool is_dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return !is_dumb && isatty(fileno(stream)) == 1;
}

bool has_colours(std::FILE* stream) { return !is_set("NO_COLOR") && is_terminal(stream); }

std::string coloured(std::FILE* stream, Colour colour, std::string_view text) {
  if (!has_colours(stream)) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code(colour), text);
}

std::string coloured_remarks(std::FILE* stream, std::string_view remarks) {
  if (!has_colours(stream)) return std::string(remarks);
  std::string out;
  while (!remarks.empty()) {
    const std::string_view line = remarks.substr(0, remarks.find('\n'));
    remarks.remove_prefix(std::min(remarks.size(), line.size() + 1));
    out += coloured_line(stream, std::string(line)) + "\n";
  }
  return out;
}

}  // namespace klap::tool
