// One-line JSON objects; see json.h.
#include "json.h"

#include <cstdio>

namespace bench {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

JsonObject& JsonObject::add_raw(std::string_view key, std::string_view value) {
  if (!members_.empty()) members_ += ", ";
  members_ += in_quotes(key);
  members_ += ": ";
  members_ += value;
  return *this;
}

JsonObject& JsonObject::add(std::string_view key, std::string_view value) {
  return add_raw(key, in_quotes(value));
}

JsonObject& JsonObject::add(std::string_view key, const char* value) {
  return add_raw(key, in_quotes(value));
}

JsonObject& JsonObject::add(std::string_view key, bool value) {
  return add_raw(key, value ? "true" : "false");
}

JsonObject& JsonObject::add(std::string_view key, int value) { return add_raw(key, std::to_string(value)); }

JsonObject& JsonObject::add(std::string_view key, long long value) {
  return add_raw(key, std::to_string(value));
}

JsonObject& JsonObject::add(std::string_view key, double value) { return add_raw(key, number(value)); }

JsonObject& JsonObject::add(std::string_view key, const std::vector<double>& values) {
  std::string list = "[";
  for (const double value : values) {
    if (list.size() > 1) list += ", ";
    list += number(value);
  }
  return add_raw(key, list + "]");
}

JsonObject& JsonObject::add(std::string_view key, const JsonObject& value) {
  return add_raw(key, value.line());
}

JsonObject& JsonObject::add(std::string_view key, const std::vector<JsonObject>& values) {
  std::string list = "[";
  for (const JsonObject& value : values) {
    if (list.size() > 1) list += ", ";
    list += value.line();
  }
  return add_raw(key, list + "]");
}

JsonObject& JsonObject::add_null(std::string_view key) { return add_raw(key, "null"); }

std::string JsonObject::line() const { return "{" + members_ + "}"; }

}  // namespace bench
