#include "klap_ptx/tune/config_text.h"

#include <fmt/format.h>

#include "support/demangle.h"

namespace klap::tool {
namespace {

// A basic string of TOML.
std::string as_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

// A comment ends with its line, so this is the text without line breaks.
std::string in_one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

}  // namespace

std::string config_text(const std::vector<Choice>& choices, const std::vector<Candidate>& tried,
                        const std::string& program) {
  std::string text = fmt::format("# klap-ptx tune made this from runs of: {}\n", in_one_line(program));
  for (const Choice& choice : choices) {
    if (choice.best.empty()) continue;
    text += fmt::format("\n# {}: {:.4f} ms a launch, {:.4f} at the default\n[[kernel]]\nname = {}\n",
                        in_one_line(demangle(choice.parent)), choice.best_ms, choice.default_ms,
                        as_string(choice.parent));
    for (const auto& [key, value] : values(choice.best, tried))
      text += fmt::format("{} = {}\n", key, as_string(value));
  }
  return text;
}

}  // namespace klap::tool
