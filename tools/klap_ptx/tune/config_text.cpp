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
                        const std::string& program, const std::string& before) {
  std::string text = fmt::format("# klap-ptx tune made this from runs of: {}\n", in_one_line(program));
  for (const Choice& choice : choices) {
    if (!choice.setting) continue;
    text += fmt::format("\n# {}: {:.4f} ms a launch, {:.4f} at the default\n[[kernel]]\nname = {}\n",
                        in_one_line(demangle(choice.parent)), choice.best_ms, choice.default_ms,
                        as_string(choice.parent));
    for (const auto& setting : {choice.setting, choice.second}) {
      if (!setting) continue;
      const Candidate& candidate = tried.at(*setting);
      text += fmt::format("{} = {}\n", candidate.key, as_string(candidate.value));
    }
  }
  if (!before.empty()) text += "\n# What was in force before:\n" + before;
  return text;
}

}  // namespace klap::tool
