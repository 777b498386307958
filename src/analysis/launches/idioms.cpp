#include "analysis/launches/idioms.h"

#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "support/error.h"

namespace klap::analysis {

// The files of ptx-patterns/idioms, embedded at build time.
extern const char kIdiomsCdp2Toml[];
extern const char kIdiomsCdp1Toml[];
extern const char kRuntimeToml[];

namespace {

std::string text_of(const toml::table& table, const char* key) {
  const auto value = table[key].value<std::string>();
  if (!value) throw Error(ErrorCode::Internal, std::string("launch idioms: no text '") + key + "'");
  return *value;
}

std::vector<std::string> strings(const toml::table& table, const char* key) {
  std::vector<std::string> out;
  if (const toml::array* list = table[key].as_array()) {
    for (const toml::node& node : *list) out.push_back(node.value<std::string>().value());
  }
  if (out.empty()) throw Error(ErrorCode::Internal, std::string("launch idioms: empty list '") + key + "'");
  return out;
}

void add_idioms(const char* text, std::vector<Idiom>& idioms) {
  const toml::table file = toml::parse(std::string_view(text));
  for (const toml::node& node : *file["idiom"].as_array()) {
    const toml::table& entry = *node.as_table();
    Idiom idiom;
    idiom.name = text_of(entry, "name");
    idiom.form = text_of(entry, "form") == "documented" ? LaunchForm::Documented : LaunchForm::Described;
    idiom.get_buffer = text_of(entry, "get_buffer");
    idiom.launch = text_of(entry, "launch");
    idiom.stream_zero_is_per_thread = text_of(entry, "stream_zero") == "per-thread";
    idiom.rewrite_with = entry["rewrite_with"].value_or(std::string());
    idioms.push_back(std::move(idiom));
  }
}

IdiomTable parse_table() {
  IdiomTable out;
  add_idioms(kIdiomsCdp2Toml, out.idioms);
  add_idioms(kIdiomsCdp1Toml, out.idioms);
  const toml::table runtime = toml::parse(std::string_view(kRuntimeToml));
  out.runtime_prefixes = strings(runtime, "prefixes");
  for (const toml::node& node : *runtime["kind"].as_array()) {
    const toml::table& entry = *node.as_table();
    const RuntimeKind kind = {text_of(entry, "name"), text_of(entry, "says")};
    for (const std::string& function : strings(entry, "functions")) out.runtime_kinds[function] = kind;
  }
  return out;
}

// `__cudaCDP2MemcpyAsync_ptsz` and `cudaMemcpyAsync` give `MemcpyAsync`.
std::string_view base_name(std::string_view function) {
  for (const std::string_view prefix : {std::string_view("__cudaCDP2"), std::string_view("cuda")}) {
    if (!function.starts_with(prefix)) continue;
    function.remove_prefix(prefix.size());
    break;
  }
  constexpr std::string_view kPerThread = "_ptsz";
  if (function.ends_with(kPerThread)) function.remove_suffix(kPerThread.size());
  return function;
}

}  // namespace

const IdiomTable& idioms() {
  static const IdiomTable table = parse_table();
  return table;
}

const Idiom* IdiomTable::by_name(std::string_view name) const {
  const auto found =
      std::find_if(idioms.begin(), idioms.end(), [&](const Idiom& i) { return i.name == name; });
  return found == idioms.end() ? nullptr : &*found;
}

const Idiom* IdiomTable::by_launch(std::string_view function) const {
  const auto found =
      std::find_if(idioms.begin(), idioms.end(), [&](const Idiom& i) { return i.launch == function; });
  return found == idioms.end() ? nullptr : &*found;
}

const Idiom* IdiomTable::by_get_buffer(std::string_view function) const {
  const auto found =
      std::find_if(idioms.begin(), idioms.end(), [&](const Idiom& i) { return i.get_buffer == function; });
  return found == idioms.end() ? nullptr : &*found;
}

const RuntimeKind* IdiomTable::kind(std::string_view function) const {
  const std::string_view base = base_name(function);
  // A listed name must have lost a prefix: `Malloc` alone is the program's own.
  const auto found = runtime_kinds.find(base);
  const bool own = found != runtime_kinds.end() && base.size() == function.size() && !base.starts_with("__");
  return found == runtime_kinds.end() || own ? nullptr : &found->second;
}

bool IdiomTable::is_kind(std::string_view function, std::string_view kind_name) const {
  const RuntimeKind* of = kind(function);
  return of != nullptr && of->name == kind_name;
}

bool IdiomTable::is_error_text(std::string_view function) const { return is_kind(function, "error-text"); }

bool IdiomTable::is_last_error(std::string_view function) const { return is_kind(function, "last-error"); }

bool IdiomTable::is_peek_last_error(std::string_view function) const {
  return is_kind(function, "peek-last-error");
}

bool IdiomTable::is_device_runtime(std::string_view function) const {
  return kind(function) != nullptr ||
         std::any_of(runtime_prefixes.begin(), runtime_prefixes.end(),
                     [&](const std::string& prefix) { return function.starts_with(prefix); });
}

std::string IdiomTable::describe(std::string_view function) const {
  const RuntimeKind* of = kind(function);
  return fmt::format("{} ({})", of == nullptr ? "makes an unknown device-runtime call" : of->says, function);
}

}  // namespace klap::analysis
