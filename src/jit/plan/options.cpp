#include "jit/plan/options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace klap::jit {
namespace {

bool changes_no_code(std::string_view option) {
  static constexpr std::array<std::string_view, 10> kHarmless = {"-v",
                                                                 "--verbose",
                                                                 "-w",
                                                                 "--disable-warnings",
                                                                 "-Werror",
                                                                 "--warn-on-spills",
                                                                 "--warn-on-local-memory-usage",
                                                                 "--compile-only",
                                                                 "-c",
                                                                 "-preserve-relocs"};
  return std::find(kHarmless.begin(), kHarmless.end(), option) != kHarmless.end();
}

// "-maxrregcount=64" -> "64"; empty if `word` is another option.
std::string_view value_of(std::string_view word, std::string_view option) {
  while (word.starts_with('-')) word.remove_prefix(1);
  if (!word.starts_with(option) || word.size() <= option.size() || word[option.size()] != '=') return {};
  return word.substr(option.size() + 1);
}

bool is_option(std::string_view word, std::string_view option) {
  while (word.starts_with('-')) word.remove_prefix(1);
  return word == option;
}

}  // namespace

BuildOptions parse_options(const std::string& text) {
  BuildOptions out;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (changes_no_code(word)) continue;
    if (is_option(word, "lineinfo") || is_option(word, "generate-line-info")) {
      out.line_info = true;
      continue;
    }
    std::string value(value_of(word, "maxrregcount"));
    if (value.empty() && is_option(word, "maxrregcount")) words >> value;  // "-maxrregcount 64"
    if (!value.empty() &&
        std::all_of(value.begin(), value.end(), [](unsigned char c) { return std::isdigit(c); })) {
      out.register_cap = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    } else if (word[0] != '-' && !out.code_changing.empty()) {
      out.code_changing.back() += "=" + word;  // "--fmad false"
    } else {
      out.code_changing.push_back(word);
    }
  }
  return out;
}

}  // namespace klap::jit
