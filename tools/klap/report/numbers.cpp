#include "klap/report/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace klap::tool {

namespace {

// Three digits, without an exponent.
std::string three_digits(double value) {
  if (value == 0) return "0";
  const int before_point = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(3 - before_point, 0, 3));
}

}  // namespace

std::string grouped(uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string amount(uint64_t number, const std::string& what, const std::string& plural) {
  return fmt::format("{} {}", grouped(number), number == 1 ? what : plural.empty() ? what + "s" : plural);
}

std::string duration(double ms) {
  // The limits are those from which three digits would be 1000 of a unit.
  if (std::abs(ms) >= 999.5) return three_digits(ms / 1000) + " s";
  return std::abs(ms) >= 0.9995 || ms == 0 ? three_digits(ms) + " ms" : three_digits(ms * 1000) + " \u00b5s";
}

std::string factor(double times) {
  return times >= 1000 ? grouped(static_cast<uint64_t>(std::llround(times))) + "\u00d7"
                       : three_digits(times) + "\u00d7";
}

std::string bytes_text(uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{} {}", unit == 0 ? grouped(bytes) : three_digits(value), kUnits.at(unit));
}

std::string svg_number(double value) {
  std::string text = fmt::format("{:.3f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string svg_percent(double share) { return svg_number(100 * share) + "%"; }

}  // namespace klap::tool
