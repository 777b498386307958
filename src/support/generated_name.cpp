#include "support/generated_name.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "support/demangle.h"

namespace klap {
namespace {

constexpr std::string_view kTag = "klap_", kAtTheEnd = "$klap_", kShown = "[abi:klap_";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number of characters in front of the tag in a demangled name, if that is not in the kernel's parameters
// or template arguments.
std::optional<size_t> place_of_tag(const std::string& demangled) {
  const size_t place = demangled.find(kShown);
  if (place == std::string::npos) return std::nullopt;
  int depth = 0;
  for (const char c : std::string_view(demangled).substr(0, place)) {
    if (c == '(' || c == '<') ++depth;
    if (c == ')' || c == '>') --depth;
  }
  return depth == 0 ? std::optional(place) : std::nullopt;
}

std::string without_tag(std::string demangled, size_t place) {
  return demangled.erase(place, demangled.find(']', place) + 1 - place);
}

// The end of the identifier whose length begins there; nothing if there is none.
std::optional<size_t> end_of_identifier(std::string_view mangled, size_t begin) {
  size_t length = 0;
  const char* const first = mangled.data() + begin;
  const auto [end, error] = std::from_chars(first, mangled.data() + mangled.size(), length);
  const auto at = static_cast<size_t>(end - mangled.data());
  return error == std::errc() && length <= mangled.size() - at ? std::optional(at + length) : std::nullopt;
}

// The tag belongs behind one of the identifiers. The demangler says which one is the kernel's own: the last
// one that is not in its parameters.
std::optional<std::string> with_tag(const std::string& kernel, const std::string& tag) {
  const std::string shown = demangle(kernel);
  if (!kernel.starts_with("_Z") || shown == kernel) return std::nullopt;
  std::optional<std::string> best;
  size_t best_place = 0;
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (!is_digit(kernel[i])) continue;  // an identifier may end with digits, so each may be the first
    const auto end = end_of_identifier(kernel, i);
    if (!end) continue;
    std::string tagged = kernel;
    tagged.insert(*end, "B" + std::to_string(tag.size()) + tag);
    const std::string demangled = demangle(tagged);
    const auto place = place_of_tag(demangled);
    if (!place || *place < best_place || without_tag(demangled, *place) != shown) continue;
    best_place = *place;
    best = std::move(tagged);
  }
  return best;
}

}  // namespace

std::string generated_name(const std::string& kernel, std::string_view what) {
  const auto tagged = with_tag(kernel, std::string(kTag) + std::string(what));
  return tagged ? *tagged : kernel + std::string(kAtTheEnd) + std::string(what);
}

std::string name_made_from(const std::string& generated) {
  if (const size_t end = generated.find(kAtTheEnd); end != std::string::npos) return generated.substr(0, end);
  if (generated.find(kTag) == std::string::npos || !place_of_tag(demangle(generated))) return {};
  for (size_t i = generated.find('B'); i != std::string::npos; i = generated.find('B', i + 1)) {
    const auto end = end_of_identifier(generated, i + 1);
    if (!end) continue;
    const std::string_view tag = std::string_view(generated).substr(i + 1, *end - i - 1);
    if (tag.substr(std::min(tag.find_first_not_of("0123456789"), tag.size())).starts_with(kTag))
      return std::string(generated).erase(i, *end - i);
  }
  return {};
}

}  // namespace klap
