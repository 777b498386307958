#include "literals.h"

#include <regex>

namespace klap::test {

std::string take_literals(const std::string& source, std::vector<std::string>& literals) {
  static const std::regex piece(R"re(//.*|'(\\.|[^'\\])'|"((\\.|[^"\\])*)")re");
  std::string text;
  auto last = source.begin();
  for (std::sregex_iterator at(source.begin(), source.end(), piece), end; at != end; ++at) {
    text.append(last, (*at)[0].first);
    last = (*at)[0].second;
    if (*(*at)[0].first == '\'') text.append((*at)[0].first, last);
    if (*(*at)[0].first != '"') continue;
    text += '"' + std::to_string(literals.size()) + '"';
    literals.push_back(std::regex_replace((*at)[2].str(), std::regex(R"(\\")"), "\""));
  }
  return text.append(last, source.end());
}

}  // namespace klap::test
