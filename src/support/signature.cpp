#include "support/signature.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "support/demangle.h"

namespace klap {
namespace {

constexpr size_t kLongestTemplateArguments = 20, kLongestParameters = 48;
constexpr std::string_view kAnonymousNamespace = "(anonymous namespace)::";

bool opens(char c) { return c == '(' || c == '<' || c == '[' || c == '{'; }
bool closes(char c) { return c == ')' || c == '>' || c == ']' || c == '}'; }

// "operator<" and "operator->" hold brackets that have no partner.
bool is_plain(std::string_view name) { return name.find("operator") == std::string_view::npos; }

// The place of the bracket that the last character closes.
std::optional<size_t> opening(std::string_view text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (closes(text[i])) ++depth;
    if (opens(text[i]) && --depth == 0) return i;
  }
  return std::nullopt;
}

// A demangled name taken apart: "void each<int>" and "(int*)", which is empty for a plain name.
struct NameParts {
  std::string_view name, parameters;
};
NameParts parts_of(std::string_view demangled) {
  if (!demangled.ends_with(')') || !is_plain(demangled)) return {demangled, {}};
  const auto at = opening(demangled);
  if (!at || *at == 0) return {demangled, {}};
  return {demangled.substr(0, *at), demangled.substr(*at)};
}

// Behind the last of these characters that stands in no bracket.
std::string_view behind_last(std::string_view name, std::string_view separators) {
  int depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    if (closes(name[i])) ++depth;
    if (opens(name[i])) --depth;
    if (depth == 0 && separators.find(name[i]) != std::string_view::npos) return name.substr(i + 1);
  }
  return name;
}

// The demangler writes the return type of templates.
std::string_view without_return_type(std::string_view name) {
  return is_plain(name) ? behind_last(name, " ") : name;
}

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

}  // namespace

std::string base_name(std::string_view demangled) {
  std::string_view name = parts_of(demangled).name;
  if (!is_plain(name)) return std::string(name);
  if (name.ends_with('>')) name = name.substr(0, opening(name).value_or(name.size()));
  return std::string(behind_last(name, " :"));
}

std::vector<std::string> parameter_types(std::string_view demangled) {
  std::string_view list = parts_of(demangled).parameters;
  if (list.size() <= 2 || list == "(void)") return {};
  list = list.substr(1, list.size() - 2);
  std::vector<std::string> types(1);
  int depth = 0;
  for (const char c : list) {
    if (opens(c)) ++depth;
    if (closes(c)) --depth;
    if (c == ',' && depth == 0) {
      types.emplace_back();
    } else if (c != ' ' || !types.back().empty()) {
      types.back() += c;
    }
  }
  return types;
}

std::string shortened(std::string_view demangled) {
  if (!is_plain(demangled)) return std::string(demangled);
  std::string out;
  for (size_t i = 0; i < demangled.size(); ++i) {
    out += demangled[i];
    if (demangled[i] != '<') continue;
    int depth = 1;
    size_t end = i + 1;
    for (; end < demangled.size() && depth > 0; ++end) {
      if (opens(demangled[end])) ++depth;
      if (closes(demangled[end])) --depth;
    }
    if (depth != 0 || end - i - 2 <= kLongestTemplateArguments) continue;
    out += "...>";
    i = end - 1;
  }
  return out;
}

std::string signature_of(const std::string& mangled) {
  std::string demangled = demangle(mangled);
  // A function that only its unit sees may have a suffix: "_Z2goPi$4".
  if (demangled == mangled) demangled = demangle(mangled.substr(0, mangled.find('$')));
  const auto [name, parameters] = parts_of(demangled);
  std::string_view own = without_return_type(name);
  while (own.starts_with(kAnonymousNamespace)) own.remove_prefix(kAnonymousNamespace.size());
  const std::string types = shortened(parameters);
  return shortened(own) + (types.size() > kLongestParameters ? "(...)" : types);
}

std::string with_signatures(std::string_view text) {
  constexpr std::string_view kMangled = "_Z", kStatic = "__nv_static_";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_of_name(text[end])) ++end;
    if (end == i) {
      out += text[i++];
      continue;
    }
    const std::string_view word = text.substr(i, end - i);
    const bool is_mangled = word.starts_with(kMangled) || word.starts_with(kStatic);
    out += is_mangled ? signature_of(std::string(word)) : std::string(word);
    i = end;
  }
  return out;
}

}  // namespace klap
