#include "klap_ptx/kernel_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "settings/spelling.h"
#include "support/demangle.h"

namespace klap::tool {

namespace {

constexpr size_t kMostListed = 8;

// "void expand<3>(int*)" as "expand": what people type of a name.
std::string short_name(const std::string& mangled) {
  constexpr std::string_view kReturn = "void ", kAnonymous = "(anonymous namespace)::";
  std::string name = demangle(mangled);
  if (name.starts_with(kReturn)) name.erase(0, kReturn.size());
  if (name.starts_with(kAnonymous)) name.erase(0, kAnonymous.size());
  return name.substr(0, name.find_first_of("<("));
}

}  // namespace

bool name_contains(const std::string& mangled, const std::string& text) {
  return mangled.find(text) != std::string::npos || demangle(mangled).find(text) != std::string::npos;
}

std::string names_near(const std::string& text, const std::set<std::string>& mangled) {
  if (mangled.empty()) return "there are no kernels";
  std::set<std::string> names;
  for (const std::string& name : mangled) names.insert(short_name(name));
  std::vector<std::string_view> words(names.begin(), names.end());
  words.insert(words.end(), mangled.begin(), mangled.end());
  if (const auto near = settings::nearest(text, words)) return fmt::format("did you mean '{}'?", *near);
  const size_t listed = std::min(names.size(), kMostListed);
  words.assign(names.begin(), std::next(names.begin(), static_cast<std::ptrdiff_t>(listed)));
  const std::string more = names.size() > listed ? fmt::format(" and {} more", names.size() - listed) : "";
  return fmt::format("there {} {}{}", names.size() == 1 ? "is" : "are", fmt::join(words, ", "), more);
}

}  // namespace klap::tool
