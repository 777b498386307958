#include "settings/values.h"

#include <algorithm>
#include <cctype>

namespace klap::settings {
namespace {

// As many blocks as a grid that is aggregated can have.
constexpr uint32_t kLargestCount = (1U << 24) - 1;

}  // namespace

bool is_threshold(std::string_view text) {
  return text == "auto" || text == "off" || parse_number(text, 0, kMostThreads).has_value();
}

std::optional<bool> parse_boolean(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "1" || lower == "true" || lower == "yes" || lower == "on") return true;
  if (lower == "0" || lower == "false" || lower == "no" || lower == "off") return false;
  return std::nullopt;
}

std::optional<uint32_t> parse_count(std::string_view text) { return parse_number(text, 2, kLargestCount); }

std::optional<uint32_t> parse_share(std::string_view text) { return parse_number(text, 1, kLargestCount); }

std::optional<uint32_t> parse_threads(std::string_view text) {
  return text == "auto" ? std::optional(0u) : parse_number(text, 1, kMostThreads);
}

std::optional<uint32_t> parse_blocks(std::string_view text) {
  return text == "auto" ? std::optional(0u) : parse_share(text);
}

std::vector<std::string> parse_metrics(std::string_view text) {
  const auto is_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
  std::vector<std::string> names;
  for (bool is_last = false; !is_last;) {
    const std::string_view name = text.substr(0, text.find(','));
    is_last = name.size() == text.size();
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    if (name.empty() || !std::ranges::all_of(name, is_of_name)) return {};
    names.emplace_back(name);
  }
  return names;
}

}  // namespace klap::settings
