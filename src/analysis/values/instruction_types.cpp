#include "analysis/values/instruction_types.h"

#include <algorithm>

namespace klap::analysis {

using ptx::Module;
using ptx::Statement;

std::optional<ValueType> parse_type(std::string_view text) {
  const uint32_t bytes = ptx::type_bytes(text);
  if (bytes == 0 || bytes > 8) return std::nullopt;
  const char letter = text[1];
  const bool integer = letter == 'u' || letter == 's' || (letter == 'b' && text[2] != 'f');
  return ValueType{8 * bytes, letter == 's' ? Sign::Signed : Sign::Unsigned, integer};
}

std::vector<ValueType> types_of(const Module& m, const Statement& s) {
  std::vector<ValueType> out;
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    if (const auto type = parse_type(m.text(t))) out.push_back(*type);
  }
  return out;
}

bool only_modified_by(const Module& m, const Statement& s, std::initializer_list<std::string_view> known) {
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    const std::string_view text = m.text(t);
    if (!parse_type(text) && std::find(known.begin(), known.end(), text) == known.end()) return false;
  }
  return true;
}

std::string address_space(const Module& m, const Statement& s) {
  for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
    const std::string_view text = m.text(t);
    for (const std::string_view space : {".global", ".shared", ".local", ".const", ".param"}) {
      const bool sub_space = text.starts_with(space) && text.substr(space.size()).starts_with("::");
      if (text == space || sub_space) return std::string(text.substr(1));
    }
  }
  return {};
}

}  // namespace klap::analysis
