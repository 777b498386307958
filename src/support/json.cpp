#include "support/json.h"

#include <fmt/format.h>

#include <cmath>

namespace klap {
namespace {

// Bytes of the UTF-8 sequence that `text` begins with; 0 if it begins with none.
size_t sequence_at(std::string_view text) {
  const auto byte = [text](size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = byte(1);
  const bool is_valid = !(first == 0xe0 && second < 0xa0) && !(first == 0xed && second > 0x9f) &&
                        !(first == 0xf0 && second < 0x90) && !(first == 0xf4 && second > 0x8f);
  return is_valid ? length : 0;
}

void write_character(std::string& out, char character) {
  switch (character) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      if (static_cast<unsigned char>(character) < 0x20) {
        out += fmt::format("\\u{:04x}", static_cast<unsigned char>(character));
      } else {
        out += character;
      }
  }
}

void write_text(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const size_t length = sequence_at(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";  // the replacement character
    } else if (length == 1) {
      write_character(out, text.front());
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

// A number that is still read as floating point.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

void begin_line(std::string& out, size_t depth) { out.append("\n").append(2 * depth, ' '); }

}  // namespace

void Json::write(std::string& out, size_t depth) const {
  if (const auto* const truth = std::get_if<bool>(&value_)) {
    out += *truth ? "true" : "false";
  } else if (const auto* const whole = std::get_if<long long>(&value_)) {
    out += std::to_string(*whole);
  } else if (const auto* const real = std::get_if<double>(&value_)) {
    out += number(*real);
  } else if (const auto* const text = std::get_if<std::string>(&value_)) {
    write_text(out, *text);
  } else if (const auto* const array = std::get_if<Array>(&value_)) {
    out += '[';
    for (const Json& element : *array) {
      if (&element != &array->front()) out += ',';
      begin_line(out, depth + 1);
      element.write(out, depth + 1);
    }
    if (!array->empty()) begin_line(out, depth);
    out += ']';
  } else if (const auto* const object = std::get_if<Object>(&value_)) {
    out += '{';
    bool is_first = true;
    for (const auto& [key, member] : *object) {
      if (!std::exchange(is_first, false)) out += ',';
      begin_line(out, depth + 1);
      write_text(out, key);
      out += ": ";
      member.write(out, depth + 1);
    }
    if (!object->empty()) begin_line(out, depth);
    out += '}';
  } else {
    out += "null";
  }
}

std::string Json::text() const {
  std::string out;
  write(out, 0);
  return out;
}

}  // namespace klap
