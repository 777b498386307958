// JSON to be written, in a program that may have run out of memory.
//
// Common JSON libraries ask for memory when a value is destroyed, which ends the program where there is none:
// also while an exception is on its way. Nothing here does.
#pragma once

#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace klap {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  template <std::integral Number>
  Json(Number value) : value_(static_cast<long long>(value)) {}
  Json(double value) : value_(value) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(Array array) : value_(std::move(array)) {}
  Json(Object object) : value_(std::move(object)) {}
  Json(const std::vector<std::string>& texts) : value_(Array(texts.begin(), texts.end())) {}

  // Indented by two blanks a level, and without a line's end behind it. Bytes that are not UTF-8 are
  // replaced.
  [[nodiscard]] std::string text() const;

 private:
  void write(std::string& out, size_t depth) const;

  std::variant<std::monostate, bool, long long, double, std::string, Array, Object> value_;
};

}  // namespace klap
