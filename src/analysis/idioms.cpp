#include "analysis/idioms.h"

#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>

#include "support/error.h"

namespace klap::analysis {

extern const char kIdiomsToml[];  // ptx-patterns/idioms/cdp2.toml, embedded at build time

namespace {

std::vector<std::string> strings(const toml::table& table, const char* key) {
  std::vector<std::string> out;
  if (const toml::array* list = table[key].as_array()) {
    for (const toml::node& node : *list) out.push_back(node.value<std::string>().value());
  }
  if (out.empty()) throw Error(ErrorCode::Internal, std::string("launch idioms: empty list '") + key + "'");
  return out;
}

IdiomTable parse_table() {
  const toml::table file = toml::parse(std::string_view(kIdiomsToml));
  IdiomTable out;
  out.last_error = strings(file, "last_error");
  out.peek_last_error = strings(file, "peek_last_error");
  out.runtime_prefixes = strings(file, "runtime_prefixes");
  for (const toml::node& node : *file["idiom"].as_array()) {
    const toml::table& entry = *node.as_table();
    out.idioms.push_back({entry["name"].value<std::string>().value(),
                          entry["get_buffer"].value<std::string>().value(),
                          entry["launch"].value<std::string>().value(),
                          entry["stream_zero"].value<std::string>().value() == "per-thread"});
  }
  return out;
}

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

const IdiomTable& idioms() {
  static const IdiomTable table = parse_table();
  return table;
}

const Idiom* IdiomTable::by_launch(std::string_view function) const {
  const auto found =
      std::find_if(idioms.begin(), idioms.end(), [&](const Idiom& i) { return i.launch == function; });
  return found == idioms.end() ? nullptr : &*found;
}

bool IdiomTable::is_get_buffer(std::string_view function) const {
  return std::any_of(idioms.begin(), idioms.end(), [&](const Idiom& i) { return i.get_buffer == function; });
}

bool IdiomTable::is_last_error(std::string_view function) const { return contains(last_error, function); }
bool IdiomTable::is_peek_last_error(std::string_view function) const {
  return contains(peek_last_error, function);
}

bool IdiomTable::is_device_runtime(std::string_view function) const {
  return std::any_of(runtime_prefixes.begin(), runtime_prefixes.end(),
                     [&](const std::string& prefix) { return function.starts_with(prefix); });
}

}  // namespace klap::analysis
